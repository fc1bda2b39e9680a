"""Volumes that are attached at the same time calibrate one after the other: they would measure each other."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgdyno.machine import volume
from tests.host.needs import expect

pytestmark = pytest.mark.needs_fuse

LOCK = Path("/run/pgdyno/calibration.lock")


def waits_for(lock: Path) -> bool:
    """Whether a process has the file open that does not hold its lock: this one does."""
    holders = [link for link in Path("/proc").glob("[0-9]*/fd/*") if link.is_symlink() and _target(link) == str(lock)]
    return len({link.parts[2] for link in holders}) >= 2


def _target(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None


def test_an_attach_waits_while_another_calibrates(state: Path) -> None:
    LOCK.parent.mkdir(mode=0o755, exist_ok=True)
    with LOCK.open("w") as held, ThreadPoolExecutor(1) as pool:
        fcntl.flock(held, fcntl.LOCK_EX)
        attaching = pool.submit(volume.attach, "gp3:size=1GiB", mount=None, name="v", calibrate=True)
        expect(lambda: waits_for(LOCK) or attaching.done(), "it waits")
        assert not attaching.done()
        fcntl.flock(held, fcntl.LOCK_UN)
        attached = attaching.result(60)
    assert attached.facts["base_overhead"]["read"] is not None
    attached.detach()

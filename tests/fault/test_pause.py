"""A paused volume: what CloudWatch's check says of it, and that it can always be removed."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pgdyno.cli.main import run
from pgdyno.host import volume
from pgdyno.host.clean import clean
from pgdyno.host.waiting import wait_until

from ..host.needs import expect, needs_fuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_fuse
TIMES = 20
STALLED = "VolumeStalledIOCheck"


def write_page(path: Path) -> None:
    """One synchronous write."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    try:
        os.write(file, b"x" * 8192)
    finally:
        os.close(file)


def blocked(state: Path, end: Callable[[volume.AttachedVolume], None]) -> None:
    """Pause a volume under a write, and ``end`` it; the writer ends, with an error or without, and nothing is left."""
    mount = state.parent / "mnt"
    with (
        volume.attached("gp3:size=1GiB", mount=mount, name="data", calibrate=False) as data,
        ThreadPoolExecutor(1) as writer,
    ):
        data.fail({"kind": "pause"})
        try:
            written = writer.submit(write_page, mount / "page")
            expect(lambda: data.stats()["counters"]["queue_length"] > 0, "the write waits")
        finally:
            end(data)
        assert isinstance(written.exception(60), OSError | None)
        if data.alive:
            data.detach()
    clean(state)
    assert volume.list_volumes(state) == []
    # Its mount point may be busy for a moment; a process that hangs would keep it so.
    assert wait_until(lambda: not os.path.ismount(mount), 10.0)


def heal(data: volume.AttachedVolume) -> None:
    """The orderly end."""
    data.heal()


def kill(data: volume.AttachedVolume) -> None:
    """The other one."""
    os.kill(data.daemon.pid, 9)


@pytest.mark.bench
@pytest.mark.parametrize("end", [heal, kill])
def test_a_paused_volume_is_removed_every_time(state: Path, end: Callable[[volume.AttachedVolume], None]) -> None:
    for _ in range(TIMES):
        blocked(state, end)


@pytest.mark.bench
def test_a_pause_of_seventy_seconds_is_a_stalled_check(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check is of a whole minute of the wall clock, so the pause begins some seconds before one and ends after it."""
    with volume.attached("gp3:size=1GiB", mount=state.parent / "mnt", name="data") as data:
        assert wait_until(lambda: 53 <= time.time() % 60 < 55, 90.0)
        began = time.monotonic()
        data.fail({"kind": "pause", "for_ns": 70 * 10**9})
        assert volume.states()["data"]["status"] == "impaired"
        write_page(state.parent / "mnt" / "page")
        assert time.monotonic() - began >= 69
        assert run(["metrics", "cloudwatch", "data", "--metric", STALLED, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        (result,) = [one for one in document["MetricDataResults"] if one["Label"].endswith(STALLED)]
        assert max(result["Values"]) == 1.0
    clean(state)

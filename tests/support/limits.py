"""An engine that may have only so many threads or open files: a small program in its place sets the limit and becomes it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine as _engine

if TYPE_CHECKING:
    from collections.abc import Iterator

DEADLINE_S = 30
"""An engine that hangs is killed after this time: no limited command of the tests takes two seconds."""
STRANGER = 54321
"""A user of no other process: RLIMIT_NPROC counts those of a user, and root has none."""
PIDS = Path("/sys/fs/cgroup/pids")
BESIDE = 1
"""Tasks of a limited control group that are not the engine's: the program that ends it after the deadline."""


@contextlib.contextmanager
def threads(count: int, folder: Path) -> Iterator[None]:
    """The engine may have so many threads, the first included: pids.max of a control group."""
    if not os.access(PIDS / "cgroup.procs", os.W_OK):
        pytest.skip("there is no hierarchy of control groups with pids.max that can be written (version 1)")
    group = PIDS / f"pgdyno-test-{uuid.uuid4().hex[:8]}"
    group.mkdir()
    try:
        (group / "pids.max").write_text(str(count + BESIDE))
        with _engine_of(folder, f"echo $$ > {group}/cgroup.procs", ""):
            yield
    finally:
        group.rmdir()


@contextlib.contextmanager
def processes(count: int, folder: Path) -> Iterator[None]:
    """The same by the limit of a user who is not root: `ulimit -u`."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    if not all(place.stat().st_mode & 0o001 for place in (_engine.checked(), *_engine.checked().parents)):
        pytest.skip("needs an engine that every user may execute")
    become = f"setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups"
    # The folders of a test's server are its user's alone; this capability exempts from no limit.
    walks = "--inh-caps=+dac_override --ambient-caps=+dac_override"
    with _engine_of(folder, ":", f"{become} {walks} prlimit --nproc={count}"):
        yield


@contextlib.contextmanager
def files(count: int, folder: Path) -> Iterator[None]:
    """The engine may have so many descriptors, the three standard ones included: `ulimit -n`."""
    with _engine_of(folder, ":", f"prlimit --nofile={count}"):
        yield


@contextlib.contextmanager
def _engine_of(folder: Path, before: str, become: str) -> Iterator[None]:
    """Commands use an engine that a shell starts after ``before``, by the command ``become``."""
    program = folder / "limited-engine"
    engine = shlex.quote(str(_engine.checked()))
    program.write_text(
        f'#!/bin/sh\n{before} && exec timeout --foreground -s KILL {DEADLINE_S} {become} {engine} "$@"\n'
    )
    program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PGDYNO_ENGINE", str(program))
        yield

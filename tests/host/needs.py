"""What some tests need, with the reason for which they are skipped, and waiting with a deadline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from pgdyno.machine.cgroup import find_hierarchy
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable


def _has_cgroups() -> bool:
    try:
        find_hierarchy().require_groups()
    except (PgdynoError, OSError):
        return False
    return True


def first_cpu() -> str | None:
    """A list of CPUs, which this process may use, to bind an instance to; ``None`` on a kernel that binds none."""
    return str(min(os.sched_getaffinity(0))) if _has_cgroups() and find_hierarchy().offers("cpuset") else None


def _has_engine() -> bool:
    try:
        engine.find()
    except PgdynoError:
        return False
    return True


_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not _ROOT, reason="needs root: users, mounts and loop devices")
needs_cgroups = pytest.mark.skipif(not (_ROOT and _has_cgroups()), reason="needs root and a memory control group")
needs_fuse = pytest.mark.skipif(
    not (_ROOT and Path("/dev/fuse").exists() and _has_engine()), reason="needs root, /dev/fuse and the engine"
)


def expect(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait until ``condition`` holds, and fail with ``what`` when it does not in time."""
    assert wait_until(condition, timeout_s), f"not within {timeout_s:g} s: {what}"

"""A volume on a disk is written faster than memory can be freed, with hardly any left: nothing may hang.

The daemon is in the way of the pages that have to be written to make memory free. Had it to wait for memory itself, or
for a page of its own, the machine would stand still.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgdyno.machine import volume
from tests.speed.hold_memory import available_bytes

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

FLOOD_BYTES = 48 << 30
FILE_BYTES = 8 << 30
"""Written over and over, so that the disk needs no more space than this."""
IN_MEMORY = (16 << 30, 2 << 30)
"""The same of a volume in memory, whose file is there before memory is short: such a volume takes memory for each new block."""
BLOCK_BYTES = 8 << 20
LEFT_BYTES = 400 << 20
LEFT_BYTES_MAX = 500 * 10**6
HOLD_TIMEOUT_S = 120.0
HUNG_TASKS = Path("/proc/sys/kernel/hung_task_detect_count")


def hung_tasks() -> int:
    """Tasks that the kernel found waiting for longer than its limit, since boot."""
    return int(HUNG_TASKS.read_text(encoding="ascii"))


def major_faults(pid: int) -> int:
    """Pages that a process had to read from a disk, all its threads together."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[9])


@contextmanager
def memory_held() -> Iterator[None]:
    """Another process holds all but :data:`LEFT_BYTES` of the machine's memory."""
    command = [sys.executable, "-m", "tests.speed.hold_memory", str(LEFT_BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        try:
            assert holder.stdout.readline() == "held\n"
            yield
            assert holder.poll() is None, "the kernel ended the process that held the memory"
        finally:
            holder.stdin.close()
            holder.wait(HOLD_TIMEOUT_S)


def flood(file: Path, flood_bytes: int = FLOOD_BYTES, file_bytes: int = FILE_BYTES) -> list[int]:
    """Write ``flood_bytes`` through the page cache. Returns how much memory was left after each GiB."""
    left = []
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for written in range(0, flood_bytes, BLOCK_BYTES):
            number = (written // BLOCK_BYTES).to_bytes(8, "little")
            os.pwrite(descriptor, number * (BLOCK_BYTES // 8), written % file_bytes)
            if written % (1 << 30) == 0:
                left.append(available_bytes())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return left


def wrong_blocks(file: Path, flood_bytes: int = FLOOD_BYTES, file_bytes: int = FILE_BYTES) -> list[int]:
    """Blocks that do not hold what was written to them last."""
    rounds_before = (flood_bytes - file_bytes) // BLOCK_BYTES
    wrong = []
    with file.open("rb") as content:
        for block in range(file_bytes // BLOCK_BYTES):
            number = (rounds_before + block).to_bytes(8, "little")
            if content.read(BLOCK_BYTES) != number * (BLOCK_BYTES // 8):
                wrong.append(block)
    return wrong


@pytest.mark.skipif(not HUNG_TASKS.exists(), reason="this kernel does not count hung tasks (Linux 6.16)")
def test_a_flood_of_written_pages_with_no_memory_left_hangs_nothing(state_dir: Path) -> None:
    # Not in the tests' own folder if that is in memory: the store must be on a disk.
    with tempfile.TemporaryDirectory(prefix="pgdt-flood-", dir="/var/tmp") as store:
        mount = state_dir.parent / "volume"
        with volume.attached("null:size=16GiB", mount=mount, store=store) as result:
            hung, faults = hung_tasks(), major_faults(result.daemon.pid)
            with memory_held():
                left = flood(mount / "flood")
            print(f"\nleft while writing: {min(left) >> 20} to {max(left) >> 20} MiB")
            assert hung_tasks() == hung
            assert major_faults(result.daemon.pid) == faults
            assert sum(bytes_left < LEFT_BYTES_MAX for bytes_left in left) >= len(left) * 0.9
            assert wrong_blocks(mount / "flood") == []
            assert result.stats()["counters"]["refused_ops"] == 0


@pytest.mark.skipif(not HUNG_TASKS.exists(), reason="this kernel does not count hung tasks (Linux 6.16)")
def test_a_flood_of_a_volume_in_memory_hangs_nothing(state_dir: Path) -> None:
    flood_bytes, file_bytes = IN_MEMORY
    mount = state_dir.parent / "volume"
    with volume.attached("null:size=4GiB", mount=mount) as result:
        flood(mount / "flood", file_bytes, file_bytes)
        hung, faults = hung_tasks(), major_faults(result.daemon.pid)
        with memory_held():
            left = flood(mount / "flood", flood_bytes, file_bytes)
        print(f"\nleft while writing: {min(left) >> 20} to {max(left) >> 20} MiB")
        assert hung_tasks() == hung
        assert major_faults(result.daemon.pid) == faults
        assert wrong_blocks(mount / "flood", flood_bytes, file_bytes) == []
        assert result.stats()["counters"]["refused_ops"] == 0

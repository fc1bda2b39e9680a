"""Asks btrfs where its RAID-0 over four devices puts requests, so that the array of the model can be held against it.

    python -m tools.btrfs_layout        write crates/volume/tests/data/btrfs_layout.json again

Needs root, loop devices, mkfs.btrfs and a kernel with btrfs. The devices are plain: only which of them is asked for how
much is looked at, by the kernel's own counters of each.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.machine import mounts, paths, program
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = Path(__file__).parent.parent / "crates/volume/tests/data/btrfs_layout.json"
COLUMNS = 4
CHUNK_KIB = 64
"""Btrfs has no other stripe length (BTRFS_STRIPE_LEN in the kernel's fs/btrfs/volumes.h)."""
DEVICE_BYTES = 1 << 30
FILE_KIB = 32 << 10
"""Below the second superblock of each device at 64 MiB, around which btrfs leaves a gap."""
LENGTHS_KIB = (4, 16, 64, 128, 256, 512)
PATIENCE_S = 10.0
_ENVIRONMENT = os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
"""With the administrator's programs."""


def asked() -> list[tuple[int, int]]:
    """Offset and length in KiB of each request: around the edges of chunks, and anywhere."""
    edges = [edge + step for edge in (0, 64, 128, 192, 256) for step in (0, 4, 32, 60)]
    anywhere = random.Random(1)
    offsets = edges + [4 * anywhere.randrange((FILE_KIB - max(LENGTHS_KIB)) // 4) for _ in range(40)]
    return [(offset, length) for length in LENGTHS_KIB for offset in offsets]


def observe() -> list[dict[str, Any]]:
    """What each device was asked for by each request: how many requests, and how many KiB."""
    with _striped() as (file, devices):
        # Not O_DIRECT: some kernels answer it from the page cache on btrfs. Random, so that nothing more is read ahead.
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
            first = _members(descriptor, devices, 0, 4)
            turn = next(column for column, (_, kib) in enumerate(first) if kib)
            observe = []
            for offset, length in asked():
                members = _members(descriptor, devices, offset, length)
                # Which device has the first chunk is the allocator's choice.
                observe.append({"offset_kib": offset, "length_kib": length, "members": members[turn:] + members[:turn]})
            return observe
        finally:
            os.close(descriptor)


def _members(descriptor: int, devices: list[str], offset_kib: int, length_kib: int) -> list[list[int]]:
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    before = [_reads(device) for device in devices]
    read = os.pread(descriptor, length_kib << 10, offset_kib << 10)
    after = [_reads(device) for device in devices]
    if len(read) != length_kib << 10:
        raise RuntimeError(f"{len(read)} bytes of {length_kib} KiB at {offset_kib} KiB were read")
    return [[new[0] - old[0], new[1] - old[1]] for old, new in zip(before, after, strict=True)]


def _reads(device: str) -> tuple[int, int]:
    """Reads that a device has done, and their KiB (the kernel's Documentation/block/stat.rst)."""
    fields = (Path("/sys/block") / Path(device).name / "stat").read_text().split()
    return int(fields[0]), int(fields[2]) // 2


@contextmanager
def _striped() -> Iterator[tuple[Path, list[str]]]:
    """A file on btrfs over four loop devices, and these; all of it gone at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="btrfs-", dir=paths.image_dir())))
        devices = [stack.enter_context(_loop(folder / f"device-{number}")) for number in range(COLUMNS)]
        program.run(
            "mkfs.btrfs", "--quiet", "--force", "--data", "raid0", "--metadata", "raid1", *devices, env=_ENVIRONMENT
        )
        target = folder / "mounted"
        target.mkdir()
        for device in devices[1:]:
            program.run("btrfs", "device", "scan", device, env=_ENVIRONMENT)
        # Without checksums and copies on write a file stays where it was put.
        program.run("mount", "-t", "btrfs", "-o", "nodatacow,nodatasum,noatime", devices[0], target)
        stack.callback(_unmount, target)
        file = target / "file"
        file.touch()
        program.run("fallocate", "--length", f"{FILE_KIB}KiB", file)
        with file.open("r+b") as opened:
            opened.write(os.urandom(FILE_KIB << 10))
            os.fsync(opened.fileno())
        yield file, devices


@contextmanager
def _loop(file: Path) -> Iterator[str]:
    with file.open("wb") as image:
        image.truncate(DEVICE_BYTES)
    path = subprocess.check_output(["losetup", "--find", "--show", file], env=_ENVIRONMENT, text=True).strip()
    loop = mounts.Loop(path, str(file))
    try:
        yield path
    finally:
        # The kernel would go on offering it as a part of the file system.
        subprocess.run(["btrfs", "device", "scan", "--forget", path], capture_output=True, check=False)
        if not mounts.detach_loop(loop, PATIENCE_S):
            raise RuntimeError(f"{path} is still in use")


def _unmount(target: Path) -> None:
    gone = wait_until(
        lambda: all(mounts.unmount(mount, PATIENCE_S) for mount in mounts.mounts_below(target)), PATIENCE_S
    )
    if not gone:
        raise RuntimeError(f"{target} is still in use")


def main() -> int:
    """Write the record."""
    requests = observe()
    made = {"made_by": "python -m tools.btrfs_layout", "kernel": platform.release().partition("-")[0]}
    record = made | {"columns": COLUMNS, "chunk_kib": CHUNK_KIB, "requests": requests}
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record).replace(', {"offset', ',\n{"offset') + "\n", encoding="ascii")
    print(f"{len(requests)} requests in {RECORD}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A black box that this project did not write: QEMU's storage daemon with limits that a hidden seed chose.

It stands for a disk with a processor of its own, so it is scheduled ahead of the load, as an emulated volume is.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.machine import mounts
from pgdyno.machine.journal import HostJournal
from tools.fidelity import device
from tools.fidelity.cell import Limits

AHEAD_NICE = -19
"""Of QEMU's threads: one behind the emulator's that take requests in."""
CONNECTIONS = Path("/sys/fs/fuse/connections")


def hidden_limits(seed: int) -> Limits:
    """Limits within what the box does here; the fit is never told."""
    draw = random.Random(seed)
    return Limits(
        iops=draw.randrange(1_500, 4_000, 10),
        bytes_per_s=draw.randrange(60, 200) << 20,
        unit_bytes=256 << 10,
    )


@contextmanager
def mounted_box(bench: device.Bench, limits: Limits) -> Iterator[Path]:
    """The box with an ext4 on it, mounted, for the length of a ``with`` block."""
    folder = bench.folder / "box"
    with device.qemu(bench, limits) as opened, HostJournal(bench.state_dir).directory(folder):
        _one_at_a_time(bench.folder / "export")
        _ahead_of_the_load(bench.folder)
        options = "lazy_itable_init=0,lazy_journal_init=0"
        subprocess.run(["mkfs.ext4", "-q", "-E", options, opened.path], check=True)
        subprocess.run(["mount", opened.path, folder], check=True)
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)


def _one_at_a_time(export: Path) -> None:
    """Have the kernel hand QEMU one request at a time.

    QEMU 7.2 takes the next request into the buffer of a write that it has not finished: with two of them content is
    lost, and a file system does not last a second. One at a time it still does more than the limits.
    """
    mount = next(each for each in mounts.mounts() if each.target == export)
    device_of = {line.split()[0]: line.split()[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    minor = device_of[str(mount.mount_id)].split(":")[1]
    mounted = (CONNECTIONS / minor).exists()
    if not mounted:
        subprocess.run(["mount", "-t", "fusectl", "none", CONNECTIONS], check=True)
    try:
        (CONNECTIONS / minor / "max_background").write_text("1")
    finally:
        if not mounted:
            subprocess.run(["umount", CONNECTIONS], check=True)


def _ahead_of_the_load(folder: Path) -> None:
    for process in subprocess.run(["pidof", device.QEMU], capture_output=True, text=True, check=False).stdout.split():
        if str(folder) in Path(f"/proc/{process}/cmdline").read_text():
            for task in Path(f"/proc/{process}/task").iterdir():
                subprocess.run(["renice", "-n", str(AHEAD_NICE), "-p", task.name], capture_output=True, check=False)

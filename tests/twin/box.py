"""A black box that this project did not write: QEMU's storage daemon with limits that a hidden seed chose.

It stands for a disk with a processor of its own, so it is scheduled ahead of the load, as an emulated volume is.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.world.journal import Journal
from tools.fidelity import device
from tools.fidelity.cell import Limits

AHEAD_NICE = -19
"""Of QEMU's process: one behind the emulator's threads that take requests in."""


def hidden_limits(seed: int) -> Limits:
    """Limits within what an emulated volume holds here; the fit is never told."""
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
    with device.qemu(bench, limits) as opened, Journal(bench.state_dir).directory(folder):
        for process in subprocess.run(["pidof", device.QEMU], capture_output=True, text=True).stdout.split():
            if str(bench.folder) in Path(f"/proc/{process}/cmdline").read_text():
                subprocess.run(["renice", "-n", str(AHEAD_NICE), "-g", process], capture_output=True, check=False)
                for task in Path(f"/proc/{process}/task").iterdir():
                    subprocess.run(["renice", "-n", str(AHEAD_NICE), "-p", task.name], capture_output=True, check=False)
        # QEMU ignores a discard and answers it well, and mkfs would take what it has discarded for zeroes.
        options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        subprocess.run(["mkfs.ext4", "-q", "-E", options, opened.path], check=True)
        subprocess.run(["mount", opened.path, folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)

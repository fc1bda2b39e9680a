"""What the loop device above a volume costs: direct I/O, the size of its blocks, and the depth of its one hardware queue."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import mounts
from pgdyno.machine.waiting import wait_until
from tests.speed.conftest import Speed, emulated, of_volume
from tools.fidelity.cell import Job, Mix

if TYPE_CHECKING:
    from pgdyno.machine.volume import AttachedVolume
    from tools.fidelity.device import Bench

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.needs_fio]

ROUNDS = 3
SECONDS = 2
GONE_S = 10.0
MIXES: tuple[Mix, ...] = ("read", "write")


@dataclass(frozen=True)
class Loop:
    """One way to set a loop device up."""

    name: str
    queue: dict[str, str] = field(default_factory=dict)
    """Attributes of the volume's own queue, below ``/sys/block/loopN/queue``."""
    second: bool = False
    """Of a second device on the volume's file, where the setting is one of its making."""
    direct: bool = True
    block_bytes: int = 4096


ATTACHED = Loop("as attached: direct I/O, blocks of 4 KiB, depth 128")
SECOND = Loop("a second device like it", second=True)
LOOPS = (
    ATTACHED,
    Loop("depth 32", {"nr_requests": "32"}),
    Loop("depth 8", {"nr_requests": "8"}),
    Loop("no account of requests (iostats 0)", {"iostats": "0"}),
    Loop("completed on any CPU (rq_affinity 0)", {"rq_affinity": "0"}),
    Loop("completed on the CPU that asked (rq_affinity 2)", {"rq_affinity": "2"}),
    SECOND,
    Loop("a second device, blocks of 512 bytes", second=True, block_bytes=512),
    Loop("a second device by the page cache", second=True, direct=False),
)


@contextmanager
def device_of(volume: AttachedVolume, loop: Loop) -> Iterator[str]:
    """The volume's device, set up so; as it was afterwards."""
    path = str(volume.block_device)
    queue = Path("/sys/block") / Path(path).name / "queue"
    before = {name: (queue / name).read_text() for name in loop.queue}
    try:
        for name, value in loop.queue.items():
            (queue / name).write_text(value)
            assert (queue / name).read_text().strip() == value
        yield path
    finally:
        for name, value in before.items():
            (queue / name).write_text(value)


@contextmanager
def second_device(volume: AttachedVolume, loop: Loop) -> Iterator[str]:
    """Another loop device on a volume's file."""
    command = [
        *("losetup", "--find", "--show", f"--sector-size={loop.block_bytes}"),
        *(f"--direct-io={'on' if loop.direct else 'off'}", str(volume.facts["backing_file"])),
    ]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        result = Path("/sys/block") / Path(path).name
        (result / "queue/scheduler").write_text("none")
        assert (result / "loop/dio").read_text().strip() == str(int(loop.direct))
        assert (result / "queue/logical_block_size").read_text().strip() == str(loop.block_bytes)
        yield path
    finally:
        subprocess.run(["losetup", "-d", path], check=True)
        assert wait_until(lambda: path not in {text.device for text in mounts.loops()}, GONE_S)


def test_what_its_loop_device_costs_a_volume(bench: Bench) -> None:
    """Prints a table. No other setting of a device is better by more than a twentieth than the one that volumes have."""
    document: dict[tuple[str, Mix], list[Speed]] = {}
    with emulated(bench, "null") as volume:
        for _ in range(ROUNDS):
            for loop in LOOPS:
                with (second_device if loop.second else device_of)(volume, loop) as device:
                    for mix in MIXES:
                        speed = of_volume(volume, Job("random", mix, 4, 32, SECONDS), device)
                        document.setdefault((loop.name, mix), []).append(speed)
    rates = {pair: median(speed.iops for speed in speeds) for pair, speeds in document.items()}
    print("\n| loop device | reads, IOPS | daemon CPU, us | writes, IOPS | daemon CPU, us |\n|---|---:|---:|---:|---:|")
    for loop in LOOPS:
        cells = [
            f"{rates[loop.name, mix]:,.0f} | {median(speed.daemon_us or 0.0 for speed in document[loop.name, mix]):.1f}"
            for mix in MIXES
        ]
        print(f"| {loop.name} |", " | ".join(cells), "|")
    for mix in MIXES:
        for loop in LOOPS:
            usual = SECOND if loop.second else ATTACHED
            assert rates[loop.name, mix] <= 1.05 * rates[usual.name, mix], f"{mix}: {loop.name} is better"

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

from pgdyno.host import mounts, transport
from pgdyno.host.waiting import wait_until
from tests.speed.conftest import Speed, emulated, of_volume
from tools.fidelity.cell import Job, Mix

if TYPE_CHECKING:
    from pgdyno.host.volume import AttachedVolume
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
    direct: bool = True
    block_bytes: int = 512
    queue: dict[str, str] = field(default_factory=dict)
    """Attributes of its queue, below ``/sys/block/loopN/queue``."""


LOOPS = (
    Loop("as attached: direct I/O, blocks of 512 bytes, depth 128"),
    Loop("blocks of 4 KiB", block_bytes=4096),
    Loop("depth 32", queue={"nr_requests": "32"}),
    Loop("depth 8", queue={"nr_requests": "8"}),
    Loop("no account of requests (iostats 0)", queue={"iostats": "0"}),
    Loop("completed on any CPU (rq_affinity 0)", queue={"rq_affinity": "0"}),
    Loop("completed on the CPU that asked (rq_affinity 2)", queue={"rq_affinity": "2"}),
    Loop("by the page cache", direct=False),
)


@contextmanager
def looped(volume: AttachedVolume, loop: Loop) -> Iterator[str]:
    """A second loop device on a volume's file."""
    command = [
        *("losetup", "--find", "--show", f"--sector-size={loop.block_bytes}"),
        *(f"--direct-io={'on' if loop.direct else 'off'}", str(volume.facts["backing_file"])),
    ]
    path = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        found = Path("/sys/block") / Path(path).name
        for name, value in {"scheduler": "none", **loop.queue}.items():
            (found / "queue" / name).write_text(value)
            assert value in (found / "queue" / name).read_text(), f"{name} is {value}"
        assert (found / "loop/dio").read_text().strip() == str(int(loop.direct))
        assert (found / "queue/logical_block_size").read_text().strip() == str(loop.block_bytes)
        yield path
    finally:
        subprocess.run(["losetup", "-d", path], check=True)
        assert wait_until(lambda: path not in {one.device for one in mounts.loops()}, GONE_S)


@pytest.mark.parametrize("way", ["classic", "uring"])
def test_what_its_loop_device_costs_a_volume(bench: Bench, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints a table. No other way to set it up is better than the one that volumes have by more than a twentieth."""
    missing = transport.missing()
    if way == "uring" and missing is not None:
        pytest.skip(missing)
    monkeypatch.setenv("PGDYNO_TRANSPORT", way)
    found: dict[tuple[str, Mix], list[Speed]] = {}
    with emulated(bench, "null") as volume:
        assert volume.facts["transport"]["used"] == way
        for _ in range(ROUNDS):
            for loop in LOOPS:
                with looped(volume, loop) as device:
                    for mix in MIXES:
                        speed = of_volume(volume, Job("random", mix, 4, 32, SECONDS), device)
                        found.setdefault((loop.name, mix), []).append(speed)
    rates = {one: median(speed.iops for speed in speeds) for one, speeds in found.items()}
    print(
        f"\n| {way}: loop device | reads, IOPS | daemon CPU, us | writes, IOPS | daemon CPU, us |\n|---|---:|---:|---:|---:|"
    )
    for loop in LOOPS:
        cells = [
            f"{rates[loop.name, mix]:,.0f} | {median(speed.daemon_us or 0.0 for speed in found[loop.name, mix]):.1f}"
            for mix in MIXES
        ]
        print(f"| {loop.name} |", " | ".join(cells), "|")
    for mix in MIXES:
        best = max(rates[loop.name, mix] for loop in LOOPS)
        assert best <= 1.05 * rates[LOOPS[0].name, mix], f"{mix}: another way to set it up is better"

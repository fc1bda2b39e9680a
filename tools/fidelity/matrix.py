"""Which cells the record has, and why these.

The full cross of volumes, patterns, mixes, sizes and depths has 2,016 cells: more than three hours of short jobs. The
record has instead

- ``pairs``: the fewest cells found in which every pair of values of any two of {volume, pattern with mix, size, depth}
  occurs, so that a fault of one value or of two together cannot hide (most faults of programs are of that kind);
- ``rate``: jobs of a minute, for what is claimed over a minute;
- ``depth-1``: single requests, where an error of a few microseconds shows; three times each, the middle one counts;
- ``asleep``: the same while idle CPUs may halt, as in a run with ``world.cpus_awake = false``; no claim is judged on it;
- ``peers``: the same limits under pgdyno, blk-throttle and QEMU, one after the other;
- ``path``: the null volume, a plain loop device and QEMU without limits, one after the other;
- ``types``: every type of volume, an array, an instance, and dilation (:mod:`tools.fidelity.kinds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import get_args

from tools.fidelity import kinds
from tools.fidelity.cell import Cell, Job, Mix, Pattern, World

VOLUMES = (
    "null",
    "gp3:iops=3000,throughput=125",
    "gp3:iops=6000,throughput=250",
    "gp3:iops=16000,throughput=1000",
    "io2bx:iops=16000",
    "io2bx:iops=64000",
)
MODES = tuple(product(get_args(Pattern), get_args(Mix)))
BLOCKS_KIB = (4, 8, 16, 32, 64, 128, 256)
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)

SHORT_S = 5
"""Above a limit a rate is exact after one second; below it 5 s at depth 1 are some 8,000 requests of gp3."""
RATE_S = 60
KS_S = 70
"""10^5 requests of gp3 at depth 1, which take 0.6 ms each and fio's own time between them."""
DEPTH_1_S = 8
REPETITIONS = 3
PEERS: tuple[World, ...] = ("pgdyno", "blk-throttle", "qemu")
PATHS: tuple[World, ...] = ("pgdyno", "loop", "qemu")

FIFO, GAMMA = "gp3:iops=3000,throughput=125,order=fifo", "gp3:iops=3000,throughput=125"
"""gp3's own order under saturation is the gamma one."""

RATE_JOBS = (
    (FIFO, Job("random", "read", 4, 32, RATE_S)),
    (GAMMA, Job("random", "read", 4, 32, RATE_S)),
    ("gp3:iops=6000,throughput=250", Job("random", "write", 8, 16, RATE_S)),
    ("gp3:iops=16000,throughput=1000", Job("random", "70/30", 4, 64, RATE_S)),
    ("gp3:iops=16000,throughput=1000", Job("sequential", "write", 256, 16, RATE_S)),
    ("io2bx:iops=16000", Job("random", "read", 8, 32, RATE_S)),
)
DEPTH_1_VOLUMES = ("gp3:iops=3000,throughput=125", "io2bx:iops=16000")
KS_CELL = Cell("rate", "pgdyno", GAMMA, Job("random", "read", 4, 1, KS_S))
PEER_JOBS = (
    (FIFO, Job("random", "read", 4, 32, 10)),
    ("gp3:iops=16000,throughput=1000,order=fifo", Job("random", "read", 4, 32, 10)),
    ("gp3:iops=16000,throughput=1000,order=fifo", Job("random", "70/30", 8, 32, 10)),
    ("gp3:iops=16000,throughput=1000,order=fifo", Job("random", "write", 256, 16, 10)),
)
PATH_JOBS = (
    Job("random", "read", 4, 1, 5),
    Job("random", "write", 4, 1, 5),
    Job("random", "read", 4, 32, 5),
    Job("random", "write", 4, 32, 5),
    Job("random", "read", 256, 8, 5),
)


def cells() -> list[Cell]:
    """Every cell, in the order in which they are measured: what is compared stands together, long jobs apart."""
    parts = [
        list(path()),
        list(depth_1(1)),
        list(asleep()),
        list(pairs()),
        list(depth_1(2)),
        list(peers()),
        list(rate()),
    ]
    return [cell for part in [*parts, list(kinds.cells()), list(depth_1(3))] for cell in part]


def parts() -> list[str]:
    """The names of the parts, in the order of their first cells."""
    return list(dict.fromkeys(cell.part for cell in cells()))


def pairs() -> Iterator[Cell]:
    """Cells in which every pair of values occurs. Greedy, and the same every time."""
    axes = (range(len(VOLUMES)), range(len(MODES)), range(len(BLOCKS_KIB)), range(len(DEPTHS)))
    wanted = set(_all_pairs(axes))
    while wanted:
        best = max(product(*axes), key=lambda cell: sum(pair in wanted for pair in _pairs_of(cell)))
        wanted -= set(_pairs_of(best))
        volume, mode, block, depth = best
        job = Job(*MODES[mode], BLOCKS_KIB[block], DEPTHS[depth], SHORT_S)
        yield Cell("pairs", "pgdyno", VOLUMES[volume], job)


def rate() -> Iterator[Cell]:
    """Jobs of a minute, and the one with 10^5 single requests."""
    for volume, job in RATE_JOBS:
        yield Cell("rate", "pgdyno", volume, job)
    yield KS_CELL


def depth_1(repetition: int) -> Iterator[Cell]:
    """One request at a time."""
    mixes: tuple[Mix, ...] = ("read", "write")
    for volume, mix in product(DEPTH_1_VOLUMES, mixes):
        yield Cell("depth-1", "pgdyno", volume, Job("random", mix, 4, 1, DEPTH_1_S), repetition)


def asleep() -> Iterator[Cell]:
    """One request at a time, while idle CPUs may halt."""
    for cell in depth_1(1):
        yield replace(cell, part="asleep", awake=False)


def peers() -> Iterator[Cell]:
    """The same limits under each throttle."""
    for turn, (volume, job) in enumerate(PEER_JOBS):
        for world in _turned(PEERS, turn):
            yield Cell("peers", world, volume, job)


def path() -> Iterator[Cell]:
    """No limits: what the way through each of them costs."""
    for turn, job in enumerate(PATH_JOBS):
        for world in _turned(PATHS, turn):
            yield Cell("path", world, "null", job)


def shortened(cells: Iterable[Cell], seconds: int) -> list[Cell]:
    """The same cells with jobs of at most ``seconds``, to try the record: no claim is judged on them."""
    return [replace(cell, job=replace(cell.job, seconds=min(seconds, cell.job.seconds))) for cell in cells]


def _turned(worlds: tuple[World, ...], turn: int) -> tuple[World, ...]:
    """None is always first: a drift of the host meets each of them."""
    first = turn % len(worlds)
    return worlds[first:] + worlds[:first]


def _pairs_of(cell: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    return [(a, cell[a], b, cell[b]) for a, b in combinations(range(len(cell)), 2)]


def _all_pairs(axes: tuple[range, ...]) -> Iterator[tuple[int, int, int, int]]:
    for a, b in combinations(range(len(axes)), 2):
        for x, y in product(axes[a], axes[b]):
            yield (a, x, b, y)

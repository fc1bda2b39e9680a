"""The cells of the part ``types``: every type of the catalogue, an array, an instance, and volumes that are dilated.

What asks for more than 16,000 requests or 1,000 MiB a second is dilated by so much that the machine has that or less to
do. Each type has a job above its limit and one of single requests; they are short, and judged by what a short job can
show (:mod:`tools.fidelity.claims_of_kinds`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from tools.fidelity.cell import Cell, Job, Mix

PART = "types"
IOPS_UNDILATED, MIB_PER_S_UNDILATED = 16_000, 1_000
"""What the claims are made for without dilation."""

DEFAULTS = {
    "gp3": 1,
    "io2bx": 1,
    "gp2": 1,
    "io1": 1,
    "st1": 1,
    "sc1": 1,
    "instance-store": 8,
    "rds-gp3": 1,
    "rds-gp2": 1,
    "rds-io1": 1,
    "rds-io2bx": 1,
    "azure-premium-v1": 1,
    "azure-premium-v2": 1,
    "azure-ultra": 1,
    "gcp-pd-standard": 1,
    "gcp-pd-balanced": 1,
    "gcp-pd-ssd": 1,
    "gcp-hyperdisk-balanced": 1,
    "gcp-hyperdisk-extreme": 1,
    "huawei-sas": 1,
    "huawei-gpssd": 1,
    "huawei-ssd": 1,
    "huawei-essd": 1,
    "gp3-2023": 1,
    "gp2-2018": 1,
    "gp2-2014": 1,
    "io1-2018": 1,
    "io1-2013": 1,
    "io2-2023": 1,
}
"""Every type but ``null``, as it is without a word more, and its dilation."""
LARGE = (
    ("gp3:size=200GiB,iops=80000,throughput=2000", 4, 8),
    ("gp3:size=200GiB,iops=16000,throughput=2000", 256, 4),
    ("io2bx:size=500GiB,iops=256000", 4, 16),
    ("io2bx:size=500GiB,iops=64000", 256, 8),
    ("io1:size=1600GiB,iops=64000", 4, 4),
    ("rds-gp3:size=400GiB,iops=64000", 4, 8),
    ("rds-gp2:size=14000GiB", 4, 4),
    ("azure-premium-v1:size=32767GiB", 4, 2),
    ("azure-premium-v2:size=200GiB,iops=80000,throughput=1900", 4, 8),
    ("azure-ultra:size=1400GiB,iops=400000,throughput=9000", 4, 32),
    ("gcp-pd-ssd:size=4000GiB", 4, 8),
    ("gcp-hyperdisk-balanced:size=400GiB,iops=160000,throughput=2400", 4, 16),
    ("gcp-hyperdisk-extreme:size=400GiB,iops=350000", 4, 32),
    ("huawei-ssd:size=1000GiB", 4, 4),
    ("huawei-essd:size=3000GiB", 4, 8),
)
"""(volume, KiB of a request, dilation) at the most that a family of types has, in IOPS or in throughput."""

RATE_S, DEPTH, LARGE_DEPTH = 3, 32, 128
"""At 80,000 IOPS and 0.5 ms of service 40 requests are outstanding; a loop device keeps 128."""
SINGLE_S = 2

ARRAY_S = 8
ONE, FOUR = "gp3:iops=3000", "4xgp3:iops=3000,chunk=64KiB"
INSTANCE, INSTANCE_VOLUME, INSTANCE_S = "r6g.2xlarge", "io2bx:iops=10000", 20
"""12,000 IOPS when it does not burst. 0.3 % of them in 20 s are 720 requests."""

DILATION, DILATED_S = 8, 8
DILATED_VOLUMES = ("gp3:iops=3000,throughput=125", "io2bx:iops=16000")


def cells() -> Iterator[Cell]:
    """All of the part."""
    yield from dilated()
    yield from array()
    yield shared()
    yield from large()
    yield from defaults()


def defaults() -> Iterator[Cell]:
    """Each type above its limit and one request at a time."""
    mixes: Iterator[Mix] = cycle(("read", "write"))
    for volume, dilation in DEFAULTS.items():
        yield Cell(PART, "pgdyno", volume, Job("random", "read", 4, DEPTH, RATE_S), dilation=dilation)
        yield Cell(PART, "pgdyno", volume, Job("random", next(mixes), 4, 1, SINGLE_S, ramp_s=0), dilation=dilation)


def large() -> Iterator[Cell]:
    """What no machine like this one has undilated."""
    for volume, block_kib, dilation in LARGE:
        yield Cell(PART, "pgdyno", volume, Job("random", "read", block_kib, LARGE_DEPTH, RATE_S), dilation=dilation)


def array() -> tuple[Cell, Cell]:
    """One volume, and four of them striped."""
    cell = Cell(PART, "pgdyno", ONE, Job("random", "read", 4, 32, ARRAY_S))
    return cell, Cell(PART, "pgdyno", FOUR, Job("random", "read", 4, 128, ARRAY_S))


def shared() -> Cell:
    """Two volumes behind an instance that has less than both together."""
    return Cell(PART, "pgdyno", INSTANCE_VOLUME, Job("random", "read", 4, 128, INSTANCE_S), instance=INSTANCE)


def dilated() -> Iterator[Cell]:
    """Volumes at the dilation for which single requests are claimed, one by one and many together."""
    mixes: Iterator[Mix] = cycle(("read", "write"))
    for volume in DILATED_VOLUMES:
        yield Cell(PART, "pgdyno", volume, Job("random", next(mixes), 4, 1, DILATED_S, ramp_s=0), dilation=DILATION)
        yield Cell(PART, "pgdyno", volume, Job("random", "read", 4, 32, RATE_S), dilation=DILATION)

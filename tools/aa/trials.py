"""The experiments: one volume beside itself under five kinds of load, and beside one that is truly 3 % faster.

They are as small as an experiment can be that a user would make: two arms, three replicates, runs of seconds. Short runs
scatter more than long ones; whether the intervals know it is what is asked.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLICATES = 3
"""What `pgdyno compare` makes unless it is told otherwise."""
WARM_UP = "1s"
EMPTIED = "2s"
"""A warm-up in which a volume's bucket of a second of its IOPS is emptied too."""
DURATION = "4s"
"""One sample in four may come late before a check of the run says so."""
EQUAL = 20
"""Experiments of one volume twice."""
DIFFERENT = 3
"""Experiments of two volumes that differ."""
CHANGE = 0.03
"""By how much: :data:`pgdyno.analysis.statistics.DIFFERENCE_OF_INTEREST`."""


@dataclass(frozen=True)
class Kind:
    """A load, and what bounds it."""

    name: str
    volume: str
    memory: str
    workload: dict[str, Any]


NATIVE: dict[str, Any] = {"engine": "native"}
PGBENCH: dict[str, Any] = {"engine": "pgbench"}
"""By the one driver or the other, so that both are asked."""
KINDS = (
    Kind("reads and commits", "gp3", "128MiB", PGBENCH | {"script": "tpcb-like", "scale": 10, "clients": 8}),
    Kind(
        "volume IOPS",
        "gp3",
        "128MiB",
        NATIVE | {"script": "select-only", "scale": 20, "clients": 16, "warmup": EMPTIED},
    ),
    Kind("commits", "io2bx:iops=4000", "512MiB", PGBENCH | {"script": "simple-update", "scale": 4, "clients": 4}),
    Kind(
        "without credits",
        "gp2:size=200GiB,credits=0",
        "128MiB",
        NATIVE | {"script": "tpcb-like", "scale": 20, "clients": 8},
    ),
    Kind(
        "CPU", "gp3:iops=16000,throughput=1000", "512MiB", NATIVE | {"script": "select-only", "scale": 2, "clients": 8}
    ),
)
"""What a comparison can be about, each bound by something else, so that each has noise of its own."""
READS = Kind(
    "3 % more IOPS",
    "gp3:iops=3000",
    "96MiB",
    NATIVE | {"script": "select-only", "scale": 30, "clients": 16, "warmup": EMPTIED},
)
"""Nearly every transaction reads from the volume, so that 3 % more IOPS are 3 % more transactions."""
FASTER = "gp3:iops=3090"


@dataclass(frozen=True)
class Trial:
    """One experiment and what is true of it."""

    number: int
    kind: str
    volumes: tuple[str, str]
    change: float
    """How many more transactions the second volume does, relative; 0 for one volume twice."""
    document: dict[str, Any]

    @property
    def key(self) -> str:
        """Its name, unique among the trials."""
        return f"{self.number:03d} {self.kind}"


def trials(seed: int) -> list[Trial]:
    """All of them; those that differ come first, so that a bench that is interrupted has some of both."""
    different = [_trial(number, READS, FASTER, CHANGE, seed) for number in range(DIFFERENT)]
    equal = [
        _trial(DIFFERENT + number, kind, kind.volume, 0.0, seed)
        for number in range(EQUAL)
        for kind in (KINDS[number % len(KINDS)],)
    ]
    return [*different, *equal]


def digest(wanted: Sequence[Trial]) -> str:
    """Of everything that is asked: results of other trials do not stand in one table."""
    result = json.dumps([[trial.key, trial.document] for trial in wanted], sort_keys=True)
    return hashlib.sha256(result.encode()).hexdigest()[:12]


def _trial(number: int, kind: Kind, other: str, change: float, seed: int) -> Trial:
    document = {
        "schema_version": 1,
        "name": "aa",
        "seed": seed + number,
        "replicates": REPLICATES,
        "instance": {"memory": kind.memory},
        "workload": {"warmup": WARM_UP, "duration": DURATION, **kind.workload},
        "factors": {"world.volume": [kind.volume, other]},
    }
    return Trial(number, kind.name, (kind.volume, other), change, document)

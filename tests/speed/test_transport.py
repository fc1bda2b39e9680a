"""Requests by /dev/fuse and over io_uring, in pairs: one volume each way, in turn, in one run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import pytest

from pgdyno.host import transport
from tests.speed.conftest import Speed, emulated, of_volume
from tools.fidelity.cell import Job, Mix

if TYPE_CHECKING:
    from tools.fidelity.device import Bench

NOT_HERE = transport.missing()
pytestmark = [
    pytest.mark.bench,
    pytest.mark.needs_fuse,
    pytest.mark.needs_fio,
    pytest.mark.skipif(NOT_HERE is not None, reason=NOT_HERE or ""),
]

PAIRS = 6
SECONDS = 3
RATIOS = {"null": (0.9, 0.97), "null:service_us=500": (1.15, 0.93)}
"""Most CPU of the ring's daemon against the classic one for a request at depth 32, and least rate, each for the median of pairs. Where a
request waits the ring gains nothing (0020): there it is held to what `auto` decides between."""
DEPTH_1_US = 33
"""Most time of a request at depth 1 on a volume that answers at once, over the ring (issue 27)."""
DEPTH_1_RATIO = 1.1
"""And of one that waits, against the classic way."""


@dataclass(frozen=True)
class Pair:
    """The same load on both, one right after the other."""

    classic: Speed
    uring: Speed

    @property
    def iops(self) -> float:
        """The ring's rate against the classic one."""
        return self.uring.iops / self.classic.iops

    @property
    def cpu(self) -> float:
        """The same of the daemon's CPU for each request."""
        return (self.uring.daemon_us or 0.0) / (self.classic.daemon_us or 1.0)

    def __str__(self) -> str:
        return f"classic {self.classic}\n  uring   {self.uring}\n  IOPS x {self.iops:.2f}, CPU x {self.cpu:.2f}"


def measured(bench: Bench, spec: str, job: Job, monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """Pairs, every second of them in the other order."""

    def one(which: str) -> Speed:
        monkeypatch.setenv("PGDYNO_TRANSPORT", which)
        with emulated(bench, spec) as volume:
            assert volume.facts["transport"]["used"] == which
            return of_volume(volume, job)

    pairs = []
    for number in range(PAIRS):
        order = ("classic", "uring") if number % 2 == 0 else ("uring", "classic")
        speeds = {which: one(which) for which in order}
        pairs.append(Pair(**speeds))
    print(f"\n{spec}, {job}", *(f"  {pair}" for pair in pairs), sep="\n")
    return pairs


@pytest.mark.parametrize("spec", RATIOS)
@pytest.mark.parametrize("mix", ["read", "write"])
def test_what_the_ring_takes_at_depth_32(spec: str, mix: Mix, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = measured(bench, spec, Job("random", mix, 4, 32, SECONDS), monkeypatch)
    cpu_most, iops_least = RATIOS[spec]
    assert median(pair.cpu for pair in pairs) <= cpu_most
    assert median(pair.iops for pair in pairs) >= iops_least


@pytest.mark.parametrize("spec", RATIOS)
def test_at_depth_1_the_ring_is_as_quick(spec: str, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = measured(bench, spec, Job("random", "read", 4, 1, SECONDS), monkeypatch)
    classic_us = median(pair.classic.median_us for pair in pairs)
    uring_us = median(pair.uring.median_us for pair in pairs)
    assert uring_us <= (DEPTH_1_US if spec == "null" else DEPTH_1_RATIO * classic_us)

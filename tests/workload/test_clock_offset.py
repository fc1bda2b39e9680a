"""How far another clock is ahead: an estimate says by how much it may be off, and is not off by more."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload import clock
from pgdyno.workload.clock import now_ns
from pgdyno.workload.native_record import SECOND_NS
from pgdyno.workload.process import DriverProcess

from .conftest import DAY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDLE = {
    "workload": "idle",
    "clients": 2,
    "arrivals": {"think": {"ms": 5.0}},
    "warmup_ms": 500,
    "duration_ms": 1000,
    "drain_ms": 1000,
    "begin": {"told": {"within_ms": 20_000}},
}


class Way:
    """Two clocks, and a way between them that takes as long as it likes."""

    def __init__(self, ahead_ns: int, delays: Iterator[int]) -> None:
        self._ahead_ns, self._delays, self._t_ns = ahead_ns, delays, 10**12

    def here(self) -> int:
        return self._t_ns

    def ask(self) -> int:
        self._t_ns += next(self._delays)
        there = self._t_ns + self._ahead_ns
        self._t_ns += next(self._delays)
        return there


@given(
    st.integers(-(10**14), 10**14),
    st.lists(st.integers(0, 10**9), min_size=2, max_size=40).filter(lambda d: len(d) % 2 == 0),
)
def test_the_true_offset_is_inside_whatever_the_way_takes(ahead_ns: int, delays: list[int]) -> None:
    way = Way(ahead_ns, iter(delays))
    estimate = clock.estimate(way.ask, way.here, exchanges=len(delays) // 2)
    assert abs(estimate.ahead_ns - ahead_ns) <= estimate.uncertainty_ns
    shortest = min(there + back for there, back in zip(delays[::2], delays[1::2], strict=True))
    assert estimate.uncertainty_ns == -(-shortest // 2), "of all exchanges the one with the shortest round trip counts"


def test_a_thousand_estimates_over_a_busy_and_delayed_way_hold_what_they_say() -> None:
    draw = random.Random(26)
    for _ in range(1000):
        # 0.2 ms, and queues of a millisecond on average in either direction.
        delays = (200_000 + int(draw.expovariate(1e-6)) for _ in range(2 * clock.EXCHANGES))
        ahead_ns = draw.randrange(-DAY_S * SECOND_NS, DAY_S * SECOND_NS)
        way = Way(ahead_ns, delays)
        estimate = clock.estimate(way.ask, way.here)
        assert abs(estimate.ahead_ns - ahead_ns) <= estimate.uncertainty_ns < 2_000_000


def test_an_offset_that_may_be_none_is_none() -> None:
    assert clock.Offset(900, 1000).taken_ns == 0
    assert clock.Offset(-1001, 1000).taken_ns == -1001


@pytest.mark.parametrize("days", [0, 1])
def test_a_driver_of_another_clock_begins_when_it_should_and_is_told_of_on_this_one(
    tmp_path: Path, elsewhere: tuple[str, ...], days: int
) -> None:
    documents: list[dict[str, Any]] = []
    with DriverProcess(IDLE, tmp_path / "drive.err", prefix=elsewhere if days else ()) as driving:
        clock = driving.output.clock
        assert clock is not None
        assert abs(clock.ahead_ns - days * DAY_S * SECOND_NS) <= clock.uncertainty_ns
        assert days or clock.ahead_ns == 0, "processes of one machine have one clock"
        begin_ns = now_ns() + SECOND_NS // 5
        driving.begin_at(begin_ns)
        result = driving.follow(documents.append)
    assert result.summary is not None
    assert documents[0]["begin_ns"] == begin_ns
    assert result.summary["begin_ns"] == begin_ns + SECOND_NS // 2
    assert begin_ns + SECOND_NS <= result.summary["end_ns"] <= now_ns()
    # As late as a busy machine wakes a thread, and not as late as a wrong offset would make it.
    assert result.summary["begin_late_ns"] < SECOND_NS // 5
    assert result.clock is not None
    assert result.clock.drift_ns is not None
    assert abs(result.clock.drift_ns) <= 2 * result.clock.uncertainty_ns, "it is the same kernel's clock"
    assert result.clock.uncertainty_ns < 5_000_000

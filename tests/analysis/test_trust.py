"""How far to trust a replay's arms: the one with production's own volume beside production."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.analysis.replay import trust_of
from pgdyno.report.replay import trust_words
from pgdyno.results.work_record import ReplayedStatement, TimeDistribution

GP3, IO2BX = "gp3:size=100GiB", "io2bx:size=100GiB,iops=6000"


def times(p50_ms: float) -> TimeDistribution:
    """Service times of statements."""
    return TimeDistribution(count=10, mean_ms=p50_ms, p50_ms=p50_ms, p99_ms=4 * p50_ms, max_ms=9 * p50_ms)


def statement(name: str, service_ms: float, recorded_ms: float, calls: int = 100) -> ReplayedStatement:
    """One shape."""
    return ReplayedStatement(
        statement=name, calls=calls, response_ms=service_ms, timed=calls, service_ms=service_ms, recorded_ms=recorded_ms
    )


def arm(volume: str, recorded_on: str | None = GP3, here_ms: tuple[float, ...] = (2.2, 1.8)) -> Any:
    """An arm with a replicate for each median; production's was 2 ms."""
    by_statement = (statement("often", 3, 2), statement("also", 0.9, 1), statement("rare", 900, 1, calls=1))
    replays = [SimpleNamespace(service=times(ms), recorded=times(2.0), by_statement=by_statement) for ms in here_ms]
    workload = {} if recorded_on is None else {"recorded_on": recorded_on}
    records = [SimpleNamespace(workload=workload, replay=replay) for replay in replays]
    replicates = [
        SimpleNamespace(block=("x", number), figures=SimpleNamespace(record=record))
        for number, record in enumerate(records)
    ]
    return SimpleNamespace(label=volume, replicates=replicates, data=SimpleNamespace(resolved={"spec": volume}))


def comparison(*arms: Any) -> Any:
    """The part of one that is looked at."""
    return SimpleNamespace(arms=list(arms))


def test_the_arm_with_production_s_volume_is_held_against_production() -> None:
    trust = trust_of([arm(IO2BX, here_ms=(0.1, 0.1)), arm(GP3)])
    assert trust is not None and trust.arm is not None
    assert (trust.spec, trust.arm.label) == (GP3, GP3)
    assert trust.median is not None and trust.median.mean == pytest.approx((1.1 * 0.9) ** 0.5, rel=0.01)
    # The statements with 90 % of production's time; what is rare says little.
    assert (trust.statements, trust.counted) == ((pytest.approx(0.9), pytest.approx(1.5)), 2)


def test_it_is_said_first_and_also_that_there_is_none() -> None:
    (first,) = trust_words(comparison(arm(IO2BX), arm(GP3)))
    assert first.startswith(f"{GP3} emulates your production volume: ")
    assert "the 2 statements with 90% of production's time are 0.900 to 1.50 times production's" in first
    (none,) = trust_words(comparison(arm(IO2BX)))
    assert none.startswith(f"Production uses {GP3}, which no arm emulates")
    assert trust_words(comparison(arm(IO2BX, recorded_on=None))) == []
    (untimed,) = trust_words(comparison(arm(GP3, here_ms=(0.0, 0.0))))
    assert "no statement was timed on both" in untimed

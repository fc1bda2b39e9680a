"""Credits that go and come back: where a run is divided, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.credit import (
    LASTS_MAX_S,
    REGIME_S_MIN,
    Credit,
    CreditUse,
    Regime,
    credit_findings,
    inferred,
    recorded,
    regimes,
    settled,
)
from pgdyno.analysis.figures import CounterSamples
from pgdyno.analysis.steady import steadiness, steady_within
from pgdyno.base.specification import Rate
from pgdyno.report import document

from .synthetic import GP3, IO2BX, WARMUP_S, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.run import RunFigures

SECOND_NS = 1_000_000_000
GP2 = Rate(300.0, 3000.0)
SPENT_PER_S = GP2.maximum - GP2.sustained
NAME = "the data volume's IOPS credits"
SECONDS = 60
KEPT = 5_400_000
"""Credits of a full gp2: 2,000 s of its burst above the baseline of 100 GiB."""


def edges(seconds: int = SECONDS) -> np.ndarray:
    """Borders of the seconds of a run that began an hour after boot."""
    return (3600 + np.arange(seconds + 1)) * SECOND_NS


def sampled(**columns: Any) -> CounterSamples:
    """Counters that were sampled at those borders."""
    length = len(next(iter(columns.values())))
    return CounterSamples(edges(length - 1), {name: np.asarray(values, float) for name, values in columns.items()})


def spent(gone_from_s: int, waited: float = 1.0) -> CreditUse | None:
    """Credits that are spent at full burst and gone in that second; requests wait for a share of the time."""
    t = np.arange(SECONDS + 1)
    counters = sampled(
        io_credits=np.maximum(0.0, SPENT_PER_S * (gone_from_s - t)), exceeded_iops_ns=t * waited * SECOND_NS
    )
    return recorded(NAME, counters, "io_credits", "exceeded_iops_ns", SPENT_PER_S, edges())


@pytest.mark.parametrize("knee_s", [5, 15, 40, 55])
def test_the_knee_is_the_second_in_which_they_are_gone(knee_s: int) -> None:
    use = spent(knee_s)
    assert use is not None
    assert use.gone == (False,) * knee_s + (True,) * (SECONDS - knee_s)
    assert use.lasts_s is None


def test_credits_that_nobody_waits_for_are_not_missed() -> None:
    use = spent(20, waited=0.1)
    assert use is not None
    assert not any(use.gone)


def test_credits_that_are_spent_last_as_long_as_the_load_allows() -> None:
    use = spent(2000)
    assert use is not None
    assert not any(use.gone)
    assert use.lasts_s == pytest.approx(2000 - SECONDS)
    slow = spent(round(LASTS_MAX_S) + 2 * SECONDS)
    assert slow is not None and slow.lasts_s is None, "a load has quiet hours"


def test_a_balance_that_was_not_sampled_says_nothing() -> None:
    t = np.arange(SECONDS + 1) * SECOND_NS
    of = ("io_credits", "exceeded_iops_ns", SPENT_PER_S, edges())
    assert recorded(NAME, sampled(exceeded_iops_ns=t), *of) is None
    assert recorded(NAME, sampled(io_credits=t * np.nan, exceeded_iops_ns=t), *of) is None
    assert recorded(NAME, sampled(io_credits=[1.0, 1.0], exceeded_iops_ns=[0.0, 1.0]), *of) is None


def device(iops: np.ndarray, queue: np.ndarray) -> CounterSamples:
    """A block device's counters from its rate and its queue in each second."""
    done = np.concatenate([[0.0], np.cumsum(iops)])
    return sampled(
        reads=done * 0.7,
        writes=done * 0.3,
        read_bytes=done * 0.7 * 8192,
        write_bytes=done * 0.3 * 8192,
        weighted_time_ms=np.concatenate([[0.0], np.cumsum(queue * 1e3)]),
    )


def rates(knee_s: int, before: float, after: float) -> np.ndarray:
    """A rate that changes in one second."""
    return np.where(np.arange(SECONDS) < knee_s, before, after)


def test_without_a_balance_the_rate_shows_the_knee() -> None:
    use = inferred(NAME, device(rates(20, 3000.0, 303.0), np.full(SECONDS, 30.0)), "IOPS", GP2, edges())
    assert use is not None
    assert use.gone == (False,) * 20 + (True,) * 40


@pytest.mark.parametrize(
    ("after", "queue", "why"),
    [
        (303.0, 2.0, "less was asked for"),
        (180.0, 30.0, "something else holds it below what is left"),
        (900.0, 30.0, "credits are still spent"),
    ],
)
def test_a_rate_that_falls_for_another_reason_is_no_knee(after: float, queue: float, why: str) -> None:
    use = inferred(NAME, device(rates(20, 3000.0, after), rates(20, 30.0, queue)), "IOPS", GP2, edges())
    assert use is not None
    assert not any(use.gone), why


def test_a_rate_that_never_burst_says_nothing() -> None:
    assert inferred(NAME, device(np.full(SECONDS, 301.0), np.full(SECONDS, 30.0)), "IOPS", GP2, edges()) is None
    assert inferred(NAME, sampled(reads=np.arange(SECONDS + 1)), "IOPS", GP2, edges()) is None


def test_throughput_credits_are_counted_in_bytes() -> None:
    iops = rates(20, 122 * 2**20 / 8192, 20.2 * 2**20 / 8192)
    use = inferred(NAME, device(iops, np.full(SECONDS, 30.0)), "throughput", Rate(20.0, 122.0), edges())
    assert use is not None
    assert use.gone.index(True) == 20


@given(st.lists(st.booleans(), max_size=80))
def test_no_stretch_is_short_and_none_is_made_up(gone: list[bool]) -> None:
    result = settled(gone)
    assert len(result) == len(gone)
    assert set(result) <= set(gone)
    changes = [0, *(at for at in range(1, len(result)) if result[at] != result[at - 1]), len(result)]
    lengths = [after - before for before, after in pairwise(changes)]
    assert len(lengths) == 1 or min(lengths) >= REGIME_S_MIN
    assert settled(result) == result


def test_a_pause_in_which_a_little_is_earned_is_no_regime() -> None:
    assert settled([False] * 10 + [True] * 20 + [False] * 2 + [True] * 10) == (False,) * 10 + (True,) * 32


def test_several_credits_divide_a_run_together() -> None:
    first = CreditUse("a", (False,) * 20 + (True,) * 40)
    second = CreditUse("b", (False,) * 40 + (True,) * 20)
    results = regimes([first, second], np.repeat([900.0, 300.0, 100.0], 20))
    assert [(result.begin_s, result.end_s, result.gone, result.tps) for result in results] == [
        (0, 20, (), 900.0),
        (20, 40, ("a",), 300.0),
        (40, 60, ("a", "b"), 100.0),
    ]
    assert [result.words for result in results] == ["with credits", "without a", "without a and b"]


def noise(level: float, seconds: int) -> np.ndarray:
    """Seconds around a level."""
    return np.random.default_rng(3).normal(level, level * 0.02, seconds)


def test_the_longest_regime_is_judged_and_named() -> None:
    values = np.concatenate([noise(1000.0, 25), noise(100.0, 35)])
    parts = (Regime(0, 25, (), 1000.0), Regime(25, 60, (NAME,), 100.0))
    steady = steady_within(values, (), parts)
    assert (steady.state, steady.part) == ("steady", parts[1])
    assert 25 <= steady.begin_s < steady.end_s == 60
    assert steady.tps is not None
    assert steady.tps.mean == pytest.approx(100.0, rel=0.02)
    result = steadiness(steady, 475.0)
    assert result.level == "ok"
    assert result.figure.endswith(f"; in seconds 26 to 60, without {NAME}")


def test_equal_regimes_are_judged_by_the_later_one() -> None:
    parts = (Regime(0, 30, (), 1000.0), Regime(30, 60, (NAME,), 100.0))
    assert steady_within(np.concatenate([noise(1000.0, 30), noise(100.0, 30)]), (), parts).part == parts[1]
    short = steady_within(noise(1000.0, 30), (), (Regime(0, 15, (), 1.0), Regime(15, 30, (NAME,), 1.0)))
    assert short.state == "too short"
    assert "in seconds 16 to 30" in steadiness(short, 1.0).figure


def test_what_is_said_of_credits() -> None:
    with_them, without = Regime(0, 15, (), 1012.0), Regime(15, 60, (NAME,), 338.0)
    (divided,) = credit_findings(Credit((with_them, without)), 506.0)
    assert divided.level == "warn"
    assert divided.figure == (
        f"1,012 in seconds 1 to 15, with credits; 338 in seconds 16 to 60, without {NAME}: the run's 506 transactions per"
        " second are a mean over different limits"
    )
    (gone,) = credit_findings(Credit((without,)), 338.0)
    assert (gone.level, gone.figure) == ("ok", f"every figure is without {NAME}")
    (lasting,) = credit_findings(Credit((with_them,), ((NAME, 1980.0),)), 1012.0)
    assert lasting.level == "warn"
    assert lasting.figure == f"{NAME} would be gone after another 33 min: every figure is with them"
    assert list(credit_findings(Credit((with_them,)), 1012.0)) == []
    assert list(credit_findings(Credit(), 0.0)) == []


def rewrite(file: Path, **columns: Any) -> None:
    """Give a table other columns."""
    table = pq.read_table(file, partitioning=None)
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        column = pa.array(np.rint(values).astype(np.int64))
        table = table.append_column(name, column) if place < 0 else table.set_column(place, name, column)
    pq.write_table(table, file)


def test_a_run_over_a_knee_is_divided_there(tmp_path: Path) -> None:
    """Credits for 25 of 60 s, and no checkpoint: a thousand transactions a second, then a tenth of them."""
    knee_s = 25
    arm = replace(GP3, spec="gp2:size=100GiB", kind="gp2", iops_limit=300, burst_iops=3000)
    directory = make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=SECONDS))
    (run,) = directory.glob("runs/*")
    seconds = WARMUP_S + SECONDS
    t = np.arange(seconds + 1)
    until = WARMUP_S + knee_s
    rewrite(
        run / "workload" / "throughput.parquet",
        transactions=np.where(t[:-1] < until, noise(1000.0, seconds), noise(100.0, seconds)),
    )
    rewrite(
        run / "probe" / "volume.parquet",
        io_credits=np.maximum(0.0, SPENT_PER_S * (until - t)),
        exceeded_iops_ns=t * 0.97 * SECOND_NS,
    )
    rewrite(run / "probe" / "checkpointer.parquet", num_timed=t * 0, num_done=t * 0)
    comparison = summarise(directory)
    figures = comparison.arms[0].replicates[0].figures
    assert [(regime.begin_s, regime.end_s, regime.gone) for regime in figures.credit.regimes] == [
        (0, knee_s, ()),
        (knee_s, SECONDS, (NAME,)),
    ]
    assert figures.steady.part == figures.credit.regimes[1]
    assert figures.steady.state == "steady"
    assert figures.steady.tps is not None
    assert figures.steady.tps.mean == pytest.approx(100.0, rel=0.02)
    assert any(NAME in warning for warning in comparison.arms[0].warnings)
    (steady,) = document(comparison).arms[0].steady
    assert [regime.gone for regime in steady.regimes] == [(), (NAME,)]
    assert (steady.begin_s, steady.end_s) == (figures.steady.begin_s, SECONDS)


def made_of(tmp_path: Path, array: dict[str, Any], **counters: Any) -> RunFigures:
    """A minute of a gp2 of 100 GiB, or of an array of such volumes, in which requests wait for the limit."""
    arm = replace(GP3, spec="gp2:size=100GiB", kind="gp2", iops_limit=300, burst_iops=3000)
    directory = make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=SECONDS))
    (run,) = directory.glob("runs/*")
    record = json.loads((run / "run.json").read_text())
    limits = {
        "iops_limit": {"rate_per_s": 3000, "depth_ns": 0},
        "iops_credit": {"rate_per_s": 300, "capacity": KEPT, "initial": KEPT},
    }
    record["world"]["volumes"]["data"]["spec"] |= {"array": array, "params": limits}
    (run / "run.json").write_text(json.dumps(record))
    waited = np.arange(WARMUP_S + SECONDS + 1) * 0.97 * SECOND_NS
    rewrite(run / "probe" / "volume.parquet", exceeded_iops_ns=waited, **counters)
    return summarise(directory).arms[0].replicates[0].figures


@pytest.mark.parametrize("zones", [1, 2])
def test_an_array_has_credits_as_long_as_the_member_that_has_the_least(tmp_path: Path, zones: int) -> None:
    """A copy in the other zone has no part in reads, and keeps what it has; both of a RAID-10 spend alike."""
    left = KEPT - SPENT_PER_S * np.arange(WARMUP_S + SECONDS + 1)
    array = {"columns": 1, "copies": 2 // zones, "multi_az_ms": 1.0 if zones == 2 else None}
    other = KEPT if zones == 2 else left
    figures = made_of(tmp_path, array, io_credits=left + other, burst_balance_ppm=1e6 * left / KEPT)
    ((name, lasts_s),) = figures.credit.lasts
    assert name == NAME
    assert lasts_s == pytest.approx(2000 - WARMUP_S - SECONDS, abs=1)


def test_credits_of_all_copies_are_gone_with_less_than_all_of_them_spend(tmp_path: Path) -> None:
    """Of a record without each member's balance: 0.4 seconds of both copies' spending is left, where half a second is nothing."""
    left = np.full(WARMUP_S + SECONDS + 1, 0.4 * 2 * SPENT_PER_S)
    figures = made_of(tmp_path, {"columns": 1, "copies": 2, "multi_az_ms": None}, io_credits=left)
    (regime,) = figures.credit.regimes
    assert regime.gone == (NAME,)


def test_an_instances_reserve_is_credit_too(tmp_path: Path) -> None:
    """The made-up one loses 1 % a second, and nobody waits for its throughput."""
    arm = replace(IO2BX, instance_above_iops=0.4)
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=SECONDS)))
    ((name, lasts_s),) = comparison.arms[0].replicates[0].figures.credit.lasts
    assert name == "the instance's reserve of throughput"
    assert lasts_s == pytest.approx(100 - WARMUP_S - SECONDS, rel=0.01)


def test_a_volume_without_credits_has_nothing_to_say(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20)))
    figures = comparison.arms[0].replicates[0].figures
    assert figures.credit.lasts == ()
    (whole,) = figures.credit.regimes
    assert (whole.begin_s, whole.end_s, whole.gone) == (0, 20, ())
    assert whole.tps == pytest.approx(figures.work_per_s, rel=1e-6)
    assert figures.steady.part is None
    assert "credits" not in {finding.check for finding in comparison.arms[0].replicates[0].findings}

"""What several drivers said, added up, is what one driver would have said: bucket by bucket, and nothing more."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.base.errors import PgdynoError
from pgdyno.results.tables import SubjectClock
from pgdyno.workload import histogram, native, native_record
from pgdyno.workload.native_record import SECOND_NS, DriverOutput

from .test_native_record import BOOT_NS, SPEC, Latencies, said

values = st.lists(st.integers(0, 5_000_000), max_size=6)
latencies = st.lists(values, min_size=2, max_size=2)
"""Of the two scripts of the workload in one second."""


@st.composite
def loads(draw: st.DrawFn) -> list[list[Latencies]]:
    """Of each driver its seconds, of which all have as many; the first one is the warm-up."""
    drivers, seconds = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    second = st.lists(latencies, min_size=seconds, max_size=seconds)
    return draw(st.lists(second, min_size=drivers, max_size=drivers))


def driver(seconds: list[Latencies], skipped: int = 0) -> DriverOutput:
    """What a driver of these latencies says."""
    driver, _ = said(seconds[:1], seconds[1:], [[], []], skipped)
    assert driver.summary is not None
    late = {"begin_late_ns": 50_000, "woke_late_ns": 60_000}
    whole = {
        "connect_ns": 4_000_000,
        "settled_in_warmup": 0,
        "clients_disconnected": 0,
        "reconnects_failed": {},
        "reconnect_error": None,
    }
    driver.summary |= whole | late | {"process_user_ns": 7, "process_system_ns": 3, "inputs": {"payments": 2}}
    driver.ready |= {"clients": 4, "server_version": "18.6", "seed": 1}
    return driver


def held(encoded: str | None) -> Counter[int]:
    """The buckets of a histogram that hold anything."""
    if encoded is None:
        return Counter()
    value, count = histogram.buckets(encoded)
    return Counter(dict(zip(value.tolist(), count.tolist(), strict=True)))


def bucketed(latencies_us: list[int]) -> Counter[int]:
    return Counter(histogram.bucket_us(np.array(latencies_us, dtype=np.int64)).tolist())


@settings(max_examples=150)
@given(loads(), st.integers(0, 3))
def test_the_sum_is_the_union_bucket_by_bucket(drivers: list[list[Latencies]], skipped: int) -> None:
    the_sum_is_the_union(drivers, skipped)


@pytest.mark.bench
@settings(max_examples=2000)
@given(loads(), st.integers(0, 3))
def test_the_sum_of_two_thousand_loads_is_their_union(drivers: list[list[Latencies]], skipped: int) -> None:
    the_sum_is_the_union(drivers, skipped)


def the_sum_is_the_union(drivers: list[list[Latencies]], skipped: int) -> None:
    parts = [driver(seconds, skipped) for seconds in drivers]
    result = native.merged(parts)
    union = driver([[_joined(drivers, at, script) for script in (0, 1)] for at in range(len(drivers[0]))])
    assert result.summary is not None
    assert union.summary is not None
    assert len(result.seconds) == len(union.seconds)
    for item, other in zip([*result.seconds, result.summary], [*union.seconds, union.summary], strict=True):
        assert [item[name] for name in ("begin_ns", "end_ns", "succeeded")] == [
            other[name] for name in ("begin_ns", "end_ns", "succeeded")
        ]
        for mine, theirs in zip(item["scripts"], other["scripts"], strict=True):
            assert (mine["name"], mine["succeeded"]) == (theirs["name"], theirs["succeeded"])
            for which in ("response_us", "service_us"):
                assert held(mine[which]) == held(theirs[which])
        for mine, theirs in zip(item["statements"], other["statements"], strict=True):
            assert (mine["count"], held(mine["service_us"])) == (theirs["count"], held(theirs["service_us"]))
        assert item["queries"] == other["queries"]
    assert result.summary["skipped_late"] == skipped * len(drivers) * (len(drivers[0]) - 1)
    total = native_record.account_total(result)
    assert total.scheduled == result.summary["scheduled_with_warmup"], "the account of all adds up"
    assert total.succeeded == sum(len(values) for seconds in drivers for second in seconds for values in second)


def _joined(drivers: list[list[Latencies]], at: int, script: int) -> list[int]:
    return [value for seconds in drivers for value in seconds[at][script]]


@settings(max_examples=50)
@given(loads())
def test_the_tables_of_a_run_are_those_of_the_union(drivers: list[list[Latencies]]) -> None:
    result = native.merged([driver(seconds) for seconds in drivers])
    measured = len(drivers[0]) - 1
    span = native_record.ClientPhases(BOOT_NS, BOOT_NS + SECOND_NS, BOOT_NS + (1 + measured) * SECOND_NS)
    outcome = native_record.outcome(SPEC, result, span, SubjectClock())
    assert all(check.ok for check in outcome.checks if check.name == "measured_under_load")
    for script, (name, _) in enumerate(SPEC.mix):
        rows = [row for row in outcome.latency.to_pylist() if row["script"] == name]
        assert Counter({(r["t_begin_ns"], r["latency_us"]): r["count"] for r in rows}) == Counter(
            (BOOT_NS + at * SECOND_NS, bucket)
            for at in range(1 + measured)
            for bucket in bucketed(_joined(drivers, at, script)).elements()
        )


def test_lateness_is_not_added_and_totals_are() -> None:
    parts = [driver([[[1], []], [[2], [3]]]) for _ in range(3)]
    assert parts[1].summary is not None
    parts[1].summary |= {
        "begin_late_ns": 900_000,
        "woke_late_ns": 1_900_000,
        "errors": {"deadlock": 2},
        "connections_lost": 1,
    }
    parts[2].summary = {**(parts[2].summary or {}), "errors": {"deadlock": 1, "23505": 4}, "connect_ns": 9_000_000}
    parts[2].ready["connect_ns"] = 9_000_000
    result = native.merged(parts)
    assert result.summary is not None
    record = native_record.driver_record(SPEC, result, SubjectClock())
    assert (record.wake, record.lag) == (None, None), "percentiles of several drivers cannot be added"
    assert (record.begin_late_ms, record.connect_ms) == (0.9, 9.0), "those of the last"
    assert result.summary["woke_late_ns"] == 1_900_000
    assert (record.errors, record.connections_lost) == ({"deadlock": 3, "23505": 4}, 1)
    assert (result.summary["inputs"], result.summary["process_user_ns"]) == ({"payments": 6}, 21)
    assert result.ready["clients"] == 12


def test_a_driver_without_a_summary_is_the_sum_of_its_seconds() -> None:
    part = driver([[[5], []], [[7, 9], [3]], [[8], []]])
    whole, part.summary = part.summary, None
    assert whole is not None
    result = native.summary_of(part)
    assert (result["succeeded"], result["scheduled_with_warmup"], result["settled_in_warmup"]) == (4, 5, 1)
    for mine, theirs in zip(result["scripts"], whole["scripts"], strict=True):
        assert held(mine["response_us"]) == held(theirs["response_us"])
    assert result.keys() >= whole.keys() - {"warmup"}


def test_a_second_that_one_driver_did_not_tell_is_that_of_the_others() -> None:
    early, late = driver([[[5], []], [[7], []]]), driver([[[5], []], [[7], []]])
    del early.seconds[-1]
    assert [second["succeeded"] for second in native.merged([early, late]).seconds] == [2, 1]


def test_drivers_of_different_workloads_are_not_added() -> None:
    parts = [driver([[[1], []], [[2], [3]]]) for _ in range(2)]
    changed: dict[str, Any] = parts[1].seconds[0]["scripts"][0]
    changed["name"] = "another"
    with pytest.raises(PgdynoError, match="different scripts"):
        native.merged(parts)

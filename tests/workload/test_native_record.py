"""What the driver says becomes tables in which nothing is lost, in whichever time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.kinds.registry import workload_of
from pgdyno.results.tables import SubjectClock
from pgdyno.workload import histogram, native_record
from pgdyno.workload.native_record import SECOND_NS, ClientPhases, DriverOutput

BOOT_NS = 7_000 * SECOND_NS + 123
SPEC = workload_of(script="select-only@3,simple-update@1", engine="native", rate_per_s=100)
Latencies = list[list[int]]
"""Of each script, in microseconds."""


def encoded(values: list[int]) -> str | None:
    """As the driver says it."""
    if not values:
        return None
    made = histogram.of_buckets(np.array(values, dtype=np.int64), np.ones(len(values)))
    return str(made.encode().decode())


def line(begin_ns: int, end_ns: int, latencies: Latencies, *, warmup: bool = False, skipped: int = 0) -> dict[str, Any]:
    """A second, or the whole: of each script its latencies; a half of each is service time."""
    counts = {"rolled_back": 0, "failed": 0, "skipped_late": 0, "skipped_ended": 0, "retries": 0}
    scripts = [
        {
            **counts,
            "name": name,
            "succeeded": len(values),
            "skipped_late": skipped if name == "select-only" else 0,
            "response_us": encoded(values),
            "service_us": encoded([value // 2 for value in values]),
        }
        for (name, _), values in zip(SPEC.mix, latencies, strict=True)
    ]
    every = [value for values in latencies for value in values]
    figures = {"count": len(every), "mean": 10.0, "p50": 8, "p99": 80, "max": 90}
    return {
        **counts,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "warmup": warmup,
        "succeeded": len(every),
        "skipped_late": skipped,
        "scripts": scripts,
        "statements": [{"name": "SELECT 1", "count": len(every), "service_us": encoded(every)}],
        "queries": {"read": len(every), "write": 0, "other": 0},
        "errors": {},
        "lag_us": figures,
        "wake_us": figures,
        "cpu_ns": 1_000,
        "connections_lost": 0,
        "down_ns": 0,
    }


def said(
    warmup: list[Latencies], measured: list[Latencies], tail: Latencies, skipped: int = 0
) -> tuple[DriverOutput, ClientPhases]:
    """A run with a second for each element; the tail is told by the summary alone."""
    begin_ns = BOOT_NS + len(warmup) * SECOND_NS
    span = ClientPhases(BOOT_NS, begin_ns, begin_ns + len(measured) * SECOND_NS)
    seconds = [
        line(BOOT_NS + place * SECOND_NS, BOOT_NS + (place + 1) * SECOND_NS, latencies, warmup=place < len(warmup),
             skipped=skipped)
        for place, latencies in enumerate([*warmup, *measured])
    ]  # fmt: skip
    whole = [
        [value for latencies in [*measured, tail] for value in latencies[number]] for number in range(len(SPEC.mix))
    ]
    summary = line(span.begin_ns, span.end_ns + SECOND_NS // 2, whole, skipped=skipped * len(measured))
    settled = sum(second["succeeded"] + second["skipped_late"] for second in seconds[: len(warmup)])
    summary |= {
        "scheduled_with_warmup": settled + summary["succeeded"] + summary["skipped_late"],
        "ended_by": None,
        "inputs": {},
        "begin_late_ns": 50_000,
        "woke_late_ns": 60_000,
    }
    return DriverOutput({"begin_ns": BOOT_NS, "connect_ns": 4_000_000}, seconds, summary), span


values = st.lists(st.integers(0, 5_000_000), max_size=8)
latencies = st.lists(st.tuples(values, values).map(list), min_size=1, max_size=6)


@settings(max_examples=30)
@given(latencies, latencies, st.tuples(values, values).map(list), st.integers(0, 3))
def test_nothing_is_lost(warmup: list[Latencies], measured: list[Latencies], tail: Latencies, skipped: int) -> None:
    output, span = said(warmup, measured, tail, skipped)
    outcome = native_record.outcome(SPEC, output, span, SubjectClock())
    assert all(check.ok for check in outcome.checks), outcome.checks
    count = sum(len(script) for second in measured for script in second)
    assert outcome.account.succeeded == count
    assert outcome.account.skipped == skipped * len(measured)
    writes = sum(len(second[1]) for second in [*warmup, *measured, tail])
    assert outcome.writes_total == writes
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= span.begin_ns]
    assert sum(row["transactions"] for row in rows) == count
    assert len(rows) == len(measured) * len(SPEC.mix), "zeros included"
    assert histogram.decode(outcome.histograms["histograms"]["all"]).get_total_count() == count
    assert outcome.service is not None
    assert sum(outcome.service["count"].to_pylist()) == sum(outcome.latency["count"].to_pylist())
    assert outcome.statement is not None
    assert sum(outcome.statement["count"].to_pylist()) == count


def test_a_bin_has_the_latencies_of_its_second() -> None:
    output, span = said([[[1], []]], [[[100, 100, 3_000_000], [7]], [[], [9]]], [[55], []])
    outcome = native_record.outcome(SPEC, output, span, SubjectClock())
    rows = [tuple(row.values()) for row in outcome.latency.to_pylist() if row["t_begin_ns"] >= span.begin_ns]
    first, second = span.begin_ns, span.begin_ns + SECOND_NS
    late = int(histogram.bucket_us(np.array([3_000_000]))[0])
    assert rows == [
        (first, second, "select-only", 100, 2),
        (first, second, "select-only", late, 1),
        (first, second, "simple-update", 7, 1),
        (second, second + SECOND_NS, "simple-update", 9, 1),
    ]


def test_slowed_time_is_told_in_the_subjects() -> None:
    """Four seconds of the host are two of the subject, and 100 us there are 50 here."""
    output, span = said([[[1], []]] * 2, [[[100], []], [[100], []], [[300], []], [[100], []]], [[], []])
    clock = SubjectClock(BOOT_NS, 2)
    outcome = native_record.outcome(SPEC, output, span, clock)
    measure = outcome.phases[-1]
    assert measure.seconds == pytest.approx(2.0)
    rows = [row for row in outcome.latency.to_pylist() if row["t_begin_ns"] >= measure.begin_ns]
    assert [(row["t_end_ns"] - row["t_begin_ns"], row["latency_us"], row["count"]) for row in rows] == [
        (SECOND_NS, 50, 2),
        (SECOND_NS, 50, 1),
        (SECOND_NS, 150, 1),
    ]
    assert outcome.tps == pytest.approx(2.0)
    driver = outcome.driver
    assert driver.connect_ms == pytest.approx(2.0)
    assert driver.elapsed_ns == pytest.approx(2.25 * SECOND_NS)
    assert driver.wake is not None
    assert driver.wake.p99_us == pytest.approx(40.0)


def test_what_was_lost_or_cut_short_is_a_failed_check() -> None:
    output, span = said([[[1], []]], [[[1], []], [[1], []]], [[], []])
    assert output.summary is not None
    output.summary |= {"connections_lost": 2, "down_ns": 1_500_000_000, "scheduled_with_warmup": 9}
    output.seconds.pop()
    outcome = native_record.outcome(SPEC, output, span, SubjectClock())
    failed = {check.name: check.detail for check in outcome.checks if not check.ok}
    assert set(failed) == {"nothing_is_missing", "clients_lasted", "measured_under_load"}
    assert "1.500 s" in failed["clients_lasted"]
    assert "measured 1.000 s of 2 s" in failed["measured_under_load"]
    assert outcome.uncounted_max == 2


def test_the_lines_that_the_engine_writes_are_understood() -> None:
    """The file is written from the engine's types, and compared with them, by ``crates/measure/tests/lines.rs``."""
    text = Path(__file__).with_name("driver_lines.jsonl").read_text(encoding="utf-8")
    ready, *seconds, summary = (json.loads(line) for line in text.splitlines())
    output = DriverOutput(ready["ready"], [item["second"] for item in seconds], summary["summary"])
    outcome = native_record.outcome(SPEC, output, ClientPhases(0, SECOND_NS, 3 * SECOND_NS), SubjectClock())
    assert all(check.ok for check in outcome.checks if check.name != "clients_lasted"), outcome.checks
    assert (outcome.account.scheduled, outcome.account.succeeded, outcome.account.failed) == (6, 4, 2)
    assert histogram.decode(outcome.histograms["histograms"]["all"]).get_total_count() == 4
    assert outcome.driver.errors == {"23505": 2}
    ending = native_record.ending(output)
    assert ending is not None
    assert (ending["script"], ending["line"], ending["statement"]) == ("simple-update", 2, None)
    made = line(0, SECOND_NS, [[1], []])
    assert made.keys() == output.seconds[0].keys(), "the lines of these tests are the engine's"
    assert made["scripts"][0].keys() == output.seconds[0]["scripts"][0].keys()

"""Whether the driver was the limit: by its own figures where it tells them, else by the probe's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.instrument import cores_of
from pgdyno.results.record import ClockRecord, DriverRecord, Lateness

from .synthetic import GP3, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.finding import CheckResult

SECOND_NS = 1_000_000_000


def native(*, cpu_share: float = 0.2, wake_us_p99: float = 60.0, **more: Any) -> DriverRecord:
    """The record of a driver of one thread that drove for 20 s."""
    wake = Lateness(count=20_000, mean_us=9.0, p50_us=8.0, p99_us=wake_us_p99, max_us=2 * wake_us_p99)
    figures = {"threads": 1, "elapsed_ns": 20 * SECOND_NS, "transactions": 20_000, "wake": wake}
    return DriverRecord(engine="native", cpu_ns=int(cpu_share * 20 * SECOND_NS), **(figures | more))


def checked(root: Path, arm: Arm) -> dict[str, CheckResult]:
    """The findings of one run of an arm, by check."""
    comparison = summarise(make_experiment(root, Plan(arms=(arm,), replicates=1, measure_s=20)))
    return {finding.check: finding for finding in comparison.arms[0].replicates[0].findings}


@pytest.mark.parametrize(
    ("changes", "check", "level", "figure"),
    [
        ({}, "driver", "ok", "its thread computed 20 % of the time, 200.0 µs of CPU a transaction"),
        ({"cpu_share": 0.88}, "driver", "ok", "88 %"),
        ({"cpu_share": 0.92}, "driver", "invalid", "92 %"),
        ({"cpu_share": 1.7, "threads": 2}, "driver", "ok", "its 2 threads computed 85 %"),
        ({"cpu_share": 1.9, "threads": 8}, "driver", "invalid", "its 2 threads computed 95 %"),
        ({"wake_us_p99": 60.0}, "schedule", "ok", "99 % of 20,000 times it woke at most 0.060 ms late"),
        # The median response of 32 clients at 1,000 TPS is 28.5 ms, of which a tenth is allowed.
        ({"wake_us_p99": 2_500.0}, "schedule", "ok", "2.500 ms late"),
        ({"wake_us_p99": 3_500.0}, "schedule", "invalid", "3.500 ms late"),
        # What 0.67 % of the transactions are late by is in no percentile up to the 99th.
        (
            {"wake_us_p99": 3_500.0, "transactions": 3_000_000},
            "schedule",
            "ok",
            "not judged: 0.7 % of its work waited",
        ),
        ({"backlog": 30}, "backlog", "ok", "30 transactions were due"),
        ({"backlog": 3_000}, "backlog", "warn", "3,000 transactions were due"),
    ],
)
def test_thresholds(tmp_path: Path, changes: dict[str, Any], check: str, level: str, figure: str) -> None:
    results = checked(tmp_path, replace(GP3, driver=native(**changes)))
    assert results[check].level == level, results[check]
    assert figure in results[check].figure


def test_lateness_is_weighed_against_the_service_time_and_not_the_waiting(tmp_path: Path) -> None:
    arm = replace(GP3, driver=native(wake_us_p99=1_500.0), service_share=0.2)
    result = checked(tmp_path, arm)["schedule"]
    assert result.level == "invalid"
    assert "allowed: 1.000 ms" in result.figure


def test_a_driver_that_does_not_tell_is_judged_by_the_probe(tmp_path: Path) -> None:
    record = DriverRecord(engine="pgbench", threads=1, connect_ms=3.0)
    results = checked(tmp_path, replace(GP3, driver=record, driver_share=0.46))
    assert results["driver"].level == "invalid"
    assert "92 %" in results["driver"].figure
    assert not {"schedule", "backlog"} & results.keys()


@pytest.mark.parametrize(
    ("threads", "cpus", "cores", "at_a_time"),
    [(1, None, 4, 1), (8, None, 4, 4), (8, "1", 4, 1), (8, "0-1,3", 4, 3), (2, "0-3", 4, 2), (8, "0-7", 4, 4)],
)
def test_threads_run_on_the_cores_that_they_may_use(threads: int, cpus: str | None, cores: int, at_a_time: int) -> None:
    assert cores_of(threads, cpus, cores) == at_a_time


def found_of(root: Path, drivers: dict[str, DriverRecord]) -> list[CheckResult]:
    """The findings of a run that these drivers shared."""
    whole = native(cpu_share=0.4, wake=None, threads=2)
    comparison = summarise(
        make_experiment(root, Plan(arms=(replace(GP3, driver=whole, drivers=drivers),), replicates=1))
    )
    return list(comparison.arms[0].replicates[0].findings)


def test_each_of_several_drivers_is_judged_by_its_name(tmp_path: Path) -> None:
    drivers = {
        "driver 1": native(begin_late_ms=0.1),
        "driver 2": native(cpu_share=0.95, wake_us_p99=5_000.0, begin_late_ms=0.3),
    }
    results = found_of(tmp_path, drivers)
    invalid = [f"{result.check}: {result.figure}" for result in results if result.level == "invalid"]
    assert [text.split(" its ")[0].split(" 99 %")[0] for text in invalid] == [
        "driver: driver 2:",
        "schedule: driver 2:",
    ]
    levels = [result.level for result in results if result.check == "driver"]
    assert levels == ["ok", "ok", "invalid"], "all together, and each"
    beginning = next(result for result in results if result.check == "beginning")
    assert (beginning.level, beginning.figure) == (
        "ok",
        "2 drivers; the last, driver 2, began 0.300 ms after the instant that was set for all (allowed: 5 ms)",
    )


def test_drivers_that_did_not_begin_together_make_a_run_invalid(tmp_path: Path) -> None:
    drivers = {"driver 1": native(begin_late_ms=5.1), "driver 2": native(begin_late_ms=0.3)}
    assert {result.check: result.level for result in found_of(tmp_path, drivers)}["beginning"] == "invalid"


@pytest.mark.parametrize(
    ("uncertainty_ns", "drift_ns", "level", "figure"),
    [
        (40_000, 20_000, "ok", "known to 0.060 ms"),
        (40_000, None, "ok", "known to 0.040 ms"),
        (40_000, -5_000_000, "invalid", "known to 5.040 ms"),
        (5_100_000, 0, "invalid", "known to 5.100 ms"),
    ],
)
def test_a_clock_that_is_not_known_makes_a_run_invalid(
    tmp_path: Path, uncertainty_ns: int, drift_ns: int | None, level: str, figure: str
) -> None:
    sure = ClockRecord(ahead_ns=86_400 * SECOND_NS, uncertainty_ns=1_000, drift_ns=0)
    unsure = ClockRecord(ahead_ns=5, uncertainty_ns=uncertainty_ns, drift_ns=drift_ns)
    drivers = {
        "driver 1": native(begin_late_ms=0.1, clock=sure),
        "driver 2": native(begin_late_ms=0.1, clock=unsure),
    }
    result = next(result for result in found_of(tmp_path, drivers) if result.check == "clocks")
    assert result.level == level
    assert figure in result.figure
    assert "driver 2" in result.figure


def test_the_beginning_of_one_driver_is_not_judged(tmp_path: Path) -> None:
    assert "beginning" not in checked(tmp_path, replace(GP3, driver=native(begin_late_ms=80.0)))

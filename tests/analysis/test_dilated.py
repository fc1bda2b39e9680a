"""What a dilated run says of itself: its regime, with the figure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.dilation import undilated_tps
from pgdyno.report import table
from pgdyno.report.document import document
from pgdyno.report.page import html

from .synthetic import CLIENTS, GP3, IO2BX, WARMUP_S, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.finding import CheckResult


def found(directory: Path, dilation: int = 8, **changes: Any) -> CheckResult | None:
    arm = replace(IO2BX, dilation=dilation, **{"driver_share": 0.02, **changes})
    comparison = summarise(make_experiment(directory, Plan(replicates=1).with_arms(arm)))
    return next((f for f in comparison.arms[0].replicates[0].findings if f.check == "dilation"), None)


def too_high(finding: CheckResult | None) -> float:
    """What the finding says of the throughput."""
    assert finding is not None
    return float(finding.figure.rpartition("up to ")[2].partition(" %")[0]) / 100


def test_only_a_dilated_run_speaks_of_it(tmp_path: Path) -> None:
    assert found(tmp_path, dilation=1, server_share=0.2) is None


@pytest.mark.parametrize(
    ("shares", "level", "figure"),
    [
        ({"server_share": 0.01}, "ok", "too short"),
        ({"server_share": 0.30}, "warn", "too short"),
        ({"server_share": 0.90}, "warn", "what 16 cores would do that are never"),
        (
            {"server_share": 0.45, "cpu_share": 0.5},
            "warn",
            "(90 % of the server's): the throughput is what 8 cores",
        ),
        # The driver has the rest of the CPU: the server is short of it at half of the machine's.
        ({"server_share": 0.50, "driver_share": 0.40}, "warn", "what 16 cores would do that have all that ran beside"),
    ],
)
def test_the_regime(tmp_path: Path, shares: dict[str, float], level: str, figure: str) -> None:
    finding = found(tmp_path, **shares)
    assert finding is not None
    assert (finding.level, figure in finding.figure) == (level, True)


def test_by_cpu_time_the_figure_is_what_it_and_the_paths_took(tmp_path: Path) -> None:
    """IO2BX: 3,000 transactions a second of 32 clients, each with two reads and a write. 0.52 of two cores for 8 host seconds
    is 8.32 s of CPU a second; the synthetic calibration is 24.2 µs a read and 26.44 µs a write.
    """
    host_ms = 0.52 * 2 * 8 / 3000 * 1e3 + 2 * 0.0242 + 0.02644
    response_ms = CLIENTS / 3000 * 1e3
    # A replicate differs by 1 %, and latencies are drawn.
    assert too_high(found(tmp_path, server_share=0.5)) == pytest.approx(host_ms * (1 - 1 / 8) / response_ms, rel=0.05)


def test_sessions_that_are_not_at_the_volume_raise_the_figure(tmp_path: Path) -> None:
    """Half of the sessions compute or wait for the client, which the CPU time of a tenth does not tell."""
    # At io2bx's 0.41 ms a read and 6,000 of them a second, 2.46 sessions can have been at the volume.
    seen = (("IO", "DataFileRead", 16.0), ("CPU", "", 14.0), ("Client", "ClientRead", 2.0))
    by_cpu = too_high(found(tmp_path / "cpu", server_share=0.1))
    by_waits = too_high(found(tmp_path / "waits", server_share=0.1, waits=seen))
    assert by_cpu < 1 < by_waits
    assert by_waits == pytest.approx(7 * (1 - 2.46 / CLIENTS), rel=0.05)


def test_the_way_over_an_emulated_distance_is_not_the_hosts(tmp_path: Path) -> None:
    """5 ms for each of 3,000 transactions a second is 15 of 32 sessions on the way, who are idle and so not among the waits."""
    plan = Plan(replicates=1, measure_s=60)
    arm = replace(IO2BX, dilation=8, server_share=0.1, waits=(("IO", "DataFileRead", 16.0), ("CPU", "", 1.0)))
    directory = make_experiment(tmp_path, plan.with_arms(arm))
    (file,) = directory.glob("runs/*/run.json")
    relay = {"rtt_ns": 40_000_000, "to_server": {"chunks": 3000 * (WARMUP_S + plan.measure_s)}}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"client": {"rtt_ms": 5.0, "relay": relay}}))
    findings = summarise(directory).arms[0].replicates[0].findings
    result = next(finding for finding in findings if finding.check == "dilation")
    assert too_high(result) == pytest.approx(7 * (1 - (2.46 + 15) / CLIENTS), rel=0.05)


def undilated(directory: Path, dilation: int = 8, **changes: Any) -> tuple[float, float | None]:
    """Throughput of a run, and what of it is sure at dilation 1."""
    arm = replace(IO2BX, dilation=dilation, **{"driver_share": 0.02, **changes})
    [run] = summarise(make_experiment(directory, Plan(replicates=1).with_arms(arm))).arms[0].replicates
    return run.figures.work_per_s, undilated_tps(run.figures)


def test_what_may_be_too_high_is_taken_off_at_dilation_1(tmp_path: Path) -> None:
    tps, sure = undilated(tmp_path / "slowed", server_share=0.5)
    assert sure is not None
    finding = found(tmp_path / "said", server_share=0.5)
    assert tps / sure - 1 == pytest.approx(too_high(finding), abs=0.01)  # it is printed in per cent


@pytest.mark.parametrize("changes", [{"dilation": 1, "server_share": 0.2}, {"server_share": 0.9}])
def test_a_run_that_was_not_slowed_or_that_the_cpu_bound_is_not_taken_there(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert undilated(tmp_path, **changes)[1] is None


def test_a_given_rate_is_not_taken_there(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(replicates=1).with_arms(replace(IO2BX, dilation=8, server_share=0.2)))
    (file,) = directory.glob("runs/*/run.json")
    record = json.loads(file.read_text())
    file.write_text(json.dumps(record | {"workload": record["workload"] | {"closed": False}}))
    assert undilated_tps(summarise(directory).arms[0].replicates[0].figures) is None


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    all_but_one = frozenset(range(1, 200))
    finding = found(tmp_path, server_share=0.1, lost_seconds=all_but_one)
    assert finding is not None
    assert finding.level == "unknown"


def test_every_output_says_it(tmp_path: Path) -> None:
    arms = tuple(replace(arm, dilation=8) for arm in (GP3, IO2BX))
    comparison = summarise(make_experiment(tmp_path, Plan().with_arms(*arms)))
    assert "8 times slower" in table(comparison)
    page = html(comparison)
    assert "<b>Dilated.</b>" in page
    assert "dilated 8 times" in page
    assert [arm.dilation for arm in document(comparison).arms] == [8, 8]

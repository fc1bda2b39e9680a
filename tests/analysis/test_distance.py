"""An emulated distance: what its relay did is judged, drawn and told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report import configuration
from pgdyno.report.configuration import run_definitions
from pgdyno.report.figures import roles
from pgdyno.report.page import html

from .synthetic import GP3, REAL, Arm, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.finding import CheckResult

CORES = 2
"""Of the host in every synthetic record."""


def at_a_distance(
    root: Path, rtt_ms: float | None, late_us: float = 10.0, busy: float = 0.2, arm: Arm = GP3
) -> Comparison:
    """One run whose client was so far away, with a relay that was late by that in each direction."""
    directory = make_experiment(root, Plan(arms=(arm,), replicates=1, measure_s=20))
    run = next((directory / "runs").iterdir())
    record = json.loads((run / "run.json").read_text())
    client: dict[str, Any] = {"rtt_ms": rtt_ms}
    if rtt_ms:
        direction = {"late_ns_p50": late_us * 1000}
        client["relay"] = {"rtt_ns": rtt_ms * 1_000_000, "to_server": direction, "to_client": direction}
        cpu = pq.read_table(run / "probe" / "cpu.parquet")
        t_ns = cpu.filter(pc.equal(cpu["role"], "driver"))["t_ns"].to_numpy()
        used = ((t_ns - t_ns[0]) * busy).astype("int64")
        relay = pa.table({"t_ns": t_ns, "role": ["relay"] * len(t_ns), "cpu_ns": used}).cast(cpu.schema)
        pq.write_table(pa.concat_tables([cpu, relay]), run / "probe" / "cpu.parquet")
    (run / "run.json").write_text(json.dumps(record | {"client": client}))
    return summarise(directory)


def finding(comparison: Comparison) -> CheckResult | None:
    """What was found of the distance."""
    results = comparison.arms[0].replicates[0].findings
    return next((result for result in results if result.check == "client's distance"), None)


@pytest.mark.parametrize(
    ("late_us", "busy", "level", "figure"),
    [
        (20.0, 0.2, "ok", "0.5 ms, by the relay's own clock 8.0 % more"),
        (30.0, 0.2, "warn", "12 % more for half of the messages"),
        (20.0, 0.91, "invalid", "computed 91 % of the time"),
    ],
)
def test_thresholds(tmp_path: Path, late_us: float, busy: float, level: str, figure: str) -> None:
    result = finding(at_a_distance(tmp_path, 0.5, late_us, busy))
    assert result is not None
    assert result.level == level
    assert figure in result.figure


def test_the_relay_is_part_of_the_test_harness(tmp_path: Path) -> None:
    comparison = at_a_distance(tmp_path, 0.5, busy=0.4)
    arm = comparison.arms[0]
    figures = arm.replicates[0].figures
    assert arm.cpu_share["relay"] == pytest.approx(0.4 / CORES, abs=1e-3)
    assert figures.harness_share == pytest.approx(0.08 + 0.07 + 0.005 + 0.4 / CORES, abs=1e-3)
    assert "relay" in [name for _, name in roles(comparison.arms)]
    assert '<i class="role2"></i>relay' in html(comparison)


@pytest.mark.parametrize(
    ("rtt_ms", "said"),
    [(0.0, "client: local, 0 ms"), (0.5, "client: behind 0.5 ms round trip (emulated)")],
)
def test_the_report_says_where_the_client_was(tmp_path: Path, rtt_ms: float, said: str) -> None:
    comparison = at_a_distance(tmp_path, rtt_ms)
    assert said in configuration.context_line(comparison)
    machine = dict(run_definitions(comparison))["Machine"]
    assert ("client", said.removeprefix("client: ")) in machine
    assert said in html(comparison)


def test_nothing_is_said_of_a_client_that_nobody_placed(tmp_path: Path) -> None:
    comparison = at_a_distance(tmp_path, None, arm=REAL)
    assert finding(comparison) is None
    assert not any("client:" in words for words in configuration.context_line(comparison))
    assert "relay" not in [name for _, name in roles(comparison.arms)]


def test_a_relay_that_told_nothing_is_unknown(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=20))
    run = next((directory / "runs").iterdir())
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"client": {"rtt_ms": 2.0}}))
    result = finding(summarise(directory))
    assert result is not None
    assert result.level == "unknown"

"""Loads in the table, the page and the JSON: rows instead of transactions, steps, and both verdicts of the limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, against, summarise
from pgdyno.analysis.loads import agrees, load_of, request_kib
from pgdyno.report import against as report_against
from pgdyno.report import document, table
from pgdyno.report.filling import bulk_load_rows, iops_note
from pgdyno.report.page import html
from tests.analysis.synthetic import make_experiment

from .made import PLAN, make_loads

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.binding.rules import Limit


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Two arms: one at its volume's limit, one of which the CPU was the limit."""
    return summarise(make_loads(tmp_path_factory.mktemp("loads")))


def test_a_load_is_compared_by_its_seconds(loads: Comparison) -> None:
    assert "times the time of gp3" in loads.verdict
    text = table(loads)
    assert "seconds" in text
    assert "TPS" not in text
    page = html(loads)
    assert "<h2>Seconds</h2>" in page
    assert ">rows per second<" in page
    assert "Transactions per second" not in page
    assert "per million transactions" not in page
    assert "Closed loop" not in page


def test_a_load_against_another_is_told_in_seconds(loads: Comparison, tmp_path: Path) -> None:
    result = against(loads, loads)
    assert "times the time" in report_against.verdict(result)
    page = report_against.html(result)
    assert "seconds here" in page
    assert "seconds, mean of the replicates" in page
    assert "TPS here" not in page
    transactions = summarise(make_experiment(tmp_path, PLAN))
    assert {arm.volume for arm in transactions.arms} == {arm.volume for arm in loads.arms}
    assert against(loads, transactions).pairs == (), "seconds are not held against transactions"


def test_a_load_is_not_asked_whether_it_was_steady(loads: Comparison) -> None:
    checks = {finding.check for replicate in loads.arms[0].replicates for finding in replicate.findings}
    assert "rows" in checks
    assert "steady state" not in checks
    assert "transactions" not in checks


def test_its_lateness_is_weighed_by_how_long_its_sessions_waited(loads: Comparison) -> None:
    results = [f for f in loads.arms[0].replicates[0].findings if f.check == "lateness"]
    assert [finding.level for finding in results] == ["ok"]
    assert "of the load's time" in results[0].figure


def test_steps_one_after_another_are_added_and_those_at_once_are_not(tmp_path: Path, loads: Comparison) -> None:
    result = load_of(loads.arms[0])
    at_once = load_of(summarise(make_loads(tmp_path, parallel=True)).arms[0])
    assert result is not None
    assert at_once is not None
    assert result.steps_s == {"transfer": 20.0, "vacuum": 4.0, "checkpoint": 2.5}
    assert at_once.steps_s == {"transfer": 10.0, "vacuum": 2.0, "checkpoint": 2.0}
    assert (result.connections, at_once.connections) == (2, 4)


def test_what_the_loader_said_stands_beside_what_the_counters_say(loads: Comparison) -> None:
    values = {row.title: row.cells for row in bulk_load_rows(loads)}
    assert values["limit while copying, by the loader"] == (
        "writes to the volume 80 %, WAL 20 %",
        "COPY on the server's CPU 90 %, unknown 10 %",
    )
    assert values["both agree"][0] == "yes"
    assert "volume IOPS" in values["limit of the whole load, by the counters"][0]
    assert values["above a limit, by the volume's own count"][0] == "IOPS 97 %"
    made = document(loads).arms
    assert made[0].bulk_load is not None
    assert made[0].bulk_load.agrees is True
    assert made[0].bulk_load.limits["writes to the volume"] == pytest.approx(0.8)
    assert made[0].bulk_load.seconds == pytest.approx(30.15)
    assert "the load" in table(loads).splitlines()


def test_limits_that_did_not_bind_are_told_with_the_requests_that_would(loads: Comparison) -> None:
    bound, free = loads.arms
    assert iops_note(bound) == ""
    text = iops_note(free)
    assert "its 16,000 IOPS did not bind" in text
    # Nine thousand requests of 8 KiB a second are as many bytes as sixteen thousand of four and a half.
    below = re.search(r"below (\S+) KiB", text)
    assert below is not None
    assert float(below[1]) == pytest.approx(4.5, rel=0.05)


@pytest.mark.parametrize(
    ("said", "limit", "same"),
    [
        ("writes to the volume", "volume_throughput", True),
        ("writes to the volume", "burst_bucket", True),
        ("WAL", "commit_latency", True),
        ("WAL", "server_cpu", False),
        ("COPY on the server's CPU", "server_cpu", True),
        ("COPY and 3 indexes on the server's CPU", "server_cpu", True),
        ("COPY and 3 indexes on the server's CPU", "volume_iops", False),
        ("decompression", "harness", True),
        ("LWLock: Something", "locks", False),
        (None, "server_cpu", None),
        ("WAL", None, None),
    ],
)
def test_two_verdicts_mean_the_same_or_not(said: str | None, limit: Limit | None, same: bool | None) -> None:
    assert agrees(said, limit) is same


def test_a_mean_request_needs_both_figures() -> None:
    assert request_kib(100.0, 25.0) == 256.0
    assert request_kib(0.0, 25.0) is None
    assert request_kib(None, 1.0) is None


def test_other_workloads_have_nothing_of_it(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path))
    assert bulk_load_rows(comparison) == []
    assert load_of(comparison.arms[0]) is None
    assert document(comparison).arms[0].bulk_load is None
    assert "The load" not in html(comparison)

"""The table: at most 100 columns whatever the volumes are called and do."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.base.text import UNKNOWN
from pgdyno.report import print_table, table
from pgdyno.report.document import document
from pgdyno.report.summary import summary_rows
from pgdyno.report.terminal import WIDTH

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment

if TYPE_CHECKING:
    from pathlib import Path


def heading(lines: list[str]) -> int:
    """Where the table begins: two lines above its rule."""
    return next(place for place, line in enumerate(lines) if line and not line.strip("-")) - 2


def test_table_of_the_usual_comparison(comparison: Comparison, tmp_path: Path) -> None:
    text = table(comparison, tmp_path / "report.html")
    lines = text.splitlines()
    assert all(len(line) <= WIDTH for line in lines if not line.startswith("report: "))
    assert lines[0].startswith("Buy io2bx: ")
    first = heading(lines)
    assert lines[first].split() == [
        "volume",
        "TPS",
        "p50",
        "p95",
        "p99",
        "IOPS",
        "MiB/s",
        "queue",
        "above",
        "price",
        "valid",
    ]
    assert [line.split()[0] for line in lines[first + 3 : first + 5]] == ["gp3:size=100GiB", "io2bx"]
    assert "io2bx = io2bx:size=100GiB,iops=16000" in lines
    assert comparison.verdict in " ".join(lines)
    assert lines[-1] == f"report: {tmp_path / 'report.html'}"


def test_large_figures_and_long_names_fit(tmp_path: Path) -> None:
    name = "io2bx:size=65536GiB,iops=256000,order=fifo"
    arms = [
        replace(
            IO2BX,
            spec=name + str(place),
            tps=20_000.0,
            usd_per_month=1_234_567.0,
            spread=0.3,
            late_share=0.5,
            late_by_us=50_000.0,
        )
        for place in range(3)
    ]
    text = table(summarise(make_experiment(tmp_path, Plan(measure_s=20).with_arms(*arms))))
    assert all(len(line) <= WIDTH for line in text.splitlines()), text
    assert f"volume 3 = {name}2" in text
    lines = text.splitlines()
    assert "NO" in lines[heading(lines) + 3]
    assert "invalid: " in text


def test_unknown_figures_are_dashes(tmp_path: Path) -> None:
    arm = replace(GP3, usd_per_month=None, lost_seconds=frozenset(range(1, 200)))
    text = table(summarise(make_experiment(tmp_path, Plan(arms=(arm,), replicates=1, measure_s=20))))
    lines = text.splitlines()
    assert lines[heading(lines)].split()[-2:] == ["p99", "valid"], "columns that no arm has are omitted"
    result = table(summarise(make_experiment(tmp_path, Plan(arms=(arm, GP3), replicates=1, measure_s=20, seed=8))))
    lines = result.splitlines()
    assert lines[heading(lines) + 3].split()[-6:] == ["–", "–", "–", "–", "–", "NO"]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_terminal_gets_the_same_words_with_weight(comparison: Comparison) -> None:
    import re

    stream = Terminal()
    print_table(comparison, stream=stream)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())
    assert plain.split() == table(comparison).split()
    stream = io.StringIO()  # type: ignore[assignment]  (a pipe)
    print_table(comparison, stream=stream)
    assert stream.getvalue() == table(comparison)


def test_queries_stand_beside_transactions_where_they_are_counted(tmp_path: Path) -> None:
    plan = Plan(replicates=2, measure_s=20).with_arms(replace(GP3, queries=20), replace(IO2BX, queries=20))
    comparison = summarise(make_experiment(tmp_path, plan))
    lines = table(comparison).splitlines()
    assert lines[heading(lines)].split()[:3] == ["volume", "TPS", "QPS"]
    assert all(len(line) <= WIDTH for line in lines)
    (row,) = (row for row in summary_rows(comparison) if row.title.startswith("queries per second"))
    assert all(cell != UNKNOWN for cell in row.cells)
    for arm in document(comparison).arms:
        assert arm.qps is not None
        assert arm.qps.mean == pytest.approx(20 * arm.headline.mean)
        assert arm.qps.n == 2

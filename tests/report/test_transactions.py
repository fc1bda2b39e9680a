"""Scripts, statements and both times of a transaction in the report and its document."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.report import document, response
from pgdyno.report.page import html
from pgdyno.report.response import STATEMENT_WIDTH_MAX, one_line, statement_rows
from pgdyno.report.summary import summary_rows

from ..analysis.synthetic import GP3, IO2BX, Plan, make_experiment
from ..analysis.test_driven import native

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison

TEXTS = ("SELECT abalance FROM pgbench_accounts WHERE aid = $1", "SELECT '<b>'", "SELECT '<b>'")


def driven(root: Path, texts: tuple[str, ...] = TEXTS) -> Comparison:
    """One arm driven by our own driver in an open loop, and one from before that was recorded."""
    own = replace(IO2BX, driver=native(), statements=texts, service_share=0.5)
    return summarise(make_experiment(root, Plan(arms=(own, GP3), replicates=2, measure_s=20)))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Three statements, two of them with the same text."""
    return driven(tmp_path_factory.mktemp("three"))


def test_each_statement_is_a_row_even_where_texts_are_the_same(three: Comparison) -> None:
    rows = statement_rows(three)
    assert [row.title for row in rows] == list(TEXTS)
    assert all(row.cells[0].count(" / ") == 2 and row.cells[1] == "–" for row in rows)


def test_of_many_statements_those_of_the_most_time_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "STATEMENTS_MAX", 4)
    rows = statement_rows(driven(tmp_path, tuple(f"SELECT {number}" for number in range(6))))
    assert [row.title for row in rows] == [f"SELECT {number}" for number in range(4)]


def test_service_time_stands_beside_response_time(three: Comparison) -> None:
    document = {row.title: row.cells for row in summary_rows(three)}
    response, service = document["response time, median, ms"], document["service time, median, ms"]
    assert float(service[0]) < 0.6 * float(response[0])
    assert service[1] == "–"


def test_a_page_has_them_and_escapes_them(three: Comparison) -> None:
    text = html(three)
    assert 'id="statements"' in text
    assert "SELECT &#39;&lt;b&gt;&#39;" in text
    assert "driven by pgdyno&#39;s driver" in text
    assert "µs of CPU a transaction" in text


def test_a_comparison_without_them_has_no_such_section(tmp_path: Path) -> None:
    text = html(summarise(make_experiment(tmp_path, Plan(replicates=2, measure_s=20))))
    assert 'id="statements"' not in text
    assert "service time" not in text


def test_the_document_has_them(three: Comparison) -> None:
    own, old = document(three).arms
    assert own.driver is not None
    assert own.driver.engine == "native"
    assert own.driver.cpu_us_per_transaction == 200.0
    assert own.service_ms is not None
    assert own.service_ms.p99 is not None
    assert [item.statement for item in own.statements_ms] == list(TEXTS)
    assert (old.driver, old.service_ms, old.statements_ms, old.scripts_ms) == (None, None, [], {})


def test_a_long_statement_is_cut_and_lines_are_joined() -> None:
    assert one_line("SELECT 1,\n       2") == "SELECT 1, 2"
    assert len(one_line("SELECT " + "x" * 500)) == STATEMENT_WIDTH_MAX

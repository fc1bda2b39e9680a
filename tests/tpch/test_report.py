"""What a report says of streams of queries, and of runs that do not agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.queries import parallel_workers, queries_of
from pgdyno.analysis.run import figures_of
from pgdyno.report import document, queries, table
from pgdyno.report.page import html
from pgdyno.report.queries import query_lines, query_rows
from pgdyno.results import open_experiment, tables

from .made import FASTER, QUERIES, make_streams, seconds_of

if TYPE_CHECKING:
    from pathlib import Path


def test_arms_are_compared_by_the_geometric_mean_of_their_queries(tmp_path: Path) -> None:
    comparison = summarise(make_streams(tmp_path))
    (ratio,) = comparison.ratios
    assert ratio.estimate is not None
    # Every replicate has the same ratio, so that its interval is as narrow as rounding.
    assert ratio.estimate.mean == pytest.approx(1 / FASTER)
    assert ratio.estimate.high == pytest.approx(1 / FASTER, rel=1e-6)
    first, second = (queries_of(arm) for arm in comparison.arms)
    assert first is not None and second is not None
    assert list(first.query_s) == list(QUERIES)
    assert first.query_s[9].mean == pytest.approx(sum(seconds_of(9, 0, block) for block in (1, 2)) / 2)
    assert second.ratios(first)[6].mean == pytest.approx(1 / FASTER)
    assert comparison.valid, [arm.why_invalid for arm in comparison.arms]


def test_the_section_has_every_query_and_what_it_spilled(tmp_path: Path) -> None:
    comparison = summarise(make_streams(tmp_path))
    page = html(comparison)
    assert "geometric mean of query seconds" in page
    assert "not TPC results" in page
    text = "\n".join(query_lines(comparison))
    assert "derived from TPC-H" in text and "queries per hour" in text and "Q9" in text
    cells = {row.title: row.cells for row in queries.spill(comparison)}
    assert cells["written, MiB a run"] == ("16.0", "16.0")
    assert cells["queries that wrote most, MiB"][0].startswith("Q9 9.00, Q6 6.00")
    # The looks at the sessions are drawn.
    for title, sessions in (("written (BufFileWrite)", 0.25), ("read (BufFileRead)", 0.5)):
        waiting = cells[f"sessions waiting: temporary files {title}"]
        assert [float(cell) for cell in waiting] == pytest.approx([sessions, sessions], rel=0.1)
    result = table(comparison)
    assert "geo mean s" in result
    assert "takes 0.500 times the geometric mean of query seconds" in " ".join(result.split()), result
    values: dict[str, Any] = json.loads(json.dumps(document(comparison).model_dump(mode="json")))
    second = values["arms"][1]
    assert second["metric"] == "geomean_s"
    assert second["queries"]["ratios"]["6"]["mean"] == pytest.approx(1 / FASTER)
    assert second["figures"]["queries_per_h"]["value"] > values["arms"][0]["figures"]["queries_per_h"]["value"]
    assert second["queries"]["temp_bytes"]["9"] == 9 << 20


def test_runs_whose_rows_differ_are_invalid_all_of_them(tmp_path: Path) -> None:
    def other_rows(arm: int, block: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"rows_hash": 5} if (arm, block, row["query"]) == (1, 2, 9) else {}

    comparison = summarise(make_streams(tmp_path, other_rows))
    for arm in comparison.arms:
        assert [reason for reason in arm.why_invalid if "answers" in reason] == [
            "replicate 2: answers: Q9 brought other rows than the same question in another run"
        ]


def test_rows_that_were_refreshed_are_not_compared_and_their_functions_are_apart(tmp_path: Path) -> None:
    def other_rows(arm: int, block: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"rows_hash": 5} if (arm, block, row["query"]) == (1, 2, 9) else {}

    directory = make_streams(tmp_path, other_rows)
    for path in directory.glob("runs/*/run.json"):
        run = json.loads(path.read_text())
        run["workload"]["refresh"] = "power"
        document = {"refresh_set": 1, "orders": 10, "lines": 40, "transactions": 10, "begin_ns": 0}
        run["streams"]["refresh"] = [
            document | {"function": "insert", "end_ns": 2_000_000_000},
            document | {"function": "delete", "end_ns": 3_000_000_000},
        ]
        path.write_text(json.dumps(run))
    comparison = summarise(directory)
    assert comparison.valid, [arm.why_invalid for arm in comparison.arms]
    cells = {row.title: row.cells for row in query_rows(comparison)}
    assert cells["refresh function that inserts, seconds a set"] == ("2.00", "2.00")
    assert cells["refresh function that deletes, seconds a set"] == ("3.00", "3.00")
    assert comparison.arms[0].headline.mean == pytest.approx(
        summarise(make_streams(tmp_path / "other")).arms[0].headline.mean
    )


def test_another_plan_is_a_warning(tmp_path: Path) -> None:
    def other_plan(arm: int, block: int, row: dict[str, Any]) -> dict[str, Any]:
        return {"plan": "Index Scan"} if arm == 1 and block == 2 and row["query"] != 1 else {}

    comparison = summarise(make_streams(tmp_path, other_plan))
    assert comparison.valid
    text = "Q6, Q9 had another plan in another run"
    assert all(any(text in warning for warning in arm.warnings) for arm in comparison.arms)


def test_more_workers_than_the_server_gives_are_a_warning(tmp_path: Path) -> None:
    directory = make_streams(tmp_path)
    run = open_experiment(directory).runs[0]
    path = run.path / "postgres" / "settings.parquet"
    for most, level in ((8, "warn"), (16, "ok")):
        rows = [{"name": "max_parallel_workers", "setting": str(most)}]
        pq.write_table(tables.from_rows("postgres/settings", rows), path)
        (result,) = parallel_workers(figures_of(run))
        assert result.level == level
        assert result.figure.startswith(
            f"the streams may ask for 16 workers at a time, and max_parallel_workers is {most}"
        )

"""``pgdyno runs`` and ``pgdyno query``."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import pgdyno as package
from pgdyno.base.errors import InputError
from pgdyno.cli import results as recorded
from pgdyno.cli.main import run as pgdyno
from pgdyno.results import RunWriter, open_experiment, open_run, write_experiment
from pgdyno.results.query import RUNS_COLUMNS, QueryResult, describe_views, query
from pgdyno.results.tables import TABLES, from_rows

from .conftest import EXPERIMENT_ID, make_experiment_record, make_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.results import StoredRun

    from .conftest import MakeExperiment


def judge(_run: StoredRun) -> tuple[str, ...]:
    """Every run is valid."""
    return ()


@pytest.fixture
def results(tmp_path: Path, make_experiment: MakeExperiment) -> Path:
    """A results folder with one experiment of four runs; its name would break SQL that does not quote."""
    root = tmp_path / "it's results"
    make_experiment(root)
    return root


def test_runs_have_every_column_and_a_rate(results: Path) -> None:
    result = query(results, "SELECT * FROM runs ORDER BY position", judge)
    assert result.columns == tuple(RUNS_COLUMNS)
    assert [row["tps"] for row in result.dictionaries()] == [10.0, 20.0, 30.0, 40.0]


def test_a_run_is_judged_only_where_the_query_uses_its_verdict(results: Path) -> None:
    texts: list[str] = []

    def judge(run: StoredRun) -> tuple[str, ...]:
        texts.append(run.record.run_id)
        return ("host: busy", "driver: late") if run.record.block == 2 else ()

    assert query(results, "SELECT count(*), avg(tps) FROM runs", judge).rows == ((4, 25.0),)
    assert query(results, "SELECT sum(transactions) FROM throughput", judge).rows == ((1000,),)
    assert texts == []
    result = query(results, "SELECT block, valid, why_invalid FROM runs ORDER BY position", judge)
    assert result.rows == ((1, True, None),) * 2 + ((2, False, "host: busy; driver: late"),) * 2
    assert sorted(texts) == sorted(set(texts)), "once each"
    assert query(results, "SELECT avg(tps) FROM runs WHERE valid", judge).rows == ((15.0,),)


def test_tables_of_all_runs_are_one_view_with_the_runs_keys(results: Path) -> None:
    result = query(results, "SELECT arm, block, sum(transactions) FROM throughput GROUP BY ALL ORDER BY ALL", judge)
    assert result.rows == (("gp3", 1, 100), ("gp3", 2, 300), ("io2bx:iops=16000", 1, 200), ("io2bx:iops=16000", 2, 400))


@pytest.mark.parametrize("view", describe_views())
def test_every_view_can_be_read_and_begins_with_the_keys(results: Path, view: str) -> None:
    result = query(results, f"SELECT * FROM {view} ORDER BY ALL", judge)
    assert result.columns[:4] == ("experiment_id", "run_id", "arm", "block")


def test_every_table_has_a_view(results: Path) -> None:
    assert len(describe_views()) == len(TABLES) + 1
    assert {row[0] for row in query(results, "SHOW TABLES", judge).rows} == set(describe_views())


def test_rows_for_a_notebook_are_those_of_the_command(results: Path) -> None:
    sql = "SELECT arm, block, tps FROM runs ORDER BY position"
    rows = package.query(sql, results)
    assert rows == query(results, sql, judge).dictionaries()
    assert [row["tps"] for row in rows] == [10.0, 20.0, 30.0, 40.0]
    with pytest.raises(InputError, match="a query is one SELECT"):
        package.query("DROP VIEW runs", str(results))


@pytest.mark.parametrize(
    "sql",
    [
        "COPY runs TO 'x.csv'",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "EXPLAIN ANALYZE COPY runs TO 'x.csv'",
        "ATTACH 'x.db'",
        "",
    ],
)
def test_anything_but_one_select_is_refused(
    results: Path, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="read-only"):
        query(results, sql, judge)
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT nothing FROM runs", "SELECT 1 FROM nowhere"])
def test_bad_sql_is_the_users_error_and_says_where_to_look(results: Path, sql: str) -> None:
    with pytest.raises(InputError, match="the query failed") as caught:
        query(results, sql, judge)
    assert "DESCRIBE" in caught.value.remedy


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT content FROM read_text('{root}/../secret.txt')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
        "SELECT * FROM connection",
        "SELECT * FROM runs, read_text('/proc/self/environ')",
    ],
)
def test_a_query_reads_the_results_and_nothing_else(results: Path, sql: str) -> None:
    (results.parent / "secret.txt").write_text("secret")
    quoted = str(results).replace("'", "''")
    with pytest.raises(InputError, match="the query failed"):
        query(results, sql.format(root=quoted), judge)
    assert query(results, "SELECT count(*) FROM throughput", judge).rows[0][0] > 0, "the views read their files"


def test_results_in_a_relative_or_linked_folder_can_be_queried(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked").symlink_to(results)
    for root in (Path(results.name), Path("linked"), tmp_path / "linked"):
        assert query(root, "SELECT count(*) FROM throughput", judge).rows[0][0] > 0


def test_an_empty_folder_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pgdyno(["query", "SELECT 1", "--results", str(tmp_path / "none")]) == 2
    assert "no finished runs" in capsys.readouterr().err
    assert pgdyno(["runs", "--results", str(tmp_path / "none")]) == 0
    assert "no experiments" in capsys.readouterr().err
    assert pgdyno(["runs", "--json", "--results", str(tmp_path / "none")]) == 0
    assert json.loads(capsys.readouterr().out)["experiments"] == []


def test_query_prints_json_csv_and_a_table(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["query", "SELECT arm, tps, valid FROM runs ORDER BY position LIMIT 1", "--results", str(results)]
    assert pgdyno([*base, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"arm": "gp3", "tps": 10.0, "valid": True}]
    assert pgdyno([*base, "--csv"]) == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [["arm", "tps", "valid"], ["gp3", "10.0", "True"]]
    assert pgdyno(base) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["arm  tps  valid", "---  ---  -----", "gp3   10  True"]
    assert printed.err == "(1 row)\n"
    assert pgdyno([*base, "--csv", "--json"]) == 2


def test_json_has_numbers_for_decimals_and_null_for_what_is_none(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT 1.25::DECIMAL(9, 2) AS price, 3::HUGEINT::DECIMAL(20, 0) AS whole, 'inf'::DOUBLE AS none, [1.5, 'nan'::DOUBLE] AS some"
    assert pgdyno(["query", sql, "--json", "--results", str(results)]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"price": 1.25, "whole": 3, "none": None, "some": [1.5, None]}]


def test_two_columns_of_one_name_are_no_object() -> None:
    with pytest.raises(InputError, match="two columns are called `tps`"):
        QueryResult(("arm", "tps", "tps"), (("gp3", 1.0, 2.0),)).dictionaries()


def test_help_lists_the_views(capsys: pytest.CaptureFixture[str]) -> None:
    assert pgdyno(["query", "--help"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {view} " in printed for view in describe_views())


def test_runs_lists_experiments_and_runs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pgdyno(["runs", "--results", str(results)]) == 0
    first, arms, *others = capsys.readouterr().out.splitlines()
    assert "gp3, io2bx:iops=16000" in arms
    assert "4 of 4 runs finished, 4 valid" in first
    assert len(others) == 4
    assert pgdyno(["runs", "--json", "--results", str(results)]) == 0
    (experiment,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (experiment["valid"], experiment["why_invalid"], experiment["runs_valid"]) == (True, [], 4)
    assert experiment["replicates"] == 2
    assert [run["tps"] for run in experiment["runs"]] == [10.0, 20.0, 30.0, 40.0]


def test_a_missing_run_makes_an_experiment_incomplete(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = next(results.glob("*/runs/*"))
    run.rename(run.with_name(run.name + ".partial"))
    assert pgdyno(["runs", "--json", "--results", str(results)]) == 0
    (experiment,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (experiment["runs_finished"], experiment["runs_wanted"], experiment["valid"]) == (3, 4, False)
    assert experiment["why_invalid"] == ["1 of 4 runs is missing"]
    assert [run["valid"] for run in experiment["runs"]] == [True] * 3, "those that are there are valid by themselves"


def test_runs_beyond_the_planned_ones_are_no_defect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A budget brings further runs; one that was planned and is not there is missed all the same."""
    path = write_experiment(tmp_path, make_experiment_record(("gp3",), 2))
    for position in range(3):
        writer = RunWriter(tmp_path, EXPERIMENT_ID, f"{position:02d}-gp3-r{position + 1}")
        writer.finish(make_record(run_id=writer.final_path.name, position=position, block=position + 1))
    assert pgdyno(["runs", "--json", "--results", str(tmp_path)]) == 0
    (experiment,) = json.loads(capsys.readouterr().out)["experiments"]
    assert (experiment["runs_finished"], experiment["valid"]) == (3, True)
    assert pgdyno(["runs", "--results", str(tmp_path)]) == 0
    assert "3 of 3 runs finished, 3 valid" in capsys.readouterr().out
    first = min((path / "runs").iterdir())
    first.rename(first.with_name(first.name + ".partial"))
    assert pgdyno(["runs", "--json", "--results", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["experiments"][0]["valid"] is False
    assert pgdyno(["runs", "--results", str(tmp_path)]) == 0
    assert "2 of 3 runs finished, 2 valid" in capsys.readouterr().out


def test_the_runs_of_a_load_are_listed_with_their_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_experiment(tmp_path, make_experiment_record(("gp3",), 1))
    RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1").finish(make_record(workload={"kind": "load"}, metric="seconds"))
    assert pgdyno(["runs", "--results", str(tmp_path)]) == 0
    assert re.search(r" [1-9]\d*\.\d seconds  valid\n", capsys.readouterr().out)


def test_what_a_query_leaves_out_is_said(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = min(results.glob("*/runs/*"))
    (damaged / "run.json").write_text("{")
    (results / "broken").mkdir()
    (results / "broken" / "experiment.json").write_text('{"schema_version": 99}')
    assert pgdyno(["query", "SELECT count(*) AS n FROM runs", "--json", "--results", str(results)]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [{"n": 3}]
    assert len(printed.err.splitlines()) == 2
    for path in (damaged, results / "broken"):
        assert f"omitted: {path}: " in printed.err


def damage(file: Path) -> None:
    """Bytes in the middle that are none of Parquet's; the footer stays."""
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)
    file.write_bytes(content)


@pytest.mark.parametrize("how", [damage, lambda file: file.write_bytes(b"PAR1 torn")], ids=["pages", "whole"])
def test_a_damaged_table_of_one_run_is_left_out_and_named(results: Path, how: Callable[[Path], None]) -> None:
    [file] = results.glob("*/runs/*gp3-r1/workload/throughput.parquet")
    how(file)
    unreadable: dict[Path, str] = {}
    result = query(results, "SELECT sum(transactions) FROM throughput", judge, unreadable)
    assert result.rows == ((900,),)
    assert list(unreadable) == [file]
    assert query(results, "SELECT count(*) FROM runs", judge).rows == ((4,),)
    with pytest.raises(InputError) as refused:
        query(results, "SELECT no_such_column FROM throughput WHERE arm > 'a'", judge)
    assert refused.value.code == "query.failed"


def test_a_run_that_cannot_be_judged_is_invalid_for_that_reason(results: Path) -> None:
    def judge(run: StoredRun) -> tuple[str, ...]:
        if run.record.position == 0:
            raise InputError("a table cannot be read", remedy="")
        return ()

    unreadable: dict[Path, str] = {}
    result = query(results, "SELECT position, why_invalid FROM runs WHERE NOT valid", judge, unreadable)
    assert result.rows == ((0, "a table cannot be read"),)
    assert list(unreadable.values()) == ["a table cannot be read"]


def test_a_copy_of_a_run_or_of_an_experiment_counts_once(results: Path) -> None:
    [run] = results.glob("*/runs/*gp3-r1")
    shutil.copytree(run, run.with_name("00-a-copy"))
    experiment = run.parents[1]
    shutil.copytree(experiment, experiment.with_name("20991231T000000Z-copy-000000"))
    unreadable: dict[Path, str] = {}
    assert query(results, "SELECT count(*) FROM runs", judge, unreadable).rows == ((4,),)
    assert run not in unreadable
    assert run.with_name("00-a-copy") in unreadable
    assert len(unreadable) == 2 + 4, "a copy in each experiment, and the runs of the second"
    assert [run.path.name for run in open_experiment(experiment).runs if run.record.position == 0] == [run.name]
    run.rename(run.with_name("renamed"))
    assert len(open_experiment(experiment).runs) == 4, "the only one that is left is no copy"


def test_json_that_is_nested_deeply_is_refused_as_any_other_that_cannot_be_read(results: Path) -> None:
    [run] = results.glob("*/runs/*gp3-r1")
    (run / "run.json").write_text("[" * 100_000)
    unreadable: dict[Path, str] = {}
    assert query(results, "SELECT count(*) FROM runs", judge, unreadable).rows == ((3,),)
    assert list(unreadable) == [run]
    (run.parents[1] / "experiment.json").write_text('{"a":' * 100_000)
    with pytest.raises(InputError):
        open_experiment(run.parents[1])


def test_the_examples_of_the_help_run(results: Path) -> None:
    text = recorded.query.help or ""
    examples = re.findall(r'pgdyno query "([^"]+)"', text)
    assert len(examples) == 2
    for sql in examples:
        assert query(results, sql, judge).columns

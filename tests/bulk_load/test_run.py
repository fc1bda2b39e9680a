"""Loads as experiments, on volumes without a delay: what is kept of them, and what is said when one fails."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment

from .test_verdict import asked

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.slow]

VOLUME = ["null:size=2GiB"]


def test_a_row_that_is_refused_ends_the_experiment_with_the_loaders_words(
    state_dir: Path, image_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\nx,Bo\n")
    document = asked(VOLUME, files=[str(tmp_path / "people.csv")])
    definitions = {"name": "tables.sql", "text": "CREATE TABLE people (id int PRIMARY KEY, name text)"}
    document["workload"]["bulk"]["definitions"] = definitions
    with pytest.raises(PgdynoError, match=r"people\.csv") as failed:
        run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))
    assert "line 3" in str(failed.value)
    assert not list((tmp_path / "results").glob("*/runs/*"))

    definitions["text"] = "CREATE TABLE people (id int PRIMARY KY)"
    with pytest.raises(InputError, match="the tables cannot be created: syntax error"):
        run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))


def test_files_of_the_users_go_into_their_own_tables_at_once(state_dir: Path, image_dir: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        rows = "".join(f"{row},name {row}\n" for row in range(500))
        (tmp_path / f"part-{number}.csv").write_text("id,name\n" + rows)
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n2,Bo\n")
    document = asked(
        VOLUME, files=[str(tmp_path / "part-*.csv@visits"), str(tmp_path / "people.csv")], order="parallel", tuned=False
    )
    directory = run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))
    (path,) = directory.glob("runs/*/run.json")
    run = json.loads(path.read_text())
    assert [(table["table"], table["rows"], table["files"]) for table in run["bulk_load"]["tables"]] == [
        ("visits", 1000, 2),
        ("people", 2, 1),
    ]
    assert run["account"]["succeeded"] == 1002
    assert run["workload"]["tuned"] is False
    settings = {check["name"]: check["ok"] for check in run["checks"]}
    assert settings["table_rows"]


def test_the_tables_of_tpch_are_loaded_as_dbgen_makes_them(state_dir: Path, image_dir: Path, tmp_path: Path) -> None:
    tables = ["supplier", "orders"]
    document = asked(VOLUME, generate="tpch", scale=0.01, tables=tables, gzip=True, order="parallel")
    directory = run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))
    (path,) = directory.glob("runs/*/run.json")
    run = json.loads(path.read_text())
    assert {table["table"]: table["rows"] for table in run["bulk_load"]["tables"]} == {
        "supplier": 100,
        "orders": 15_000,
    }
    checks = {check["name"]: check["ok"] for check in run["checks"]}
    assert checks["table_rows"] and checks["rows_of_the_files"]
    assert (run["workload"]["generate"], run["workload"]["tables"]) == ("tpch", tables)

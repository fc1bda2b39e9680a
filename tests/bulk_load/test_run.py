"""Loads on emulated volumes, as experiments: the loader's own verdict is what the emulator has counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.bulk_load import agrees, load_of
from pgdyno.analysis.compare import summarise
from pgdyno.errors import InputError, PgdynoError
from pgdyno.experiment import Experiment
from pgdyno.flow.run import run_experiment
from pgdyno.report import table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_fuse, pytest.mark.slow]

SLOW, FAST = "gp2:size=33GiB,credits=0", "gp3:size=33GiB,iops=16000,throughput=1000"
"""A hundred requests a second, at most 256 KiB each; and more than two cores can ask for, with answers slow enough to be in time."""
VOLUMES = frozenset({"writes to the volume", "reads of the volume", "WAL"})
"""What the loader says when its sessions wait for a volume."""


def asked(**bulk: Any) -> dict[str, Any]:
    """A load of so many bytes that it takes seconds where nothing binds, in fewer rows than are counted afterwards."""
    return {
        "schema_version": 1,
        "name": "loads",
        "replicates": 1,
        "instance": {"memory": "256MiB"},
        "workload": {"kind": "load", "bulk": bulk},
        "factors": {"world.volume": [SLOW, FAST]},
    }


def test_the_loaders_verdict_is_what_the_volume_counted(state_dir: Path, image_dir: Path, tmp_path: Path) -> None:
    tables = ["title_basics", "name_basics"]
    experiment = Experiment.of(asked(generate="imdb", scale=0.06, tables=tables, connections=1, vacuum=False))
    directory = run_experiment(experiment, root=tmp_path, command=("make", "test"))
    found = summarise(directory)
    print(table(found))
    slow, fast = found.arms
    for run in (slow.replicates[0].figures, fast.replicates[0].figures):
        checks = {check.name: check for check in run.record.checks}
        assert all(check.ok for check in checks.values()), checks
        assert {"rows_of_the_files", "loaded_in_this_run", "table_rows"} <= checks.keys()
        assert sum(run.run.table("workload/throughput")["transactions"].to_pylist()) == run.record.account.succeeded
    if not (slow.valid and fast.valid):
        pytest.skip(f"this machine was busy with other things: {(*slow.why_invalid, *fast.why_invalid)[0]}")
    assert found.ratios[0].estimate is not None
    assert found.ratios[0].estimate.mean < 1 / 1.3  # of the seconds, so less is better

    truth = {arm.volume: arm.above_limit_share or 0.0 for arm in found.arms}
    assert truth[SLOW] > 0.5, "the emulator's own account: requests waited for the limit"
    assert truth[FAST] < 0.2
    said = {arm.volume: load_of(arm) for arm in found.arms}
    bound, free = said[SLOW], said[FAST]
    assert bound is not None
    assert free is not None
    assert bound.limit in VOLUMES
    assert agrees(bound.limit, found.bindings[slow.index].verdict.limit)
    assert sum(share for name, share in free.limits.items() if name in VOLUMES) < sum(
        share for name, share in bound.limits.items() if name in VOLUMES
    )
    written = bound.written_per_input_byte
    assert written is not None
    assert 2.0 < written < 8.0, "a page and its WAL for each row, and no more"


def test_a_row_that_is_refused_ends_the_experiment_with_the_loaders_words(
    state_dir: Path, image_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\nx,Bo\n")
    document = asked(files=[str(tmp_path / "people.csv")])
    definitions = {"name": "tables.sql", "text": "CREATE TABLE people (id int PRIMARY KEY, name text)"}
    document["workload"]["bulk"]["definitions"] = definitions
    document["factors"] = {"world.volume": ["null:size=2GiB"]}
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
        files=[str(tmp_path / "part-*.csv@visits"), str(tmp_path / "people.csv")], order="parallel", tuned=False
    )
    document["factors"] = {"world.volume": ["null:size=2GiB"]}
    directory = run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))
    (path,) = directory.glob("runs/*/run.json")
    run = json.loads(path.read_text())
    assert [(one["table"], one["rows"], one["files"]) for one in run["bulk_load"]["tables"]] == [
        ("visits", 1000, 2),
        ("people", 2, 1),
    ]
    assert run["account"]["succeeded"] == 1002
    assert run["workload"]["tuned"] is False
    settings = {check["name"]: check["ok"] for check in run["checks"]}
    assert settings["table_rows"]


def test_the_tables_of_tpch_are_loaded_as_dbgen_makes_them(state_dir: Path, image_dir: Path, tmp_path: Path) -> None:
    tables = ["supplier", "orders"]
    document = asked(generate="tpch", scale=0.01, tables=tables, gzip=True, order="parallel")
    document["factors"] = {"world.volume": ["null:size=2GiB"]}
    directory = run_experiment(Experiment.of(document), root=tmp_path / "results", command=("make", "test"))
    (path,) = directory.glob("runs/*/run.json")
    run = json.loads(path.read_text())
    assert {one["table"]: one["rows"] for one in run["bulk_load"]["tables"]} == {"supplier": 100, "orders": 15_000}
    checks = {check["name"]: check["ok"] for check in run["checks"]}
    assert checks["table_rows"] and checks["rows_of_the_files"]
    assert (run["workload"]["generate"], run["workload"]["tables"]) == ("tpch", tables)

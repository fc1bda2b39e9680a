"""``schema = "public"``: what HammerDB has built is driven and proven; nothing is made or dropped, and what is missing is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.cli.main import run as pgdyno
from pgdyno.flow.plan import plan
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import TpccRoutines

from ..experiment.documents import written
from .built import as_hammerdb, relations
from .test_command import TRIAL
from .test_runs import paced, wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..fill.filled import Database

REAL = """\
schema_version = 1
[world]
kind = "real"
dsn = "{}"
[workload]
kind = "tpcc"
schema = "public"
warehouses = 1
clients = 2
"""


@pytest.mark.parametrize(
    ("routines", "names_match"), [("functions", False), ("functions", True), ("procedures", False)]
)
def test_what_hammerdb_has_built_is_driven_and_proven(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path, routines: TpccRoutines, names_match: bool
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine, routines)
    before = relations(mine)
    tpcc = paced(schema="public", routines=routines, names_match=names_match)
    baseline = tpcc.baseline(mine)
    outcome = tpcc.runner()(mine, RunRequest(2.0, tmp_path))
    assert wrong((*outcome.checks, *tpcc.proofs(mine, outcome, baseline, full=True))) == []
    assert all(outcome.succeeded_by_type.get(name) for name, _ in tpcc.mix), outcome.succeeded_by_type
    assert relations(mine) == before, "nothing was made or dropped"
    # Payments that no history shows are found, and more deliveries than were counted.
    mine.run("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3")
    mine.run("DELETE FROM new_order WHERE no_d_id < 10")
    texts = {proof.name for proof in tpcc.proofs(mine, outcome, baseline) if not proof.ok}
    assert {"tpcc_conditions", "tpcc_deliveries"} <= texts


def test_names_reach_the_procedures_and_not_the_functions(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    texts: dict[str, set[str]] = {}
    for routines in ("functions", "procedures"):
        mine = clone(hammerdb)
        as_hammerdb(mine, routines)
        mine.run("CREATE TABLE heard (name text)")
        ((text,),) = mine.rows("SELECT pg_get_functiondef('own_payment'::regproc)")
        mine.run(text.replace("\nBEGIN\n", "\nBEGIN\n INSERT INTO heard VALUES (in_name);\n", 1))
        workload = paced(schema="public", routines=routines)
        workload.runner()(mine, RunRequest(1.0, tmp_path / routines))
        texts[routines] = {str(name) for (name,) in mine.rows("SELECT DISTINCT name FROM heard")}
    assert texts["functions"] == {"$8"}
    assert len(texts["procedures"]) > 10 and "$8" not in texts["procedures"]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("change", "options", "said", "remedy"),
    [
        ("DROP TABLE new_order", [], "has no table new_order", "build it with HammerDB 6.0"),
        ("ALTER TABLE stock RENAME s_dist_07 TO s_seven", [], "it has no column s_dist_07", "where it was built"),
        ("DROP FUNCTION slev", [], "has no routine slev", "build its schema again"),
        ("DROP FUNCTION slev; CREATE FUNCTION slev(a int) RETURNS int LANGUAGE sql AS 'SELECT 1'", [], "slev takes 1 argument", ""),
        ("", ["--routines", "procedures"], "are functions, not procedures", 'routines = "functions"'),
        ("", ["--warehouses", "3"], "public.warehouse has 1 rows, and 3 were asked for", "warehouses = 1"),
    ],
    ids=["table", "column", "routine", "arguments", "kind", "size"],
)  # fmt: skip
def test_what_is_missing_or_other_is_refused_in_one_sentence(
    hammerdb: Database,
    clone: Callable[[Database], Database],
    capsys: pytest.CaptureFixture[str],
    change: str,
    options: list[str],
    said: str,
    remedy: str,
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    if change:
        mine.run(change)
    size = [] if "--warehouses" in options else ["--warehouses", "1"]
    texts = ["drive", "tpcc", "--schema", "public", "--dsn", mine.dsn, "--duration", "1s", *size, *options]
    assert pgdyno(texts) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert said in text and remedy in text, text


@pytest.mark.usefixtures("engine")
def test_a_hidden_schema_is_said_with_the_role(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    text = REAL.format(mine.dsn)
    result = plan(written(tmp_path, text), to_run=False)
    assert result.preparation == [], "nothing is to be made"
    mine.run(f"ALTER DATABASE {mine.name} SET search_path = pg_catalog")
    with pytest.raises(InputError, match=r"the routines would not find public\."):
        plan(written(tmp_path, text), to_run=False)


@pytest.mark.usefixtures("engine")
def test_rows_that_a_run_left_are_said_and_stay(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    result = REAL.format(mine.dsn)
    (crowded,) = plan(written(tmp_path, result), to_run=False).warnings
    assert crowded.startswith("2 clients on 1 warehouse: they wait for each other's rows")
    paced(schema="public").runner()(mine, RunRequest(1.0, tmp_path / "driver"))
    ((left,),) = mine.rows("SELECT sum(d_next_o_id) - 30010 FROM district")
    (output,) = (text for text in plan(written(tmp_path, result), to_run=False).warnings if "earlier runs" in text)
    assert output.startswith(f"the tables in the schema public have {left:,} orders that earlier runs left")
    assert left > 0 and mine.rows("SELECT sum(d_next_o_id) - 30010 FROM district") == [(left,)]


@pytest.mark.usefixtures("engine")
def test_public_is_for_an_existing_server_and_for_hammerdb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hammerdb: Database
) -> None:
    emulated = TRIAL.replace('kind = "fake"\n', "").replace("warehouses = 4", 'warehouses = 4\nschema = "public"')
    path = tmp_path / "trial.toml"
    path.write_text(emulated.replace('["hammerdb", "spec"]', '["hammerdb"]'))
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    assert (
        "trial.toml:8: workload.schema: tables built by HammerDB are on an existing server" in capsys.readouterr().err
    )
    path.write_text(REAL.format(hammerdb.dsn) + 'profile = "spec"\n')
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    assert "need the profile hammerdb" in capsys.readouterr().err
    path.write_text(REAL.format(hammerdb.dsn))
    assert pgdyno(["run", str(path), "--dry-run", "--yes-create"]) == 2
    assert "has no table warehouse and no table district" in capsys.readouterr().err
    assert pgdyno(["drive", "tpcc", "--schema", "public"]) == 2
    assert "name the server with --dsn" in capsys.readouterr().err
    assert pgdyno(["drive", "select-only", "--dsn", hammerdb.dsn, "--schema", "public"]) == 2
    assert "--schema would have no effect" in capsys.readouterr().err


@pytest.mark.usefixtures("engine")
def test_an_experiment_drives_it_and_says_so_in_its_record(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    path = tmp_path / "trial.toml"
    path.write_text(REAL.format(mine.dsn) + 'think_ms = 10.0\nwarmup = "0s"\nduration = "2s"\n')
    before = relations(mine)
    texts = ["run", str(path), "--results", str(tmp_path / "results"), "-n", "1", "--keep-invalid", "--json"]
    assert pgdyno(texts) == 0
    assert json.loads(capsys.readouterr().out)["arms"][0]["metric"] == "nopm"
    (run,) = (tmp_path / "results").glob("*/runs/*/run.json")
    document = json.loads(run.read_text())
    assert document["workload"]["schema"] == "public"
    assert [check for check in document["checks"] if not check["ok"]] == []
    assert relations(mine) == before

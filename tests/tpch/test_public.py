"""``schema = "public"``: queries of tables that HammerDB has built; nothing is made or dropped there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pgdyno.cli.main import run as pgdyno
from pgdyno.flow.plan import plan
from pgdyno.workload.generated import TPCH_COLUMNS

from ..experiment.documents import written
from ..tpcc.built import relations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..fill.filled import Database

BUILT = """\
schema_version = 1
[world]
kind = "real"
dsn = "{}"
[workload]
kind = "tpch"
schema = "public"
"""
"""Keys of what is asked follow."""
REAL = f"""\
{BUILT}\
scale_factor = 0.01
clients = 2
queries = [6, 15]
refresh = "stream"
duration = "2min"
"""


def as_hammerdb(database: Database) -> None:
    """Tables that pgdyno has filled, where HammerDB builds them."""
    for table in TPCH_COLUMNS:
        database.run(f"ALTER TABLE pgdyno_tpch.{table} SET SCHEMA public")
    database.run("DROP SCHEMA pgdyno_tpch")


@pytest.mark.usefixtures("engine")
def test_tables_of_hammerdb_are_asked_and_refreshed_with_views_of_the_session(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    mine.run("CREATE VIEW revenue1 AS SELECT 1 AS mine")
    before = relations(mine)
    path = tmp_path / "trial.toml"
    path.write_text(REAL.format(mine.dsn))
    texts = ["run", str(path), "--results", str(tmp_path / "results"), "-n", "1", "--keep-invalid", "--json"]
    assert pgdyno(texts) == 0
    capsys.readouterr()
    (run,) = (tmp_path / "results").glob("*/runs/*/run.json")
    document = json.loads(run.read_text())
    assert document["workload"]["schema"] == "public"
    assert {check["name"] for check in document["checks"]} >= {"tpch_refresh"}
    assert [check for check in document["checks"] if not check["ok"]] == []
    assert document["account"]["succeeded"] == 4
    assert relations(mine) == before, "the user's own view too"
    assert mine.rows("SELECT mine FROM revenue1") == [(1,)]


@pytest.mark.usefixtures("engine")
def test_refreshed_rows_are_said_before_a_run(
    hammerdb: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    mine = clone(hammerdb)
    as_hammerdb(mine)
    text = REAL.format(mine.dsn)
    assert plan(written(tmp_path, text), to_run=False).warnings == []
    mine.run("DELETE FROM lineitem WHERE l_orderkey = 1; DELETE FROM orders WHERE o_orderkey = 1")
    (result,) = plan(written(tmp_path, text), to_run=False).warnings
    assert result.startswith("the tables in the schema public were refreshed by an earlier run")


@pytest.mark.usefixtures("engine")
def test_other_tables_and_another_scale_are_refused(
    hammerdb: Database, clone: Callable[[Database], Database], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["drive", "tpch", "--schema", "public", "--scale-factor", "0.01", "--dsn"]
    assert pgdyno([*texts, hammerdb.dsn]) == 2
    assert "has no table customer and no table lineitem" in capsys.readouterr().err
    mine = clone(hammerdb)
    as_hammerdb(mine)
    assert pgdyno([*texts[:4], "--scale-factor", "0.02", "--dsn", mine.dsn]) == 2
    err = capsys.readouterr().err
    assert "public.supplier has 100 rows, and 200 were asked for" in err and "scale_factor = 0.01" in err
    mine.run("ALTER TABLE lineitem RENAME l_tax TO l_other")
    assert pgdyno([*texts, mine.dsn]) == 2
    assert "public.lineitem is not that of HammerDB 6.0: it has no column l_tax" in capsys.readouterr().err
    assert pgdyno(["drive", "tpch", "--schema", "public"]) == 2
    assert "name the server with --dsn" in capsys.readouterr().err

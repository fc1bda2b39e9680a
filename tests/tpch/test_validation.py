"""Tables whose answers are known are asked for them once they are filled; at scale factor 0.01 DuckDB's stand in for dbgen's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.kinds.tpch import queries, validation
from pgdyno.kinds.tpch.queries import QUERIES
from pgdyno.results import open_loads, record
from pgdyno.workload.tables import TPCH_SCHEMA, TpchTables
from pgdyno.world.fill import LoadPhase, measured, require_whole

from ..fill.filled import Database
from .conftest import SCALE_FACTOR
from .test_queries import calculated, calculator

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

__all__ = ["calculator"]

TABLES = TpchTables(SCALE_FACTOR, "spec")


@pytest.fixture
def known(calculator: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of the small tables, written as the crate's are: names of columns first, and question 11's keys cut."""
    for query in QUERIES:
        rows = calculated(calculator, query, queries.validation(query), limited=True)
        if query == 11:
            rows = [(str(key).removesuffix(".00")[:3], value) for key, value in rows]
        lines = ["|".join(f" {value} " for value in row) for row in rows]
        (tmp_path / f"q{query}.out").write_text("\n".join(["names|of|columns", *lines, ""]))
    answers = {query: validation.read(tmp_path / f"q{query}.out") for query in QUERIES}
    monkeypatch.setattr(validation, "SCALE_FACTOR", SCALE_FACTOR)
    monkeypatch.setattr(validation, "known", lambda: answers)


@pytest.mark.usefixtures("engine", "known")
def test_a_data_set_is_recorded_with_its_answers_and_refused_for_one_wrong_row(
    cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE validated")
    database, result = Database(cluster, "validated"), list[str]()
    version = record.PostgresRecord(version="18.6", source="a test")
    phase = LoadPhase(directory=tmp_path, title="tables", postgres=version, roles={}, devices={})
    measured(database, TABLES, phase, lambda _share, text: result.append(text))
    (load,) = open_loads(tmp_path)
    detail = "the 22 queries of the validation bring dbgen's answers"
    assert [(check.name, check.ok, check.detail) for check in load.record.checks] == [("tpch_answers", True, detail)]
    assert result[-1] == "compare the answer of Q22 with dbgen's"
    assert database.rows(f"SELECT count(*) FROM pg_views WHERE schemaname = '{TPCH_SCHEMA}'") == [(0,)]

    row = "(l_orderkey, l_linenumber) = (7, 1)"
    database.run(f"UPDATE {TPCH_SCHEMA}.lineitem SET l_quantity = l_quantity + 1 WHERE {row}")
    with pytest.raises(PgdynoError, match=r"Q1 brings N \| O \| 742803.* and dbgen.s answer has N \| O \| 742802"):
        require_whole(database, TABLES)


def test_only_answers_of_dbgens_rows_at_scale_factor_1_are_known() -> None:
    assert validation.has_answers(TpchTables(1.0, "spec"))
    assert validation.has_answers(TpchTables(1.0, "hammerdb"))
    assert not validation.has_answers(TpchTables(0.999, "spec"))
    assert not validation.has_answers(TpchTables(1.0, "hammerdb", "public")), "HammerDB has built these"

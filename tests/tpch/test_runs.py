"""Streams of queries: they end with their work, count what they spill, and leave nothing on the server however they end."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.tpch.kind import Tpch
from pgdyno.kinds.tpch.queries import order_of
from pgdyno.kinds.tpch.run import QueryStreamsRunner
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.process import HelperProcess, Words, environment

from .conftest import SCALE_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.workload.outcome import Outcome

    from ..fill.filled import Database

SLOW = "SELECT count(*) FROM generate_series(1, 10000000000)"
"""A query that takes hours."""
TEMP_BYTES = "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"
WAITS_FOR = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgdyno stream 0' AND query = '{}'"


def tpch(**result: Any) -> Tpch:
    """A small one."""
    keys: dict[str, Any] = {"kind": "tpch", "scale_factor": SCALE_FACTOR, "profile": "spec", "seed": 3}
    workload = workload_of(**(keys | result))
    assert isinstance(workload, Tpch)
    return workload


def run(tpch: Tpch, database: Database, folder: Path, limit_s: float = 300.0) -> Outcome:
    """Run it to its end."""
    return tpch.runner()(database, RunRequest(limit_s, folder))


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    """``workload/query``."""
    assert outcome.query_rows is not None
    rows: list[dict[str, Any]] = outcome.query_rows.to_pylist()
    return rows


def wrong(outcome: Outcome) -> list[str]:
    """What failed checks say."""
    return [f"{check.name}: {check.detail}" for check in outcome.checks if not check.ok]


def test_a_run_asks_every_query_in_the_order_of_its_stream_and_ends(spec: Database, tmp_path: Path) -> None:
    result = tpch(query_sets=2)
    outcome = run(result, spec, tmp_path)
    assert wrong(outcome) == []
    documents = rows(outcome)
    assert [row["query"] for row in documents] == [*order_of(0), *order_of(0)]
    assert [(row["query_set"], row["place"]) for row in documents[21:23]] == [(1, 22), (2, 1)]
    assert all(row["t_end_ns"] > row["t_begin_ns"] for row in documents)
    assert outcome.account.succeeded == 44
    first = {row["query"]: row for row in documents[:22]}
    # Every set has parameters of its own, and the plan is kept.
    assert sum(row["parameters"] == first[row["query"]]["parameters"] for row in documents[22:]) < 11
    assert all(row["plan"] for row in documents)
    assert all(row["rows"] <= 100 or row["query"] in (9, 11, 16) for row in documents)
    assert outcome.streams is not None
    product = 1.0
    for row in documents:
        product *= (row["t_end_ns"] - row["t_begin_ns"]) / 1e9
    assert outcome.streams.geometric_mean_s == pytest.approx(product ** (1 / 44))
    assert outcome.streams.query_s.keys() == {str(query) for query in range(1, 23)}
    assert [proof for proof in result.proofs(spec, outcome) if not proof.ok] == []


def test_the_same_query_brings_the_same_hash_in_any_run_and_another_row_changes_it(
    hammerdb: Database, tmp_path: Path
) -> None:
    result = tpch(profile="hammerdb", clients=2, queries=(1, 3, 10, 15, 16))
    documents, other = rows(run(result, hammerdb, tmp_path)), rows(run(result, hammerdb, tmp_path))
    key = ("stream", "query", "parameters")
    hashes = [
        {tuple(row[name] for name in key): (row["rows"], row["rows_hash"]) for row in run} for run in (documents, other)
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0].values())) == 10
    assert {row["stream"] for row in documents} == {1, 2}
    with contextlib.closing(psycopg.connect(hammerdb.dsn, autocommit=True)) as connection:
        changed = (
            "UPDATE pgdyno_tpch.lineitem SET l_quantity = l_quantity + {} WHERE (l_orderkey, l_linenumber) = (7, 1)"
        )
        connection.execute(changed.format(1).encode())
        try:
            third = rows(run(result, hammerdb, tmp_path))
        finally:
            connection.execute(changed.format(-1).encode())
    changed_of = {row["query"] for row in third if hashes[0][tuple(row[name] for name in key)][1] != row["rows_hash"]}
    assert changed_of == {1}


def test_temporary_files_are_counted_where_they_are_written(spec: Database, tmp_path: Path) -> None:
    result = tpch(queries=(1, 6, 9, 16, 18), degree=2)
    spec.run(f"ALTER DATABASE {spec.name} SET work_mem = '64kB'")
    ((before,),) = spec.rows(TEMP_BYTES)
    try:
        documents = {row["query"]: row for row in rows(run(result, spec, tmp_path))}
    finally:
        spec.run(f"ALTER DATABASE {spec.name} RESET work_mem")
    # Question 16 sorts thousands of rows, 6 adds up a single one.
    assert documents[16]["temp_bytes"] > 10_000
    assert documents[6]["temp_bytes"] == 0
    # The sessions have ended, so that the server has counted what they did.
    ((after,),) = spec.rows(TEMP_BYTES)
    assert sum(row["temp_bytes"] for row in documents.values()) == after - before


def test_a_role_that_may_not_have_them_counted_is_told_why(spec: Database, tmp_path: Path) -> None:
    spec.run("CREATE ROLE analyst LOGIN")
    spec.run("GRANT USAGE ON SCHEMA pgdyno_tpch TO analyst")
    spec.run("GRANT SELECT ON ALL TABLES IN SCHEMA pgdyno_tpch TO analyst")
    try:
        with contextlib.closing(psycopg.connect(spec.dsn)) as connection:
            user = connection.info.user
        dsn = spec.dsn.replace(f"user={user}", "user=analyst")
        server = type("Other", (), {"dsn": dsn})()
        outcome = QueryStreamsRunner(tpch(queries=(6,)).streams)(server, RunRequest(60, tmp_path))
        assert rows(outcome)[0]["temp_bytes"] is None
        assert outcome.streams is not None
        assert "log_temp_files" in outcome.streams.temp_unseen
        with pytest.raises(PgdynoError, match="query 15: permission denied for schema pgdyno_tpch"):
            QueryStreamsRunner(tpch(queries=(15,)).streams)(server, RunRequest(60, tmp_path))
    finally:
        spec.run("DROP OWNED BY analyst")
        spec.run("DROP ROLE analyst")


def _long(database: Database, **more: Any) -> dict[str, Any]:
    """Two streams whose second query takes hours."""
    document = tpch(clients=2, queries=(6, 15)).streams.document(database.dsn, 300.0)
    for stream in document["streams"]:
        stream["steps"] = sorted(stream["steps"], key=lambda step: -int(step["query"]))
        stream["steps"][1]["text"] = SLOW
    return {**document, **more}


@pytest.mark.parametrize("how", ["late", "told", "parent"])
def test_a_query_that_is_ended_is_cancelled_on_the_server_and_its_view_is_gone(
    spec: Database, tmp_path: Path, how: str
) -> None:
    document = _long(spec, limit_s=1.0 if how == "late" else 300.0)
    command = [sys.executable, "-m", "pgdyno.kinds.tpch.process"]
    words = Words("the process", "the streams", "wait")
    with HelperProcess(command, tmp_path / "log", environment(None), words) as process:
        process.ask(document)
        lines = process.go(120.0)
        results = []
        for line in lines:
            results.append(line)
            both = sum("query" in line for line in results) == 2
            if both and how != "late":
                _wait_for(spec)
                if how == "told":
                    process._signal(signal.SIGTERM)
                else:
                    assert process._process.stdin is not None
                    process._process.stdin.close()
    queries = [line["query"] for line in results if "query" in line]
    assert [(line["query"], line["cancelled"]) for line in queries] == [(15, False)] * 2 + [(6, True)] * 2
    assert all("canceling statement" in line["error"] for line in queries[2:])
    assert results[-1]["stopped"] == ("late" if how == "late" else "told")
    assert spec.rows(WAITS_FOR.format(SLOW)) == [(0,)]
    assert spec.rows("SELECT 1 FROM pg_class WHERE relkind = 'v' AND relname LIKE 'revenue%'") == []


def _wait_for(database: Database, tries: int = 600) -> None:
    """Until the long query is under way."""
    waiting = threading.Event()
    for _ in range(tries):
        if database.rows(WAITS_FOR.format(SLOW)) == [(1,)]:
            return
        waiting.wait(0.05)
    raise AssertionError("the query did not begin")


def test_a_run_that_takes_too_long_is_invalid_and_names_the_query(spec: Database, tmp_path: Path) -> None:
    """It waits for a lock that somebody holds."""
    locked = psycopg.connect(spec.dsn)
    try:
        locked.execute(b"LOCK TABLE pgdyno_tpch.customer IN ACCESS EXCLUSIVE MODE")
        outcome = run(tpch(queries=(6, 13)), spec, tmp_path, limit_s=3.0)
    finally:
        locked.close()
    (reason,) = wrong(outcome)
    assert "query 13 of stream 0: cancelled" in reason
    assert "longer than workload.duration" in reason
    assert (outcome.account.succeeded, outcome.account.failed) == (1, 1)


def test_records_are_as_they_were_asked_for() -> None:
    record = tpch(clients=3).record()
    assert json.loads(json.dumps(record)) == {
        "kind": "tpch", "seed": 3, "degree": None, "profile": "spec", "scale_factor": 0.01, "clients": 3, "query_sets": 1,
        "queries": list(range(1, 23)), "refresh": "none", "limit_s": 3600.0, "driver_cpus": None,
    }  # fmt: skip
    assert tpch(profile="hammerdb").record()["degree"] == 2


@pytest.mark.parametrize("profile", ["hammerdb", "spec"])
def test_refresh_functions_insert_and_delete_what_dbgen_says_once(
    request: pytest.FixtureRequest, clone: Callable[[Database], Database], tmp_path: Path, profile: str
) -> None:
    mine = clone(request.getfixturevalue(profile))
    result = tpch(profile=profile, queries=(6, 15), query_sets=2, refresh="power")
    lines = "SELECT count(*) FROM pgdyno_tpch.lineitem"
    ((before,),) = mine.rows(lines)
    outcome = run(result, mine, tmp_path)
    assert wrong(outcome) == []
    assert [check.detail for check in result.proofs(mine, outcome) if not check.ok] == []
    assert outcome.streams is not None
    records = outcome.streams.refresh
    # Around the queries of each set; at this scale a set of dbgen's has ten orders.
    assert [(record.function, record.refresh_set) for record in records] == [
        ("insert", 1), ("delete", 1), ("insert", 2), ("delete", 2),
    ]  # fmt: skip
    queries = rows(outcome)
    assert records[0].end_ns <= queries[0]["t_begin_ns"] < queries[1]["t_end_ns"] <= records[1].begin_ns
    assert [record.orders for record in records] == [10] * 4
    assert [record.transactions for record in records] == ([1, 20, 1, 20] if profile == "hammerdb" else [10] * 4)
    inserted, deleted = (sum(record.lines for record in records[number::2]) for number in (0, 1))
    assert mine.rows(lines) == [(before + inserted - deleted,)]
    # The first of `dbgen -s 0.01 -U 2`, whose status HammerDB does not take over.
    first = "SELECT o_orderkey, o_custkey, o_orderstatus, o_totalprice FROM pgdyno_tpch.orders WHERE o_orderkey IN (1, 9, 43)"
    numbers = [
        (int(key), int(customer), status, str(price)) for key, customer, status, price in sorted(mine.rows(first))
    ]
    open_or = "O" if profile == "hammerdb" else "F"
    assert numbers == [(9, 1385, open_or, "179366.58"), (43, 302, open_or, "223637.29")]
    assert outcome.streams.query_s.keys() == {"6", "15"}
    # On the same rows there is no second one.
    with pytest.raises(PgdynoError, match="the tables were refreshed before") as caught:
        run(result, mine, tmp_path)
    assert caught.value.remedy == "load the tables again"
    # What is not there is told.
    mine.run("DELETE FROM pgdyno_tpch.lineitem WHERE l_orderkey = 9")
    (check,) = (proof for proof in result.proofs(mine, outcome) if proof.name == "tpch_refresh")
    assert not check.ok
    assert "20 orders" in check.detail


def test_a_further_session_refreshes_beside_the_streams(
    spec: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    mine, result = clone(spec), tpch(clients=2, queries=(1, 6), refresh="stream")
    outcome = run(result, mine, tmp_path)
    assert wrong(outcome) == []
    assert [check.detail for check in result.proofs(mine, outcome) if not check.ok] == []
    assert outcome.streams is not None
    assert [record.refresh_set for record in outcome.streams.refresh] == [1, 1, 2, 2]
    assert {row["stream"] for row in rows(outcome)} == {1, 2}
    assert outcome.streams.stream_s.keys() == {"1", "2"}
    assert list(tmp_path.glob("refresh-*")) == [], "rows are in memory, and their files are gone"


def test_a_refresh_function_that_is_late_ends_between_transactions(
    spec: Database, clone: Callable[[Database], Database], tmp_path: Path
) -> None:
    """It waits for an order that another session has locked."""
    mine, result = clone(spec), tpch(queries=(6,), refresh="power")
    locked = psycopg.connect(mine.dsn)
    try:
        locked.execute(b"SELECT 1 FROM pgdyno_tpch.orders WHERE o_orderkey = 3 FOR UPDATE")
        outcome = run(result, mine, tmp_path, limit_s=3.0)
    finally:
        locked.close()
    assert outcome.streams is not None
    deleted = outcome.streams.refresh[1]
    assert (deleted.error, deleted.orders, deleted.transactions) == ("cancelled", 2, 2)
    # An order and its lines go together.
    assert mine.rows("SELECT count(*) > 0 FROM pgdyno_tpch.lineitem WHERE l_orderkey = 3") == [(True,)]
    texts = [check.detail for check in (*outcome.checks, *result.proofs(mine, outcome)) if not check.ok]
    assert any("delete of set 1: cancelled" in text for text in texts), texts

"""A drive that ends before its time keeps its figures, and says which statement of which script ended it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.workload import histogram

from ..support.pooler import pgbouncer
from .driven import drive, driving, line, outcome, own_script, settled, spec, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

DRAWS = "\\set n random(1, 400)\n-- the key is drawn\nINSERT INTO keys\n VALUES (:n);\n"
"""Draws a key a second time after a few dozen rows."""
OTHER = "SELECT 1;\n"


@pytest.fixture
def keys(dsn: str) -> Iterator[str]:
    """An empty table whose key is unique, and one whose key is looked at when the transaction ends."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE keys (n int PRIMARY KEY)")
        connection.execute("CREATE TABLE late (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        yield dsn
        connection.execute("DROP TABLE keys, late")


def rows(dsn: str, table: str = "keys") -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def scripts(*texts: str) -> dict[str, Any]:
    return {"pgbench": {"scripts": [{"text": text, "name": f"{n}.sql"} for n, text in enumerate(texts)], "scale": 1}}


def ended(dsn: str, document: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summary and what ended it; its exit code is not that of an input that was refused."""
    code, lines, err = outcome(dsn, document)
    assert code == 1, err
    summary = lines[-1]["summary"]
    error = json.loads(err.splitlines()[-1])["error"]
    assert {key: error[key] for key in ("message", "remedy")} == {
        key: summary["ended_by"][key] for key in ("message", "remedy")
    }
    assert settled(summary) + summary["settled_in_warmup"] == summary["scheduled_with_warmup"]
    return summary, summary["ended_by"]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_done_before_a_refused_statement_is_counted(keys: str, protocol: str, threads: int) -> None:
    result = spec(workload=scripts(OTHER, DRAWS), protocol=protocol, threads=threads, duration_ms=30_000)
    summary, why = ended(keys, result)
    assert summary["scripts"][1]["succeeded"] == rows(keys) > 0
    assert (why["script"], why["line"], why["sqlstate"]) == ("1.sql", 3, "23505")
    assert why["statement"].split() == ["INSERT", "INTO", "keys", "VALUES", "($1)"]
    assert "1.sql:3 (INSERT INTO keys VALUES ($1)): the server refused (23505): duplicate key" in why["message"]
    assert summary["errors"]["23505"] >= 1
    assert (summary["end_ns"] - summary["begin_ns"]) / 1e9 < 25, "it did not go on to the end"


def test_errors_are_counted_when_it_is_asked_for(keys: str) -> None:
    summary = drive(keys, spec(workload=scripts(DRAWS), continue_on_error=True, transactions_max=200)).summary
    assert summary["ended_by"] is None
    assert summary["succeeded"] == rows(keys) > 0
    assert summary["errors"] == {"23505": summary["failed"]}


def test_the_statement_of_a_pipeline_that_was_refused_is_named(keys: str) -> None:
    text = "\\startpipeline\nSELECT 1;\nSELECT 1 / :client_id;\nSELECT 3;\n\\endpipeline\n"
    _, why = ended(keys, spec(workload=own_script(text), clients=1, protocol="extended"))
    assert (why["line"], why["statement"], why["sqlstate"]) == (3, "SELECT 1 / $1", "22012")


def test_what_fails_at_the_end_of_a_pipeline_is_no_statement_of_it(keys: str) -> None:
    text = "\\startpipeline\nINSERT INTO late VALUES (7);\n\\endpipeline\n"
    _, why = ended(keys, spec(workload=own_script(text), clients=1, protocol="extended"))
    assert (why["script"], why["line"], why["sqlstate"]) == ("own.sql", None, "23505")


def test_a_transaction_that_cannot_be_committed_names_its_end(keys: str) -> None:
    summary, why = ended(keys, spec(workload=own_script("BEGIN;\nINSERT INTO late VALUES (7);\nEND;\n"), clients=1))
    assert (summary["succeeded"], why["line"], why["statement"]) == (1, 3, "END")


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT ':client_id';\n", "08P01"),
        ("SELEC 1;\n", "42601"),
        ("SELECT 1 / 0;\n", "22012"),
    ],
)
def test_the_remedy_for_a_mistake_of_the_script_is_about_the_script(keys: str, text: str, sqlstate: str) -> None:
    _, why = ended(keys, spec(workload=own_script(text), duration_ms=30_000))
    assert (why["code"], why["data"]["sqlstate"], why["data"]["line"]) == ("drive.statement.refused", sqlstate, 1)
    assert "script" in why["remedy"]
    assert "log" not in why["remedy"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1;\n\\set n 1 / (:client_id - :client_id)\n", "own.sql:2:1: division by zero"),
        ("SELECT 1 WHERE false \\gset\n", "own.sql:1:1: \\gset expects one row"),
        ("COPY keys FROM STDIN;\n", "COPY wants rows of the client"),
    ],
)
def test_a_script_that_cannot_go_on_ends_with_figures_too(keys: str, text: str, said: str) -> None:
    summary, why = ended(keys, spec(workload=own_script(text), protocol="extended", duration_ms=30_000))
    assert said in why["message"]
    assert summary["failed"] >= 1


def test_the_statements_of_a_pipeline_are_in_the_table(dsn: str) -> None:
    text = "\\startpipeline\nSELECT 1;\nSELECT pg_sleep(0.03);\n\\syncpipeline\nSELECT 3;\n\\endpipeline\nSELECT 4;\n"
    summary = drive(dsn, spec(workload=own_script(text), clients=2, transactions_max=3)).summary
    assert summary["succeeded"] == 6
    counts = {statement["name"]: statement["count"] for statement in summary["statements"] if statement["count"]}
    assert counts == {"SELECT 1": 6, "SELECT pg_sleep(0.03)": 6, "SELECT 3": 6, "SELECT 4": 6}
    assert summary["queries"]["other"] == 24
    took = {statement["name"]: statement["service_us"] for statement in summary["statements"] if statement["count"]}
    slept_us = histogram.decode(took["SELECT pg_sleep(0.03)"]).get_min_value()
    assert slept_us >= 30_000 * 0.99, "from when the pipeline was sent; a histogram keeps three digits"
    assert histogram.decode(took["SELECT 4"]).get_min_value() < 30_000


def test_a_sleep_is_longer_in_a_dilated_world(dsn: str) -> None:
    text = "\\set n 10\n\\sleep 10 ms\n\\sleep :n ms\n"
    result = spec(workload=own_script(text), clients=1, transactions_max=2)
    for dilation, least_us in ((1, 20_000), (5, 100_000)):
        script = drive(dsn, result | {"dilation": dilation}).summary["scripts"][0]
        assert histogram.decode(script["service_us"]).get_min_value() >= least_us * 0.99


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_a_null_that_was_taken_is_a_null_again(keys: str, protocol: str) -> None:
    """pgbench keeps an empty text, which the simple protocol would leave out of the statement."""
    text = "SELECT NULL::int AS n \\gset\nINSERT INTO late VALUES (:n);\n"
    result = drive(keys, spec(workload=own_script(text), protocol=protocol, clients=1, transactions_max=3))
    assert result.summary["succeeded"] == 3
    assert rows(keys, "late WHERE n IS NULL") == 3


@pytest.mark.parametrize("text", ["", "\n\n", "-- nothing\n/* at all */\n"])
def test_a_script_without_a_command_is_refused_as_by_pgbench(dsn: str, text: str) -> None:
    code, lines, err = outcome(dsn, spec(workload=own_script(text)))
    assert (code, lines) == (2, [])
    assert "own.sql:1:1: the script has neither a statement nor a command" in err


@pytest.mark.parametrize(
    ("options", "sqlstate", "setting"),
    [
        ("-c lock_timeout=50ms", "55P03", "lock_timeout=0"),
        ("-c statement_timeout=50ms", "57014", "statement_timeout=0"),
    ],
)
def test_a_timeout_of_the_connection_is_named_with_how_to_raise_it(
    keys: str, options: str, sqlstate: str, setting: str
) -> None:
    with psycopg.connect(keys) as blocker:
        blocker.execute("LOCK TABLE keys")
        _, why = ended(keys, spec(workload=own_script("SELECT * FROM keys;"), server={"options": options}))
    assert why["sqlstate"] == sqlstate
    assert setting in why["remedy"]


@pytest.mark.needs_pgbouncer
def test_prepared_statements_that_collide_have_the_poolers_remedy(dsn: str, cluster: Cluster) -> None:
    with pgbouncer(cluster, pool_size=1) as pooler:
        _, why = ended("", spec(server={"host": str(pooler.socket_dir), "port": str(pooler.port), "user": "postgres"}))
    assert why["sqlstate"] in ("42P05", "26000")
    assert "pooler" in why["remedy"]
    assert "--protocol simple" in why["remedy"]


def test_clients_that_are_without_a_server_at_the_end_are_counted(own: Cluster) -> None:
    with driving(own.dsn, spec(duration_ms=2000)) as process:
        line(process)
        own.stop("immediate")
        _, summary = summary_of(process)
    assert summary["clients_disconnected"] == 4
    assert summary["ended_by"] is None

"""A plan lets a server log what a capture needs, and its inverse leaves the server as it was."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgdyno.capture import plan as plan_module
from pgdyno.kinds.replay.capture import without_literals
from pgdyno.machine.waiting import wait_until
from pgdyno.server.cluster import Cluster

from ..support.commands import pgdyno
from ..support.servers import throwaway_cluster
from .logged import CLIENT, captured, connected, sent

PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def counting_server() -> Iterator[Cluster]:
    """A server with pg_stat_statements, which logs little."""
    with throwaway_cluster(None, {"shared_preload_libraries": "pg_stat_statements"}) as cluster:
        with cluster.connect() as admin:
            admin.execute("CREATE EXTENSION pg_stat_statements")
            admin.execute("ALTER SYSTEM SET log_connections = 'off'")
            admin.execute("CREATE ROLE teller LOGIN; CREATE SEQUENCE numbers; SELECT nextval('numbers')")
            admin.execute("ALTER ROLE teller SET log_statement = 'none'")
            admin.execute("SELECT pg_reload_conf()")
        yield cluster


def settings(cluster: Cluster) -> tuple[str, list[Any]]:
    """The file of ALTER SYSTEM, and every setting."""
    with cluster.connect() as connection:
        rows = connection.execute("SELECT name, setting, source FROM pg_settings ORDER BY name").fetchall()
    return (cluster.data_dir / "postgresql.auto.conf").read_text(), rows


def change(cluster: Cluster, statements: list[str]) -> None:
    """Execute what a plan says."""
    with cluster.connect() as admin:
        for statement in statements:
            admin.execute(statement.encode())
        admin.execute("SELECT pg_reload_conf()")


def test_a_plan_lets_a_server_log_and_its_inverse_undoes_it_exactly(counting_server: Cluster, tmp_path: Path) -> None:
    before = settings(counting_server)
    plan = json.loads(pgdyno("capture", "plan", counting_server.dsn, "--json", code=0).out)
    assert settings(counting_server) == before, "nothing is changed by asking"
    change(counting_server, plan["apply"])
    assert wait_until(
        lambda: ("log_statement", "all", "configuration file") in settings(counting_server)[1], PATIENCE_S
    )
    with connected(counting_server) as session:
        session.execute("SELECT %s::text", ["a value"])
    log = counting_server.log_path
    assert wait_until(lambda: f"{CLIENT}" in log.read_text() and "disconnection" in log.read_text(), PATIENCE_S)
    capture, account = captured(tmp_path, log, options=("--prefix", plan["prefix"]))
    assert ("unnamed", "SELECT $1::text", ["a value"], None) in [call for item in sent(capture) for call in item]
    assert account["fractions"] and account["without_ending"] == 0
    again = json.loads(pgdyno("capture", "plan", counting_server.dsn, "--json", code=0).out)
    assert again["apply"] == []
    change(counting_server, plan["undo"])
    assert wait_until(lambda: settings(counting_server) == before, PATIENCE_S), settings(counting_server)[0]


def test_a_plan_says_what_it_costs_and_what_stays(counting_server: Cluster) -> None:
    ended = pgdyno("capture", "plan", counting_server.dsn, code=0)
    assert "role teller has its own log_statement=none" in ended.err
    assert "GB an hour" in ended.out
    assert ended.out.index("ALTER SYSTEM SET log_statement = 'all';") < ended.out.index("pg_dump -Fc")
    assert ended.out.index("pg_dump -Fc") < ended.out.index("ALTER SYSTEM RESET log_statement;")
    rds = pgdyno("capture", "plan", counting_server.dsn, "--for", "rds", code=0).out
    assert "ParameterName=log_destination,ParameterValue=csvlog,ApplyMethod=immediate" in rds
    assert "ParameterName=log_destination,ParameterValue=stderr,ApplyMethod=immediate" in rds
    sampled = json.loads(pgdyno("capture", "plan", counting_server.dsn, "--sample", "0.05", "--json", code=0).out)
    whole = json.loads(pgdyno("capture", "plan", counting_server.dsn, "--json", code=0).out)
    assert "ALTER SYSTEM SET log_transaction_sample_rate = '0.05';" in sampled["apply"]
    assert sampled["log_bytes_per_s"] < whole["log_bytes_per_s"] / 10


@pytest.fixture(scope="module")
def overridden_server() -> Iterator[Cluster]:
    """A server whose own settings are not those of the sessions that may ask it."""
    with throwaway_cluster(None, {"log_connections": "on", "log_timezone": "Asia/Kathmandu"}) as cluster:
        with cluster.connect() as admin:
            admin.execute("ALTER SYSTEM SET log_statement = 'ddl'")
            admin.execute("ALTER SYSTEM SET log_parameter_max_length = '1kB'")
            admin.execute("ALTER SYSTEM SET log_error_verbosity = 'verbose'")
            admin.execute("ALTER SYSTEM SET log_duration = 'yes'")
            admin.execute("ALTER DATABASE postgres SET log_statement = 'none'")
            admin.execute("ALTER ROLE postgres SET log_duration = off")
            admin.execute("ALTER ROLE ALL SET log_error_verbosity = 'terse'")
            admin.execute("ALTER ROLE postgres IN DATABASE postgres SET log_min_error_statement = panic")
            admin.execute("CREATE ROLE asks LOGIN; SELECT pg_reload_conf()")
        yield cluster


def settings_of_the_server(cluster: Cluster) -> tuple[str, list[Any]]:
    """The file of ALTER SYSTEM, and what holds in the files of the server."""
    with cluster.connect() as connection:
        rows = connection.execute(
            "SELECT DISTINCT ON (name) name, setting FROM pg_file_settings WHERE name LIKE 'log%' OR name LIKE 'lc%'"
            " ORDER BY name, seqno DESC"
        ).fetchall()
    return (cluster.data_dir / "postgresql.auto.conf").read_text(), rows


def test_what_is_undone_is_the_servers_own_setting_whatever_the_session_has(overridden_server: Cluster) -> None:
    before = settings_of_the_server(overridden_server)
    plan = json.loads(pgdyno("capture", "plan", overridden_server.dsn, "--json", code=0).out)
    # Of each the last line that sets it: the file's text, as ALTER SYSTEM had it.
    assert "ALTER SYSTEM SET log_statement = 'ddl';" in plan["undo"]
    assert "ALTER SYSTEM SET log_parameter_max_length = '1kB';" in plan["undo"]
    assert "ALTER SYSTEM SET log_error_verbosity = 'verbose';" in plan["undo"]
    # The server has these as they are needed: only the session does not.
    assert not {"log_duration", "log_min_error_statement", "log_connections"} & {
        setting["name"] for setting in plan["settings"]
    }, plan["settings"]
    assert "ALTER SYSTEM SET log_timezone = 'UTC';" in plan["apply"]
    assert "ALTER SYSTEM RESET log_timezone;" in plan["undo"]
    change(overridden_server, plan["apply"])
    applied = settings_of_the_server(overridden_server)
    assert applied != before and ("log_statement", "all") in applied[1]
    change(overridden_server, plan["undo"])
    after = settings_of_the_server(overridden_server)
    assert after[1] == before[1]
    assert sorted(after[0].splitlines()) == sorted(before[0].splitlines())


def test_a_role_that_does_not_see_the_servers_own_setting_is_told_so(overridden_server: Cluster) -> None:
    asking = overridden_server.dsn.replace("user=postgres", "user=asks")
    plan = json.loads(pgdyno("capture", "plan", asking, "--json", code=0).out)
    comments = [item for item in plan["undo"] if item.startswith("-- log_statement:")]
    assert len(comments) == 1, plan["undo"]
    assert not any("log_statement" in item for item in plan["undo"] if item not in comments)
    assert any("log_statement is not seen by this session" in note for note in plan["notes"])
    rds = pgdyno("capture", "plan", asking, "--for", "rds", code=0).out
    assert "ParameterName=log_statement,ParameterValue=none" not in rds


def test_settings_that_change_the_form_of_a_log_are_asked_for(overridden_server: Cluster) -> None:
    with overridden_server.connect() as admin:
        admin.execute("ALTER SYSTEM SET log_min_messages = 'fatal'")
        admin.execute("SELECT pg_reload_conf()")
    try:
        plan = json.loads(pgdyno("capture", "plan", overridden_server.dsn, "--json", code=0).out)
    finally:
        change(overridden_server, ["ALTER SYSTEM RESET log_min_messages"])
    wanted = {setting["name"]: setting["wanted"] for setting in plan["settings"]}
    assert wanted["log_error_verbosity"] == "default"
    assert wanted["log_timezone"] == "UTC"
    assert wanted["log_min_messages"] == "warning"


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ("de_DE.UTF-8", "C"),
        ("fr_FR@euro", "C"),
        ("German_Germany.1252", "C"),
        ("English_United States.1252", None),
        ("en_GB.utf8", None),
        ("C.UTF-8", None),
        ("", None),
    ],
)
def test_messages_are_to_be_in_english(messages: str, wanted: str | None) -> None:
    values = {
        "log_min_messages": "warning",
        "log_error_verbosity": "default",
        "lc_messages": messages,
        "log_timezone": "Etc/UTC",
        "log_min_error_statement": "error",
        "log_connections": "on",
        "log_destination": "csvlog",
    }
    there = {name: plan_module.ServerSetting(value, by_alter_system=False) for name, value in values.items()}
    binaries = plan_module._wanted(there, "server", 1.0, None)
    assert binaries.get("lc_messages") == wanted
    assert not {"log_error_verbosity", "log_timezone", "log_min_messages"} & binaries.keys()


def test_the_rate_of_statements_is_that_of_pg_stat_statements(counting_server: Cluster) -> None:
    with connected(counting_server) as session:
        begin = time.monotonic()
        session.execute("SELECT pg_stat_statements_reset()")
        for number in range(300):
            session.execute("SELECT %s::int", [number])
        plan = json.loads(pgdyno("capture", "plan", counting_server.dsn, "--json", code=0).out)
    assert plan["statements_per_s"] >= 300 / (time.monotonic() - begin)
    assert plan["log_bytes_per_s"] == pytest.approx(plan["statements_per_s"] * 770)


def test_statistics_have_counters_and_no_literal(counting_server: Cluster) -> None:
    with connected(counting_server) as session:
        session.execute("CREATE TABLE people (name text)")
        session.execute("INSERT INTO people VALUES ('a-secret-name'), ('another-secret-name')")
        session.execute("COMMENT ON TABLE people IS 'a-secret-comment'")
        session.execute("SELECT /* user=a-secret-user */ count(*) FROM people -- a-secret-order")
        session.execute("ALTER ROLE teller PASSWORD 'hunter2'")
    ended = pgdyno("capture", "stats", counting_server.dsn, code=0)
    assert "secret" not in ended.out and "hunter2" not in ended.out
    document = json.loads(ended.out)
    (inserted,) = [
        statement for statement in document["statements"] if statement["query"].startswith("INSERT INTO people")
    ]
    assert (inserted["role"], inserted["calls"], inserted["rows"]) == ("postgres", 1, 2)
    assert inserted["wal_bytes"] > 0
    assert {"schema": "public", "name": "numbers", "last_value": 1, "increment": 1, "cache": 1} in document["sequences"]
    assert next(relation for relation in document["relations"] if relation["name"] == "people")["size_bytes"] > 0
    assert "shared_buffers" in {setting["name"] for setting in document["settings"]}
    assert "archive_command" not in {setting["name"] for setting in document["settings"]}


def test_what_cannot_be_asked_is_refused(counting_server: Cluster, embedded_server: Cluster) -> None:
    assert "has no pg_stat_statements" in pgdyno("capture", "stats", embedded_server.dsn, code=2).err
    teller = counting_server.dsn.replace("user=postgres", "user=teller")
    assert "does not see the statements of others" in pgdyno("capture", "stats", teller, code=2).err
    ended = pgdyno("capture", "plan", "host=db password=hunter2", code=2)
    assert "does not belong" in ended.err and "hunter2" not in ended.err


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT $1 FROM t2 WHERE a = $2", "SELECT $1 FROM t2 WHERE a = $2"),
        ("COMMENT ON TABLE t IS 'it''s'", "COMMENT ON TABLE t IS ?"),
        ("SET x = 20481", "SET x = ?"),
        ("ALTER ROLE a PASSWORD 'x'", "ALTER …"),
        ("DO $$ BEGIN PERFORM 'x'; END $$", "DO …"),
        ("COMMENT ON TABLE t IS E'a\\'b'", "COMMENT …"),
        ("SELECT /* user=ann@example.org */ $1 -- order 17", "SELECT   $1"),
        ("SELECT $1 /* a /* b */ 'c' */ FROM t", "SELECT $1   FROM t"),
        ("SELECT $1 /* it's open", "SELECT $1"),
        ('SELECT "--a", "/*b" FROM t -- c', 'SELECT "--a", "/*b" FROM t'),
        ("COMMENT ON TABLE t IS 'no -- comment /* here' -- 'but here'", "COMMENT ON TABLE t IS ?"),
        ("SELECT $1 /*, ... */ + $2", "SELECT $1   + $2"),
        ("", ""),
    ],
)
def test_literals_of_utility_commands_are_not_kept(text: str, kept: str) -> None:
    assert without_literals(text) == kept

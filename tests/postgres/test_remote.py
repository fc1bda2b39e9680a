"""A server that exists already: seen by an ordinary role, and not changed unasked."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.server.remote import RemoteServer
from pgdyno.workload.fill import load
from pgdyno.workload.server import environment
from pgdyno.workload.tables import PgbenchTables
from tests.conftest import find_system_postgres
from tests.support.servers import initialise

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVERS = ["embedded", pytest.param("system", marks=pytest.mark.needs_system_postgres)]
EVERYTHING = """
SELECT 'relation', n.nspname || '.' || c.relname, c.relkind::text, c.relowner::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname NOT LIKE 'pg\\_t%%'
UNION ALL SELECT 'setting', name, setting, source FROM pg_settings WHERE source NOT IN ('client', 'session')
UNION ALL SELECT 'role', rolname, rolsuper::text, coalesce(array_to_string(rolconfig, ','), '') FROM pg_roles
UNION ALL SELECT 'schema', nspname, nspowner::text, coalesce(nspacl::text, '') FROM pg_namespace
 WHERE nspname NOT LIKE 'pg\\_t%%'
ORDER BY 1, 2
"""


@pytest.fixture(params=SERVERS)
def cluster(state: Any, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Somebody's server, with an ordinary role and a database of that role's."""
    programs = find_system_postgres() if request.param == "system" else None
    made = Cluster(find_binaries(programs), state.parent / "data")
    try:
        initialise(made.data_dir, programs)
        with made.running():
            with made.connect() as connection:
                connection.execute("CREATE ROLE bench LOGIN PASSWORD 'secret'")
                connection.execute("CREATE ROLE guest LOGIN")
                connection.execute("CREATE DATABASE app OWNER bench")
            yield made
    finally:
        made.close()


def dsn(cluster: Cluster, user: str = "bench", dbname: str = "app") -> str:
    return f"host={cluster.socket_dir} port={cluster.port} user={user} dbname={dbname}"


def everything(cluster: Cluster) -> list[tuple[Any, ...]]:
    """What of the server a client could have changed."""
    import psycopg

    with psycopg.connect(dsn(cluster, "postgres")) as connection:
        return connection.execute(EVERYTHING).fetchall()


def test_looking_at_a_server_changes_nothing(cluster: Cluster) -> None:
    before = everything(cluster)
    server = RemoteServer.open(dsn(cluster))
    assert (server.version, server.major, server.read_only) == (cluster.version, cluster.binaries.major, False)
    assert server.binaries.source.startswith("embedded")
    assert server.record.model_dump() == {
        "host": str(cluster.socket_dir),
        "port": cluster.port,
        "dbname": "app",
        "user": "bench",
    }
    names = {row["name"] for row in server.settings()}
    assert "shared_buffers" in names
    assert "data_directory" not in names, "an ordinary role does not see where the data is"
    with pytest.raises(InputError, match="does not create them without --yes-create") as refused:
        server.require_tables(1, writes=True, yes_create=False)
    assert "--yes-create" in refused.value.remedy
    assert everything(cluster) == before


def test_tables_are_made_when_asked_and_never_replaced(cluster: Cluster) -> None:
    server = RemoteServer.open(dsn(cluster))
    with server.connect() as connection:
        connection.execute("CREATE TABLE theirs AS SELECT 1")
        connection.execute("CREATE SCHEMA IF NOT EXISTS bench")
    assert server.require_tables(2, writes=True, yes_create=True)
    outcome = load(server, PgbenchTables(2), env=server.environment, replace=False)
    assert outcome.rows["pgbench_accounts"] == 200_000
    assert "checkpoint" not in outcome.seconds, "an ordinary role may not, and need not"
    assert not server.require_tables(2, writes=True, yes_create=False)
    with pytest.raises(InputError, match="have scale 2, not 3"):
        server.require_tables(3, writes=True, yes_create=True)
    with server.connect() as connection:
        connection.execute("DROP TABLE pgbench_history")
    with pytest.raises(InputError, match="but not the others"):
        server.require_tables(2, writes=True, yes_create=True)
    with server.connect() as connection:
        assert connection.execute("SELECT count(*) FROM theirs").fetchone() == (1,)


def test_what_a_role_may_not_is_refused_before(cluster: Cluster) -> None:
    owner = RemoteServer.open(dsn(cluster))
    with owner.connect() as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC") if cluster.binaries.major < 15 else None
    guest = RemoteServer.open(dsn(cluster, "guest"))
    with pytest.raises(InputError, match="guest may not create tables"):
        guest.require_tables(1, writes=True, yes_create=True)
    load(owner, PgbenchTables(1), replace=False)
    with pytest.raises(InputError, match="may not SELECT"):
        guest.require_tables(1, writes=False, yes_create=False)
    with owner.connect() as connection:
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO guest")
    assert not guest.require_tables(1, writes=False, yes_create=False)
    with pytest.raises(InputError, match="may not UPDATE"):
        guest.require_tables(1, writes=True, yes_create=False)


def test_a_server_that_cannot_be_written_to_takes_reads(cluster: Cluster) -> None:
    load(RemoteServer.open(dsn(cluster)), PgbenchTables(1), replace=False)
    with cluster.connect() as connection:
        connection.execute("ALTER ROLE bench SET default_transaction_read_only = on")
    server = RemoteServer.open(dsn(cluster))
    assert server.read_only
    assert not server.require_tables(1, writes=False, yes_create=False)
    with pytest.raises(InputError, match="takes no writes"):
        server.require_tables(1, writes=True, yes_create=True)


def test_a_password_comes_from_the_callers_own_places(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("PGUSER", "nobody")
    server = RemoteServer.open(dsn(cluster))
    made = environment(server, server.environment)
    assert (made["PGUSER"], made["PGPASSWORD"], made["PGDATABASE"]) == ("bench", "secret", "app")
    assert "secret" not in repr(server)


@pytest.mark.parametrize("text", ["host=h password", "no such thing", "postgresql://["])
def test_what_is_no_connection_string_is_not_repeated(text: str) -> None:
    with pytest.raises(InputError) as caught:
        RemoteServer.open(text)
    assert text not in caught.value.message


def test_a_server_that_is_not_there_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listened on: a connection is refused
        port = taken.getsockname()[1]
        with pytest.raises(HostError, match="cannot be connected to") as caught:
            RemoteServer.open(f"host=127.0.0.1 port={port} user=u dbname=d")
    assert "psql" in caught.value.remedy


def test_a_database_without_an_encoding_answers_in_text_too(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    server = RemoteServer.open(dsn(cluster, dbname="plain"))
    assert server.version == cluster.version
    assert {type(row["name"]) for row in server.settings()} == {str}


def test_a_value_that_cannot_be_used_is_named() -> None:
    with pytest.raises(InputError, match="bad value for connect_timeout: 'soon'"):
        RemoteServer.open("host=127.0.0.1 user=u dbname=d connect_timeout=soon")

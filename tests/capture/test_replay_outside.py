"""The statements of a capture stay in the database that they are sent to, or nothing is sent."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgdyno.capture.replay import replay
from pgdyno.kinds.replay import run
from pgdyno.kinds.replay.outside import disarm, ways_out

from ..support.commands import Ended, pgdyno
from .experiment import ran
from .handmade import capture_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

SCHEMA = """
CREATE TABLE orders (id int, note text);
GRANT SELECT, INSERT ON orders TO {role};
"""


@dataclass(frozen=True)
class Copy:
    """A database with a table, a role without rights beside it, and one statement that is sent."""

    cluster: Cluster
    name: str
    """Of the database, and of the role."""
    folder: Path

    def do(self, statements: str) -> None:
        """As the superuser."""
        with self.cluster.connect(dbname=self.name) as connection:
            connection.execute(statements.replace("{role}", self.name).encode())

    def capture(self, *messages: str, user: str | None = None) -> Path:
        """A capture of the role's session."""
        own = messages or ("statement: INSERT INTO orders VALUES (1, 'sent')",)
        return capture_of(self.folder, *own, user=user or self.name, database=self.name)

    def replay(self, *options: str, capture: Path | None = None) -> Ended:
        """Send it."""
        return pgdyno(
            "capture", "replay", capture or self.capture(), "--dsn", self.cluster.dsn, "--yes-write", *options
        )

    def rows(self, table: str = "orders") -> list[tuple[Any, ...]]:
        """What is in a table."""
        with self.cluster.connect(dbname=self.name) as connection:
            return connection.execute(f"SELECT * FROM {table}".encode()).fetchall()


@pytest.fixture
def copy(embedded_server: Cluster, tmp_path: Path) -> Iterator[Copy]:
    """A new one, which goes with its role."""
    name = f"copy_{secrets.token_hex(4)}"
    with embedded_server.connect() as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
        made = Copy(embedded_server, name, tmp_path)
        try:
            made.do(SCHEMA)
            yield made
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            admin.execute(f"DROP ROLE {name}".encode())


def far(copy: Copy) -> str:
    """Statements that make a foreign table of the database's own table, as another server's would be."""
    there = conninfo_to_dict(copy.cluster.dsn)
    host, port = there["host"], there["port"]
    return f"""
        CREATE EXTENSION postgres_fdw;
        CREATE SERVER production FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', port '{port}', dbname '{copy.name}');
        CREATE USER MAPPING FOR PUBLIC SERVER production OPTIONS (user 'postgres', password_required 'false');
        CREATE TABLE theirs (id int, note text);
        CREATE FOREIGN TABLE far (id int, note text) SERVER production OPTIONS (table_name 'theirs');
        GRANT INSERT ON far TO {{role}};
    """


def names(ended: Ended) -> list[str]:
    """The ways out that a refusal has."""
    assert ended.error is not None, ended.err
    assert (ended.code, ended.error.code) == (2, "replay.outside"), ended.err
    names: list[str] = ended.error.data["names"]
    return names


def test_a_foreign_table_of_the_copy_is_not_written_unless_its_server_is_named(copy: Copy) -> None:
    copy.do(far(copy))
    writing = copy.capture(
        "statement: INSERT INTO orders VALUES (1, 'first')", "statement: INSERT INTO far VALUES (2, 'sent')"
    )
    refused = copy.replay(capture=writing)
    assert names(refused) == ["server:production"]
    assert refused.error is not None
    (way,) = refused.error.data["ways"]
    assert (way["objects"], way["of"]) == (["public.far"], [{"role": copy.name, "database": copy.name}])
    assert copy.rows() == copy.rows("theirs") == [], "nothing was sent"
    ended = copy.replay("--allow-outside", "server:production", capture=writing)
    assert ended.code == 0, ended.out
    assert copy.rows("theirs") == [(2, "sent")]


def test_a_database_without_a_way_out_is_sent_everything(copy: Copy) -> None:
    copy.do(
        "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION postgres_fdw; CREATE EXTENSION file_fdw;"
        "CREATE FUNCTION mine() RETURNS int SECURITY DEFINER LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION mine() OWNER TO {role}"
    )
    assert copy.replay().code == 0
    assert copy.rows() == [(1, "sent")]


DEFINER = "CREATE FUNCTION pay() RETURNS int SECURITY DEFINER LANGUAGE sql AS 'SELECT 1'; REVOKE ALL ON FUNCTION pay() FROM PUBLIC;"


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("ALTER ROLE {role} SUPERUSER", ["role:{role}"]),
        ("GRANT postgres TO {role}", ["role:{role}"]),
        ("GRANT pg_write_server_files TO {role}", ["role:{role}"]),
        ("CREATE ROLE {role}_ops IN ROLE pg_execute_server_program ROLE {role}", ["role:{role}"]),
        ("CREATE EXTENSION dblink", ["extension:dblink"]),
        ("CREATE SCHEMA hidden; CREATE EXTENSION dblink SCHEMA hidden", []),
        (
            "CREATE SCHEMA hidden; CREATE EXTENSION dblink SCHEMA hidden; ALTER TABLE orders ADD p text DEFAULT hidden.dblink_connect('')",
            ["extension:dblink"],
        ),
        (f"{DEFINER} GRANT EXECUTE ON FUNCTION pay() TO {{role}}", ["definer:postgres"]),
        (DEFINER, []),
        (
            (
                "CREATE FUNCTION noted() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
                "REVOKE ALL ON FUNCTION noted() FROM PUBLIC;"
                "CREATE TRIGGER noted BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION noted()"
            ),
            ["definer:postgres"],
        ),
        (
            (
                "CREATE FUNCTION seen() RETURNS event_trigger SECURITY DEFINER LANGUAGE plpgsql AS 'BEGIN END';"
                "REVOKE ALL ON FUNCTION seen() FROM PUBLIC; CREATE EVENT TRIGGER seen ON ddl_command_end EXECUTE FUNCTION seen()"
            ),
            ["definer:postgres"],
        ),
        (
            "GRANT EXECUTE ON FUNCTION pg_read_file(text), lo_export(oid, text) TO {role}",
            ["function:pg_catalog.lo_export(oid, text)", "function:pg_catalog.pg_read_file(text)"],
        ),
        ("CREATE EXTENSION file_fdw; GRANT USAGE ON FOREIGN DATA WRAPPER file_fdw TO {role}", ["wrapper:file_fdw"]),
        (
            "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw; GRANT USAGE ON FOREIGN SERVER files TO {role}",
            ["server:files"],
        ),
        ("CREATE FOREIGN DATA WRAPPER none; CREATE SERVER nothing FOREIGN DATA WRAPPER none", []),
        (
            "CREATE FUNCTION own(text) RETURNS bool LANGUAGE c AS '$libdir/dblink', 'dblink_get_notify'",
            ["function:public.own(text)"],
        ),
        (
            "CREATE SUBSCRIPTION follows CONNECTION 'dbname=nowhere' PUBLICATION p WITH (connect = false, slot_name = NONE)",
            [],
        ),
    ],
)
def test_each_way_out_is_found(copy: Copy, made: str, found: list[str]) -> None:
    with copy.cluster.connect(dbname=copy.name) as connection, connection.transaction(force_rollback=True):
        connection.execute(made.replace("{role}", copy.name).encode())
        names = [way.name for way in ways_out(connection, copy.name)]
    assert names == [name.replace("{role}", copy.name) for name in found]


def test_what_is_not_the_name_of_a_way_out_is_refused(copy: Copy) -> None:
    for wrong in ("dblink", "extention:dblink", "extension:"):
        ended = copy.replay("--allow-outside", wrong)
        assert ended.error is not None
        assert (ended.code, ended.error.code) == (2, "replay.outside.name")


def test_drive_and_an_experiment_refuse_the_same(copy: Copy) -> None:
    copy.do("CREATE EXTENSION dblink")
    capture, dsn = copy.capture(), copy.cluster.dsn_of("postgres", copy.name)
    driven = ("drive", capture, "--dsn", dsn, "--yes-write", "--duration", "1s", "--warmup", "0s", "--clients", "1")
    assert names(pgdyno(*driven)) == ["extension:dblink"]
    for kind in ("replay", "sample"):
        file = copy.folder / f"{kind}.toml"
        file.write_text(
            "schema_version = 1\nreplicates = 1\n"
            f'[world]\nkind = "real"\ndsn = "{dsn}"\n[workload]\nkind = "{kind}"\ncapture = "{capture}"\n'
        )
        assert names(pgdyno("run", file, "--yes-write", "--results", copy.folder)) == ["extension:dblink"]
    assert copy.rows() == []
    assert pgdyno(*driven, "--allow-outside", "extension:dblink", "--keep-invalid").code == 0
    assert copy.rows() != []


COPIES = (
    "COPY (SELECT 1) TO '{file}'",
    "copy (select 'stdout') to '{file}'",
    "/* app */ COPY orders TO '{file}'",
    "/* a /* b */ c */ COPY orders TO PROGRAM 'cat > {file}'",
    "SELECT 1; COPY orders TO '{file}'",
)
PROTOCOLS = ("statement", "execute <unnamed>", "execute s1")


def test_files_and_programs_of_the_server_are_left_out_of_every_protocol(copy: Copy) -> None:
    copy.do("GRANT pg_write_server_files, pg_execute_server_program TO {role}")
    file = copy.cluster.data_dir / "written"
    texts = [f"{protocol}: {text.format(file=file)}" for protocol in PROTOCOLS for text in COPIES]
    sent = copy.capture(*texts, *(f"{protocol}: SELECT 1; LOAD '$libdir/hstore'" for protocol in PROTOCOLS))
    ended = copy.replay("--allow-outside", f"role:{copy.name}", "--json", capture=sent)
    left_out = {"it reads or writes files of the server": 15, "it changes the server and not its tables": 3}
    assert json.loads(ended.out)["left_out"] == left_out
    assert not file.exists()


def test_who_keeps_the_statements_waiting_is_named(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LONG_S", 0.1)
    monkeypatch.setattr(run, "LOOK_S", 0.1)
    notices: list[str] = []
    with copy.cluster.connect(dbname=copy.name, autocommit=False) as keeper:
        keeper.execute("LOCK TABLE orders")

        def note(notice: str) -> None:
            notices.append(notice)
            keeper.rollback()

        result = replay(str(copy.capture()), copy.cluster.dsn, note=note)
        pid = keeper.info.backend_pid
    assert result.summary["executed"] == 1
    (notice,) = notices
    assert f"session {pid} of postgres" in notice
    assert "public.orders" in notice or "orders" in notice


def test_a_restored_database_loses_its_foreign_servers_and_what_is_known_to_leave(copy: Copy) -> None:
    with copy.cluster.connect(dbname=copy.name) as connection, connection.transaction(force_rollback=True):
        made = far(copy) + "CREATE EXTENSION dblink; GRANT EXECUTE ON FUNCTION dblink(text) TO {role};"
        connection.execute(made.replace("{role}", copy.name).encode())
        assert disarm(connection, ("server:production", "extension:dblink")) == []
        assert [way.name for way in ways_out(connection, copy.name)] == ["server:production", "extension:dblink"]
        assert disarm(connection, ()) == ["wrapper:postgres_fdw", "extension:dblink"]
        assert ways_out(connection, copy.name) == []
        assert disarm(connection, ()) == []
        connection.execute(f"SET LOCAL ROLE {copy.name}".encode())
        for statement in ("INSERT INTO public.far VALUES (1)", "SELECT public.dblink_connect('')"):
            with pytest.raises(psycopg.Error), connection.transaction():
                connection.execute(statement.encode())


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_on_volumes_a_foreign_table_is_not_written(
    copy: Copy, tmp_path: Path, state_dir: Path, image_dir: Path
) -> None:
    del state_dir, image_dir
    copy.do(far(copy))
    writing = copy.capture(
        "statement: INSERT INTO orders VALUES (1, 'first')", "statement: INSERT INTO far VALUES (2, 'sent')"
    )
    (run,) = ran(copy.cluster, copy.name, writing, tmp_path, 'clock = "now"', kind="replay").runs
    replay = run.record.replay
    assert replay is not None
    assert (replay.executed, [(error.sqlstate, error.count) for error in replay.errors]) == (1, [("55000", 1)])
    assert copy.rows("theirs") == []

"""`load`, `drive`, `run` and data sets connect as libpq does, or refuse before anything is changed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import pgdyno
from pgdyno.base.errors import EXIT_INTERRUPTED, InputError
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.preflight import preflight
from pgdyno.machine.waiting import wait_until
from pgdyno.server.binaries import find_binaries
from pgdyno.server.remote import RemoteServer
from pgdyno.workload import pgbench
from pgdyno.workload.fill import fill
from pgdyno.workload.tables import PgbenchTables

from ..support.commands import pgdyno as run_command
from . import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .site_of import Site

PATIENCE_S = 30.0
_SLEEPING = "SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl s USING (pid) WHERE wait_event = 'PgSleep'"
_COPY = "COPY t FROM STDIN WITH (FORMAT csv)"
TABLE = """
    DROP TABLE IF EXISTS seen, t;
    CREATE TABLE seen (name text, ssl boolean, zone text, style text);
    CREATE TABLE t (id int, at timestamptz, day date);
    CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO seen SELECT current_setting('application_name'), ssl, current_setting('timezone'), current_setting('datestyle')
            FROM pg_stat_ssl WHERE pid = pg_backend_pid();
        RETURN NULL;
    END $$;
    CREATE TRIGGER see BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION see();
"""


@pytest.fixture
def rows(site: Site, tmp_path: Path) -> Iterator[Path]:
    """A file for a table that notes how the sessions that COPY into it are connected."""
    run(site, TABLE)
    path = tmp_path / "rows.csv"
    path.write_text("1,2020-07-01 12:00,03/04/2020\n2,2020-01-01 12:00,05/06/2020\n")
    yield path
    run(site, "DROP TABLE IF EXISTS seen, t; DROP SCHEMA IF EXISTS pgdyno_load CASCADE")


def run(site: Site, statements: str) -> None:
    with psycopg.connect(site.dsn(), autocommit=True) as connection:
        connection.execute(statements.encode())


def found(site: Site, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(site.dsn(), options="-c timezone=UTC -c datestyle=ISO") as connection:
        return connection.execute(query.encode()).fetchall()


def test_the_sessions_that_carry_rows_are_encrypted_where_libpqs_are(site: Site, rows: Path) -> None:
    """libpq's default is `prefer`: nothing was said of TLS, and the server offers it."""
    loaded = pgdyno.load(rows, site.dsn(), table="t", header=False)
    assert loaded.rows_loaded == 2
    sessions = found(site, "SELECT name, ssl FROM seen")
    assert sessions
    assert all(name.startswith("pgdyno load") and encrypted for name, encrypted in sessions)


def test_an_interrupted_load_cancels_its_statements_over_tls(site: Site, rows: Path) -> None:
    """A session that sleeps does not notice that its client has left: only the protocol's request ends it."""
    run(site, "DROP TRIGGER see ON t")
    run(
        site,
        "CREATE OR REPLACE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(600); RETURN NULL; END';"
        "CREATE TRIGGER wait BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION wait()",
    )
    dsn = site.dsn("either", sslmode="verify-full", sslrootcert=str(site.root))
    words = ["load", str(rows), "--into", dsn, "--table", "t", "--no-header"]
    with subprocess.Popen([sys.executable, "-m", "pgdyno", *words], stderr=subprocess.PIPE) as process:
        try:
            assert wait_until(lambda: found(site, f"{_SLEEPING} AND s.ssl") == [(1,)], PATIENCE_S)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == EXIT_INTERRUPTED
        finally:
            process.kill()
    assert found(site, _SLEEPING) == [(0,)]


def test_values_mean_what_they_mean_to_psql(site: Site, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGDATESTYLE", "ISO, DMY")
    pgdyno.load(rows, site.dsn(), table="t", header=False)
    ours = found(site, "SELECT * FROM t ORDER BY id")
    run(site, "TRUNCATE t")
    with psycopg.connect(site.dsn()) as connection, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(rows.read_bytes())
    assert ours == found(site, "SELECT * FROM t ORDER BY id")
    assert str(ours[0][2]) == "2020-04-03"


@pytest.mark.parametrize("dry", [False, True], ids=["load", "dry-run"])
def test_what_the_engine_cannot_do_is_refused_before_the_table_is_emptied(
    site: Site, rows: Path, monkeypatch: pytest.MonkeyPatch, *, dry: bool
) -> None:
    run(site, "INSERT INTO t VALUES (7); CREATE INDEX kept ON t (id)")
    options = LoadOptions((str(rows),), site.dsn(), table="t", header=False, truncate=True, indexes="rebuild")
    index = found(site, "SELECT oid FROM pg_class WHERE relname = 'kept'")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with pytest.raises(InputError, match="client_encoding is LATIN1") as error:
        preflight(options) if dry else pgdyno.load(str(rows), site.dsn(), table="t", header=False, truncate=True)
    assert "--encoding LATIN1" in (error.value.remedy or "")
    monkeypatch.delenv("PGCLIENTENCODING")
    assert found(site, "SELECT count(*) FROM t") == [(1,)]
    assert found(site, "SELECT oid FROM pg_class WHERE relname = 'kept'") == index
    assert found(site, "SELECT to_regnamespace('pgdyno_load')") == [(None,)]


@pytest.mark.parametrize("database", site_of.DATABASES)
def test_drive_is_encrypted_where_libpq_is(site: Site, tmp_path: Path, database: str) -> None:
    encrypted = database != "only_clear"
    script = tmp_path / "own.sql"
    script.write_text(f"SELECT 1 / (ssl = {encrypted})::int FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n")
    words = ["drive", str(script), "--dsn", site.dsn(database), "--clients", "2", "--warmup", "0s", "--duration", "1s"]
    done = run_command(*words, "--keep-invalid", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["succeeded"] > 0


def test_drive_refuses_before_it_sets_up(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, setup = tmp_path / "own.sql", tmp_path / "setup.sql"
    script.write_text("SELECT 1;\n")
    setup.write_text("CREATE TABLE made_by_setup ();\n")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    done = run_command("drive", str(script), "--setup", str(setup), "--dsn", site.dsn())
    monkeypatch.delenv("PGCLIENTENCODING")
    assert done.code == 2
    assert "client_encoding is LATIN1" in done.err
    assert found(site, "SELECT to_regclass('made_by_setup')") == [(None,)]


def test_data_sets_are_filled_over_tls(site: Site) -> None:
    server = RemoteServer.open(site.dsn("only_tls"))
    assert server.endpoint.encrypted
    assert fill(server, PgbenchTables(scale=1)).rows["pgbench_accounts"] == 100_000


def test_a_pgbench_that_cannot_connect_is_noticed(site: Site) -> None:
    """The embedded one is built without TLS; that of the server's package is not."""
    for dsn in (site.dsn(), site.dsn(sslmode="require")):
        embedded = RemoteServer.open(dsn)
        reason = pgbench.refusal(embedded, embedded.environment)
        assert reason is not None
        assert "SSL" in reason
    server = RemoteServer.open(site.dsn(), find_binaries(site.encrypted.cluster.binaries.bin_dir))
    assert pgbench.refusal(server, server.environment) is None


def experiment(site: Site, tmp_path: Path, more: str = "") -> Path:
    path = tmp_path / "real.toml"
    path.write_text(
        f'schema_version = 1\n\n[world]\nkind = "real"\ndsn = "{site.dsn()}"\n\n'
        f'[workload]\nscript = "select-only"\nscale = 1\nclients = 1\nwarmup = "1s"\nduration = "2s"\n{more}'
    )
    return path


def test_a_run_takes_the_driver_that_can_connect(site: Site, tmp_path: Path) -> None:
    from pgdyno.experiment import read_experiment
    from pgdyno.world.resolved import existing_arms

    [arm] = existing_arms(read_experiment(experiment(site, tmp_path)))
    assert arm.arm.workload.driver == "native"
    result = read_experiment(experiment(site, tmp_path, 'engine = "pgbench"\n'))
    with pytest.raises(InputError, match=r"workload\.engine: pgbench of .* cannot connect") as refused:
        existing_arms(result)
    assert "--set workload.engine=native" in refused.value.remedy

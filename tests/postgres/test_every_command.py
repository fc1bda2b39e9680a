"""Every command that needs a PostgreSQL, on each that ``PGDYNO_TEST_POSTGRES`` names, so that trying a new major is one command::

PGDYNO_TEST_POSTGRES=/usr/pgsql-19/bin make bench ONLY=postgres
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import EXIT_OK
from pgdyno.probe.sql import choose_queries
from pgdyno.server.binaries import find_binaries

from ..support.commands import pgdyno
from ..support.servers import OTHERS, throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.sets_limits]

LOGGED = {
    "log_min_duration_statement": "0",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
TINY = ("--scale", "2", "--memory", "96MiB", "--warmup", "1s", "--duration", "2s", "-c", "4", "-n", "1")


@pytest.fixture(scope="module", params=os.environ.get(OTHERS, "").split(":"), ids=lambda folder: folder or "embedded")
def pg_bin(request: pytest.FixtureRequest) -> Path:
    """The programs of one version; the embedded ones where none are named."""
    return Path(request.param) if request.param else find_binaries(None).bin_dir


@pytest.fixture(scope="module")
def server(pg_bin: Path) -> Iterator[Cluster]:
    """A server of that version which logs what it is asked."""
    with throwaway_cluster(pg_bin, LOGGED) as started:
        yield started


def ask(server: Cluster, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        cursor = connection.execute(query)
        return cursor.fetchall() if cursor.description else []


def test_the_probes_queries_run(server: Cluster) -> None:
    with psycopg.connect(server.dsn) as connection:
        version = connection.info.server_version
    for watched in (False, True):
        for query in choose_queries(version, watched=watched).values():
            ask(server, query)


def test_an_existing_server_is_diagnosed(server: Cluster) -> None:
    assert json.loads(pgdyno("diagnose", server.dsn, "--for", "5s", "--json", code=EXIT_OK).out)


def test_files_are_loaded(server: Cluster, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("id,name\n1,Ada\n2,Grace\n")
    pgdyno("load", rows, "--into", server.dsn, "--table", "people", "--create", code=EXIT_OK)
    assert ask(server, "SELECT count(*) FROM people") == [(2,)]


def test_a_log_is_captured_and_replayed(server: Cluster, tmp_path: Path) -> None:
    ask(server, "CREATE TABLE captured (n integer)")
    begin = server.log_path.stat().st_size
    for n in range(5):
        ask(server, f"INSERT INTO captured VALUES ({n})")
    log, capture = tmp_path / "postgresql.log", tmp_path / "five.capture"
    log.write_bytes(server.log_path.read_bytes()[begin:])
    pgdyno("capture", "plan", server.dsn, code=EXIT_OK)
    pgdyno("capture", "read", log, "--output", capture, code=EXIT_OK)
    pgdyno("capture", "replay", capture, "--dsn", server.dsn, "--yes-write")
    assert ask(server, "SELECT count(*) FROM captured") == [(10,)]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "gp3", "io2bx", *TINY, "--keep-invalid"),
        ("crashtest", "--cuts", "3"),
        ("drive", "tpcb-like", "--scale", "1", "-c", "2", "--duration", "2s", "--keep-invalid"),
    ],
    ids=lambda words: words[0],
)
def test_servers_of_our_own(words: tuple[str, ...], pg_bin: Path, state_dir: Path, results_dir: Path) -> None:
    ended = pgdyno(*words, "--pg-bin", pg_bin)
    assert ended.code == EXIT_OK, ended.err


def test_a_database_is_kept(server: Cluster, pg_bin: Path, tmp_path: Path, state_dir: Path) -> None:
    dump = tmp_path / "own.dump"
    program = find_binaries(pg_bin).bin_dir / "pg_dump"
    if not program.exists():
        pytest.skip(f"{pg_bin} has no pg_dump")
    subprocess.run([program, "-Fc", "-f", dump, "-d", server.dsn], check=True)
    pgdyno("data", "add", dump, "--name", "own", "--pg-bin", pg_bin, code=EXIT_OK)
    pgdyno("data", "remove", "own", "--yes", code=EXIT_OK)

"""A database of each test's own, on the servers that are here."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..support.servers import cluster, throwaway_cluster
from .database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

__all__ = ["cluster"]

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def older() -> Iterator[Cluster | None]:
    """The oldest PostgreSQL that the system has a package of; None without any."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not paths:
        yield None
        return
    with throwaway_cluster(paths[0]) as started:
        yield started


def _database(server: Cluster, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Database]:
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(folder / "state"))
    name = f"loaded{next(_NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield Database(server.dsn.replace("dbname=postgres", f"dbname={name}"))
    with server.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Database]:
    """An empty database of the embedded PostgreSQL; undo files go to a folder of the test's own."""
    yield from _database(cluster, monkeypatch, tmp_path)


@pytest.fixture(params=["embedded", "older"])
def each(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    older: Cluster | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[Database]:
    """The same, on each kind of server."""
    server = cluster if request.param == "embedded" else older
    if server is None:
        pytest.skip("no PostgreSQL below /usr/lib/postgresql")
    yield from _database(server, monkeypatch, tmp_path)

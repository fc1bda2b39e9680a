"""The order shop on the embedded server and on an installed one, made once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

from ..support.servers import initialise, made_once, throwaway_cluster
from .shop import Shop, make


def _made(pg_bin: Path | None) -> Iterator[Shop]:
    folder = Path(tempfile.mkdtemp(prefix="shop-"))
    folder.chmod(0o755)
    try:
        with throwaway_cluster(pg_bin) as cluster:
            yield make(cluster, folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def shop() -> Iterator[Shop]:
    """On the embedded PostgreSQL."""
    yield from _made(None)


@pytest.fixture(scope="session")
def older_shop(system_postgres: Path) -> Iterator[Shop]:
    """On the PostgreSQL that a package brought."""
    yield from _made(system_postgres)


@pytest.fixture(autouse=True)
def clusters_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """New clusters of the embedded PostgreSQL are copies of one that `Cluster.initdb` made; another process makes its own."""
    make_one, embedded = Cluster.initdb, find_binaries().bin_dir
    made_once(None)  # by what is replaced here

    def initdb(self: Cluster, **options: Any) -> None:
        if self.binaries.bin_dir == embedded and not any(options.values()):
            initialise(self.data_dir)
        else:
            make_one(self, **options)

    monkeypatch.setattr(Cluster, "initdb", initdb)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory that PostgreSQL's user can walk through."""
    folder = Path(tempfile.mkdtemp(prefix="own-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def databases(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> Iterator[Path]:
    """A folder of kept databases for one test, on a disk."""
    del state_dir
    with tempfile.TemporaryDirectory(prefix="kept-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("PGDYNO_DATABASE_DIR", f"{folder}/databases")
        yield Path(folder) / "databases"

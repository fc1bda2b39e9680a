"""PostgreSQL for tests that need a server and no volume: on a plain directory, gone afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.postgres.binaries import find_binaries
from pgdyno.postgres.cluster import Cluster
from pgdyno.world.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Iterator

# These tests are about counting; what commits cost on a test machine's disk is of no interest to them.
_SETTINGS = {"shared_buffers": "64MB", "synchronous_commit": "off"}


@contextlib.contextmanager
def throwaway_cluster(pg_bin: Path | None = None) -> Iterator[Cluster]:
    """Yield a started server, the embedded one or that of ``pg_bin``.

    Its directory is reachable for the server's own user, which pytest's are not.
    """
    with tempfile.TemporaryDirectory(prefix="pgdyno-test-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        cluster = Cluster(find_binaries(pg_bin), directory / "data", journal=Journal(directory / "state"))
        try:
            cluster.initdb()
            with cluster.running(_SETTINGS):
                yield cluster
        finally:
            cluster.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server of the embedded PostgreSQL for all tests of a folder."""
    with throwaway_cluster() as started:
        yield started


@pytest.fixture(scope="session", params=sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [None], ids=str)
def older_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each PostgreSQL that the system has packages of."""
    if request.param is None:
        pytest.skip("no other PostgreSQL below /usr/lib/postgresql")
    with throwaway_cluster(request.param) as started:
        yield started

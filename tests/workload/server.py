"""A PostgreSQL for tests: on a plain directory, gone afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

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

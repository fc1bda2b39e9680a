"""pgbench through a relay that records: the capture is the one that is read from the server's log, statement by statement."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tools.captured.logged import log_of

from ..capture.logged import captured, logging_cluster, sent
from ..capture.relayed import recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

pytestmark = pytest.mark.bench

CLIENTS, TRANSACTIONS = 4, 250
STATEMENTS = 7
"""Of pgbench's own script."""


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    with logging_cluster(None) as cluster:
        pgbench(cluster, ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-i", "-s", "4", "-q"])
        yield cluster


def pgbench(cluster: Cluster, options: list[str]) -> None:
    """Run it as the superuser."""
    command = [cluster.binaries.program("pgbench"), *options, "-U", cluster.role, cluster.database]
    subprocess.run(command, env=os.environ | cluster.binaries.environment, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_what_is_recorded_of_pgbench_is_what_was_logged(server: Cluster, tmp_path: Path, protocol: str) -> None:
    output = tmp_path / "relayed.capture"
    with recording(server, output) as relay:
        where = ["-h", "127.0.0.1", "-p", str(relay.port), "-n", "-M", protocol]
        log = log_of(
            server,
            f"relayed-{protocol}",
            lambda cluster: pgbench(cluster, [*where, "-c", str(CLIENTS), "-t", str(TRANSACTIONS)]),
        )
        relay.end()
    logged, recorded = (
        sorted(sent(path, "pgbench"), key=str) for path in (captured(tmp_path, log.files["csv"])[0], output)
    )
    assert sum(map(len, recorded)) >= CLIENTS * TRANSACTIONS * STATEMENTS
    assert recorded == logged

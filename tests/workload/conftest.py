"""A server with pgbench's tables, and a place where the clock is another one."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.workload.fill import load
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.tables import PgbenchTables

from ..support.servers import cluster, older_server

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.kind import Workload

__all__ = ["cluster", "older_server"]

DAY_S = 86_400


@pytest.fixture(scope="module")
def loaded(cluster: Cluster) -> Cluster:
    """A server with pgbench's tables at scale 2."""
    load(cluster, PgbenchTables(2))
    return cluster


def run(server: Any, spec: Workload, folder: Path, seconds: float = 1.0, **more: Any) -> Outcome:
    """What a workload comes to on a server."""
    return spec.runner()(server, RunRequest(seconds, folder, **more))


@pytest.fixture
def elsewhere() -> tuple[str, ...]:
    """A command that runs another one where CLOCK_MONOTONIC is a day ahead."""
    command = ("unshare", "--time", "--monotonic", str(DAY_S))
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=20)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode != 0:
        pytest.skip(f"time namespaces are not allowed: {tried.stderr.decode().strip()}")
    return command

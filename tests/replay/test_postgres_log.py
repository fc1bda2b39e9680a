"""A million requests of a PostgreSQL with checkpoints: the model decides all of them again as it did the first time."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.machine import volume
from pgdyno.machine.instance import InstanceGroup
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

REQUESTS = 1_000_000
VOLUME = "io2bx:iops=20000"
MEMORY_BYTES = 192 << 20
SCALE = 40
"""600 MB: three times what the instance can keep in memory, so that reads reach the volume."""
SETTINGS = {"shared_buffers": "48MB", "checkpoint_timeout": "30s", "max_wal_size": "256MB"}
PART_S = 20
DEADLINE_S = 1200.0


def pgbench(cluster: Cluster, *options: str) -> None:
    where = ("-h", str(cluster.socket_dir), "-U", "postgres")
    command = [str(cluster.binaries.program("pgbench")), *where, *options, "postgres"]
    subprocess.run(command, env=cluster.binaries.environment, capture_output=True, check=True)


def requests(attached_volume: volume.AttachedVolume) -> int:
    counters = attached_volume.stats()["counters"]
    return int(counters["read_ops"]) + int(counters["write_ops"])


def test_a_million_requests_of_postgresql_with_checkpoints_are_replayed_identically(
    state_dir: Path, tmp_path: Path
) -> None:
    log = tmp_path / "submit.log"
    deadline = time.monotonic() + DEADLINE_S
    mount = state_dir.parent / "volume"
    with volume.attached(VOLUME, mount=mount, submit_log=log, seed=7) as answer:
        cluster = Cluster(find_binaries(), mount / "data")
        try:
            cluster.initdb()
            with (
                InstanceGroup(f"replay-{os.getpid()}", MEMORY_BYTES) as instance,
                cluster.running(SETTINGS, instance),
                cluster.connect() as connection,
            ):
                pgbench(cluster, "-i", "-q", "-s", str(SCALE))
                while requests(answer) < REQUESTS:
                    assert time.monotonic() < deadline, f"{requests(answer):,} requests after {DEADLINE_S:g} s"
                    pgbench(cluster, "-c", "16", "-T", str(PART_S))
                done = connection.execute("SELECT num_timed + num_requested FROM pg_stat_checkpointer").fetchone()
        finally:
            cluster.close()
    assert done is not None
    assert done[0] >= 2, "checkpoints were part of it"
    result = engine.run_json(["replay", str(log)])
    print(f"\n{result['submits']:,} requests, {done[0]} checkpoints, {result['identical']:,} completions identical")
    assert result["submits"] >= REQUESTS
    assert result["complete"]
    assert result["first_difference"] is None
    assert result["identical"] == result["grants"] == result["submits"]

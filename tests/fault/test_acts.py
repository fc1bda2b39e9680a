"""Events on a real server and its volume: it recovers from an end and from a power cut, and what was not synced is gone."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.experiment.events import EventTable
from pgdyno.machine import mounts, volume
from pgdyno.machine.journal import HostJournal
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.world.events import Acts

from ..host.needs import expect, needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem

pytestmark = needs_fuse


def event(**keys: object) -> EventTable:
    """An event of a file."""
    return EventTable.model_validate({"at": "1s"} | keys)


def rows(cluster: Cluster) -> int:
    """How many there are."""
    with cluster.connect() as connection:
        result = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert result is not None
    return int(result[0])


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_server_recovers_from_events_with_every_acknowledged_row(state: Path, kind: FileSystem) -> None:
    mount = state.parent / "mnt"
    with (
        volume.attached("gp3:size=1GiB", mount=mount, name="data", file_system=kind) as data,
        contextlib.closing(Cluster(find_binaries(), mount / "pgdata", journal=HostJournal(state))) as cluster,
    ):
        cluster.initdb()
        settings = {"shared_buffers": "16MB", "huge_pages": "off"}
        cluster.start(settings)
        acts = Acts({"data": data}, cluster, lambda timeout_s: cluster.start(settings, timeout_s=timeout_s))
        with cluster.connect() as connection:
            connection.execute("CREATE TABLE kept (number int)")
        known = 0
        for do in ("kill", "cut"):
            first = cluster.pid
            with cluster.connect() as connection:
                connection.execute("INSERT INTO kept SELECT generate_series(1, 100)")
                known += 100
                unsynced = mount / f"unsynced-{do}"
                unsynced.write_text("of the page cache")
                assert acts(event(do=do)) == "recovered"
                with pytest.raises(psycopg.OperationalError):
                    connection.execute("SELECT 1")
            assert cluster.pid != first
            assert acts.server_died() is None
            assert rows(cluster) == known
            assert "database system was not properly shut down" in cluster.log_tail(200)
            # The page cache survives the end of a server, and not a power cut.
            lost = not unsynced.exists() or unsynced.read_text() != "of the page cache"
            assert lost is (do == "cut")
        assert [mount.target for mount in mounts.mounts_of(data.block_device)] == [mount]

        faster = event(do="modify", spec="gp3:size=1GiB,throughput=250", optimizing="0s", rule="2023")
        assert "throughput=250" in acts(faster)
        with pytest.raises(PgdynoError, match="6 hours"):
            acts(event(do="modify", spec="gp3:size=1GiB,throughput=300", rule="2023"))
        assert acts(event(do="fail", fault="latency", add="20ms", writes="50%")) == "2 in force"
        assert acts(event(do="heal")) == "0 left"
        assert acts(event(do="fail", fault="pause")) == "1 in force"
        acts.end()
        with cluster.connect() as connection:
            connection.execute("INSERT INTO kept VALUES (0)")
        assert rows(cluster) == known + 1
        os.kill(cluster.pid, 9)
        expect(lambda: acts.server_died() is not None, "the end of a server that no event ended is told")
        died = acts.server_died()
        assert died is not None
        assert "signal 9" in died.message

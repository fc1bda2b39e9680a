"""A thread, a descriptor or memory that cannot be had: every command ends with the reason, and leaves nothing."""

from __future__ import annotations

import gzip
import json
import os
import signal
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_HOST, HostError
from pgdyno.machine.waiting import wait_until
from pgdyno.workload.fill import fill
from pgdyno.workload.tables import PgbenchTables

from ..support import limits
from ..support.commands import pgdyno
from .driven import (
    PAUSED,
    TIMEOUT_S,
    driving,
    environment,
    line,
    refused,
    spec,
    summary_of,
    telling,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgdyno.server.cluster import Cluster

    Limit = Callable[[int, Path], AbstractContextManager[None]]

CLIENTS = 50
PATIENCE_S = 20.0
TABLES = "SELECT relname FROM pg_class WHERE relname LIKE 'pgbench%'"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pgdyno%'"


def rows(cluster: Cluster, query: str, **where: str) -> list[tuple[object, ...]]:
    """What a query brings."""
    with cluster.connect(**where) as connection:
        return connection.execute(query.encode()).fetchall()


def code_of(cluster: Cluster, dsn: str, limit: AbstractContextManager[None]) -> str:
    """The code of the error by which a limited drive ends; no session stays."""
    with limit:
        error = refused(dsn, spec(clients=CLIENTS, threads=CLIENTS), code=EXIT_HOST)
    assert wait_until(lambda: not rows(cluster, SESSIONS), PATIENCE_S)
    return error["code"]


@pytest.mark.parametrize("limit", [limits.threads, limits.processes])
@pytest.mark.parametrize("count", [2, 40, 70, 100])
def test_a_drive_that_gets_too_few_threads_ends_before_it_begins(
    dsn: str, cluster: Cluster, tmp_path: Path, limit: Limit, count: int
) -> None:
    """It has a thread for each client here, and as many that connect again."""
    assert code_of(cluster, dsn, limit(count, tmp_path)) == "host.threads"


@pytest.mark.parametrize("count", [8, 50, 60, 158, 230, 250])
def test_a_drive_that_gets_too_few_descriptors_ends_before_it_begins(
    dsn: str, cluster: Cluster, tmp_path: Path, count: int
) -> None:
    """A client has one, and each thread four more: a timer, what it waits with, a bell and a copy of that."""
    assert code_of(cluster, dsn, limits.files(count, tmp_path)) == "host.descriptors"


@pytest.mark.parametrize(
    ("limit", "count", "code"),
    [
        (limits.threads, 2, "host.threads"),
        (limits.processes, 3, "host.threads"),
        (limits.files, 6, "host.descriptors"),
        (limits.files, 9, "host.descriptors"),
    ],
)
def test_a_fill_that_gets_too_little_leaves_no_table(
    cluster: Cluster, tmp_path: Path, limit: Limit, count: int, code: str
) -> None:
    before = rows(cluster, TABLES)
    with limit(count, tmp_path), pytest.raises(HostError) as caught:
        fill(cluster, PgbenchTables(4), connections=8, split=True, replace=False)
    assert caught.value.code == code
    assert rows(cluster, TABLES) == before
    assert wait_until(lambda: not rows(cluster, SESSIONS), PATIENCE_S)


@pytest.mark.parametrize(
    ("limit", "count", "code"),
    [
        (limits.threads, 3, "host.threads"),
        (limits.processes, 3, "host.threads"),
        (limits.files, 4, "host.descriptors"),
    ],
)
def test_files_that_cannot_be_generated_are_not_left_half_made(
    tmp_path: Path, limit: Limit, count: int, code: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    with limit(count, tmp_path):
        ended = pgdyno("data", "generate", "tpch", "--scale", "0.01", "--threads", "8", "--out", out)
    assert ended.error is not None
    assert ended.error.code == code, ended.err
    assert not list(out.glob("*.partial*"))


@pytest.mark.parametrize(
    ("limit", "count", "code"),
    [
        (limits.threads, 2, "host.threads"),
        (limits.threads, 4, "host.threads"),
        (limits.processes, 4, "host.threads"),
        (limits.files, 5, "host.descriptors"),
        (limits.files, 9, "host.descriptors"),
    ],
)
def test_a_load_that_gets_too_little_ends_with_the_reason(
    cluster: Cluster, tmp_path: Path, limit: Limit, count: int, code: str
) -> None:
    """Each session has a thread, and so have the signals, the file and its decompression."""
    with cluster.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS limited; CREATE TABLE limited (id int)")
    tmp_path.chmod(0o755)
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d\n" % number for number in range(100_000))))
    document = {"table": "limited", "format": {"csv": {}}, "sources": [{"path": str(path), "name": "rows"}]}
    with limit(count, tmp_path):
        process = telling(
            "load", told(cluster.dsn, document | {"connections": 8, "chunk_bytes": 65_536}), environment()
        )
        with process as loading:
            _, err = loading.communicate(timeout=TIMEOUT_S)
    assert loading.returncode == EXIT_HOST, err
    assert json.loads(err.splitlines()[-1])["error"]["code"] == code
    assert wait_until(lambda: not rows(cluster, SESSIONS), PATIENCE_S)


def test_a_command_that_is_stopped_and_continued_ends_as_if_it_had_not_been(dsn: str, cluster: Cluster) -> None:
    """Waits with a timeout end with EINTR then (signal(7)), without any handler."""
    with driving(dsn, spec(clients=CLIENTS, threads=2, duration_ms=1500, arrivals=PAUSED)) as process:
        line(process)
        for _ in range(20):
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            process.send_signal(signal.SIGCONT)
            os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        _, result = summary_of(process)
    assert result["failed"] == result["connections_lost"] == 0
    assert result["succeeded"] > 0

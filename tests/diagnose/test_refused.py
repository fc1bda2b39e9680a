"""What cannot be watched, or only in part, on real servers: each is one sentence with a remedy, or is said beside the answer."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.diagnosis import Diagnosis, diagnose
from pgdyno.advise.diagnose.remedies import Purchase
from pgdyno.advise.diagnose.watch import target_of, watch
from pgdyno.advise.diagnose.words import watched_words
from pgdyno.base.errors import HostError, InputError, RunInvalid
from pgdyno.cli.main import cli
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_run
from pgdyno.server import remote
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

from ..support import servers
from ..support.pooler import pgbouncer

if TYPE_CHECKING:
    import psycopg

WATCH_S = 2.0


@pytest.fixture(scope="module")
def used(cluster: Cluster) -> Iterator[Cluster]:
    """The server of the folder, with roles of this file's own."""
    with cluster.connect() as connection:
        connection.execute("CREATE ROLE sees_all LOGIN; GRANT pg_monitor TO sees_all; CREATE ROLE sees_less LOGIN")
    yield cluster
    with cluster.connect() as connection:
        connection.execute("DROP ROLE sees_all; DROP ROLE sees_less")


def by(cluster: Cluster, role: str) -> str:
    return cluster.dsn.replace("user=postgres", f"user={role}")


REFUSED: dict[str, tuple[Callable[[Cluster], list[str]], str, str]] = {
    "no server": (lambda _: ["host=127.0.0.1 port=1 dbname=app"], "cannot be connected to", "that `psql` connects"),
    "no such database": (
        lambda c: [c.dsn.replace("dbname=postgres", "dbname=none")],
        "does not exist",
        "connection string",
    ),
    "a role that there is not": (lambda c: [by(c, "none")], "does not exist", "connection string"),
    "nothing that is a server": (
        lambda _: ["somewhere"],
        "neither a run's directory nor a connection string",
        "write a",
    ),
    "a password": (lambda _: ["dbname=app password=secret"], "a password does not belong", ""),
    "too short": (lambda c: [c.dsn, "--for", "1s"], "1 s cannot be judged", "60s"),
    "a volume that there is not": (lambda c: [c.dsn, "--bought", "data=gp9"], "gp9", ""),
    "an instance that there is not": (lambda c: [c.dsn, "--instance", "r99.huge"], "r99.huge", ""),
    "a file that there is not": (lambda c: [c.dsn, "--nvme", "none"], "none cannot be read", "you may read"),
    "metrics that come later": (lambda c: [c.dsn, "--cloudwatch", "none"], "metrics come some minutes late", "--keep"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_watched_is_one_sentence_and_a_remedy(used: Cluster, name: str) -> None:
    words, message, remedy = REFUSED[name]
    result = CliRunner().invoke(cli, ["diagnose", *words(used)])
    assert isinstance(result.exception, InputError | HostError), result.output
    assert message in result.exception.message
    assert "\n" not in result.exception.message
    assert result.exception.remedy
    assert remedy in result.exception.remedy
    assert "secret" not in result.exception.message


def test_a_version_that_is_too_old_is_refused(used: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "VERSION_MIN", 99)  # no server of version 13 is at hand
    with pytest.raises(HostError, match=r"has PostgreSQL 18.*, which is not supported"):
        target_of(used.dsn)


def test_an_instance_with_less_memory_than_shared_buffers_is_another_one(tmp_path: Path) -> None:
    from pgdyno.advise.diagnose.remedies import purchase_of, require_memory

    instance = purchase_of([], "t3.micro").instance
    with pytest.raises(InputError, match=r"has 1 GiB of memory, and shared_buffers are 2 GiB"):
        require_memory(instance, {"shared_buffers": str((2 << 30) // 8192)})
    require_memory(instance, {"shared_buffers": "16384"})


def _reset(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SELECT pg_stat_reset()")


def _reset_wal(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SELECT pg_stat_reset_shared('wal')")


def _reset_checkpointer(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SELECT pg_stat_reset_shared('checkpointer')")


def _reset_io(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SELECT pg_stat_reset_shared('io')")


@contextlib.contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[Callable[[float], None]]:
    """Progress that does something once, when a second is left; it was done at the end."""
    done = threading.Event()

    def tell(left_s: float) -> None:
        if left_s < WATCH_S / 2 and not done.is_set():
            done.set()
            act()

    yield tell
    assert done.is_set()


@pytest.mark.parametrize("reset", [_reset, _reset_wal, _reset_checkpointer, _reset_io])
def test_a_reset_of_statistics_within_the_watch_is_refused(
    used: Cluster, tmp_path: Path, reset: Callable[[psycopg.Connection[tuple[object, ...]]], None]
) -> None:
    def act() -> None:
        with used.connect() as connection:
            reset(connection)

    with used.connect() as connection:
        connection.execute(
            "DROP TABLE IF EXISTS counted; CREATE TABLE counted AS SELECT generate_series(1, 10000) AS i"
        )
        connection.execute("CHECKPOINT")
    with meanwhile(act) as tell, pytest.raises(RunInvalid) as refused:
        watch(target_of(used.dsn), Purchase(), WATCH_S, tmp_path, tell)
    assert refused.value.code == "diagnose.statistics.reset"


@pytest.mark.needs_pgbouncer
def test_a_pooler_is_said_and_its_console_is_refused(used: Cluster, tmp_path: Path) -> None:
    with pgbouncer(used) as pooler:
        result = CliRunner().invoke(cli, ["diagnose", pooler.dsn("pgbouncer")])
        assert isinstance(result.exception, InputError)
        assert "console of PgBouncer" in result.exception.message
        assert "through a connection pooler" in watched_words(judged(pooler.dsn(), tmp_path))


def judged(dsn: str, root: Path) -> Diagnosis:
    return diagnose(watch(target_of(dsn), Purchase(), WATCH_S, root))


@pytest.fixture(scope="module")
def standby() -> Iterator[Cluster]:
    """A server in recovery that takes connections: a copy of a data directory that waits for a primary."""
    folder = servers._folder()
    servers.initialise(folder / "data")
    own = Cluster(find_binaries(), folder / "data", journal=HostJournal(folder / "state"))
    signal = folder / "data" / "standby.signal"
    signal.touch()
    own.give(signal)
    try:
        with own.running({"shared_buffers": "64MB"}):
            yield own
    finally:
        own.close()
        shutil.rmtree(folder)


def test_a_standby_is_diagnosed_as_one(standby: Cluster, tmp_path: Path) -> None:
    diagnosis = judged(standby.dsn, tmp_path)
    assert diagnosis.run.record.workload["standby"] is True
    assert "a standby" in watched_words(diagnosis)
    assert diagnosis.binding.verdict.limit == "client"


def test_a_role_without_pg_monitor_is_told_what_it_lacks(used: Cluster, tmp_path: Path) -> None:
    with used.connect():  # a session of another role, which may or may not be at work
        diagnosis = judged(by(used, "sees_less"), tmp_path)
    assert any("GRANT pg_monitor" in text for text in diagnosis.missing)
    assert diagnosis.binding.verdict.limit != "client", "that nothing binds cannot be seen"


def test_times_that_the_server_does_not_take_are_unknown_and_never_zero(used: Cluster, tmp_path: Path) -> None:
    with used.connect() as connection:
        connection.execute("ALTER SYSTEM SET track_io_timing = off")
        connection.execute("SELECT pg_reload_conf()")
    diagnosis = judged(by(used, "sees_all"), tmp_path)
    table = open_run(diagnosis.run.path).table("probe/database")
    assert set(table["blk_read_time_ms"].to_pylist()) == {None}


def test_all_databases_are_counted_whichever_is_connected(used: Cluster, tmp_path: Path) -> None:
    with used.connect() as connection:
        connection.execute("CREATE DATABASE elsewhere")
    stop = threading.Event()

    def work() -> None:
        with used.connect(dbname="elsewhere") as connection:
            while not stop.is_set():
                connection.execute("SELECT count(*) FROM pg_class")  # counted: it touches a table

    thread = threading.Thread(target=work)
    thread.start()
    try:
        with used.connect() as connection:
            query = "SELECT xact_commit > 100 FROM pg_stat_database WHERE datname = 'elsewhere'"
            assert wait_until(lambda: connection.execute(query).fetchone() == (True,), 60.0)
        diagnosis = judged(by(used, "sees_all"), tmp_path)
    finally:
        stop.set()
        thread.join()
        with used.connect() as connection:
            connection.execute("DROP DATABASE elsewhere")
    assert diagnosis.run.record.account.succeeded > 20


def test_the_watch_takes_no_lock_that_another_session_could_wait_for(used: Cluster, tmp_path: Path) -> None:
    seen: list[tuple[object, ...]] = []

    def act() -> None:
        query = """
            SELECT DISTINCT mode FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE application_name LIKE 'pgdyno probe%' AND locktype <> 'virtualxid'
        """
        with used.connect() as connection:
            for _ in range(200):
                seen.extend(connection.execute(query).fetchall())

    with meanwhile(act) as tell:
        watch(target_of(by(used, "sees_all")), Purchase(), WATCH_S, tmp_path, tell)
    assert {mode for (mode,) in seen} <= {"AccessShareLock"}


def test_a_file_that_is_refused_after_the_watch_does_not_lose_the_watch(used: Cluster, tmp_path: Path) -> None:
    file = "tests/size/files/iostat-12.7.txt"
    result = CliRunner().invoke(cli, ["diagnose", by(used, "sees_all"), "--for", "5s", "--iostat", file])
    assert isinstance(result.exception, InputError), result.output
    assert "and the server was watched from" in result.exception.message
    kept = result.exception.remedy.partition("pgdyno diagnose ")[2].removesuffix(", with the file")
    try:
        assert CliRunner().invoke(cli, ["diagnose", kept]).stdout.startswith("limit     ")
    finally:
        shutil.rmtree(Path(kept).parent)

"""Watching servers: as they are, through a pooler, with few rights; and leaving nothing behind."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.advise.diagnose.document import DiagnoseDocument
from pgdyno.advise.diagnose.remedies import Purchase, purchase_of, require_roles
from pgdyno.advise.diagnose.watch import check_seconds, require_one_piece, target_of, watch
from pgdyno.advise.diagnose.words import lines
from pgdyno.analysis.validity import judge
from pgdyno.base.errors import HostError, InputError, RunInvalid
from pgdyno.cli.main import cli
from pgdyno.results import open_run

from ..support.pooler import CLEAN, pgbouncer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

_STATE = """
SELECT (SELECT md5(string_agg(name || coalesce(setting, ''), ',' ORDER BY name)) FROM pg_settings),
       (SELECT max(stats_reset) FROM pg_stat_database), (SELECT stats_reset FROM pg_stat_bgwriter),
       (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_authid), (SELECT count(*) FROM pg_proc)
"""


@pytest.fixture(scope="module")
def monitor(cluster: Cluster) -> Iterator[str]:
    """A connection string of a role with pg_monitor and nothing more."""
    with cluster.connect() as connection:
        connection.execute("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor; CREATE ROLE weak LOGIN")
    yield cluster.dsn.replace("user=postgres", "user=monitor")
    with cluster.connect() as connection:
        connection.execute("DROP ROLE monitor; DROP ROLE weak")


@pytest.fixture
def busy(cluster: Cluster) -> Iterator[None]:
    """Two sessions that compute without end."""
    stop = threading.Event()

    def work() -> None:
        with cluster.connect() as connection:
            while not stop.is_set():
                connection.execute("SELECT sum(i) FROM generate_series(1, 20000) AS i")

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    yield
    stop.set()
    for thread in threads:
        thread.join()


def test_an_idle_server_is_bound_by_nothing_and_stays_as_it_was(monitor: str, cluster: Cluster, tmp_path: Path) -> None:
    with cluster.connect() as connection:
        before = connection.execute(_STATE).fetchone()
    path = watch(target_of(monitor), Purchase(), 2.0, tmp_path)
    with cluster.connect() as connection:
        assert connection.execute(_STATE).fetchone() == before
    diagnosis = diagnose(path)
    assert diagnosis.binding.verdict.limit == "client"
    record = open_run(path).record
    assert record.workload["role"] == "monitor"
    assert record.workload["pooler"] is False
    assert "user=monitor" in record.arm
    assert judge(open_run(path)) == (), "a watch is valid without a transaction, and on a busy host"
    assert diagnose(path.parents[1]).run.path == path, "an experiment of one run is that run"


def test_sessions_at_work_are_seen_by_a_role_with_pg_monitor(monitor: str, tmp_path: Path, busy: None) -> None:
    diagnosis = diagnose(watch(target_of(monitor), Purchase(), 2.0, tmp_path))
    seen = [second.sessions for second in diagnosis.binding.evidence.seconds if second.sessions is not None]
    assert seen
    assert max(item.all for item in seen) >= 1
    assert diagnosis.run.record.account.succeeded > 0
    assert diagnosis.binding.verdict.limit != "connections"


@pytest.mark.usefixtures("monitor")
def test_a_role_that_may_not_see_the_others_says_so_and_never_that_nothing_binds(
    cluster: Cluster, tmp_path: Path, busy: None
) -> None:
    diagnosis = diagnose(watch(target_of(cluster.dsn.replace("user=postgres", "user=weak")), Purchase(), 2.0, tmp_path))
    assert diagnosis.binding.verdict.limit != "client"
    assert "GRANT pg_monitor" in diagnosis.missing[0]


@pytest.mark.needs_pgbouncer
def test_nothing_is_left_behind_a_pooler_and_it_is_said(cluster: Cluster, tmp_path: Path) -> None:
    with pgbouncer(cluster) as pooler:
        path = watch(target_of(pooler.dsn()), Purchase(), 1.0, tmp_path)
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
        with pytest.raises(InputError, match="console of PgBouncer"):
            target_of(pooler.dsn("pgbouncer"))
    assert diagnose(path).run.record.workload["pooler"] is True


@pytest.mark.needs_pgbouncer
@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_a_pooler_in_any_mode_is_looked_through_and_hides_clients(cluster: Cluster, tmp_path: Path, mode: str) -> None:
    with pgbouncer(cluster, mode, pool_size=4) as pooler:
        diagnosis = diagnose(watch(target_of(pooler.dsn()), Purchase(), 2.0, tmp_path))
        if mode != "session":
            assert pooler.leftovers() == [CLEAN] * pooler.pool_size
    assert diagnosis.run.record.workload["pooler"] is True
    assert diagnosis.binding.verdict.confidence != "high" or diagnosis.binding.verdict.limit != "client"
    assert not any(limit is not None and limit.limit == "client" and limit.sure for limit in diagnosis.binding.seconds)
    text = " ".join(" ".join(lines(diagnosis)).split())
    assert "no bottleneck" not in text
    assert "no upgrade needed" not in text
    assert "SHOW POOLS" in text


@pytest.mark.needs_pgbouncer
def test_a_pool_that_is_full_is_noticed_by_the_watchs_own_waits(cluster: Cluster, tmp_path: Path) -> None:
    """Sixteen clients hold one of four sessions for 100 ms each, in which the server does nothing."""
    stop = threading.Event()

    def work(dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
            while not stop.is_set():
                connection.execute("BEGIN")
                connection.execute("SELECT 1")
                stop.wait(0.1)
                connection.execute("END")

    with pgbouncer(cluster, pool_size=4) as pooler:
        target = target_of(pooler.dsn())
        threads = [threading.Thread(target=work, args=(pooler.dsn(),)) for _ in range(16)]
        for thread in threads:
            thread.start()
        try:
            diagnosis = diagnose(watch(target, Purchase(), 5.0, tmp_path))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    text = " ".join(" ".join(lines(diagnosis)).split())
    assert "no bottleneck" not in text
    assert "no upgrade needed" not in text
    assert diagnosis.binding.verdict.confidence != "high"
    waits = [item.pool_wait_ms for item in diagnosis.binding.evidence.seconds if item.pool_wait_ms is not None]
    assert max(waits) >= 50


def test_each_older_server_can_be_watched(older_server: Cluster, tmp_path: Path) -> None:
    diagnosis = diagnose(watch(target_of(older_server.dsn), Purchase(), 1.0, tmp_path))
    assert diagnosis.run.record.postgres.version.startswith(str(target_of(older_server.dsn).server.major))
    assert diagnosis.cost is not None
    assert diagnosis.cost.samples > 1


def test_the_command_prints_a_screen_and_a_document(monitor: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    result = CliRunner().invoke(
        cli, ["diagnose", monitor, "--for", "5s", "--keep", str(kept), "--bought", "gp3", "--json"]
    )
    assert result.exit_code == 0, result.output
    diagnose_document = DiagnoseDocument.model_validate(json.loads(result.stdout))
    assert diagnose_document.directory is not None
    assert "gp3" in diagnose_document.bought["data"]
    screen = CliRunner().invoke(cli, ["diagnose", diagnose_document.directory])
    assert screen.stdout.startswith("limit     ")
    assert "PostgreSQL 18" in screen.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no-such-run"], "neither a run's directory nor a connection string"),
        (["dbname=app password=secret"], "a password does not belong"),
        (["dbname=app", "--for", "1s"], "1 s cannot be judged"),
        (["dbname=app", "--bought", "data=gp9"], "gp9"),
        (["dbname=app", "--instance", "r99.huge"], "r99.huge"),
        (["dbname=app", "--bought", "gp3", "--bought", "data=gp2"], "names data twice"),
        ([".", "--for", "10s"], "--for is for a server that is watched"),
        (["host=127.0.0.1 port=1 dbname=app"], "connect"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["diagnose", *words])
    assert isinstance(result.exception, InputError | HostError)
    assert message in result.exception.message
    assert result.exception.remedy


def test_a_volume_of_a_role_that_the_server_has_not_is_refused() -> None:
    """Where no device was seen, as of a server elsewhere or of one in memory, any role may be right."""
    purchase = purchase_of(["archive=st1:size=500GiB"], None)
    with pytest.raises(InputError, match="no archive volume of its own"):
        require_roles(purchase.volumes, {"data", "wal"})
    require_roles(purchase.volumes, set())


def test_counters_that_begin_anew_are_refused() -> None:
    begun = {"probe/database": pa.table({"started_unix_ms": [1, 2], "reset_unix_ms": [5, 5]})}
    require_one_piece(begun)  # a restart is what the watch says
    reset = {"probe/database": pa.table({"started_unix_ms": [1, 1], "reset_unix_ms": [None, 5]})}
    with pytest.raises(RunInvalid) as refused:
        require_one_piece(reset)
    assert refused.value.code == "diagnose.statistics.reset"
    require_one_piece({"probe/database": pa.table({"started_unix_ms": [1, 1], "reset_unix_ms": [None, None]})})
    with pytest.raises(RunInvalid):
        require_one_piece({"probe/wal": pa.table({"t_begin_ns": [1, 2, 3], "wal_bytes": [10, 20, 3]})})
    io = {
        "t_begin_ns": [1, 1, 2, 2],
        "reads": [5, 7, 5, 8],
        "writes": [None] * 4,
        "extends": [0] * 4,
        "hits": [1, 1, 3, 1],
    }
    require_one_piece({"probe/io": pa.table(io)})
    with pytest.raises(RunInvalid):
        require_one_piece({"probe/io": pa.table(io | {"hits": [1, 9, 3, 1]})})


@pytest.mark.parametrize("seconds", [0.0, 4.9, 86_401.0, float("nan")])
def test_only_so_long_a_watch_is_judged(seconds: float) -> None:
    with pytest.raises(InputError):
        check_seconds(seconds)

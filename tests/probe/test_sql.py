"""PostgreSQL's counters: the right query for each version, and samples that survive a lost connection."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.machine.waiting import wait_until
from pgdyno.probe import sampler
from pgdyno.probe.sampler import PATIENCE_S, START_PATIENCE_S
from pgdyno.probe.sql import SLOWEST_S, CounterProbe, SqlProbe, WaitEventProbe, choose_queries
from pgdyno.results.tables import conform

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.probe.samples import Gap, ProbeTables
    from pgdyno.server.cluster import Cluster


@pytest.mark.parametrize(
    ("version", "has_io", "in_checkpointer", "in_wal"),
    [
        (140012, False, "checkpoints_timed", "wal_sync_time"),
        (150018, False, "checkpoints_timed", "wal_sync_time"),
        (160014, True, "checkpoints_timed", "wal_sync_time"),
        (170010, True, "NULL::bigint AS num_done", "wal_sync_time"),
        (180006, True, "slru_written", "object = 'wal'"),
        (190000, True, "slru_written", "object = 'wal'"),
    ],
)
def test_each_version_gets_its_queries(version: int, has_io: bool, in_checkpointer: str, in_wal: str) -> None:
    queries = choose_queries(version)
    assert set(queries) == {"checkpointer", "database", "wal", "wait_events"} | ({"io"} if has_io else set())
    assert in_checkpointer in queries["checkpointer"]
    assert in_wal in queries["wal"]
    if has_io:
        assert ("op_bytes" in queries["io"]) == (version < 180000)


def test_a_server_before_14_has_no_counters_of_wal_and_a_still_older_one_nothing() -> None:
    own = choose_queries(120022)
    assert own.keys() == {"checkpointer", "database", "wait_events"}
    assert "WALWriteLock" in own["wait_events"], "locks by their names since 13"
    assert own["wait_events"] != choose_queries(140000)["wait_events"]
    assert choose_queries(110000) == {}


def test_a_watched_server_has_the_same_tables_and_some_queries_of_its_own() -> None:
    own, watched = choose_queries(160000), choose_queries(160000, watched=True)
    assert watched.keys() - own.keys() == {
        "wait_states",
        "blockers",
    }, "what is asked while no session waits for a volume, and while some wait for locks"
    assert {name for name in own if own[name] != watched[name]} == {"database", "wait_events"}


def test_the_query_of_19_asks_for_repack_which_replaces_cluster(cluster: Cluster) -> None:
    """No server of 19 is to be had here, so its view is put in the way of an older one's query."""
    query = choose_queries(190000, watched=True)["wait_events"]
    assert "REPACK" in query
    assert "CLUSTER" not in query.split("FROM", 1)[1]
    with psycopg.connect(cluster.dsn) as connection:
        connection.execute(
            "CREATE TEMP VIEW pg_stat_progress_repack AS SELECT pid, command FROM pg_stat_progress_cluster"
        )
        older = choose_queries(180000, watched=True)["wait_events"]
        names = [[column.name for column in connection.execute(sql).description or ()] for sql in (query, older)]
    assert names[0] == names[1]


def test_a_slow_answer_halves_the_rate_of_a_watched_server_and_no_other() -> None:
    kept, slowed = CounterProbe("", 0.1), CounterProbe("", 0.1, watched=True, slowest_s=0.3)
    for probe in (kept, slowed):
        probe._slow_down(5_000_000)
        assert probe._interval_ns == 100_000_000, "5 ms of 100 are no burden"
        probe._slow_down(20_000_000)
    assert (kept._interval_ns, slowed._interval_ns) == (100_000_000, 200_000_000)
    slowed._slow_down(90_000_000)
    assert slowed._interval_ns == 300_000_000


def test_a_session_that_takes_much_of_a_core_is_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    used_ns = iter([0, 9_000_000, 9_000_000 + 4_000_000, 9_000_000 + 4_000_000 + 11_000_000])
    monkeypatch.setattr("pgdyno.probe.sampler.cpu_time_ns", lambda _: next(used_ns))
    probe = CounterProbe("", 0.1, watched=True, slowest_s=0.3)
    intervals = []
    for looks in range(10, 50, 10):
        probe.cost.samples = looks
        probe._slow_down(1_000_000)
        intervals.append(probe._interval_ns // 1_000_000)
    assert intervals == [100, 200, 200, 300], "ten looks in a second took nothing yet, 9 ms; in two seconds 4 ms, 11 ms"


def test_a_watch_has_the_looks_of_its_record_and_then_half_as_many_a_second() -> None:
    watched, kept = WaitEventProbe("", watched=True, slowest_s=SLOWEST_S), WaitEventProbe("")
    for probe, intervals in ((watched, [0.1, 0.2, 0.2]), (kept, [0.1, 0.1, 0.1])):
        for looks, interval_s in zip((59, 60, 61), intervals, strict=True):
            probe.cost.samples = looks
            probe._slow_down(1_000_000)
            assert probe._interval_ns == interval_s * 1e9
    watched._slow_down(90_000_000)
    assert watched._interval_ns == SLOWEST_S * 1e9


def sampled(probe: CounterProbe, count: int) -> bool:
    """Wait until the probe has sampled so often."""
    return wait_until(lambda: probe.samples_taken >= count, 60.0)


def missing(samples: ProbeTables) -> list[Gap]:
    """What was asked for and not answered; an answer that came after its deadline says something about the machine."""
    return [gap for gap in samples.gaps if not gap.why.endswith("deadlines were missed")]


def test_counters_of_a_server_that_works(cluster: Cluster) -> None:
    probe = CounterProbe(cluster.dsn, 0.1).start()
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS filled AS SELECT generate_series(1, 20000) AS i")
        connection.execute("CHECKPOINT")
    # After the checkpoint, whose process counts it a little later than it says that it is done.
    assert sampled(probe, probe.samples_taken + 5)
    samples = probe.stop()
    cost = samples.tables.pop("probe/cost")
    assert set(samples.tables) == {"probe/checkpointer", "probe/database", "probe/io", "probe/wal"}
    assert not missing(samples)
    assert cost["samples"].to_pylist() == [samples.tables["probe/wal"].num_rows]
    for name, table in samples.tables.items():
        assert conform(name, table).num_rows == table.num_rows
        for before, after in itertools.pairwise(table["t_begin_ns"].to_pylist()):
            assert after >= before
        assert all(row["t_end_ns"] > row["t_begin_ns"] for row in table.to_pylist())
    checkpoints = samples.tables["probe/checkpointer"]["num_done"].to_pylist()
    assert checkpoints[-1] > checkpoints[0]
    wal = samples.tables["probe/wal"]["wal_bytes"].to_pylist()
    assert wal[-1] > wal[0]
    assert "client backend" in samples.tables["probe/io"]["backend_type"].to_pylist()


def test_io_is_counted_by_bytes_whatever_an_operation_is(cluster: Cluster) -> None:
    """From 18 an extension is many blocks: counted as operations it would be a small part of the table."""
    probe = CounterProbe(cluster.dsn).start()
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE counted AS SELECT generate_series(1, 200000) AS i")
        size_bytes = connection.execute("SELECT pg_relation_size('counted')").fetchone()
        connection.execute("DROP TABLE counted")
        # Else it would be counted when the session ends, which may be after the last sample.
        connection.execute("SELECT pg_stat_force_next_flush()")
    samples = probe.stop()
    assert size_bytes is not None
    extended: dict[int, int] = {}
    for row in samples.tables["probe/io"].to_pylist():
        if (row["backend_type"], row["object"]) == ("client backend", "relation"):
            extended[row["t_begin_ns"]] = extended.get(row["t_begin_ns"], 0) + (row["extend_bytes"] or 0)
    grown_bytes = extended[max(extended)] - (extended[min(extended)] if len(extended) > 1 else 0)
    # The catalogue's own tables and the maps of the table's free space grow with it.
    assert size_bytes[0] <= grown_bytes < 1.5 * size_bytes[0]


def record_of_timing(server: Cluster) -> None:
    """What a run keeps of the server's settings says whether times of I/O were taken."""
    document = {row["name"]: row["setting"] for row in server.settings()}
    assert {document["track_io_timing"], document["track_wal_io_timing"]} <= {"on", "off"}


def test_whether_times_of_io_were_taken_is_in_the_record(cluster: Cluster) -> None:
    record_of_timing(cluster)


def test_whether_times_of_io_were_taken_is_in_the_record_of_other_versions(older_server: Cluster) -> None:
    record_of_timing(older_server)


def test_every_query_is_answered_by_other_versions(older_server: Cluster) -> None:
    samples = SqlProbe(older_server.dsn).start().stop()
    assert not missing(samples)
    assert {"probe/checkpointer", "probe/database", "probe/wal", "probe/wait_events"} <= set(samples.tables)
    for name, table in samples.tables.items():
        assert conform(name, table).num_rows > 0


def test_times_that_nobody_measured_are_unknown_and_not_zero(cluster: Cluster) -> None:
    def read_times() -> set[float | None]:
        samples = CounterProbe(cluster.dsn).start().stop()
        return set(samples.tables["probe/database"]["blk_read_time_ms"].to_pylist())

    assert read_times() == {None}
    with cluster.connect() as connection:
        connection.execute("ALTER SYSTEM SET track_io_timing = on")
        connection.execute("SELECT pg_reload_conf()")
        try:
            assert wait_until(lambda: None not in read_times(), 60.0)
        finally:
            connection.execute("ALTER SYSTEM RESET track_io_timing")
            connection.execute("SELECT pg_reload_conf()")


def test_a_lost_connection_is_a_gap_and_is_made_again(cluster: Cluster) -> None:
    probe = CounterProbe(cluster.dsn, 0.05).start()
    with cluster.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgdyno probe'"
        )
    before = probe.samples_taken
    assert sampled(probe, before + 4)
    samples = probe.stop()
    lost = missing(samples)
    assert lost
    assert all(gap.what.startswith("sql.") for gap in lost)
    last_gap_ns = max(gap.end_ns for gap in lost)
    assert max(samples.tables["probe/wal"]["t_end_ns"].to_pylist()) > last_gap_ns


def test_one_counter_that_is_not_answered_does_not_take_the_others_along_for_long(cluster: Cluster) -> None:
    probe = CounterProbe(cluster.dsn)
    with contextlib.closing(probe._connect(60.0)) as connection:
        probe._begin(connection)
        assert probe._ask(connection) == []
        right, probe._sources["wal"].query = probe._sources["wal"].query, "SELECT 1 / 0"
        missing = [[part for part, _ in probe._ask(connection)] for _ in range(3)]
        probe._sources["wal"].query = right
        assert [probe._ask(connection) for _ in range(2)] == [[], []]
    assert missing == [probe._parts(), ["sql.wal"], ["sql.wal"]], (
        "together they are one transaction, then they are asked apart"
    )
    taken = {table: len(source.answers) for table, source in probe._sources.items()}
    assert taken == {"checkpointer": 5, "database": 5, "io": 5, "wal": 3}


def test_a_server_that_has_just_started_has_time_to_answer(timeouts_asked: list[object]) -> None:
    """A machine full of other work: a run that broke because of it would end its experiment. Later it is a gap."""
    probe = CounterProbe("host=nowhere")
    with pytest.raises(PgdynoError, match="cannot be sampled: connection timeout expired"):
        probe.start()
    probe._sample(0)
    assert timeouts_asked == [START_PATIENCE_S, PATIENCE_S]


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="cannot be sampled"):
        SqlProbe(f"host={tmp_path} user=x dbname=y").start()


def test_its_first_answer_may_take_as_long(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads first is in no cache yet."""
    monkeypatch.setattr(sampler, "SESSION", f"SELECT pg_sleep(0.3); {sampler.SESSION}")
    assert CounterProbe(cluster.dsn, patience_s=0.1).start().stop().tables

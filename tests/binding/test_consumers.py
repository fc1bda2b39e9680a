"""Whose requests fill a volume: PostgreSQL's counters against the device's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.binding.consumers import TITLES, WHATS, Consumer, consumers_of
from pgdyno.results import open_run
from pgdyno.results.tables import from_rows

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from pgdyno.results import StoredRun

from ..analysis.synthetic import GP3, Plan, make_experiment

PAGE = 8192
SECONDS = 20


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    """A run of 20 s whose tables of counters are replaced."""
    made = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=SECONDS))
    return open_run(next(made.glob("runs/*")))


def put(run: StoredRun, name: str, *rows: dict[str, Any]) -> None:
    """Counters that grow evenly from 0 to those of ``rows`` over the measured phase."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    begin_ns, end_ns = run.record.measure.begin_ns, run.record.measure.end_ns
    made: list[dict[str, Any]] = []
    for step in range(SECONDS + 1):
        t_ns = begin_ns + (end_ns - begin_ns) * step // SECONDS
        at = {"t_ns": t_ns} if name == "probe/disk" else {"t_begin_ns": t_ns, "t_end_ns": t_ns}
        for row in rows:
            grown = {k: v if isinstance(v, str) else v * step // SECONDS for k, v in row.items()}
            made.append({**at, **grown})
    table: pa.Table = from_rows(name, made) if name == "probe/disk" else pa.Table.from_pylist(made)
    pq.write_table(table, run.path / f"{name}.parquet")


def configure(run: StoredRun, **settings: str) -> None:
    """Settings of the server beside those that it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = run.table("postgres/settings").to_pylist()
    rest = {"unit": None, "source": "configuration file", "boot_val": ""}
    rows += [{"name": name, "setting": setting, **rest} for name, setting in settings.items()]
    pq.write_table(pa.Table.from_pylist(rows), run.path / "postgres/settings.parquet")


def io(process: str, context: str = "normal", kind: str = "relation", **counters: int) -> dict[str, Any]:
    """A row of pg_stat_io, in pages."""
    names = {"reads": "read_bytes", "writes": "write_bytes", "extends": "extend_bytes"}
    every = {name: counters.get(name, 0) for name in names}
    return {"backend_type": process, "object": kind, "context": context, **every} | {
        size: every[name] * PAGE for name, size in names.items()
    }


def filled(run: StoredRun, reads: int = 6000, writes: int = 4000) -> None:
    """A device that did so many pages; a checkpoint wrote 1,000; WAL took 1,000 writes, 600 of them synced, and half of its bytes were whole pages."""
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    device = {"reads": reads, "writes": writes, "read_bytes": reads * PAGE, "write_bytes": writes * PAGE}
    put(run, "probe/disk", {"volume": "data", **device, **zero})
    put(run, "probe/checkpointer", {"buffers_written": 1000, "buffers_clean": 0, "num_requested": 0})
    put(run, "probe/wal", {"wal_bytes": 1000 * PAGE, "wal_fpi": 500, "wal_write": 1000, "wal_sync": 600})
    put(run, "probe/database", {"blks_read": 9000, "temp_bytes": 400 * PAGE})
    put(
        run,
        "probe/io",
        io("client backend", reads=3000, writes=200, extends=100),
        io("client backend", "bulkread", reads=1000),
        io("autovacuum worker", "vacuum", reads=500, writes=300),
        io("walsender", reads=300),
        io("checkpointer", writes=1000),
    )


def test_requests_are_shared_out_and_the_rest_is_not_explained(run: StoredRun) -> None:
    filled(run)
    consumers: dict[str, Consumer] = {consumer.what: consumer for consumer in consumers_of(run)}
    whole = 10_000
    document = {
        "reads": 3000, "scans": 1000, "vacuum": 800, "backup_and_replication": 300, "checkpoints": 1000, "commits": 800,
        "whole_pages": 200, "evicted_pages": 195, "new_data": 105, "temporary_files": 400,
    }  # fmt: skip
    for what, pages in document.items():
        assert consumers[what].share == pytest.approx(pages / whole, rel=0.01), what
    assert consumers["not_explained"].share == pytest.approx(1 - sum(document.values()) / whole, rel=0.01)
    assert sum(consumer.share for consumer in consumers.values()) == pytest.approx(1)
    assert consumers["reads"].iops == pytest.approx(3000 / SECONDS, rel=0.01)
    assert next(iter(consumers)) == "reads"


def test_what_the_page_cache_answered_is_no_request_of_the_volume(run: StoredRun) -> None:
    filled(run, reads=480)
    consumers = {consumer.what: consumer for consumer in consumers_of(run)}
    assert consumers["reads"].iops * SECONDS == pytest.approx(480 * 3000 / 4800, rel=0.01)
    assert sum(consumer.share for consumer in consumers.values()) == pytest.approx(1)


def test_wal_is_the_wal_volumes_where_there_is_one(run: StoredRun) -> None:
    filled(run)
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    data = {"reads": 6000, "writes": 4000, "read_bytes": 6000 * PAGE, "write_bytes": 4000 * PAGE}
    wal = {"reads": 0, "writes": 1000, "read_bytes": 0, "write_bytes": 1000 * PAGE}
    put(run, "probe/disk", {"volume": "data", **data, **zero}, {"volume": "wal", **wal, **zero})
    assert {consumer.what for consumer in consumers_of(run, "wal")} == {"commits", "whole_pages"}
    assert not {"commits", "whole_pages"} & {consumer.what for consumer in consumers_of(run, "data")}


def waited(run: StoredRun, *rows: tuple[str, str, str | None, int]) -> None:
    """Looks at the sessions: of each row's (event, kind of process, command) so many waited, over the whole phase."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    begin_ns, end_ns = run.record.measure.begin_ns, run.record.measure.end_ns
    made = [
        {
            "t_begin_ns": begin_ns + (end_ns - begin_ns) * look // 10, "t_end_ns": begin_ns, "wait_event_type": "IO", "wait_event": event,
            "backend_type": backend, "command": command, "count": count // 10,
        }
        for look in range(10)
        for event, backend, command, count in rows
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(made), run.path / "probe/wait_events.parquet")


def shares(run: StoredRun) -> dict[str, float]:
    """By use, those of more than a hundredth."""
    return {consumer.what: round(consumer.share, 2) for consumer in consumers_of(run) if consumer.share > 0.01}


def only_reads(run: StoredRun, reads: int, pages: int = 1, **counted: int) -> None:
    """A device that only read, in requests of so many pages, and what pg_stat_database counted of it. A server before 16."""
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    device = {"reads": reads, "writes": 0, "read_bytes": reads * pages * PAGE, "write_bytes": 0}
    put(run, "probe/disk", {"volume": "data", **device, **zero})
    put(run, "probe/checkpointer", {"buffers_written": 0, "buffers_clean": 0})
    put(run, "probe/wal", {"wal_bytes": 0, "wal_fpi": 0, "wal_write": 0, "wal_sync": 0})
    put(run, "probe/database", {"blks_read": 0, "temp_bytes": 0, "tup_returned": 0, "tup_fetched": 0} | counted)
    (run.path / "probe/io.parquet").unlink(missing_ok=True)


def test_before_16_reads_are_shared_out_by_who_waits_for_them(run: StoredRun) -> None:
    only_reads(run, 8000, blks_read=9000, tup_returned=9000, tup_fetched=9000)
    waited(run, ("DataFileRead", "client backend", None, 60), ("DataFileRead", "autovacuum worker", None, 20),
           ("DataFileRead", "client backend", "VACUUM", 20), ("BufFileRead", "client backend", None, 50),
           ("BaseBackupRead", "walsender", None, 50))  # fmt: skip
    assert shares(run) == {"reads": 0.3, "temporary_files": 0.25, "backup_and_replication": 0.25, "vacuum": 0.2}


def test_a_statement_that_still_runs_reads_a_table_where_the_device_reads_in_long_stretches(run: StoredRun) -> None:
    only_reads(run, 2000, pages=16)
    waited(run, ("DataFileRead", "client backend", "LONG TRANSACTION", 40))
    assert shares(run) == {"scans": 1.0}
    only_reads(run, 2000)
    assert shares(run) == {"reads": 1.0}


def test_a_dump_reads_whole_tables(run: StoredRun) -> None:
    only_reads(run, 2000)
    waited(run, ("DataFileRead", "client backend", "COPY TO", 40))
    assert shares(run) == {"scans": 1.0}


def test_before_16_rows_that_no_index_found_tell_reads_of_whole_tables(run: StoredRun) -> None:
    only_reads(run, 1000, pages=16, blks_read=16_000, tup_returned=900_000, tup_fetched=90_000)
    waited(run, ("DataFileRead", "client backend", None, 40))
    assert shares(run) == {"scans": 0.9, "reads": 0.1}


def test_reads_that_no_statement_counted_are_not_postgresqls(run: StoredRun) -> None:
    only_reads(run, 8000, blks_read=2000, tup_returned=2000, tup_fetched=2000)
    waited(run, ("DataFileRead", "client backend", None, 40))
    assert shares(run) == {"not_explained": 0.75, "reads": 0.25}


def test_a_command_has_at_most_three_requests_in_flight_for_one_that_it_waits_for(run: StoredRun) -> None:
    only_reads(run, 8000, blks_read=1000, tup_returned=1000, tup_fetched=1000)
    waited(run, ("DataFileRead", "client backend", None, 90), ("DataFileRead", "autovacuum worker", "ANALYZE", 10))
    assert shares(run) == {"not_explained": 0.57, "vacuum": 0.3, "reads": 0.12}


def test_a_growing_pool_of_workers_has_as_many_in_flight_as_it_may_grow_to(run: StoredRun) -> None:
    only_reads(run, 8000, blks_read=1000, tup_returned=1000, tup_fetched=1000)
    waited(run, ("DataFileRead", "client backend", None, 90), ("DataFileRead", "autovacuum worker", "ANALYZE", 10))
    configure(run, io_max_workers="8")
    assert shares(run) == {"vacuum": 0.8, "reads": 0.12, "not_explained": 0.07}


def test_large_reads_of_another_program_are_not_those_of_statements_that_read_pages(run: StoredRun) -> None:
    only_reads(run, 2000, pages=32, blks_read=2000, tup_returned=2000, tup_fetched=2000)
    waited(run, ("DataFileRead", "client backend", None, 40))
    assert shares(run)["not_explained"] == pytest.approx(1 - 4 / 32, abs=0.01), (
        "the kernel reads ahead four times as much at most"
    )


def test_temporary_files_that_no_counter_has_yet_are_those_of_who_writes_them(run: StoredRun) -> None:
    filled(run, reads=0)
    waited(run, ("BuffileWrite", "client backend", "LONG TRANSACTION", 40))
    assert shares(run)["temporary_files"] == pytest.approx((400 + 4000 - 2600 - 400) / 4000, abs=0.02)


def test_before_16_what_sessions_wrote_is_shared_out_by_who_was_seen_to_write(run: StoredRun) -> None:
    filled(run, reads=0, writes=7400)
    (run.path / "probe/io.parquet").unlink()
    put(run, "probe/checkpointer", {"buffers_written": 1000, "buffers_clean": 0, "buffers_backend": 5000})
    waited(run, ("DataFileExtend", "client backend", None, 20), ("DataFileWrite", "client backend", "VACUUM", 20),
           ("DataFileRead", "client backend", None, 60))  # fmt: skip
    values = shares(run)
    assert values["vacuum"] == pytest.approx(2500 / 7400, abs=0.01), "half of who was seen to write"
    assert values["new_data"] == pytest.approx(2500 / 4 / 7400, abs=0.01), "a page was added for three that were read"
    assert values["evicted_pages"] == pytest.approx(2500 * 3 / 4 / 7400, abs=0.01)


def test_a_wal_volume_and_one_for_temporary_files_have_theirs(run: StoredRun) -> None:
    filled(run)
    configure(run, temp_tablespaces="fast")
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    done = {"reads": 500, "writes": 4000, "read_bytes": 500 * PAGE, "write_bytes": 4000 * PAGE, **zero}
    put(
        run, "probe/disk", *({"volume": role, **done} for role in ("data", "wal", "tablespace.fast", "tablespace.cold"))
    )
    waited(run, ("BuffileRead", "client backend", None, 40))
    assert {consumer.what for consumer in consumers_of(run, "tablespace.fast")} == {"temporary_files", "not_explained"}
    assert {consumer.what for consumer in consumers_of(run, "wal")} >= {"commits", "whole_pages"}
    assert "temporary_files" not in {consumer.what for consumer in consumers_of(run, "data")}
    assert consumers_of(run, "tablespace.cold") == (), "no counter says which tablespace was read"


def test_a_device_that_was_not_seen_has_no_consumers(run: StoredRun) -> None:
    (run.path / "probe/disk.parquet").unlink()
    assert consumers_of(run) == ()


def test_every_consumer_has_a_title() -> None:
    assert set(TITLES) == set(WHATS)

"""Whose requests fill a volume: PostgreSQL's counters against the device's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.binding.consumers import TITLES, WHATS, Consumer, consumers_of
from pgdyno.store import open_run
from pgdyno.store.tables import from_rows

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from pgdyno.store import Run

from ..analysis.synthetic import GP3, Plan, make_experiment

PAGE = 8192
SECONDS = 20


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of 20 s whose tables of counters are replaced."""
    made = make_experiment(tmp_path, Plan(arms=(GP3,), replicates=1, measure_s=SECONDS))
    return open_run(next(made.glob("runs/*")))


def put(run: Run, name: str, *rows: dict[str, Any]) -> None:
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


def io(process: str, context: str = "normal", kind: str = "relation", **counters: int) -> dict[str, Any]:
    """A row of pg_stat_io, in pages."""
    names = {"reads": "read_bytes", "writes": "write_bytes", "extends": "extend_bytes"}
    every = {name: counters.get(name, 0) for name in names}
    return {"backend_type": process, "object": kind, "context": context, **every} | {
        size: every[name] * PAGE for name, size in names.items()
    }


def filled(run: Run, reads: int = 6000, writes: int = 4000) -> None:
    """A device that did so many pages; a checkpoint wrote 1,000, WAL took 500 writes of which a half were whole pages."""
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    device = {"reads": reads, "writes": writes, "read_bytes": reads * PAGE, "write_bytes": writes * PAGE}
    put(run, "probe/disk", {"volume": "data", **device, **zero})
    put(run, "probe/checkpointer", {"buffers_written": 1000, "buffers_clean": 0, "num_requested": 0})
    put(run, "probe/wal", {"wal_bytes": 1000 * PAGE, "wal_fpi": 500, "wal_write": 1000, "wal_sync": 1000})
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


def test_requests_are_shared_out_and_the_rest_is_not_explained(run: Run) -> None:
    filled(run)
    found: dict[str, Consumer] = {one.what: one for one in consumers_of(run)}
    whole = 10_000
    asked = {
        "reads": 3000, "scans": 1000, "vacuum": 800, "backup_and_replication": 300, "checkpoints": 1000, "commits": 500,
        "whole_pages": 500, "evicted_pages": 200, "new_data": 100, "temporary_files": 400,
    }  # fmt: skip
    for what, pages in asked.items():
        assert found[what].share == pytest.approx(pages / whole, rel=0.01), what
    assert found["not_explained"].share == pytest.approx(1 - sum(asked.values()) / whole, rel=0.01)
    assert sum(one.share for one in found.values()) == pytest.approx(1)
    assert found["reads"].iops == pytest.approx(3000 / SECONDS, rel=0.01)
    assert next(iter(found)) == "reads"


def test_what_the_page_cache_answered_is_no_request_of_the_volume(run: Run) -> None:
    filled(run, reads=480)
    found = {one.what: one for one in consumers_of(run)}
    assert found["reads"].iops * SECONDS == pytest.approx(480 * 3000 / 4800, rel=0.01)
    assert sum(one.share for one in found.values()) == pytest.approx(1)


def test_wal_is_the_wal_volumes_where_there_is_one(run: Run) -> None:
    filled(run)
    zero = {"read_time_ms": 0, "write_time_ms": 0, "in_flight": 0, "io_time_ms": 0, "weighted_time_ms": 0}
    data = {"reads": 6000, "writes": 4000, "read_bytes": 6000 * PAGE, "write_bytes": 4000 * PAGE}
    wal = {"reads": 0, "writes": 1000, "read_bytes": 0, "write_bytes": 1000 * PAGE}
    put(run, "probe/disk", {"volume": "data", **data, **zero}, {"volume": "wal", **wal, **zero})
    assert {one.what for one in consumers_of(run, "wal")} == {"commits", "whole_pages"}
    assert not {"commits", "whole_pages"} & {one.what for one in consumers_of(run, "data")}


def test_before_16_reads_are_the_databases(run: Run) -> None:
    filled(run)
    (run.path / "probe/io.parquet").unlink()
    found = {one.what: one for one in consumers_of(run)}
    assert found["reads"].share == pytest.approx(0.6, rel=0.01), "9,000 were asked for, and the device did 6,000"


def test_a_device_that_was_not_seen_has_no_consumers(run: Run) -> None:
    (run.path / "probe/disk.parquet").unlink()
    assert consumers_of(run) == ()


def test_every_consumer_has_a_title() -> None:
    assert set(TITLES) == set(WHATS)

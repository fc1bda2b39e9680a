"""What PostgreSQL counted itself during the measure phase: bytes by who moved them, WAL, checkpoints, its cache.

Bytes, never operations: from 18 one operation of pg_stat_io may be many blocks, before it is one block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.counters import CounterSamples, continued

from ..results import StoredRun

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MIB = 2**20
BLOCK_BYTES = 8192
"""PostgreSQL's block, where its settings do not say otherwise."""
_IO_COUNTERS = ("read_bytes", "write_bytes", "extend_bytes")


@dataclass(frozen=True)
class IoRate:
    """What one kind of process moved, by pg_stat_io."""

    backend_type: str
    object: str
    read_mib_per_s: float
    """From the operating system, whose page cache may have had it: not what the volume read."""
    write_mib_per_s: float
    """Handed to the operating system, extensions of files included."""


@dataclass(frozen=True)
class ServerFigures:
    """The server's own counters over the measure phase."""

    rates: Mapping[str, float]
    """Figures by name, the unit last; one that the server does not count, or that was not sampled, is absent."""
    io: tuple[IoRate, ...]
    """By process and object, the largest first; empty before 16, which has no pg_stat_io."""
    io_timing: bool | None
    """Whether ``track_io_timing`` was on, which costs a little; None when the settings were not seen."""
    connections_max: int | None = None
    """Sessions that ordinary roles may have at a time; None when the settings were not seen."""


def server_figures(run: StoredRun) -> ServerFigures:
    """Read the server's tables and reduce them to its figures."""
    settings = _settings(run)
    deltas = io_growth(run)
    rates = {**_database(run, int(settings.get("block_size") or BLOCK_BYTES)), **_wal(run), **_checkpoints(run)}
    if wal_syncs := [grown["fsyncs"] for (_, kind, _), grown in deltas.items() if kind == "wal" and "fsyncs" in grown]:
        # From 18 pg_stat_wal no longer counts them.
        rates.setdefault("wal_syncs_per_s", math.fsum(wal_syncs) / run.record.measure.seconds)
    timing = settings.get("track_io_timing")
    return ServerFigures(
        rates,
        _io(deltas, run.record.measure.seconds),
        None if timing is None else timing == "on",
        _connections_max(settings),
    )


def _connections_max(settings: Mapping[str, str | None]) -> int | None:
    """What max_connections leaves beside the places of superusers and, from 16 on, of pg_use_reserved_connections."""
    whole = settings.get("max_connections")
    if whole is None:
        return None
    reserved = ("superuser_reserved_connections", "reserved_connections")
    return int(whole) - sum(int(settings.get(name) or 0) for name in reserved)


def _settings(run: StoredRun) -> dict[str, str | None]:
    table = run.table("postgres/settings")
    return dict(zip(table["name"].to_pylist(), table["setting"].to_pylist(), strict=True))


def growth_of(run: StoredRun, name: str, counter_names: tuple[str, ...]) -> dict[str, float]:
    """Growth of the counters of a table with one row per sample; those that are unknown are absent."""
    counters = CounterSamples.of_server(run.table(name))
    measure = run.record.measure
    values = {each: counters.delta(each, measure.begin_ns, measure.end_ns) for each in counter_names}
    return {each: value for each, value in values.items() if value is not None and math.isfinite(value)}


def _database(run: StoredRun, block_bytes: int) -> dict[str, float]:
    grown = growth_of(run, "probe/database", ("blks_read", "blks_hit", "temp_bytes", "deadlocks"))
    seconds = run.record.measure.seconds
    rates = {}
    if grown.keys() >= {"blks_read", "blks_hit"}:
        touched = grown["blks_read"] + grown["blks_hit"]
        rates["buffer_hit_share"] = grown["blks_hit"] / touched if touched else 1.0
        rates["read_mib_per_s"] = grown["blks_read"] * block_bytes / MIB / seconds
    if "temp_bytes" in grown:
        rates["temp_mib_per_s"] = grown["temp_bytes"] / MIB / seconds
    if "deadlocks" in grown:
        rates["deadlocks"] = grown["deadlocks"]
    return rates


def _wal(run: StoredRun) -> dict[str, float]:
    grown = growth_of(run, "probe/wal", ("wal_bytes", "wal_fpi", "wal_sync", "wal_buffers_full"))
    seconds, succeeded = run.record.measure.seconds, run.record.account.succeeded
    rates = {}
    if "wal_bytes" in grown:
        rates["wal_mib_per_s"] = grown["wal_bytes"] / MIB / seconds
        if succeeded:
            rates["wal_bytes_per_transaction"] = grown["wal_bytes"] / succeeded
    for counter, name in (
        ("wal_fpi", "wal_full_pages_per_s"),
        ("wal_sync", "wal_syncs_per_s"),
        ("wal_buffers_full", "wal_buffers_full_per_s"),
    ):
        if counter in grown:
            rates[name] = grown[counter] / seconds
    return rates


def _checkpoints(run: StoredRun) -> dict[str, float]:
    grown = growth_of(run, "probe/checkpointer", ("num_timed", "num_requested", "buffers_written"))
    rates = {}
    if grown.keys() >= {"num_timed", "num_requested"}:
        rates["checkpoints"] = round(grown["num_timed"] + grown["num_requested"], 1)
        rates["checkpoints_requested"] = round(grown["num_requested"], 1)
    if "buffers_written" in grown:
        rates["checkpoint_write_mib_per_s"] = grown["buffers_written"] * BLOCK_BYTES / MIB / run.record.measure.seconds
    return rates


def _io(deltas: Mapping[tuple[str, str, str], Mapping[str, float]], seconds: float) -> tuple[IoRate, ...]:
    moved: dict[tuple[str, str], list[float]] = {}
    for (backend, kind, _), grown in deltas.items():
        both = moved.setdefault((backend, kind), [0.0, 0.0])
        both[0] += grown.get("read_bytes", 0.0)
        both[1] += grown.get("write_bytes", 0.0) + grown.get("extend_bytes", 0.0)
    rates = [
        IoRate(backend, kind, read / MIB / seconds, written / MIB / seconds)
        for (backend, kind), (read, written) in moved.items()
    ]
    return tuple(sorted(rates, key=lambda rate: -(rate.read_mib_per_s + rate.write_mib_per_s)))


def io_growth(run: StoredRun, further: tuple[str, ...] = ("fsyncs",)) -> dict[tuple[str, str, str], dict[str, float]]:
    """Growth of each row of pg_stat_io by (process, object, context), in bytes and in ``further`` counters.

    A row is sampled from when it first counts anything on, so before its first sample it was 0.
    """
    import numpy as np

    table = run.table("probe/io")
    measure = run.record.measure
    if table.num_rows == 0:
        return {}
    t_ns = np.unique(table["t_end_ns"].to_numpy()).astype(np.int64)
    keys = list(zip(*(table[name].to_pylist() for name in ("backend_type", "object", "context")), strict=True))
    place = np.searchsorted(t_ns, table["t_end_ns"].to_numpy())
    io_growth = {}
    names = [name for name in (*_IO_COUNTERS, *further) if name in table.column_names]
    for key in dict.fromkeys(keys):
        rows = np.array([row for row, each in enumerate(keys) if each == key])
        columns = {name: _from_zero(table, name, rows, place[rows], len(t_ns)) for name in names}
        counters = CounterSamples(t_ns, columns)
        grown = {name: counters.delta(name, measure.begin_ns, measure.end_ns) for name in names}
        io_growth[key] = {name: value for name, value in grown.items() if value is not None}
    return io_growth


def _from_zero(
    table: pa.Table, name: str, rows: np.ndarray[Any, Any], place: np.ndarray[Any, Any], count: int
) -> np.ndarray[Any, Any]:
    """A counter of one row of pg_stat_io at every instant; what is NULL does not apply and counts as 0."""
    import numpy as np

    values = np.zeros(count)
    values[place] = np.nan_to_num(table[name].to_numpy().astype(np.float64)[rows])
    # A sample that is missing between two others (the query failed) repeats the one before it.
    seen = np.zeros(count, dtype=np.int64)
    seen[place] = place
    return continued(values[np.maximum.accumulate(seen)])

"""The tables of a run: their columns, units and meaning; and the clock of the subject, on which their instants are.

Every ``t_ns``, ``t_begin_ns`` and ``t_end_ns`` is CLOCK_MONOTONIC. Counters are cumulative since some instant before
the run, so that a lost sample costs resolution and not truth; analysis takes differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..base.errors import PgdynoError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


TABLES: dict[str, str] = {
    "workload/latency": "latency of transactions per second of the run, as counts of HDR buckets; in an open loop from"
    " the scheduled start",
    "workload/service": "open loop only: the same, from the actual start",
    "workload/statement": "the measure phase of pgdyno's own driver: latency of each statement, as counts of HDR buckets;"
    " numbered in the order of the scripts",
    "workload/throughput": "transactions that ended in each second of the run",
    "workload/bulk_load": "a measured load: progress of each table about once a second, and the limit that the loader reported",
    "workload/query": "streams of queries: each query with its parameters as JSON, its rows and the sum of their hashes, bytes of its"
    " temporary files and its plan (NULL is unknown); error is empty where it brought its rows",
    "workload/replay": "a replay: how the statements of each second ended, and how late they were sent",
    "world/event": "what happened to volumes and server during the run: when it was to happen, in seconds since measuring began, when"
    " it began and ended, what came of it, and of a modification the volume's price after it (NULL is unknown)",
    "probe/disk": "each volume's block device in /proc/diskstats, cumulative",
    "probe/volume": "each emulated volume's counters, cumulative",
    "probe/instance": "counters of the instance's limits on its volumes, cumulative, if it has limits; reserves in"
    " millionths, NULL if the maximum is always available",
    "probe/volume_latency": "each emulated volume's histograms, cumulative, when measuring began and when it ended",
    "probe/member": "counters of each member of an emulated array, cumulative, when measuring began and when it ended; its"
    " operations are the pieces of requests that it was given",
    "probe/cpu": "CPU time by role, cumulative",
    "probe/memory": "memory of the server's cgroup and of the host",
    "probe/cost": "what each probe cost, and how many of its samples were lost; NULL is unknown, not 0",
    "probe/gap": "what could not be sampled, from when to when",
    "probe/database": "pg_stat_database of the workload's database, cumulative",
    "probe/io": "pg_stat_io, cumulative, rows that ever counted anything; NULL is unknown, not 0",
    "probe/wal": "pg_stat_wal, cumulative",
    "probe/checkpointer": "pg_stat_checkpointer (pg_stat_bgwriter before 17), cumulative",
    "probe/wait_events": "sessions in each state of pg_stat_activity that does something or waits for it, ten samples a"
    " second, in a watch five after the first 60; count 0 where a sample saw none. A watch has the command, if it reports its progress, of what waits for a"
    " volume, or LONG TRANSACTION after a second",
    "probe/statements": "a server that was watched: pg_stat_statements when the watch began and when it ended, cumulative; texts only"
    " if they were asked for",
    "probe/blockers": "a server that was watched: sessions that others waited for and that waited for no lock themselves, every 2 s while"
    " there were such waits",
    "postgres/settings": "every setting of the server, as it ran",
}
"""Name (path in the run's directory without ``.parquet``) and meaning of each table."""

VIEWS: dict[str, str] = {name.rpartition("/")[2]: name for name in TABLES}
"""Name of the DuckDB view -> name of the table."""

_COLUMNS: dict[str, str] = {
    "workload/latency": "t_begin_ns:i t_end_ns:i script:s latency_us:i count:i",
    "workload/service": "t_begin_ns:i t_end_ns:i script:s latency_us:i count:i",
    "workload/statement": "t_begin_ns:i t_end_ns:i number:i statement:s latency_us:i count:i",
    "workload/throughput": "t_begin_ns:i t_end_ns:i script:s transactions:i failed:i skipped:i",
    "workload/bulk_load": "t_ns:i target:s rows:i bytes:i connections:i binding:s",
    "workload/query": "stream:i query_set:i place:i query:i parameters:s t_begin_ns:i t_end_ns:i rows:i rows_hash:i"
    " temp_bytes:i plan:s error:s",
    "workload/replay": "t_begin_ns:i t_end_ns:i executed:i failed_as_recorded:i newly_failed:i no_longer_failed:i behind_us_mean:f"
    " behind_us_max:f",
    "world/event": "planned_s:f kind:s target:s words:s t_begin_ns:i t_end_ns:i result:s usd_per_month:f",
    "probe/disk": "t_ns:i volume:s reads:i writes:i read_bytes:i write_bytes:i read_time_ms:i write_time_ms:i in_flight:i"
    " io_time_ms:i weighted_time_ms:i",
    "probe/volume": "t_ns:i volume:s read_ops:i write_ops:i read_bytes:i write_bytes:i flush_ops:i io_units:i read_time_ns:i"
    " write_time_ns:i queue_length:i queue_time_ns:i exceeded_iops_ns:i exceeded_throughput_ns:i"
    " read_modelled_ns:i write_modelled_ns:i late_read_ops:i late_write_ops:i overrun_ops:i daemon_cpu_ns:i",
    "probe/instance": "t_ns:i ops:i bytes:i exceeded_iops_ns:i exceeded_throughput_ns:i iops_balance_ppm:i"
    " throughput_balance_ppm:i",
    "probe/volume_latency": "t_ns:i volume:s op:s latency_ns:i count:i",
    "probe/member": "t_ns:i volume:s member:i read_ops:i write_ops:i read_time_ns:i write_time_ns:i exceeded_iops_ns:i"
    " exceeded_throughput_ns:i",
    "probe/cpu": "t_ns:i role:s cpu_ns:i",
    "probe/memory": "t_ns:i role:s name:s bytes:i",
    "probe/cost": "t_begin_ns:i t_end_ns:i probe:s samples:i lost_samples:i answer_ns:i client_cpu_ns:i server_cpu_ns:i",
    "probe/gap": "t_begin_ns:i t_end_ns:i what:s why:s",
    "probe/database": "t_begin_ns:i t_end_ns:i",
    "probe/io": "t_begin_ns:i t_end_ns:i backend_type:s object:s context:s",
    "probe/wal": "t_begin_ns:i t_end_ns:i",
    "probe/checkpointer": "t_begin_ns:i t_end_ns:i",
    "probe/wait_events": "t_begin_ns:i t_end_ns:i wait_event_type:s wait_event:s backend_type:s count:i",
    "probe/statements": "t_begin_ns:i t_end_ns:i reset_unix_ms:i queryid:i calls:i exec_time_ms:f shared_blks_read:i"
    " temp_blks_written:i wal_bytes:i query:s",
    "probe/blockers": "t_begin_ns:i t_end_ns:i pid:i application_name:s usename:s datname:s client_addr:s state:s transaction_ms:f"
    " state_ms:f lock_type:s lock_mode:s relation:s waiting:i longest_wait_ms:f",
    "postgres/settings": "name:s setting:s unit:s source:s boot_val:s",
}

_FURTHER_COLUMNS = {
    "probe/volume",
    "probe/database",
    "probe/io",
    "probe/wal",
    "probe/checkpointer",
    "probe/wait_events",
}
"""Tables whose source names the rest of the columns (the engine, the server's version)."""

DATA_VOLUME = "data"
"""Role of the volume that every world has. A writer whose table lacks the column ``volume`` means that one."""


def has_further_columns(name: str) -> bool:
    """Whether the table may have more columns than :func:`columns` says."""
    return name in _FURTHER_COLUMNS


def columns(name: str) -> pa.Schema:
    """The columns that the table always has, in order."""
    import pyarrow as pa

    types = {"i": pa.int64(), "f": pa.float64(), "s": pa.string()}
    return pa.schema([(column, types[kind]) for column, _, kind in (c.partition(":") for c in _COLUMNS[name].split())])


def conform(name: str, table: pa.Table) -> pa.Table:
    """The table in the columns and types of its name; :class:`PgdynoError` when it cannot be (a bug of the writer)."""
    import pyarrow as pa

    if name not in _COLUMNS:
        raise PgdynoError(f"there is no table {name}", remedy=f"one of {', '.join(TABLES)}")
    wanted = columns(name)
    if "volume" in wanted.names and "volume" not in table.column_names:
        table = table.add_column(1, "volume", pa.array([DATA_VOLUME] * table.num_rows, pa.string()))
    missing = [field.name for field in wanted if field.name not in table.column_names]
    further = [column for column in table.column_names if column not in wanted.names]
    if missing or (further and name not in _FURTHER_COLUMNS):
        raise PgdynoError(
            f"table {name}: columns missing {missing or 'none'}, unknown {further or 'none'}",
            remedy="this is a bug in pgdyno; the columns are listed in pgdyno/results/tables.py",
        )
    schema = pa.schema([*wanted, *(table.schema.field(column) for column in further)])
    return table.select(schema.names).cast(schema)


def empty(name: str) -> pa.Table:
    """The table without rows."""
    return columns(name).empty_table()


def from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The table of rows given as dictionaries. A column that a row lacks is NULL; whole numbers and text only."""
    import pyarrow as pa

    results = list(rows)
    wanted = columns(name)
    if "volume" in wanted.names:
        results = [{"volume": DATA_VOLUME, **row} for row in results]
    further = {key: None for row in results for key in row if key not in wanted.names}
    arrays = {field.name: pa.array([row.get(field.name) for row in results], field.type) for field in wanted}
    for key in further if name in _FURTHER_COLUMNS else ():
        arrays[key] = pa.array([row.get(key) for row in results], pa.int64())
    return pa.table(arrays)


_Instant = TypeVar("_Instant", int, "np.ndarray[Any, Any]")
_INSTANTS = ("t_ns", "t_begin_ns", "t_end_ns")
_HOST_DURATION = "_time_ms"
"""What the kernel and PostgreSQL measured in milliseconds, by their own clock. An emulated volume counts in
nanoseconds, and in its own time already."""


@dataclass(frozen=True)
class SubjectClock:
    """CLOCK_MONOTONIC until ``zero_ns``, and ``dilation`` times slower from there on."""

    zero_ns: int = 0
    dilation: int = 1

    def instant_ns(self, host_ns: _Instant) -> _Instant:
        """An instant of CLOCK_MONOTONIC on this clock, or many of them."""
        return self.zero_ns + (host_ns - self.zero_ns) // self.dilation

    def host_s(self, seconds: float) -> float:
        """How long the host takes for these seconds of slowed time."""
        return seconds * self.dilation

    def durations_us(self, host_us: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Durations that the host measured in whole microseconds, to the nearest one of the subject's."""
        return (host_us + self.dilation // 2) // self.dilation

    def table(self, table: pa.Table) -> pa.Table:
        """A table of samples: its instants, and the durations that the host measured."""
        import pyarrow.compute as pc

        if self.dilation == 1:
            return table
        for place, name in enumerate(table.column_names):
            column = table.column(name)
            if name in _INSTANTS:
                since = pc.divide(pc.subtract(column, self.zero_ns), self.dilation)
                table = table.set_column(place, name, pc.add(since, self.zero_ns))
            elif name.endswith(_HOST_DURATION):
                table = table.set_column(place, name, pc.cast(pc.divide(column, self.dilation), column.type))
        return table

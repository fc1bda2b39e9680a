"""Figures of the measure phase from cumulative counters: of volumes, of the instance, of PostgreSQL, and of waiting sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pgdyno.analysis.distribution import ValueCounts, volume_latency_ms

from ..results import StoredLoad, StoredRun

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


EDGE_TOLERANCE_NS = 2_500_000_000
"""How far the first or last sample may lie inside the phase: beyond two missed one-second samples the counter would be
extrapolated too far, and its figure is not given."""


@dataclass(frozen=True)
class CounterSamples:
    """Samples of cumulative counters, in order of time.

    Between two samples a counter is taken to grow evenly, so a difference over a phase of many samples is wrong by at
    most one sample's growth at each end.
    """

    t_ns: np.ndarray[Any, Any]
    columns: dict[str, np.ndarray[Any, Any]]

    @classmethod
    def of(cls, table: pa.Table, time: str = "t_ns") -> CounterSamples:
        """The numeric columns of a table with one row per instant."""
        import numpy as np

        order = np.argsort(table[time].to_numpy(), kind="stable")
        names = [name for name in table.column_names if name not in ("t_ns", "t_begin_ns", "t_end_ns")]
        numeric = {}
        for name in names:
            values = table[name].to_numpy()
            if np.issubdtype(values.dtype, np.number):
                numeric[name] = values[order].astype(np.float64)
        return cls(table[time].to_numpy()[order].astype(np.int64), numeric)

    @classmethod
    def of_server(cls, table: pa.Table) -> CounterSamples:
        """Those of one of the server's own statistics, which begin at 0 again when it recovers from a crash (PostgreSQL manual,
        "The Cumulative Statistics System").
        """
        result = cls.of(table, time="t_end_ns")
        return cls(result.t_ns, {name: continued(values) for name, values in result.columns.items()})

    def covers(self, begin_ns: int, end_ns: int) -> bool:
        """Whether the samples reach both ends of [begin, end), give or take :data:`EDGE_TOLERANCE_NS`."""
        if len(self.t_ns) < 2:
            return False
        return bool(self.t_ns[0] <= begin_ns + EDGE_TOLERANCE_NS and self.t_ns[-1] >= end_ns - EDGE_TOLERANCE_NS)

    def at(self, name: str, t_ns: int) -> float:
        """Value of a counter at an instant: linear between samples, and the nearest sample outside them."""
        import numpy as np

        # Relative to the first sample, because nanoseconds since boot lose their last digits in a double.
        base = self.t_ns[0]
        return float(np.interp(float(t_ns - base), (self.t_ns - base).astype(np.float64), self.columns[name]))

    def delta(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Growth of a counter over [begin, end), or None when it was not sampled there."""
        if name not in self.columns or not self.covers(begin_ns, end_ns):
            return None
        return self.at(name, end_ns) - self.at(name, begin_ns)

    def mean_rate(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Growth per second over the part of [begin, end) that the samples reach, or None."""
        growth = self.delta(name, begin_ns, end_ns)
        if growth is None:
            return None
        seconds = (min(end_ns, int(self.t_ns[-1])) - max(begin_ns, int(self.t_ns[0]))) / 1e9
        return growth / seconds if seconds > 0 else None

    def rates(self, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Growth per second between neighbouring samples: (end of each gap in ns, rate)."""
        import numpy as np

        gaps = np.diff(self.t_ns)
        kept = gaps > 0
        return self.t_ns[1:][kept], np.diff(self.columns[name])[kept] / (gaps[kept] / 1e9)


def continued(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A counter that continues where it began again at 0: what was counted between its last sample and that is not known, and is not in it."""
    import numpy as np

    grown = np.diff(values, prepend=0.0)
    return np.cumsum(np.where(grown < 0, values, grown))


def cpu_counters(run: StoredRun) -> dict[str, CounterSamples]:
    """Cumulative CPU time by role."""
    table = run.table("probe/cpu")
    import pyarrow.compute as pc

    return {
        role: CounterSamples.of(table.filter(pc.equal(table["role"], role)))
        for role in pc.unique(table["role"]).to_pylist()
    }


DATA = "data"
"""Role of the volume that holds the data directory. Others (``wal``, ``temp``, ...) are there when they were asked for."""

_LIMIT_PREFIX, _LIMIT_SUFFIX = "exceeded_", "_ns"


@dataclass(frozen=True)
class MemberFigures:
    """One member of an array in one run. Its requests are the pieces that it was given of the array's."""

    iops: float | None
    read_ms_mean: float | None
    """Mean time of its reads as the model gave it, without waiting for the instance; None where there were none."""
    write_ms_mean: float | None
    time_above_limit: Mapping[str, float]
    """Limit (``iops``, ``throughput``) -> share of the phase in which its requests waited for it."""


@dataclass(frozen=True)
class VolumeFigures:
    """One volume of one run. A figure is None when the run did not record what it needs."""

    role: str
    iops: float | None
    """Requests that the volume completed per second."""
    mib_per_s: float | None
    queue_length: float | None
    """Mean number of requests in the volume: the integral of the queue's length over the phase's length."""
    read_ms_mean: float | None
    """Mean latency of its reads, by its counters; None where there were none."""
    write_ms_mean: float | None
    read_ms: ValueCounts
    """Latency of the volume's reads, as the volume gave it."""
    write_ms: ValueCounts
    read_lateness_ms: ValueCounts
    """How much later than its modelled instant each read was answered."""
    write_lateness_ms: ValueCounts
    time_above_limit: Mapping[str, float]
    """Limit (``iops``, ``throughput``) -> share of the phase in which requests waited for it."""
    members: tuple[MemberFigures, ...] = ()
    """The members of an array, in their order; empty without an array, and in runs that did not record it."""


def volume_roles(run: StoredRun) -> tuple[str, ...]:
    """Roles of the run's volumes, the data's first: those of its record, and those that were sampled."""
    sampled = [
        role for name in ("probe/volume", "probe/disk") for role in run.table(name)["volume"].unique().to_pylist()
    ]
    known = dict.fromkeys([*run.record.world.volumes, *sampled])
    return (DATA, *(role for role in known if role != DATA))


def volume_spec(run: StoredRun, role: str = DATA) -> dict[str, Any]:
    """The resolved specification of a volume; empty when it is a device that was there."""
    volume = run.record.world.volumes.get(role)
    return {} if volume is None else volume.spec


def volume_attach(run: StoredRun, role: str = DATA) -> dict[str, Any]:
    """What the volume's daemon said when it was ready."""
    volume = run.record.world.volumes.get(role)
    return {} if volume is None else volume.attach


def path_us(attach: Mapping[str, Any]) -> dict[str, float]:
    """What the host's own path costs an 8 KiB request by operation, as the daemon that said ``attach`` had calibrated it."""
    # A fixed part, and picoseconds for each KiB.
    return {
        operation: parts["fixed_ns"] / 1e3 + 8 * parts.get("per_kib_ps", 0) / 1e6
        for operation, parts in (attach.get("base_overhead") or {}).items()
        if isinstance(parts, dict) and "fixed_ns" in parts
    }


def volume_figures(run: StoredRun, role: str = DATA) -> VolumeFigures:
    """Read the tables of one volume and reduce them to its figures."""
    measure = run.record.measure
    span = (measure.begin_ns, measure.end_ns)
    counters = volume_counters(run, role)
    by_operation = volume_latency_ms(run, role)
    nothing = ValueCounts.of(())
    queue_ns = counters.mean_rate("queue_time_ns", *span)
    size = counters.mean_rate("bytes", *span)
    return VolumeFigures(
        role=role,
        iops=counters.mean_rate("ops", *span),
        mib_per_s=None if size is None else size / 2**20,
        queue_length=None if queue_ns is None else queue_ns / 1e9,
        read_ms_mean=mean_ms(counters, "read", span),
        write_ms_mean=mean_ms(counters, "write", span),
        read_ms=by_operation.get("read", nothing),
        write_ms=by_operation.get("write", nothing),
        read_lateness_ms=by_operation.get("read lateness", nothing),
        write_lateness_ms=by_operation.get("write lateness", nothing),
        time_above_limit=time_above_limit(counters, *span),
        members=_members(run, role, span),
    )


def _members(run: StoredRun, role: str, span: tuple[int, int]) -> tuple[MemberFigures, ...]:
    table = of_role(run.table("probe/member"), role)
    numbers = sorted(set(table["member"].to_pylist()))
    each = (_ops(CounterSamples.of(_rows(table, "member", number))) for number in numbers)
    return tuple(
        MemberFigures(
            iops=counters.mean_rate("ops", *span),
            read_ms_mean=mean_ms(counters, "read", span),
            write_ms_mean=mean_ms(counters, "write", span),
            time_above_limit=time_above_limit(counters, *span),
        )
        for counters in each
    )


def mean_ms(counters: CounterSamples, operation: str, span: tuple[int, int]) -> float | None:
    """Mean latency of a volume's ``read``s or ``write``s over [begin, end); None where there were none."""
    time_ns, count = counters.delta(f"{operation}_time_ns", *span), counters.delta(f"{operation}s", *span)
    return time_ns / count / 1e6 if time_ns is not None and count else None


def volume_counters(run: StoredRun | StoredLoad, role: str = DATA) -> CounterSamples:
    """Cumulative ``ops``, ``reads``, ``writes``, ``bytes``, ``read_time_ns``, ``write_time_ns`` and ``queue_time_ns`` of a volume,
    and every counter of an emulated one.

    A volume without an emulator's counters is read from the block device's statistics, which count the same things.
    """
    table = of_role(run.table("probe/volume"), role)
    if table.num_rows:
        counters = _ops(CounterSamples.of(table))
        derived = {}
    else:
        counters = device_counters(run, role)
        columns = counters.columns
        derived = {
            "ops": columns["reads"] + columns["writes"],
            "queue_time_ns": columns["weighted_time_ms"] * 1e6,
            "read_time_ns": columns["read_time_ms"] * 1e6,
            "write_time_ns": columns["write_time_ms"] * 1e6,
        }
    columns = counters.columns
    derived["bytes"] = columns["read_bytes"] + columns["write_bytes"]
    return CounterSamples(counters.t_ns, {**columns, **derived})


def _ops(counters: CounterSamples) -> CounterSamples:
    """The counters of an emulated volume or a member, with those that are derived from them: ``ops``, ``reads``, ``writes``."""
    reads, writes = counters.columns["read_ops"], counters.columns["write_ops"]
    return CounterSamples(counters.t_ns, {**counters.columns, "ops": reads + writes, "reads": reads, "writes": writes})


def device_counters(run: StoredRun | StoredLoad, role: str = DATA) -> CounterSamples:
    """The kernel's own cumulative counters of a volume's block device."""
    return CounterSamples.of(of_role(run.table("probe/disk"), role))


def of_role(table: pa.Table, role: str) -> pa.Table:
    """The rows of one volume."""
    return _rows(table, "volume", role)


def _rows(table: pa.Table, column: str, value: str | int) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.equal(table[column], value))


def time_above_limit(counters: CounterSamples, begin_ns: int, end_ns: int) -> dict[str, float]:
    """Limit -> share of [begin, end) in which requests waited for it, of whatever counts that: a volume, an instance."""
    shares = {}
    for name in counters.columns:
        if name.startswith(_LIMIT_PREFIX) and name.endswith(_LIMIT_SUFFIX):
            rate = counters.mean_rate(name, begin_ns, end_ns)
            if rate is not None:
                shares[name.removeprefix(_LIMIT_PREFIX).removesuffix(_LIMIT_SUFFIX)] = min(1.0, rate / 1e9)
    return shares


_RESERVES = {"iops": "iops_balance_ppm", "throughput": "throughput_balance_ppm"}


@dataclass(frozen=True)
class InstanceFigures:
    """The instance of one run, seen from its volumes. A figure is None when the run did not record what it needs."""

    iops: float | None
    """Requests that passed the instance per second, those above 256 KiB in pieces."""
    mib_per_s: float | None
    time_above_limit: Mapping[str, float]
    """Limit (``iops``, ``throughput``) -> share of the phase in which the first request in line waited for it."""
    reserve: Mapping[str, float]
    """Limit with a maximum above its baseline -> what was left of its reserve when the phase ended, 0 to 1."""


def instance_figures(run: StoredRun) -> InstanceFigures | None:
    """Reduce the instance's counters to its figures; None where it has no limits, or nobody asked."""
    table = run.table("probe/instance")
    if not table.num_rows:
        return None
    measure, counters = run.record.measure, CounterSamples.of(table)
    span = (measure.begin_ns, measure.end_ns)
    size = counters.mean_rate("bytes", *span)
    return InstanceFigures(
        iops=counters.mean_rate("ops", *span),
        mib_per_s=None if size is None else size / 2**20,
        time_above_limit=time_above_limit(counters, *span),
        reserve=_reserve(counters, *span),
    )


def _reserve(counters: CounterSamples, begin_ns: int, end_ns: int) -> dict[str, float]:
    if not counters.covers(begin_ns, end_ns):
        return {}
    left = {limit: counters.at(name, end_ns) / 1e6 for limit, name in _RESERVES.items() if name in counters.columns}
    return {limit: share for limit, share in left.items() if share == share}  # a limit without a reserve is NaN


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


CLIENT_BACKEND = "client backend"
"""``backend_type`` of a session that a client connected."""

CLIENT = "Client"
"""Type of wait of a session that has nothing to do: its client has not said what."""


class Wait(NamedTuple):
    """A kind of wait, in PostgreSQL's words; work on a CPU has the type ``CPU``."""

    type: str
    event: str

    @property
    def label(self) -> str:
        """``IO: DataFileRead``; the type alone where there is no event."""
        return f"{self.type}: {self.event}" if self.event and self.event != self.type else self.type


def waits_of(run: StoredRun) -> dict[Wait, float]:
    """Mean number of the clients' sessions in each state over the measure phase, the most frequent first.

    Every sample has a row, also one in which all sessions were idle, so the samples are the distinct instants of the table.
    """
    import numpy as np

    table = run.table("probe/wait_events")
    if table.num_rows == 0:
        return {}
    measure = run.record.measure
    begin_ns = table["t_begin_ns"].to_numpy()
    inside = (begin_ns >= measure.begin_ns) & (begin_ns < measure.end_ns)
    samples = len(np.unique(begin_ns[inside]))
    seen: dict[Wait, float] = {}
    columns = [table[name].to_pylist() for name in ("wait_event_type", "wait_event", "backend_type", "count")]
    for kind, event, backend, count, counted in zip(*columns, inside.tolist(), strict=True):
        if counted and count and backend == CLIENT_BACKEND:
            wait = Wait(kind or "CPU", event or "")
            seen[wait] = seen.get(wait, 0.0) + count / samples
    return dict(sorted(seen.items(), key=lambda item: -item[1]))

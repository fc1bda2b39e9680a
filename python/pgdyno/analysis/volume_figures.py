"""The figures of one volume of a run: what it did in the measure phase, as its counters and histograms say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.counters import CounterSamples
from pgdyno.analysis.distribution import ValueCounts, volume_latency_ms

from ..results import StoredLoad, StoredRun

if TYPE_CHECKING:
    import pyarrow as pa

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
    return (DATA, *(role for role in known if role not in (DATA, None)))


def volume_spec(run: StoredRun, role: str = DATA) -> dict[str, Any]:
    """The resolved specification of a volume; empty when it is a device that was there."""
    world = run.record.world
    if role in world.volumes and world.volumes[role].spec:
        return world.volumes[role].spec
    return world.volume if role == DATA else {}


def volume_attach(run: StoredRun, role: str = DATA) -> dict[str, Any]:
    """What the volume's daemon said when it was ready."""
    world = run.record.world
    if role in world.volumes and world.volumes[role].attach:
        return world.volumes[role].attach
    return world.attach if role == DATA else {}


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

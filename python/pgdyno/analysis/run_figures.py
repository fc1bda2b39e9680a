"""The figures of one run: what its tables say about its measure phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.counters import Counters
from pgdyno.analysis.distribution import Distribution, latency_ms, volume_latency_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgdyno.store import Run
    from pgdyno.store.record import RunRecord

LABORATORY_ROLES = ("driver", "daemon", "probe")
"""What runs because of the measurement and would not run beside a real volume."""

_LIMIT_PREFIX, _LIMIT_SUFFIX = "exceeded_", "_ns"


@dataclass(frozen=True)
class RunFigures:
    """One replicate in numbers. A figure is None when the run did not record what it needs."""

    run: Run
    tps: float
    """Transactions that succeeded, per second of the measure phase."""
    latency_ms: Distribution
    """Response time of those transactions."""
    iops: float | None
    """Requests that the volume completed per second."""
    mib_per_s: float | None
    queue_length: float | None
    """Mean number of requests in the volume: the integral of the queue's length over the phase's length."""
    read_ms: Distribution
    """Latency of the volume's reads, as the volume gave it."""
    write_ms: Distribution
    lateness_ms: Distribution
    """How much later than its modelled instant each request was answered."""
    time_above_limit: Mapping[str, float]
    """Limit (``iops``, ``throughput``) -> share of the phase in which requests waited for it."""
    cpu_share: Mapping[str, float]
    """Role -> share of the machine's CPU time; ``other`` is what no role accounts for."""

    @property
    def record(self) -> RunRecord:
        """The run's record."""
        return self.run.record

    @property
    def laboratory_share(self) -> float | None:
        """Share of the machine that the measurement itself used; None when no role was recorded."""
        shares = [self.cpu_share[role] for role in LABORATORY_ROLES if role in self.cpu_share]
        return sum(shares) if shares else None


def figures_of(run: Run) -> RunFigures:
    """Read a run's tables and reduce them to its figures."""
    measure = run.record.measure
    span = (measure.begin_ns, measure.end_ns)
    volume = volume_counters(run)
    by_operation = volume_latency_ms(run)
    nothing = Distribution.of(())
    queue_ns = volume.mean_rate("queue_time_ns", *span)
    size = volume.mean_rate("bytes", *span)
    return RunFigures(
        run=run,
        tps=run.record.account.succeeded / measure.seconds if measure.seconds > 0 else 0.0,
        latency_ms=latency_ms(run),
        iops=volume.mean_rate("ops", *span),
        mib_per_s=None if size is None else size / 2**20,
        queue_length=None if queue_ns is None else queue_ns / 1e9,
        read_ms=by_operation.get("read", nothing),
        write_ms=by_operation.get("write", nothing),
        lateness_ms=by_operation.get("lateness", nothing),
        time_above_limit=_time_above_limit(volume, *span),
        cpu_share=_cpu_share(run),
    )


def volume_counters(run: Run) -> Counters:
    """Cumulative ``ops``, ``bytes`` and ``queue_time_ns`` of the run's volume, and every counter of an emulated one.

    A volume without an emulator's counters is read from the block device's statistics, which count the same things.
    """
    table = run.table("probe/volume")
    if table.num_rows:
        counters = Counters.of(table)
        columns = counters.columns
        derived = {"ops": columns["read_ops"] + columns["write_ops"]}
    else:
        counters = Counters.of(run.table("probe/disk"))
        columns = counters.columns
        derived = {
            "ops": columns["reads"] + columns["writes"],
            "queue_time_ns": columns["weighted_time_ms"] * 1e6,
        }
    derived["bytes"] = columns["read_bytes"] + columns["write_bytes"]
    return Counters(counters.t_ns, {**columns, **derived})


def cpu_counters(run: Run) -> dict[str, Counters]:
    """Cumulative CPU time by role."""
    table = run.table("probe/cpu")
    import pyarrow.compute as pc

    return {
        role: Counters.of(table.filter(pc.equal(table["role"], role))) for role in pc.unique(table["role"]).to_pylist()
    }


def _time_above_limit(volume: Counters, begin_ns: int, end_ns: int) -> dict[str, float]:
    shares = {}
    for name in volume.columns:
        if name.startswith(_LIMIT_PREFIX) and name.endswith(_LIMIT_SUFFIX):
            rate = volume.mean_rate(name, begin_ns, end_ns)
            if rate is not None:
                shares[name.removeprefix(_LIMIT_PREFIX).removesuffix(_LIMIT_SUFFIX)] = min(1.0, rate / 1e9)
    return shares


def _cpu_share(run: Run) -> dict[str, float]:
    measure = run.record.measure
    cores = max(1, run.record.world.host.cores)
    shares = {}
    for role, counters in cpu_counters(run).items():
        rate = counters.mean_rate("cpu_ns", measure.begin_ns, measure.end_ns)
        if rate is not None:
            shares[role] = rate / 1e9 / cores
    if "host_busy" in shares:
        known = sum(share for role, share in shares.items() if not role.startswith("host_"))
        shares["other"] = max(0.0, shares["host_busy"] - known)
    return shares

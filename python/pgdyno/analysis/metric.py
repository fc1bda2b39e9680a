"""The figures that tables have of a run: their names, units and words, and how each is taken. This is the one list.

A figure that is added here stands in the page's summary, in the CSV and in the JSON of every report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.distribution import PERCENTILES, ValueCounts, merge

from ..results.work_record import ReplayRecord
from .dilation import undilated_tps
from .figures import CLIENT, DATA, VolumeFigures
from .run import NEW_ORDER, NOPM, Better, RunFigures
from .statistics import Estimate, t_interval


@dataclass(frozen=True)
class Metric:
    """A figure of a run."""

    name: str
    """As documents have it, the unit last; of a volume other than the data's with its role before it: ``wal.iops``."""
    title: str
    unit: str
    better: Better | None
    """None where neither way is better by itself."""
    of: Callable[[RunFigures], float | None]
    """The figure of a run; None where it was not recorded."""
    spread: Callable[[RunFigures], ValueCounts] | None = None
    """The values that it is a statistic of: over several runs it is that of all of them together, not the mean."""
    statistic: Callable[[ValueCounts], float | None] | None = None
    role: str | None = None
    """The volume that it is a figure of."""
    limit: str | None = None
    """Name of the volume's limit to it."""
    interval: bool = False
    """Whether a table of few arms has the interval of single runs below it."""


@dataclass(frozen=True)
class MetricFigure:
    """A metric of an arm."""

    metric: Metric
    value: float
    """The figure of all replicates together."""
    of_runs: Estimate
    """Of single runs: the mean of those that have it, with its interval."""


@dataclass(frozen=True)
class MetricLine:
    """A metric of every arm."""

    metric: Metric
    of_arms: tuple[MetricFigure | None, ...]
    """In the order of the arms; None where no replicate has it."""


def lines_of(arms: Sequence[ArmSummary]) -> dict[str, MetricLine]:
    """Name -> the metric of every arm, of those that any arm has, in the order of tables."""
    roles = dict.fromkeys(role for arm in arms for role in arm.volumes)
    every = [*METRICS, *(metric for role in roles for metric in of_volume(role))]
    lines = (MetricLine(metric, tuple(figure_of(arm, metric) for arm in arms)) for metric in every)
    return {line.metric.name: line for line in lines if any(figure is not None for figure in line.of_arms)}


def figure_of(arm: ArmSummary, metric: Metric) -> MetricFigure | None:
    """The metric of an arm; None where no replicate has it."""
    runs = [replicate.figures for replicate in arm.replicates]
    known = [value for run in runs if (value := metric.of(run)) is not None]
    if not known:
        return None
    mean = t_interval(known)
    whole = None
    if metric.spread is not None and metric.statistic is not None:
        whole = metric.statistic(merge(metric.spread(run) for run in runs))
    return MetricFigure(metric, mean.mean if whole is None else whole, mean)


def percentiles(
    name: str, title: str, spread: Callable[[RunFigures], ValueCounts], which: Sequence[int], role: str | None = None
) -> Iterator[Metric]:
    """Percentiles of times in milliseconds."""
    for number in which:
        word = "median" if number == 50 else f"p{number}"
        yield _statistic(f"{name}_ms_p{number}", f"{title}, {word}, ms", spread, partial(_percentile, number), role)


def _statistic(
    name: str,
    title: str,
    spread: Callable[[RunFigures], ValueCounts],
    statistic: Callable[[ValueCounts], float | None],
    role: str | None = None,
) -> Metric:
    interval = name.startswith("latency")
    return Metric(
        name, title, "ms", "less", lambda run: statistic(spread(run)), spread, statistic, role, None, interval
    )


def of_volume(role: str) -> Iterator[Metric]:
    """The metrics of one volume."""
    prefix, name = ("", "volume") if role == DATA else (f"{role}.", f"{role} volume")

    def taken(take: Callable[[VolumeFigures], float | None]) -> Callable[[RunFigures], float | None]:
        return lambda run: take(run.volumes[role]) if role in run.volumes else None

    yield Metric(f"{prefix}iops", f"{name}: IOPS", "1/s", None, taken(lambda item: item.iops), role=role, limit="iops")
    yield Metric(
        f"{prefix}mib_per_s", f"{name}: MiB/s", "MiB/s", None, taken(lambda item: item.mib_per_s), role=role,
        limit="throughput_mib_per_s",
    )  # fmt: skip
    yield Metric(
        f"{prefix}queue_length", f"{name}: queue length", "", None, taken(lambda item: item.queue_length), role=role
    )
    means = {"read": taken(lambda item: item.read_ms_mean), "write": taken(lambda item: item.write_ms_mean)}
    for operation, mean in means.items():
        yield Metric(f"{prefix}{operation}_ms_mean", f"{name}: {operation}s, mean, ms", "ms", "less", mean, role=role)
        spread = partial(_of_operation, role, operation)
        yield from percentiles(f"{prefix}{operation}", f"{name}: {operation}s", spread, (50, 99), role)


def _of_operation(role: str, operation: str, run: RunFigures) -> ValueCounts:
    if role not in run.volumes:
        return merge(())
    volume = run.volumes[role]
    return volume.read_ms if operation == "read" else volume.write_ms


def _mean(distribution: ValueCounts) -> float | None:
    return distribution.sum / distribution.total if distribution.total else None


def _percentile(percent: int, distribution: ValueCounts) -> float | None:
    return distribution.percentile(percent)


def _connect_ms(run: RunFigures) -> float | None:
    return None if run.record.driver is None else run.record.driver.connect_ms


def _active(run: RunFigures) -> float | None:
    """Sessions that waited for their client had nothing to do."""
    return math.fsum(sessions for wait, sessions in run.waits.items() if wait.type != CLIENT) if run.waits else None


def _tpm(run: RunFigures) -> float | None:
    """Where transactions are counted by type."""
    return run.work_per_s * 60 if run.record.succeeded_by_type else None


def _tpm_per_nopm(run: RunFigures) -> float | None:
    new_orders = run.record.succeeded_by_type.get(NEW_ORDER, 0)
    return sum(run.record.succeeded_by_type.values()) / new_orders if new_orders else None


def _nopm_per_warehouse(run: RunFigures) -> float | None:
    warehouses = run.record.workload.get("warehouses")
    return NOPM.of(run.record) / warehouses if warehouses and run.record.succeeded_by_type else None


def _queries_per_h(run: RunFigures) -> float | None:
    return None if run.record.streams is None else run.work_per_s * 3600


def _slowest_stream_s(run: RunFigures) -> float | None:
    return None if run.record.streams is None else max(run.record.streams.stream_s.values())


def _of_replay(take: Callable[[ReplayRecord], float]) -> Callable[[RunFigures], float | None]:
    return lambda run: None if run.record.replay is None else take(run.record.replay)


METRICS = (
    Metric(
        "replay_late_s",
        "replay ended after its time, seconds",
        "s",
        "less",
        _of_replay(lambda item: max(0.0, item.took_s - item.due_s)),
    ),
    Metric("behind_ms_p99", "statements sent late, p99, ms", "ms", "less", _of_replay(lambda item: item.behind.p99_ms)),
    Metric(
        "behind_ms_max", "statements sent late, at most, ms", "ms", "less", _of_replay(lambda item: item.behind.max_ms)
    ),
    Metric("queries_per_h", "queries per hour", "1/h", "more", _queries_per_h),
    Metric("slowest_stream_s", "slowest stream, seconds", "s", "less", _slowest_stream_s),
    Metric("tpm", "transactions per minute", "1/min", "more", _tpm),
    Metric("tpm_per_nopm", "transactions for each New-Order", "", None, _tpm_per_nopm),
    Metric(
        "nopm_per_warehouse",
        "New-Orders per minute and warehouse (12.86 at most, if paced)",
        "1/min",
        None,
        _nopm_per_warehouse,
    ),
    Metric("qps", "queries per second, as sysbench counts", "1/s", "more", lambda run: run.qps),
    Metric("undilated_tps", "transactions per second at dilation 1, at least", "1/s", "more", undilated_tps),
    _statistic("latency_ms_mean", "response time, mean, ms", lambda run: run.latency_ms, _mean),
    *percentiles("latency", "response time", lambda run: run.latency_ms, PERCENTILES),
    *percentiles("service", "service time", lambda run: run.service_ms, PERCENTILES),
    Metric("connect_ms", "connection time, all clients, ms", "ms", "less", _connect_ms),
    Metric("active_sessions", "active sessions, mean", "", None, _active),
)
"""The metrics of a run as a whole; those of its volumes follow (:func:`of_volume`)."""

"""The figures of each arm, of each of its volumes, and of what PostgreSQL counted itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.distribution import PERCENTILES
from pgdyno.analysis.verdict import dollars, figures, times
from pgdyno.analysis.volume_figures import DATA
from pgdyno.report.words import UNKNOWN, Row, interval, number, percent, ratio_interval, record_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.arm import ArmSummary, InstanceSummary, VolumeSummary
    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.distribution import Distribution

_LIMITS = {"iops": "IOPS limit", "throughput": "throughput limit"}
_SERVER = (
    ("buffer_hit_share", "found in shared buffers"),
    ("read_mib_per_s", "read into shared buffers, MiB/s"),
    ("temp_mib_per_s", "temporary files written, MiB/s"),
    ("wal_mib_per_s", "WAL, MiB/s"),
    ("wal_bytes_per_transaction", "WAL of a transaction, bytes"),
    ("wal_full_pages_per_s", "full pages in WAL, per second"),
    ("wal_syncs_per_s", "WAL syncs, per second"),
    ("wal_buffers_full_per_s", "WAL buffers full, per second"),
    ("checkpoints", "checkpoints begun"),
    ("checkpoints_requested", "of these, because max_wal_size was reached"),
    ("checkpoint_write_mib_per_s", "written by checkpoints, MiB/s"),
    ("deadlocks", "deadlocks"),
)
"""Figures of the server in the order and the words of the page."""
IO_SHARE_MIN = 0.01
"""A kind of process is shown when it moved this share of an arm's bytes; pg_stat_io has dozens that move nothing."""


@dataclass(frozen=True)
class Meter:
    """How long requests waited for one limit."""

    limit: str
    share: float


@dataclass(frozen=True)
class VolumeRow:
    """One volume of one arm, or the instance above them."""

    arm: ArmSummary
    title: str
    """Its role, and its type where it has one."""
    cells: tuple[str, ...]
    """In the order of :data:`VOLUME_COLUMNS`."""
    meters: tuple[Meter, ...]


VOLUME_COLUMNS = ("IOPS (limit)", "MiB/s (limit)", "queue", "above limit", "reads p50", "p99", "writes p50", "p99")


def summary(comparison: Comparison) -> list[Row]:
    """The figures of each arm, for arms as columns."""
    arms = comparison.arms
    loop = " (closed loop)" if record_of(comparison).workload.get("closed") else ""
    rows = [
        Row("price a month", tuple(UNKNOWN if a.usd_per_month is None else dollars(a.usd_per_month) for a in arms)),
        Row(comparison.unit.per_second, tuple(figures(arm.tps.mean) for arm in arms), strong=True),
        Row("95 % interval", tuple(interval(arm.tps.low, arm.tps.high) for arm in arms)),
        *(
            [Row("ratio to the first", tuple(_ratio(comparison, arm) for arm in arms), strong=True)]
            if len(arms) > 1
            else []
        ),
        Row("queries per second, as sysbench counts", tuple(_qps(arm) for arm in arms)),
        Row(f"{comparison.unit.short} per dollar a month", tuple(_per_dollar(arm) for arm in arms)),
        *(
            row
            for percentile in PERCENTILES
            for row in (
                _percentile_row(f"response time{loop}", [arm.latency_ms for arm in arms], percentile),
                Row(
                    f"{_percentile_name(percentile)} of a run, 95 % interval, ms",
                    tuple(_of_runs(arm, percentile) for arm in arms),
                ),
            )
        ),
        *(_percentile_row("service time", [arm.service_ms for arm in arms], percentile) for percentile in PERCENTILES),
        *(row for role in _roles(comparison) for row in _volume_rows(arms, role)),
        *_instance_rows(arms),
        Row("valid replicates", tuple(_valid(arm) for arm in arms)),
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def brief(comparison: Comparison) -> list[Row]:
    """The figures by which many arms are told apart, for arms as rows."""
    arms = comparison.arms
    rows = [
        Row(comparison.unit.short, tuple(figures(arm.tps.mean) for arm in arms), strong=True),
        Row("± %", tuple(_half_width(arm) for arm in arms)),
        Row("ratio", tuple(_short_ratio(comparison, arm) for arm in arms), strong=True),
        Row("QPS", tuple(_qps(arm) for arm in arms)),
        *(Row(f"p{p}, ms", tuple(number(arm.latency_ms.percentile(p)) for arm in arms)) for p in PERCENTILES),
        Row("IOPS", tuple(number(arm.data.iops) for arm in arms)),
        Row("queue", tuple(number(arm.data.queue_length) for arm in arms)),
        Row("above limit", tuple(percent(arm.above_limit_share) for arm in arms)),
        Row("US$/month", tuple(UNKNOWN if a.usd_per_month is None else dollars(a.usd_per_month) for a in arms)),
    ]
    if not comparison.valid:
        rows.append(Row("valid", tuple(_valid(arm).replace(" of ", "/") for arm in arms)))
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def volume_rows(comparison: Comparison) -> list[VolumeRow]:
    """Every volume of every arm, one that nobody saw is not there; and below an arm's volumes its instance, if it has limits."""
    rows = []
    for arm in comparison.arms:
        seen = (volume for volume in arm.volumes.values() if volume.iops is not None or volume.resolved)
        rows += [_volume_row(arm, volume) for volume in seen]
        if arm.instance is not None:
            rows.append(_instance_row(arm, arm.instance))
    return rows


def _volume_row(arm: ArmSummary, volume: VolumeSummary) -> VolumeRow:
    kind = volume.resolved.get("type")
    return VolumeRow(
        arm,
        volume.role + (f", {kind}" if kind else ""),
        (
            _with_limit(volume.iops, volume, "iops"),
            _with_limit(volume.mib_per_s, volume, "throughput_mib_per_s"),
            number(volume.queue_length),
            _binding(volume),
            *(number(one.percentile(p)) for one in (volume.read_ms, volume.write_ms) for p in (50, 99)),
        ),
        tuple(Meter(_LIMITS.get(n, f"{n} limit"), share) for n, share in volume.time_above_limit.items()),
    )


def _instance_row(arm: ArmSummary, instance: InstanceSummary) -> VolumeRow:
    cells = (
        number(instance.iops) + _of_instance(instance, "iops"),
        number(instance.mib_per_s) + _of_instance(instance, "mib_per_s"),
        UNKNOWN,  # requests wait for it in their volume's queue
        _binding(instance),
    )
    nothing = (UNKNOWN,) * (len(VOLUME_COLUMNS) - len(cells))
    shares = instance.time_above_limit.items()
    meters = tuple(Meter(f"instance's {_LIMITS.get(name, name)}", share) for name, share in shares if share)
    return VolumeRow(arm, f"instance, {instance.type}", (*cells, *nothing), meters)


def _of_instance(instance: InstanceSummary, unit: str) -> str:
    """Its limit in brackets: baseline and maximum, or one figure where they are the same."""
    limits = [instance.limits.get(f"{which}_{unit}") for which in ("baseline", "maximum")]
    known = dict.fromkeys(f"{limit:,.0f}" for limit in limits if limit is not None)
    return f" ({' to '.join(known)})" if known else ""


def has_meters(comparison: Comparison) -> bool:
    """Whether any volume tells how long requests waited for its limits."""
    return any(row.meters for row in volume_rows(comparison))


def server(comparison: Comparison) -> list[Row]:
    """What PostgreSQL counted itself, where any arm has it."""
    arms = comparison.arms
    rows = []
    for name, title in _SERVER:
        values = [arm.server.get(name) for arm in arms]
        if any(value is not None and (value or name.startswith("checkpoints")) for value in values):
            shown = percent if name.endswith("_share") else number if "_per_" in name else _count
            rows.append(Row(title.replace("a transaction", f"a {comparison.unit.one}"), tuple(map(shown, values))))
    return rows


def io(comparison: Comparison) -> list[Row]:
    """Bytes by who moved them, from pg_stat_io: a cell is ``read / written`` in MiB/s."""
    arms = comparison.arms
    read = [arm.io_mib_per_s(lambda rate: rate.read_mib_per_s) for arm in arms]
    written = [arm.io_mib_per_s(lambda rate: rate.write_mib_per_s) for arm in arms]
    names = dict.fromkeys(name for each in read for name in each)
    total = [sum(r.values()) + sum(w.values()) for r, w in zip(read, written, strict=True)]
    rows = []
    for name in names:
        moved = [r.get(name, 0.0) + w.get(name, 0.0) for r, w in zip(read, written, strict=True)]
        if any(one > IO_SHARE_MIN * whole for one, whole in zip(moved, total, strict=True)):
            cells = (f"{number(r.get(name, 0.0))} / {number(w.get(name, 0.0))}" if r or w else UNKNOWN
                     for r, w in zip(read, written, strict=True))  # fmt: skip
            rows.append(Row(f"{name[0]}: {name[1]}", tuple(cells)))
    return rows


def _count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.1f}".removesuffix(".0")


def _roles(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(role for arm in comparison.arms for role in arm.volumes))


def _volume_rows(arms: Sequence[ArmSummary], role: str) -> list[Row]:
    volumes = [arm.volumes.get(role) for arm in arms]
    name = "volume" if role == DATA else f"{role} volume"
    return [
        Row(f"{name}: IOPS (limit)", tuple(_with_limit(v.iops, v, "iops") if v else UNKNOWN for v in volumes)),
        Row(
            f"{name}: MiB/s (limit)",
            tuple(_with_limit(v.mib_per_s, v, "throughput_mib_per_s") if v else UNKNOWN for v in volumes),
        ),
        Row(f"{name}: queue length", tuple(number(v.queue_length) if v else UNKNOWN for v in volumes)),
        Row(f"{name}: reads, median, ms", tuple(number(v.read_ms.percentile(50)) if v else UNKNOWN for v in volumes)),
        Row(f"{name}: writes, median, ms", tuple(number(v.write_ms.percentile(50)) if v else UNKNOWN for v in volumes)),
    ]


def _instance_rows(arms: Sequence[ArmSummary]) -> list[Row]:
    """The limit above all volumes, and what is left of what it saved up."""
    instances = [arm.instance for arm in arms]
    return [
        Row(
            "instance: IOPS (limit)",
            tuple(number(i.iops) + _of_instance(i, "iops") if i else UNKNOWN for i in instances),
        ),
        Row(
            "instance: MiB/s (limit)",
            tuple(number(i.mib_per_s) + _of_instance(i, "mib_per_s") if i else UNKNOWN for i in instances),
        ),
        Row("instance: above limit", tuple(_binding(i) if i else UNKNOWN for i in instances)),
        *(
            Row(
                f"instance: reserve of {title} at the end",
                tuple(percent(i.reserve.get(name)) if i else UNKNOWN for i in instances),
            )
            for name, title in (("iops", "IOPS"), ("throughput", "throughput"))
        ),
    ]


def _ratio(comparison: Comparison, arm: ArmSummary) -> str:
    ratio = next((ratio for ratio in comparison.ratios if ratio.index == arm.index), None)
    if ratio is None:
        return "1"
    if ratio.estimate is None:
        return UNKNOWN
    text = times(ratio.estimate.mean)
    if ratio.estimate.low is not None:
        text += f" ({ratio_interval(ratio.estimate.low, ratio.estimate.high)})"
    return text if ratio.distinguishable else f"{text}, not distinguishable"


def _short_ratio(comparison: Comparison, arm: ArmSummary) -> str:
    ratio = next((ratio for ratio in comparison.ratios if ratio.index == arm.index), None)
    if ratio is None:
        return "1"
    if ratio.estimate is None:
        return UNKNOWN
    return times(ratio.estimate.mean) if ratio.distinguishable else f"≈ {times(ratio.estimate.mean)}"


def _qps(arm: ArmSummary) -> str:
    return UNKNOWN if arm.qps is None else figures(arm.qps.mean)


def _half_width(arm: ArmSummary) -> str:
    if arm.tps.high is None or not arm.tps.mean:
        return UNKNOWN
    return f"{(arm.tps.high / arm.tps.mean - 1) * 100:.1f}"


def _binding(volume: VolumeSummary | InstanceSummary) -> str:
    """The limit that requests waited for most, and how much of the time."""
    if not volume.time_above_limit:
        return UNKNOWN
    limit, share = max(volume.time_above_limit.items(), key=lambda item: item[1])
    return f"{_LIMITS.get(limit, limit).removesuffix(' limit')} {percent(share)}" if share else "never"


def _valid(arm: ArmSummary) -> str:
    return f"{sum(r.valid for r in arm.replicates)} of {len(arm.replicates)}"


def _per_dollar(arm: ArmSummary) -> str:
    return figures(arm.tps.mean / arm.usd_per_month) if arm.usd_per_month else UNKNOWN


def _of_runs(arm: ArmSummary, percentile: int) -> str:
    found = arm.of_runs_ms.get(percentile)
    return UNKNOWN if found is None else interval(found.low, found.high)


def _percentile_name(percentile: int) -> str:
    return "median" if percentile == 50 else f"p{percentile}"


def _percentile_row(title: str, distributions: Sequence[Distribution], percentile: int) -> Row:
    return Row(
        f"{title}, {_percentile_name(percentile)}, ms",
        tuple(number(one.percentile(percentile)) for one in distributions),
    )


def _with_limit(value: float | None, volume: VolumeSummary, name: str) -> str:
    limit, burst = volume.limits.get(name), volume.burst.get(name)
    if limit is None or value is None:
        return number(value)
    return f"{number(value)} ({limit:,}{f', {burst:,} on credits' if burst else ''})"

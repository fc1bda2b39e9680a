"""Sections on the volumes and the instance above them: figures beside their limits, and how long cold volumes took to warm up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.arm import ArmSummary, InstanceSummary, VolumeSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.distribution import ValueCounts
from pgdyno.analysis.loads import LoadedVolume
from pgdyno.analysis.warming import WarmingEffect
from pgdyno.report import figures
from pgdyno.report.section import Block, Drawing, Grid, Note, Section, listed, many

from ..base.text import UNKNOWN, duration, number, percent
from .section import LIMITS, FigureRow, most_waited


@dataclass(frozen=True)
class Meter:
    """Share of time in which requests waited for one limit."""

    limit: str
    share: float


@dataclass(frozen=True)
class VolumeRow:
    """One volume of one arm, or the instance above them."""

    arm: ArmSummary
    title: str
    """Its role, and its type where it has one."""
    cells: tuple[str, ...]
    """In the order of :data:`VOLUME_COLUMNS`, or of :data:`MEMBER_COLUMNS`."""
    meters: tuple[Meter, ...] = ()


_SAVED_UP = (
    "A volume saves up unused limit for up to a second and then delivers it at once: so it can reach its limit in"
    " every second, or slightly more in a short run, although requests wait for it only part of the time."
)
_WAITING = (
    "Time spent waiting for the volume's limit is part of the latency: of two volumes with the same limit the"
    " faster one reaches it sooner, and its requests then wait longer, in a random order."
)
MEMBER_COLUMNS = ("IOPS", "above limit", "reads, mean", "writes, mean")
_MEANS = (("reads", "read_ms_mean"), ("writes", "write_ms_mean"))
VOLUME_COLUMNS = ("IOPS (limit)", "MiB/s (limit)", "queue", "above limit", "reads p50", "p99", "writes p50", "p99")


def volumes_section(comparison: Comparison) -> Section | None:
    """A table where there are several volumes, else how long requests waited for the limits of the one; then latencies."""
    rows = volume_rows(comparison)
    if not rows:
        return None
    several = len(rows) > len(comparison.arms)
    parts: list[Block | Drawing | Note] = []
    if many(comparison) or several:
        fold = "" if listed(comparison) else f"The {len(rows)} volumes"
        parts += [
            Block("volumes.html", {"volumes": rows, "columns": VOLUME_COLUMNS, "fold": fold}),
            Note(_note(comparison)),
        ]
    elif has_meters(comparison):
        parts += [
            Block("meters.html", {"volumes": rows}),
            Note(
                f"Share of the measured time in which a request waited because the volume's limit was reached. {_SAVED_UP}"
            ),
        ]
    parts += _members(comparison)
    if not many(comparison):
        parts += _latencies(comparison)
    return Section("volume", "The volumes" if several else "The volume", tuple(parts))


def _note(comparison: Comparison) -> str:
    instance = any(arm.instance for arm in comparison.arms)
    return (
        "Latency in milliseconds, from submission to completion. Above limit: the limit for which requests waited most, and the"
        f" share of the measured time in which one did. {_SAVED_UP}"
    ) + (
        " The instance limits all of its volumes together; its IOPS count requests above 256 KiB in pieces."
        if instance
        else ""
    )


def _members(comparison: Comparison) -> Iterator[Block | Note]:
    """A table of the members of arrays, folded: where one is slower than the others it shows here."""
    rows = [
        VolumeRow(
            arm,
            f"{volume.role}, member {place}",
            (
                number(member.iops),
                most_waited(member.time_above_limit),
                number(member.read_ms_mean),
                number(member.write_ms_mean),
            ),
        )
        for arm in comparison.arms
        for volume in arm.volumes.values()
        for place, member in enumerate(volume.members)
    ]
    if rows:
        fold = f"The {len(rows)} members of arrays"
        yield Block("volumes.html", {"volumes": rows, "columns": MEMBER_COLUMNS, "fold": fold})
        yield Note(
            "A member's requests are its pieces of the array's requests; their time in milliseconds is the"
            " model's, without waiting for the instance."
        )


def _latencies(comparison: Comparison) -> Iterator[Drawing]:
    """The latency of each volume's requests by percentile."""
    roles = dict.fromkeys(role for arm in comparison.arms for role in arm.volumes)
    every = {role: _curves(comparison, role) for role in roles}
    drawn = {
        role: curves for role, curves in every.items() if any(figures.percentile_points(curve[1]) for curve in curves)
    }
    for role, curves in drawn.items():
        whose = f"the {role} volume's" if len(drawn) > 1 else "its"
        yield Drawing(
            f"requests-{role}",
            f"Latency of the {role} volume's requests by percentile",
            f"Milliseconds by percentile, both axes logarithmic, from submission to completion. Solid: reads; dashed: writes. {_WAITING}",
            partial(figures.percentiles, curves, comparison.arms),
            title=f"Latency of {whose} requests",
            key="arms",
        )


def _curves(comparison: Comparison, role: str) -> list[tuple[int, ValueCounts, str]]:
    having = [(arm.index, arm.volumes[role]) for arm in comparison.arms if role in arm.volumes]
    reads = [(index, volume.read_ms, "main") for index, volume in having]
    return [*reads, *((index, volume.write_ms, "dashed") for index, volume in having)]


def volume_rows(comparison: Comparison) -> list[VolumeRow]:
    """Every volume of every arm, those that were sampled or specified; and below an arm's volumes its instance, if it has limits."""
    rows = []
    for arm in comparison.arms:
        seen = (volume for volume in arm.volumes.values() if volume.iops is not None or volume.resolved)
        rows += [_volume_row(arm, volume) for volume in seen]
        if arm.instance is not None:
            rows.append(_instance_row(arm, arm.instance))
    return rows


def mean_rows(comparison: Comparison) -> list[FigureRow]:
    """Mean latency of each volume's reads and writes, as other reports of the workload give it."""
    roles = dict.fromkeys(role for arm in comparison.arms for role in arm.volumes)
    rows = [
        FigureRow(
            f"{role} volume: {words}, mean, ms",
            tuple(
                number(getattr(arm.volumes[role], name)) if role in arm.volumes else UNKNOWN for arm in comparison.arms
            ),
        )
        for role in roles
        for words, name in _MEANS
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def mean_words(volume: VolumeSummary | LoadedVolume) -> str:
    """``data volume: reads 0.65 ms, writes 1.32 ms in the mean``; empty where neither was counted."""
    texts = [f"{words} {number(mean)} ms" for words, name in _MEANS if (mean := getattr(volume, name)) is not None]
    return f"{volume.role} volume: {', '.join(texts)} in the mean" if texts else ""


def _volume_row(arm: ArmSummary, volume: VolumeSummary) -> VolumeRow:
    kind = volume.resolved.get("type")
    return VolumeRow(
        arm,
        volume.role + (f", {kind}" if kind else ""),
        (
            number(volume.iops) + limit_of(volume, "iops"),
            number(volume.mib_per_s) + limit_of(volume, "throughput_mib_per_s"),
            number(volume.queue_length),
            most_waited(volume.time_above_limit),
            *(number(counts.percentile(p)) for counts in (volume.read_ms, volume.write_ms) for p in (50, 99)),
        ),
        tuple(Meter(f"{LIMITS.get(name, name)} limit", share) for name, share in volume.time_above_limit.items()),
    )


def _instance_row(arm: ArmSummary, instance: InstanceSummary) -> VolumeRow:
    cells = (
        number(instance.iops) + _of_instance(instance, "iops"),
        number(instance.mib_per_s) + _of_instance(instance, "mib_per_s"),
        UNKNOWN,  # requests wait for it in their volume's queue
        most_waited(instance.time_above_limit),
    )
    nothing = (UNKNOWN,) * (len(VOLUME_COLUMNS) - len(cells))
    shares = instance.time_above_limit.items()
    meters = tuple(Meter(f"instance's {LIMITS.get(name, name)} limit", share) for name, share in shares if share)
    return VolumeRow(arm, f"instance, {instance.type}", (*cells, *nothing), meters)


def limit_of(volume: VolumeSummary, name: str) -> str:
    """A limit of the volume in brackets, and what credits raise it to."""
    limit, burst = volume.limits.get(name), volume.burst.get(name)
    return "" if limit is None else f" ({limit:,}{f', {burst:,} on credits' if burst else ''})"


def _of_instance(instance: InstanceSummary, unit: str) -> str:
    """Its limit in brackets: baseline and maximum, or one figure where they are the same."""
    limits = [instance.limits.get(f"{which}_{unit}") for which in ("baseline", "maximum")]
    known = dict.fromkeys(f"{limit:,.0f}" for limit in limits if limit is not None)
    return f" ({' to '.join(known)})" if known else ""


def has_meters(comparison: Comparison) -> bool:
    """True if any volume counts the time for which requests waited for its limits."""
    return any(row.meters for row in volume_rows(comparison))


def instance_rows(arms: Sequence[ArmSummary]) -> list[FigureRow]:
    """The limit above all volumes, and what is left of what it saved up."""
    instances = [arm.instance for arm in arms]
    return [
        FigureRow(
            "instance: IOPS (limit)",
            tuple(number(i.iops) + _of_instance(i, "iops") if i else UNKNOWN for i in instances),
        ),
        FigureRow(
            "instance: MiB/s (limit)",
            tuple(number(i.mib_per_s) + _of_instance(i, "mib_per_s") if i else UNKNOWN for i in instances),
        ),
        FigureRow("instance: above limit", tuple(most_waited(i.time_above_limit) if i else UNKNOWN for i in instances)),
        *(
            FigureRow(
                f"instance: reserve of {title} at the end",
                tuple(percent(i.reserve.get(name)) if i else UNKNOWN for i in instances),
            )
            for name, title in (("iops", "IOPS"), ("throughput", "throughput"))
        ),
    ]


_NOTE = (
    "The first instant from which transactions per second are at least 90 % of the warm volume's in the same"
    " block, both over the next 5 seconds and over the rest of the run. This comes from individual runs and is not"
    " used for verdicts."
)


def warming_section(comparison: Comparison) -> Section | None:
    """Nothing without a cold arm and its warm one."""
    effects = comparison.warmings
    if not effects:
        return None
    heads = ("", "beside", "within 10 % of warm after", "in each replicate")
    rows = tuple(
        (effect.cold.label, effect.warm.label, _middle(effect), ", ".join(map(_words, effect.seconds)))
        for effect in effects
    )
    return Section("warming", "Until it is warm", (Grid(heads, rows), Note(_NOTE)), brief=True)


def warming_lines(comparison: Comparison) -> list[str]:
    """A line for each cold arm, for the terminal."""
    return [
        f"{warming.cold.label}: within 10 % of {warming.warm.label} after {_middle(warming)}"
        for warming in comparison.warmings
    ]


def _middle(effect: WarmingEffect) -> str:
    """The median of the replicates with the extent; those that did not come to it are later than all others."""
    ordered = sorted(effect.seconds, key=lambda seconds: (seconds is None, seconds or 0.0))
    if ordered[0] is None:
        return f"more than {duration(effect.measured_s)}"
    middle = _words(ordered[(len(ordered) - 1) // 2])
    return middle if len(ordered) < 2 else f"{middle} ({_words(ordered[0])} to {_words(ordered[-1])})"


def _words(seconds: float | None) -> str:
    return "never" if seconds is None else duration(seconds)

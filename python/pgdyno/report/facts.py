"""The words and tables of the page, as plain values: what the template shows, decided here and tested without HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.interval import least_difference
from pgdyno.analysis.validity import worst
from pgdyno.analysis.verdict import dollars, figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.compare import ArmSummary, Comparison
    from pgdyno.analysis.distribution import Distribution
    from pgdyno.store.record import RunRecord

UNKNOWN = "–"

_ELSEWHERE = {"warmup_s", "measure_s", "memory_bytes", "seed"}
"""Settings of an experiment, and of its workload, that other lines of the page show (a run's own seed is derived)."""
_NAMES = {
    "spec": "in full",
    "type": "type",
    "title": "name",
    "size_bytes": "size",
    "limits.iops": "IOPS limit",
    "limits.throughput_mib_per_s": "throughput limit, MiB/s",
    "accounting_unit_kib": "I/O unit, KiB",
    "usd_per_month": "US$ a month",
    "price_region": "price's region",
    "durability": "durability",
}
"""Fields of a resolved volume in the order and the words of the page; others follow under their own names."""


@dataclass(frozen=True)
class Row:
    """A row of a table with one cell for each arm."""

    title: str
    cells: tuple[str, ...]
    strong: bool = False
    levels: tuple[str, ...] = ()
    """For a row of findings: the level of each cell."""


def summary(comparison: Comparison) -> list[Row]:
    """The figures of each arm."""
    arms = comparison.arms
    loop = " (closed loop)" if _record(comparison).workload.get("closed") else ""
    rows = [
        Row("price a month", tuple(UNKNOWN if a.usd_per_month is None else dollars(a.usd_per_month) for a in arms)),
        Row("transactions per second", tuple(figures(arm.tps.mean) for arm in arms), strong=True),
        Row("95 % interval", tuple(interval(arm.tps.low, arm.tps.high) for arm in arms)),
        Row("ratio to the first", tuple(_ratio(comparison, arm) for arm in arms), strong=True),
        Row("TPS per dollar a month", tuple(_per_dollar(arm) for arm in arms)),
        *(
            _percentile_row(f"response time{loop}", [arm.latency_ms for arm in arms], percent)
            for percent in (50, 95, 99)
        ),
        Row("IOPS (limit)", tuple(_with_limit(arm.iops, arm, "iops") for arm in arms)),
        Row("MiB/s (limit)", tuple(_with_limit(arm.mib_per_s, arm, "throughput_mib_per_s") for arm in arms)),
        Row("queue length", tuple(_number(arm.queue_length) for arm in arms)),
        _percentile_row("volume's reads", [arm.read_ms for arm in arms], 50),
        _percentile_row("volume's writes", [arm.write_ms for arm in arms], 50),
        Row("valid replicates", tuple(f"{sum(r.valid for r in a.replicates)} of {len(a.replicates)}" for a in arms)),
    ]
    return [row for row in rows if any(cell != UNKNOWN for cell in row.cells)]


def interval(low: float | None, high: float | None) -> str:
    """``970 to 985``; a dash for one replicate."""
    return UNKNOWN if low is None or high is None else f"{figures(low)} to {figures(high)}"


def findings_table(comparison: Comparison) -> list[Row]:
    """For each check the most serious finding of each arm's replicates."""
    names = dict.fromkeys(f.check for arm in comparison.arms for r in arm.replicates for f in r.findings)
    rows = []
    for name in names:
        cells, levels = [], []
        for arm in comparison.arms:
            found = [f for replicate in arm.replicates for f in replicate.findings if f.check == name]
            level = worst([finding.level for finding in found])
            cells.append(next((finding.figure for finding in found if finding.level == level), UNKNOWN))
            levels.append(level if found else "")
        rows.append(Row(name, tuple(cells), levels=tuple(levels)))
    return rows


def all_findings(comparison: Comparison) -> list[tuple[str, int, str, str, str]]:
    """(arm, replicate, check, level, figure) of every run."""
    return [
        (arm.label, replicate.figures.record.block, finding.check, finding.level, finding.figure)
        for arm in comparison.arms
        for replicate in arm.replicates
        for finding in replicate.findings
    ]


def limits(comparison: Comparison) -> list[tuple[ArmSummary, list[tuple[str, float]]]]:
    """Each arm with (limit, share of the time above it)."""
    words = {"iops": "IOPS limit", "throughput": "throughput limit"}
    return [
        (arm, [(words.get(name, f"{name} limit"), share) for name, share in arm.time_above_limit.items()])
        for arm in comparison.arms
    ]


def trust(comparison: Comparison) -> list[str]:
    """How the numbers came about, in sentences: what the intervals mean, what the instrument cost, what was closed."""
    record = _record(comparison)
    method = (
        "The unit of inference is the replicate: each is a fresh clone of the data on a fresh volume, started cold. The"
        " arms ran interleaved, in an order drawn from the seed. Intervals are 95 % Student t intervals over replicates;"
        " the ratio's is that of the mean log ratio of runs paired by block."
    )
    sentences = [method]
    if len(comparison.ratios) > 1:
        sentences.append("Each interval holds on its own: of twenty comparisons like these, one is expected to miss.")
    for arm, ratio in zip(comparison.arms[1:], comparison.ratios, strict=True):
        least = None if ratio.estimate is None else least_difference(ratio.estimate)
        if least is not None:
            sentences.append(
                f"{arm.label} against {comparison.arms[0].label}: these replicates would have told a difference of about"
                f" {least * 100:.1f} % from none."
            )
    if record.workload.get("closed"):
        sentences.append(
            f"Closed loop: {record.workload.get('clients', 'the')} clients each wait for a reply before they send again. A"
            " slower volume therefore lowers the load, and the response times hold under that load; they are not what"
            " arrivals at a fixed rate would see."
        )
    elif "closed" in record.workload:
        sentences.append("Open loop: arrivals do not wait, and response time counts from the scheduled start.")
    for arm in comparison.arms:
        costs = _overheads_us(arm.attach.get("base_overhead") or {})
        if costs:
            words = " and ".join(f"{cost:,.0f} µs a {operation}" for operation, cost in costs.items())
            sentences.append(
                f"{arm.label}: the emulator's own path costs {words} of 8 KiB (calibrated at attach); that is taken off"
                " the modelled time."
            )
    return sentences


def _overheads_us(calibrated: dict[str, Any]) -> dict[str, float]:
    """Cost of an 8 KiB request by operation: a fixed part, and picoseconds for each KiB."""
    return {
        operation: parts["fixed_ns"] / 1e3 + 8 * parts.get("per_kib_ps", 0) / 1e6
        for operation, parts in calibrated.items()
        if isinstance(parts, dict) and "fixed_ns" in parts
    }


def not_verified(comparison: Comparison) -> list[str]:
    """What nothing here has shown."""
    record = _record(comparison)
    world, measure = record.world, record.measure
    sentences = []
    if world.kind == "emulated":
        sentences.append(
            "The volumes were emulated from published figures. A real volume may do better than its limits at times, and"
            " its latency differs from one to the next."
        )
    if world.kind != "real":
        sentences.append(
            f"The CPU is this machine's ({world.host.cores} cores), not a cloud instance's: where PostgreSQL was bound by"
            " CPU, another machine gives another result."
        )
    sentences.append(
        f"Each run measured {measure.seconds:,.0f} s. What takes hours (vacuum of a grown table, credit that runs out,"
        " a cache that goes on filling) is not in it."
    )
    if any(arm.usd_per_month is not None for arm in comparison.arms):
        region = comparison.arms[0].resolved.get("price_region")
        where = f" in {region}" if region else ""
        sentences.append(f"Prices are list prices of the volume{where}, without instance, snapshots and transfer.")
    return sentences


def context_line(comparison: Comparison) -> list[str]:
    """Workload, machine and server in a few words each."""
    record = _record(comparison)
    workload, instance = record.workload, record.world.instance
    parts = [f"{workload.get('kind', 'workload')} {workload.get('script', '')}".strip()]
    if "scale" in workload:
        parts.append(f"scale {workload['scale']:,}")
    if "clients" in workload:
        loop = "closed loop" if workload.get("closed") else "open loop"
        parts.append(f"{workload['clients']} clients, {loop}")
    parts.append(f"PostgreSQL {record.postgres.version}")
    if instance.memory_bytes is not None:
        parts.append(f"{size(instance.memory_bytes)} of memory")
    parts.append(f"{record.world.kind} volumes")
    return parts


def definitions(comparison: Comparison) -> list[tuple[str, list[tuple[str, str]]]]:
    """Titled lists of (name, value): workload, instance and host, server, experiment."""
    record, experiment = _record(comparison), comparison.experiment
    instance, host, measure = record.world.instance, record.world.host, record.measure
    warmup = next((phase.seconds for phase in record.phases if phase.name == "warmup"), 0.0)
    memory = UNKNOWN if instance.memory_bytes is None else size(instance.memory_bytes)
    machine = [
        ("instance's memory", memory),
        ("instance's CPUs", instance.cpus or "all, shared with the laboratory"),
        ("host", f"{host.cores} cores, {size(host.memory_bytes)}, Linux {host.kernel}"),
        ("PostgreSQL", f"{record.postgres.version} ({record.postgres.source})"),
    ]
    course = [
        ("experiment", experiment.experiment_id),
        ("seed", str(experiment.seed)),
        ("replicates", f"{experiment.replicates} of each volume"),
        ("warm-up, measured", f"{warmup:,.0f} s, {measure.seconds:,.0f} s"),
        ("order of the runs", _order(comparison)),
        *(
            (name.replace("_", " "), _plain(v))
            for name, v in experiment.settings.items()
            if not isinstance(v, dict | list)
        ),
        *((f"version of {name}", value) for name, value in experiment.versions.items()),
    ]
    workload = [
        (name.replace("_", " "), _plain(value)) for name, value in record.workload.items() if name not in _ELSEWHERE
    ]
    return [("Workload", workload), ("Machine", machine), ("Course", course)]


def volumes(comparison: Comparison) -> list[tuple[ArmSummary, list[tuple[str, str]]]]:
    """Each arm with what its specification was resolved to; the parameters of its model are in the run's record."""
    return [(arm, [("as asked", arm.volume), *_resolved(arm)]) for arm in comparison.arms]


def _resolved(arm: ArmSummary) -> list[tuple[str, str]]:
    flat: dict[str, Any] = {}
    for key, value in arm.resolved.items():
        if key == "spec" and value == arm.volume:
            continue
        if key == "size_bytes":
            flat[key] = size(int(value))
        elif isinstance(value, dict):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()} if key != "params" else {}
        elif not isinstance(value, list):
            flat[key] = value
    order = [*(name for name in _NAMES if name in flat), *(name for name in flat if name not in _NAMES)]
    return [(_NAMES.get(name, name.replace("_", " ").replace(".", ", ")), _plain(flat[name])) for name in order]


def settings(comparison: Comparison) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """PostgreSQL's settings of the first run: those that differ from the built-in default, and the rest."""
    table = comparison.arms[0].replicates[0].figures.run.table("postgres/settings")
    rows = sorted(table.to_pylist(), key=lambda row: str(row["name"]))
    different = [
        row
        for row in rows
        if row["setting"] != row["boot_val"]
        and row["source"] != "default"
        # Where files of this run lay says nothing about how the server was set.
        and not str(row["name"]).endswith(("_file", "_directory", "_directories"))
    ]
    return different, [row for row in rows if row not in different]


def size(count: int) -> str:
    """Bytes in the largest binary unit that keeps the number at 1 or above."""
    value, units = float(count), ("bytes", "KiB", "MiB", "GiB", "TiB")
    place = 0
    while value >= 1024 and place < len(units) - 1:
        value, place = value / 1024, place + 1
    return f"{value:,.1f}".removesuffix(".0") + f" {units[place]}"


def _record(comparison: Comparison) -> RunRecord:
    return comparison.arms[0].replicates[0].figures.record


def _order(comparison: Comparison) -> str:
    labels = {arm.index: arm.label for arm in comparison.arms}
    runs = sorted(
        (r.figures.record.experiment_id, r.figures.record.position, labels[arm.index])
        for arm in comparison.arms
        for r in arm.replicates
    )
    return ", ".join(label for _, _, label in runs)


def _ratio(comparison: Comparison, arm: ArmSummary) -> str:
    ratio = next((ratio for ratio in comparison.ratios if ratio.index == arm.index), None)
    if ratio is None:
        return "1"
    if ratio.estimate is None:
        return UNKNOWN
    text = f"{figures(ratio.estimate.mean)}"
    if ratio.estimate.low is not None:
        text += f" ({interval(ratio.estimate.low, ratio.estimate.high)})"
    return text if ratio.distinguishable else f"{text}, not distinguishable"


def _per_dollar(arm: ArmSummary) -> str:
    return figures(arm.tps.mean / arm.usd_per_month) if arm.usd_per_month else UNKNOWN


def _percentile_row(title: str, distributions: Sequence[Distribution], percent: int) -> Row:
    name = "median" if percent == 50 else f"p{percent}"
    return Row(f"{title}, {name}, ms", tuple(_number(one.percentile(percent)) for one in distributions))


def _with_limit(value: float | None, arm: ArmSummary, name: str) -> str:
    limit = (arm.resolved.get("limits") or {}).get(name)
    return _number(value) + (f" ({limit:,})" if limit is not None and value is not None else "")


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else figures(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    return UNKNOWN if value is None else str(value)

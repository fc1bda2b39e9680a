"""Sections on trust: checks, method, what was not seen and not verified; and the hosts over which runs were spread."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.finding import CheckResult, worst
from pgdyno.analysis.ratio import Ratio
from pgdyno.analysis.statistics import DIFFERENCE_OF_INTEREST, detectable_difference
from pgdyno.analysis.verdict import sides
from pgdyno.report.section import Block, Grid, Heading, Note, Section, Sentences, listed, many

from ..analysis.figures import path_us
from ..analysis.statistics import Estimate
from ..base.text import UNKNOWN, gib, number, percent, ratio_interval, times
from ..results.record import Visibility
from .section import COLUMNS_MAX, FigureRow, clients_of, record_of
from .sweep import held_factors

REASONS_MAX = 8
"""More reasons than this are given once for each check, with how many runs have it."""


WRITES_MIB_PER_S_MIN = 0.1
"""WAL of a load that writes; vacuum and statistics of a load that only reads write less."""


@dataclass(frozen=True)
class CheckRow:
    """One check over all runs."""

    check: str
    level: str
    runs: int
    """Runs that were checked."""
    as_bad: int
    """Runs at that level."""
    figure: str
    """What the first of those found."""
    arm: ArmSummary
    block: int


def trust_section(comparison: Comparison) -> Section:
    """Checks, method, what was not seen and what was not verified."""
    values = {
        "checks": checks_table(comparison) if many(comparison) else findings_table(comparison),
        "findings": all_findings(comparison, serious=not listed(comparison)),
        "fold": "Every check of every run" if listed(comparison) else "Findings in any run",
        "visibility": visibility(comparison),
    }
    parts = (
        Block("trust.html", values),
        Heading("How this was measured"),
        Sentences(tuple(method_sentences(comparison))),
        Heading("What was not verified"),
        Sentences(tuple(not_verified(comparison))),
    )
    return Section("trust", "How far to trust this", parts)


def remarks(comparison: Comparison) -> list[tuple[str, str]]:
    """(word before it, text) of the reasons against the numbers and what to keep in mind."""
    label, slowed = storage_only(comparison), dilation(comparison)
    return [
        *(("invalid", reason) for reason in why_invalid(comparison)),
        *([("storage only", label)] if label else []),
        *([("dilated", slowed)] if slowed else []),
        *(("unknown", f"{row.what}: {row.why}" if row.why else row.what) for row in unseen(comparison)),
        *(("warning", reason) for reason in warnings(comparison)),
    ]


def findings_table(comparison: Comparison) -> list[FigureRow]:
    """For each check the most serious finding of each arm's replicates."""
    rows = []
    for name in _checks(comparison):
        cells, levels = [], []
        for arm in comparison.arms:
            results = [f for replicate in arm.replicates for f in replicate.findings if f.check == name]
            level = worst([finding.level for finding in results])
            cells.append(next((finding.figure for finding in results if finding.level == level), UNKNOWN))
            levels.append(level if results else "")
        rows.append(FigureRow(name, tuple(cells), levels=tuple(levels)))
    return rows


def checks_table(comparison: Comparison) -> list[CheckRow]:
    """For each check the most serious finding of all runs, for more arms than a table has columns."""
    rows = []
    for name in _checks(comparison):
        results = [item for item in _every(comparison) if item[2].check == name]
        level = worst([finding.level for _, _, finding in results])
        bad = [result for result in results if result[2].level == level]
        arm, block, finding = bad[0]
        rows.append(CheckRow(name, level, len(results), len(bad), finding.figure, arm, block))
    return rows


def all_findings(comparison: Comparison, serious: bool = False) -> list[tuple[str, int, str, str, str]]:
    """(arm, replicate, check, level, figure) of every run; those that are ``serious`` alone where there are many."""
    return [
        (arm.label, block, f.check, f.level, f.figure)
        for arm, block, f in _every(comparison)
        if not serious or f.level in ("warn", "invalid")
    ]


def why_invalid(comparison: Comparison) -> list[str]:
    """Why runs are invalid, a line for each reason, or for each check where there are many."""
    return _reasons(comparison, "invalid")


def warnings(comparison: Comparison) -> list[str]:
    """Caveats in the same form, missing runs among them."""
    lost = [f"{arm}: no finished run" for arm in comparison.absent]
    partly = [
        f"{arm.label}: {arm.missing} of the planned replicates have no finished run"
        for arm in comparison.arms
        if arm.missing
    ]
    if len(lost) + len(partly) > REASONS_MAX:
        lost = [f"{len(lost)} arms have no finished run"] if lost else []
        partly = [f"{len(partly)} arms have fewer finished runs than were planned"] if partly else []
    return [
        *lost,
        *partly,
        *_modified(comparison),
        *_without_checkpoint(comparison),
        *_reasons(comparison, "warn"),
        *comparison.unreadable,
    ]


def _without_checkpoint(comparison: Comparison) -> list[str]:
    """Runs that wrote and met no checkpoint."""
    record = record_of(comparison)
    if record.bulk_load is not None or any(
        arm.server.get("checkpoints") != 0 or (arm.server.get("wal_mib_per_s") or 0.0) < WRITES_MIB_PER_S_MIN
        for arm in comparison.arms
    ):
        return []
    best = "no checkpoint began while measuring, so writes were at their best"
    return [f"{best}; a workload.duration above checkpoint_timeout includes one"]


def _modified(comparison: Comparison) -> list[str]:
    """Volumes that became others while measuring, for which there is not one price."""
    document = {role: None for arm in comparison.arms for role in arm.modified}
    if not document:
        return []
    text = "modified while measuring: figures average before and after, none is given per dollar, and limits are the initial ones"
    return [f"{' and '.join(document)}: {text}"]


def passed(comparison: Comparison) -> str:
    """The words for a valid comparison."""
    runs = sum(len(arm.replicates) for arm in comparison.arms)
    return "All checks of the run passed" if runs == 1 else f"All checks of the {runs:,} runs passed"


def given_up(comparison: Comparison) -> str | None:
    """Durability that some arm's server gave up, for the first line of every report; None where none did."""
    texts = {arm.label: arm.given_up for arm in comparison.arms if arm.given_up}
    if not texts:
        return None
    names = sorted({name for names in texts.values() for name in names})
    where = "" if len(texts) == len(comparison.arms) else f" in {', '.join(texts)}"
    return (
        f"Durability was given up: {', '.join(names)} {'is' if len(names) == 1 else 'are'} off{where}. A power cut may damage the database beyond recovery, unless `pgdyno crashtest` shows otherwise for"
        " this file system and volume."
    )


def storage_only(comparison: Comparison) -> str | None:
    """The label of an experiment whose instance is larger than this host; None when there is none."""
    arms = [arm for arm in comparison.arms if arm.storage_only]
    if not arms:
        return None
    instances = [arm.replicates[0].figures.record.world.instance for arm in arms]
    of_type = {i.type or "the instance": i.vcpus for i in instances}
    named = ", ".join(f"{name} ({vcpus} vCPUs)" if vcpus else name for name, vcpus in of_type.items())
    cores = record_of(comparison).world.host.cores
    which = "" if len(arms) == len(comparison.arms) else f" ({', '.join(arm.label for arm in arms)})"
    return (
        f"{named} on {cores} cores{which}. The storage and the memory were the instance's, the CPU was not: what the volume did is valid, but"
        " where the CPU was the limit, the instance's throughput is unknown."
    )


def dilation(comparison: Comparison) -> str | None:
    """The label of an experiment in slowed time; None when there is none."""
    slowed = [arm for arm in comparison.arms if arm.dilation > 1]
    if not slowed:
        return None
    times = " and ".join(f"{d}" for d in sorted({arm.dilation for arm in slowed}))
    which = "" if len(slowed) == len(comparison.arms) else f" ({', '.join(arm.label for arm in slowed)})"
    cores = record_of(comparison).world.host.cores
    most = max(arm.dilation for arm in slowed)
    return (
        f"Volumes, arrivals and PostgreSQL's timers ran {times} times slower{which}, and all figures are in that slowed time, in which {cores}"
        f" cores act like {cores * most}. CPU-bound throughput is that of all cores together, without the"
        " contention of many; the host's own work for a transaction (computing, requests through the kernel)"
        " was not slowed."
    )


def unseen(comparison: Comparison) -> list[Visibility]:
    """Facts that a report would have and these runs could not see."""
    return [row for row in visibility(comparison) if not row.seen]


def visibility(comparison: Comparison) -> list[Visibility]:
    """All that was looked for, what was not seen first."""
    rows: dict[str, Visibility] = {}
    for arm in comparison.arms:
        for row in arm.visibility:
            if row.what not in rows or not row.seen:
                rows[row.what] = row
    return sorted(rows.values(), key=lambda row: row.seen)


def method_sentences(comparison: Comparison) -> list[str]:
    """The method in sentences: meaning of the intervals, cost of the instrument, closed loops."""
    record = record_of(comparison)
    fresh = (
        "Each run is"
        if record.world.existed
        else "Each is a fresh clone of the data on a fresh volume, started cold: it is"
    )
    method = (
        f"The unit of inference is the replicate. {fresh} made in a block with one run of every arm, in an order drawn from"
        " the seed. Intervals are 95 % Student t intervals over replicates; the ratio's is that of the mean log ratio of"
        " runs paired by block."
    )
    sentences = [method]
    if comparison.effects:
        sentences.append(
            f"A factor's effect is the mean log ratio {held_factors(comparison)}, each combination with its own spread"
            " (Welch and Satterthwaite's degrees of freedom). A dependence on another factor is reported when the ratio of ratios differs from 1, at a level that"
            " gives one false alarm in twenty experiments."
        )
    if len(comparison.ratios) > 1:
        sentences.append("Each interval holds on its own: expect one in twenty to miss the true value.")
    sentences += _resolution(comparison)
    floor = comparison.noise_floor
    if floor is not None:
        sentences.append(
            "Normal variation here: 19 of 20 pairs of runs of the same arm differ by less than"
            f" {percent(floor.difference)} ({floor.degrees} degrees of freedom). A smaller difference between two"
            " single runs means nothing."
        )
    sentences.append(
        "A run's result is the mean of its whole measure phase. Steadiness is judged from its seconds, or"
        " from whole checkpoint cycles where checkpoints began. Where credits ran out or came back, the"
        " longest part in between is judged."
        if not record.ends_with_its_work
        else "A run lasts from the first query to the end of the last; its result is the geometric mean of the"
        " queries' seconds. There is no warm-up."
        if record.streams is not None
        else "A run is one replay of the capture, from its first statement to the answer to its last; its result"
        " is the mean time from when a statement was due until its answer. There is no warm-up."
        if record.replay is not None
        else "A run is one load of all files into empty tables, from the first COPY to the end of the final"
        " checkpoint; that duration is the result."
    )
    if record.workload.get("closed"):
        sentences.append(
            f"Closed loop: {clients_of(comparison) or 'the'} clients each wait for a reply before sending again. A"
            " slower volume therefore lowers the load, and the response times are those under that load, not what"
            " arrivals at a fixed rate would see."
        )
    elif "closed" in record.workload:
        sentences.append("Open loop: arrivals do not wait, and response time counts from the scheduled start.")
    return sentences + _overheads(comparison)


def not_verified(comparison: Comparison) -> list[str]:
    """Sentences on what was not verified."""
    record = record_of(comparison)
    world = record.world
    sentences = []
    if world.emulated:
        sentences.append(
            "The volumes were emulated from published figures. A real volume may exceed its limits at times, and latency varies from one volume to the next."
        )
    if not world.existed:
        sentences.append(
            f"The CPU is this machine's ({world.host.cores} cores), not a cloud instance's: where the CPU was the limit, another machine gives another result."
        )
    else:
        sentences.append(
            "Nothing of the server was changed or restarted between the runs: its caches, its other sessions and its"
            " maintenance are part of what was measured."
        )
    sentences.append(
        f"{_measured(comparison)}. It does not include what takes hours (vacuum of a grown table, credits that run out, a cache that is"
        " still filling)."
    )
    if any(arm.usd_per_month is not None for arm in comparison.arms):
        region = comparison.arms[0].data.resolved.get("price_region")
        where = f" in {region}" if region else ""
        sentences.append(f"Prices are list prices of the volumes{where}, without instance, snapshots and transfer.")
    return sentences


def _measured(comparison: Comparison) -> str:
    """Duration of the runs, in words."""
    seconds = [r.figures.record.measure.seconds for arm in comparison.arms for r in arm.replicates]
    if record_of(comparison).bulk_load is None:
        # Runs of a number of transactions end when these are done, and a duration can be a factor.
        whole = {f"{item:,.0f}" for item in seconds}
        extent = whole.pop() if len(whole) == 1 else f"{number(min(seconds), 2)} to {number(max(seconds), 2)}"
        return f"Each run measured {extent} s"
    return f"The loads took {min(seconds):,.0f} to {max(seconds):,.0f} s"


def _checks(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(finding.check for _, _, finding in _every(comparison)))


def _every(comparison: Comparison) -> list[tuple[ArmSummary, int, CheckResult]]:
    return [
        (arm, replicate.figures.record.block, finding)
        for arm in comparison.arms
        for replicate in arm.replicates
        for finding in replicate.findings
    ]


def _reasons(comparison: Comparison, level: str) -> list[str]:
    results = [item for item in _every(comparison) if item[2].level == level]
    if len(results) <= REASONS_MAX:
        return [f"{arm.label}: replicate {block}: {finding.check}: {finding.figure}" for arm, block, finding in results]
    lines = []
    for check in dict.fromkeys(finding.check for _, _, finding in results):
        of_check = [result for result in results if result[2].check == check]
        arm, block, finding = of_check[0]
        arms = len({item[0].index for item in of_check})
        extent = f"{len(of_check)} runs of {arms} arm{'s' * (arms > 1)}" if len(of_check) > 1 else "one run"
        lines.append(f"{check}: {extent}; {arm.label}, replicate {block}: {finding.figure}")
    return lines


def _resolution(comparison: Comparison) -> list[str]:
    """The difference that the replicates would have detected; its range where there are many arms."""
    if comparison.effects:
        return _resolution_of_effects(comparison)
    base = comparison.arms[0].label
    texts = [
        (arm.label, ratio, least)
        for arm, ratio in zip(comparison.arms[1:], comparison.ratios, strict=True)
        if (least := ratio.detectable) is not None
    ]
    if len(texts) < COLUMNS_MAX:
        return [
            f"{label} against {base}: replicates like these detect a difference of {percent(least)} in four experiments of"
            f" five{_more_replicates(ratio)}."
            for label, ratio, least in texts
        ]
    low, high = min(least for _, _, least in texts), max(least for _, _, least in texts)
    extent = f"{percent(low)} to {percent(high)}"
    return [f"Against {base} replicates like these detect a difference of {extent} in four experiments of five."]


def _more_replicates(ratio: Ratio) -> str:
    """Replicates that a smaller difference needs; empty where these replicates detect it."""
    needed = ratio.replicates_needed
    if ratio.estimate is None or needed is None or needed <= ratio.estimate.n:
        return ""
    return f", and {needed:,} replicates one of {percent(DIFFERENCE_OF_INTEREST)}"


def _resolution_of_effects(comparison: Comparison) -> list[str]:
    """The same for each effect that is not distinguishable."""
    sentences = []
    for effect in comparison.effects:
        least = None if effect.estimate is None or effect.distinguishable else detectable_difference(effect.estimate)
        if least is not None:
            over, under = sides(comparison.factors, effect)
            sentences.append(
                f"{over} against {under}: runs like these detect a difference of {percent(least)} in four experiments of five."
            )
    return sentences


def _overheads(comparison: Comparison) -> list[str]:
    """Cost of the emulator's own path, for each arm or as a range."""
    costs = {arm.label: path_us(arm.data.attach) for arm in comparison.arms}
    known = {label: cost for label, cost in costs.items() if cost}
    after = "of 8 KiB (calibrated at attach), which is subtracted from the modelled time."
    if len(known) <= COLUMNS_MAX:
        return [
            f"{label}: the emulator's own path costs"
            f" {' and '.join(f'{us:,.0f} µs a {operation}' for operation, us in cost.items())} {after}"
            for label, cost in known.items()
        ]
    every = [us for cost in known.values() for us in cost.values()]
    return [f"The emulator's own path costs {min(every):,.0f} to {max(every):,.0f} µs a request {after}"]


TITLE = "Hosts"
MEANING = (
    "All runs of a replicate were made by one host, so ratios of arms do not include differences between hosts;"
    " the spread of an arm's own figure does. Hosts are compared arm by arm, and the interval is over the arms."
    " Hosts made their replicates at the same time or one after the other: anything that happened on a host"
    " meanwhile counts as its own."
)


def hosts_section(comparison: Comparison) -> Section | None:
    """Each host, what it is, and how far it is from the first; None where the runs were not spread."""
    if not comparison.hosts and not comparison.unpaired:
        return None
    metric = comparison.metric
    first = comparison.hosts[0].name if comparison.hosts else ""
    rows = tuple(
        (
            host.name,
            str(host.blocks),
            str(host.runs),
            str(host.record.cores),
            gib(host.record.memory_bytes),
            host.record.cpu or UNKNOWN,
            host.record.kernel,
            "1"
            if host.name == first
            else UNKNOWN
            if host.ratio is None
            else times(host.ratio.mean) + _interval(host.ratio),
        )
        for host in comparison.hosts
    )
    heads = ("", "replicates", "runs", "cores", "memory", "CPU", "kernel", f"{metric.short} over that of {first}")
    return Section("hosts", TITLE, (Grid(heads, rows), Sentences(tuple(host_lines(comparison))), Note(MEANING)))


def host_lines(comparison: Comparison) -> list[str]:
    """Distance of each host from the first, and replicates left out, in sentences."""
    metric, hosts = comparison.metric, comparison.hosts
    texts = [
        f"{host.name} {metric.does} {times(host.ratio.mean)} times{_interval(host.ratio)} the {metric.counts} of {hosts[0].name}, over all arms."
        for host in hosts[1:]
        if host.ratio is not None
    ]
    left = [
        f"replicate {unpaired.block} of {unpaired.host} is not whole ({unpaired.runs} of {unpaired.of} runs), so its runs are not compared."
        for unpaired in comparison.unpaired
    ]
    return [*texts, *left]


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None else f" (95 % interval {ratio_interval(estimate.low, estimate.high)})"

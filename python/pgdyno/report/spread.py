"""The hosts over which runs were spread, in words and as a table."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.interval import Estimate
from pgdyno.report.section import Grid, Note, Section, Sentences

from ..base.text import UNKNOWN, gib, ratio_interval, times

TITLE = "Hosts"
MEANING = (
    "All runs of a replicate were made by one host, so the ratios of arms do not hold the differences of hosts; the spread of an arm's own figure does."
    " Hosts are compared arm by arm, and the interval is over the arms. They made their replicates at the same time or one after the other: what happened on one"
    " of them during its replicates counts as its own."
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
    """How far each host is from the first, and what was left out, in sentences."""
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

"""The headline of each arm as the main figure, and response times by percentile."""

from __future__ import annotations

from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.distribution import ValueCounts
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Section, listed, many, of_arms
from pgdyno.report.words import record_of

_CLOSED = " Closed loop: see how far to trust this."


def headline_section(comparison: Comparison) -> Section | None:
    """The figure by which arms are compared, with its intervals."""
    if not listed(comparison):
        return None
    metric, crosses = comparison.metric, "" if comparison.valid else "; crosses: invalid ones"
    drawing = Drawing(
        metric.name,
        f"{metric.title.capitalize()} of each arm",
        "Dot and bar: mean and 95 % interval over replicates. Open circles: the replicates themselves" + crosses + ".",
        partial(figures.headline, comparison.arms),
        key=of_arms(comparison),
    )
    return Section("throughput", metric.title.capitalize(), (drawing,))


def response_section(comparison: Comparison) -> Section | None:
    """Response times: curves of few arms, percentiles of many."""
    if not listed(comparison) or not any(figures.percentile_points(arm.latency_ms) for arm in comparison.arms):
        return None
    drawing = _of_many(comparison) if many(comparison) else _of_few(comparison)
    return Section("response", "Response time", (drawing,))


def _of_few(comparison: Comparison) -> Drawing:
    thin = [(arm.index, r.figures.latency_ms, "thin") for arm in comparison.arms for r in arm.replicates]
    curves: list[tuple[int, ValueCounts, str]] = [
        *thin,
        *((arm.index, arm.latency_ms, "main") for arm in comparison.arms),
    ]
    return Drawing(
        "response",
        "Response time by percentile",
        "Milliseconds by percentile, both axes logarithmic. Thick: all replicates together; thin: each alone. A line ends where"
        " fewer than ten transactions were slower." + _closed(comparison),
        partial(figures.percentiles, curves, comparison.arms),
        key="arms",
    )


def _of_many(comparison: Comparison) -> Drawing:
    rows = [(arm.index, arm.label, arm.latency_ms) for arm in comparison.arms]
    return Drawing(
        "response",
        "Response time of each arm",
        "Milliseconds: median (large), p95, p99 (small) of all replicates together, logarithmic." + _closed(comparison),
        partial(figures.percentile_dots, rows, comparison.arms),
        key="levels",
    )


def _closed(comparison: Comparison) -> str:
    return _CLOSED if record_of(comparison).workload.get("closed") else ""

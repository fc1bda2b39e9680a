"""The machine's CPU time by role."""

from __future__ import annotations

from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Section, listed


def cpu_section(comparison: Comparison) -> Section | None:
    """A bar for each arm."""
    arms = comparison.arms
    if not listed(comparison) or not any(arm.cpu_share for arm in arms):
        return None
    drawing = Drawing(
        "cpu",
        "CPU time by role",
        "Means of the replicates. Driver, relay, volume daemon and probe are the test harness: they would not run beside a real"
        " volume.",
        partial(figures.cpu, arms),
        key=tuple((f"role{place}", name) for place, name in figures.roles(arms)),
    )
    return Section("cpu", "CPU", (drawing,))

"""Power cuts after the runs: what was left of a server like each arm's."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.power_cuts import ArmCuts, cuts_of, excluded
from pgdyno.report.section import Grid, Note, Section, Sentences

from ..base.text import UNKNOWN

FAILED_SHOWN = 5
"""Failed cuts that are named; the JSON document and the runs have all that were recorded."""
_HEADS = ("power cuts", "read as", "cuts", "failed", "found by", "fewer than 1 in")
_NOTE = (
    "After each run a server with the arm's volumes, file system, mount options and settings was recorded on volumes of its own while it committed numbered"
    " transactions, and the recording was cut. The last column is what cuts without a failure exclude with 95 %: a statement about the instants and"
    " contents that were drawn, not about all that a device may leave."
)


def power_cuts_section(comparison: Comparison) -> Section | None:
    """Nothing of experiments without power cuts."""
    rows = tuple(_row(arm, cuts) for arm, cuts in _every(comparison))
    if not rows:
        return None
    failed = [Sentences(tuple(words))] if (words := _failed(comparison)) else []
    return Section("power-cuts", "Power cuts", (Grid(_HEADS, rows), *failed, Note(_NOTE)), brief=True)


def power_cut_lines(comparison: Comparison) -> list[str]:
    """A line for each arm and reading, and the first that failed, for the terminal."""
    return [f"{arm.label}, {cuts.reading}: {cuts.verdict}" for arm, cuts in _every(comparison)] + _failed(comparison)


def _every(comparison: Comparison) -> Iterator[tuple[ArmSummary, ArmCuts]]:
    for arm in comparison.arms:
        for cuts in cuts_of(arm):
            yield arm, cuts


def _row(arm: ArmSummary, cuts: ArmCuts) -> tuple[str, ...]:
    by_check = ", ".join(f"{check} {count:,}" for check, count in cuts.by_check.items())
    bound = UNKNOWN if cuts.failed or not cuts.cuts else f"{excluded(cuts.cuts):,.0f}"
    return (arm.label, cuts.reading, f"{cuts.cuts:,}", f"{cuts.failed:,}", by_check or UNKNOWN, bound)


def _failed(comparison: Comparison) -> list[str]:
    every = [(arm, failed) for arm, cuts in _every(comparison) for failed in cuts.first_failed]
    return [
        f"{arm.label}: {'; '.join(f'{check}: {failure}' for check, failure in failed.failures.items())}"
        f" (`pgdyno crashtest --replay {failed.id} --shrink`)"
        for arm, failed in every[:FAILED_SHOWN]
    ]

"""The reference's page on calibration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tools.calibration.cases import Counted
from tools.reference import markdown as md

COMMAND = "make bench ONLY=calibration"
INTRODUCTION = """
How often the statistics of [inference](../concept/inference.md) are right, on series whose truth is known. Each case is drawn {drawn:,} times
from a seed of its own, so the page comes out the same each time; the functions are those that judge real runs. `answered` is the
share of the draws to which an answer was given: a run can be too short or without a steady state.
"""


def render(counteds: Sequence[Counted]) -> str:
    """The text of the page."""
    head = f"# Calibration\n\n<!-- Written by `{COMMAND}` from tools/calibration. -->\n"
    parts = [head, INTRODUCTION.strip().format(drawn=min(counted.drawn for counted in counteds))]
    for group, members in groupby(counteds, key=lambda counted: counted.case.group):
        rows = [_row(member) for member in members]
        parts += [f"## {group}", md.table(["case", "must be", "found", "answered", "holds"], rows)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _row(counted: Counted) -> list[str]:
    bounds = f"{counted.case.low * 100:.0f} to {counted.case.high * 100:.0f} %"
    answered = f"{counted.answered / counted.drawn * 100:.0f} %"
    return [counted.case.name, bounds, f"{counted.share * 100:.1f} %", answered, "yes" if counted.holds else "**no**"]

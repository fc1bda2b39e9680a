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


def render(found: Sequence[Counted]) -> str:
    """The text of the page."""
    head = f"# Calibration\n\n<!-- Written by `{COMMAND}` from tools/calibration. -->\n"
    parts = [head, INTRODUCTION.strip().format(drawn=min(one.drawn for one in found))]
    for group, members in groupby(found, key=lambda one: one.case.group):
        rows = [_row(one) for one in members]
        parts += [f"## {group}", md.table(["case", "must be", "found", "answered", "holds"], rows)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _row(one: Counted) -> list[str]:
    bounds = f"{one.case.low * 100:.0f} to {one.case.high * 100:.0f} %"
    answered = f"{one.answered / one.drawn * 100:.0f} %"
    return [one.case.name, bounds, f"{one.share * 100:.1f} %", answered, "yes" if one.holds else "**no**"]

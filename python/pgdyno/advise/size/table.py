"""The advice as text for a terminal."""

from __future__ import annotations

from ...base.text import fitted
from . import words
from .advice import Advice

SHOWN_MAX = 12
"""Volumes in the table; JSON and page have all."""


def text(advice: Advice, width: int | None = None) -> str:
    """What was measured, volumes, instances, credits, and what to mind; tables of at most ``width`` columns."""
    first = words.capped_sentence(advice)
    lines = [] if first is None else [f"{first[0].upper()}{first[1:]}.", ""]
    lines += [f"{name:<10}{text}" for name, text in words.measured_lines(advice)]
    steps = words.step_rows(advice)
    lines += ["", *_rows(words.STEP_HEADER, steps, width)] if len(steps) > 1 else []
    lines += ["", *_volumes(advice, width)]
    instances = [words.instance_row(instance) for instance in advice.instances]
    if advice.now is not None:
        row = words.instance_row(advice.now)
        verdict = (
            "carries it"
            if advice.now.fit.carries
            else "carries it on credits alone"
            if advice.now.fit.on_credits
            else "does not carry it"
        )
        lines += ["", f"{words.instance_label(advice.now)} {verdict}: {row[-3]} IOPS, {row[-2]} MiB/s, {row[-1]}"]
    if words.lists_instances(advice):
        none = ["no instance type carries it"]
        lines += ["", *(_rows(words.INSTANCE_HEADER, instances, width) if instances else none)]
    if advice.collapses:
        lines += ["", *(f"{words.collapse_sentence(collapse)}." for collapse in advice.collapses)]
    if advice.unfit:
        lines += ["", "Not enough:", *(f"  {name}: {why}" for name, why in advice.unfit)]
    return "\n".join([*lines, "", *(f"note: {note}" for note in advice.notes)])


def _volumes(advice: Advice, width: int | None) -> list[str]:
    rows = words.volume_rows(advice)
    if not rows:
        return ["no volume carries it"]
    more = len(rows) - SHOWN_MAX
    return _rows(words.VOLUME_HEADER, rows[:SHOWN_MAX], width) + ([f"... and {more} more: --json"] if more > 0 else [])


def _rows(header: list[str], rows: list[list[str]], width: int | None) -> list[str]:
    return fitted([[name.upper() for name in header], *rows], width, range(len(header)))

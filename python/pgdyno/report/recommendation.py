"""The recommendation in words: the steps from the cheapest arm upwards, and every arm against every other."""

from __future__ import annotations

from pgdyno.analysis.binding.limits import TITLES
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.ratio import Ratio
from pgdyno.analysis.steps import StepResult
from pgdyno.report.binding import remedy_words
from pgdyno.report.section import Grid, Note, Section, Sentences

from ..base.text import UNKNOWN, money, number, ratio_interval, times

PAIRS_MIN = 3
"""Arms from which there is a pair without the first."""
PAIRS_MAX = 12
"""Arms that a table has as rows and as columns; the JSON document has the pairs of more."""
_STEPS_NOTE = (
    "From the cheapest arm upwards, each as far as it is faster than those that cost less. What was not measured is the cheapest in the"
    " catalogue that lifts the last limit; its effect is what it can bring at most."
)
_PAIRS_NOTE = "≈: the 95 % interval includes 1, so the two cannot be told apart. Each interval is for its own pair."


def steps_section(comparison: Comparison) -> Section | None:
    """The steps of the set."""
    texts = step_sentences(comparison)
    return (
        Section("steps", "What each step up brings", (Sentences(tuple(texts)), Note(_STEPS_NOTE)), brief=True)
        if texts
        else None
    )


def pairs_section(comparison: Comparison) -> Section | None:
    """Every arm against every other, where there are some beside the first and not too many to read."""
    if not PAIRS_MIN <= len(comparison.arms) <= PAIRS_MAX or not comparison.pairs:
        return None
    return Section("pairs", "Every pair", (pairs_grid(comparison), Note(_PAIRS_NOTE)), brief=True)


def pairs_grid(comparison: Comparison) -> Grid:
    """How many times as fast the arm of a row is as the arm of a column."""
    labels = [arm.label for arm in comparison.arms]
    place = {arm.index: at for at, arm in enumerate(comparison.arms)}
    cells = [[UNKNOWN if row != column else "1" for column in range(len(labels))] for row in range(len(labels))]
    for ratio in comparison.pairs:
        row, column = place[ratio.index], place[ratio.to_index]
        if comparison.arms[row].valid and comparison.arms[column].valid and ratio.estimate is not None:
            more = comparison.metric.better == "more"
            cells[row][column], cells[column][row] = _cell(ratio, inverse=not more), _cell(ratio, inverse=more)
    return Grid(("times as fast as", *labels), tuple((label, *row) for label, row in zip(labels, cells, strict=True)))


def step_sentences(comparison: Comparison) -> list[str]:
    """Each step as a sentence's end; empty where there is a single one, which the recommendation says already."""
    results = comparison.recommendation.steps
    return [_step(comparison, step) for step in results] if len(results) > 1 else []


def step_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """(word before it, text) for the terminal."""
    return [(f"step {place}: ", text) for place, text in enumerate(step_sentences(comparison), 1)]


def _step(comparison: Comparison, step: StepResult) -> str:
    metric = comparison.metric
    if step.arm is None:
        assert step.remedy is not None
        return f"not measured: {remedy_words(step.remedy, metric)}"
    price = "" if step.usd_per_month is None else f" at {money(step.usd_per_month)} a month"
    faster = "" if step.ratio is None else f", {times(step.ratio)} times as fast"
    limit = "" if step.limit is None else f"; held back by {TITLES[step.limit]}"
    return f"{step.label}{price}: {number(step.value)} {metric.short}{faster}{limit}"


def _cell(ratio: Ratio, *, inverse: bool) -> str:
    """``2.71 (2.56 to 2.86)``; ``≈`` before what cannot be told apart, nothing around a single run."""
    estimate = ratio.estimate
    assert estimate is not None
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return times(1 / estimate.mean if inverse else estimate.mean)
    mean, ends = (
        (1 / estimate.mean, (1 / high, 1 / low if low else float("inf"))) if inverse else (estimate.mean, (low, high))
    )
    return f"{'' if ratio.distinguishable else '≈ '}{times(mean)} ({ratio_interval(*ends)})"

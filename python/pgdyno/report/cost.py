"""Sections on cost: price and durability of each arm, the steps from the cheapest arm upwards, and every arm against every other."""

from __future__ import annotations

from pgdyno.analysis.binding.rules import TITLES
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.cost import ArmCost
from pgdyno.analysis.ratio import Ratio
from pgdyno.report.binding import remedy_words
from pgdyno.report.section import Grid, Matrix, Note, Section, Sentences, listed

from ..analysis.choice import StepResult
from ..base.text import UNKNOWN, gib, money, number, probability, ratio_interval, times
from .section import FigureRow

MONTH, EQUAL, MILLION, MILLION_EQUAL, LOSS, FRONT = range(6)
"""Which figure a row is."""
_FRONTS = {"latency_ms_p99": "p99"}


def cost_section(comparison: Comparison) -> Section | None:
    """Cost and durability of each arm."""
    results = tuple(cost_rows(comparison))
    if not results:
        return None
    matrix = Matrix(results, "" if listed(comparison) else "Cost of each arm")
    return Section("cost", "Cost and durability", (matrix, *map(Note, cost_notes(comparison))), brief=True)


def cost_rows(comparison: Comparison) -> list[FigureRow]:
    """The figures of each arm, for arms as columns; empty where there is neither a price nor a failure rate."""
    return [row for _, row in numbered_cost_rows(comparison)]


def numbered_cost_rows(comparison: Comparison) -> list[tuple[int, FigureRow]]:
    """The same, each with which figure it is."""
    arms = [comparison.costs[arm.index] for arm in comparison.arms]
    every = [
        (MONTH, FigureRow("US$ a month", tuple(money(arm.usd_per_month) for arm in arms))),
        (
            MILLION,
            FigureRow("US$ per million transactions", tuple(money(arm.usd_per_million_transactions) for arm in arms)),
        ),
        *_at_equal_size(arms),
        (LOSS, FigureRow("lost within a year", tuple(map(loss_words, arms)))),
        *(
            [
                (
                    FRONT,
                    FigureRow(
                        "on the cost front", tuple(cost_front_words(arm, comparison.metric.short) for arm in arms)
                    ),
                )
            ]
            if _has_front(arms)
            else []
        ),
    ]
    return [(which, row) for which, row in every if any(cell != UNKNOWN for cell in row.cells)]


def cost_notes(comparison: Comparison) -> list[str]:
    """Remarks on these figures, in sentences."""
    arms = [comparison.costs[arm.index] for arm in comparison.arms]
    sentences = []
    if any(arm.usd_per_month is not None for arm in arms):
        million = any(arm.usd_per_million_transactions is not None for arm in arms)
        sentences.append(
            ("Per million transactions: at the measured rate, all month. " if million else "")
            + "Prices are those of the volumes alone, on the day of the runs."
        )
    if _unequal(arms):
        sentences.append(
            f"The arms differ in capacity. At {gib(arms[0].equal_size_bytes)} each is as large as the largest, with the IOPS and"
            " the throughput that it has."
        )
    follow = [arm.label for arm in comparison.arms if comparison.costs[arm.index].limits_follow_size]
    if follow:
        sentences.append(f"At that size {' and '.join(follow)} would have higher limits than were measured.")
    if _has_front(arms):
        sentences.append(
            "On the cost front: every cheaper arm is clearly slower, by"
            f" {comparison.metric.title} or by the p99 of the response time."
        )
    if any(arm.loss_per_year is not None for arm in arms):
        sentences.append(
            "Lost within a year: from published failure rates, assuming that volumes fail independently and are"
            " not replaced; a RAID-0 needs every volume."
        )
    return sentences


def loss_words(cost: ArmCost) -> str:
    """``0.8 % to 1.6 %``: the ends of what is published."""
    if cost.ends_with_its_instance:
        return "with its instance"
    if cost.loss_per_year is None:
        return UNKNOWN
    low, high = probability(cost.loss_per_year.low), probability(cost.loss_per_year.high)
    return low if low == high else f"{low} to {high}"


def cost_front_words(cost: ArmCost, headline: str) -> str:
    """Measures by which the arm is on the cost front; ``headline`` is the short name of the one that arms are compared by."""
    if not cost.front:
        return UNKNOWN
    return " and ".join(_FRONTS.get(name, headline) for name, on in cost.front.items() if on) or "no"


def _has_front(arms: list[ArmCost]) -> bool:
    """True if there is one: arms of equal price have no cost front."""
    return len({arm.usd_per_month for arm in arms if arm.front}) > 1


def _at_equal_size(arms: list[ArmCost]) -> list[tuple[int, FigureRow]]:
    if not _unequal(arms):
        return []
    size = gib(arms[0].equal_size_bytes)
    month = tuple(money(arm.usd_per_month_at_equal_size) for arm in arms)
    million = tuple(money(arm.usd_per_million_transactions_at_equal_size) for arm in arms)
    return [
        (EQUAL, FigureRow(f"US$ a month at {size}", month)),
        (MILLION_EQUAL, FigureRow(f"US$ per million transactions at {size}", million)),
    ]


def _unequal(arms: list[ArmCost]) -> bool:
    return any(arm.size_bytes != arm.equal_size_bytes for arm in arms if arm.equal_size_bytes is not None)


PAIRS_MIN = 3
"""Arms from which there is a pair without the first."""
PAIRS_MAX = 12
"""Arms that a table has as rows and as columns; the JSON document has the pairs of more."""
_STEPS_NOTE = (
    "From the cheapest arm upwards: each arm that is faster than all cheaper ones. A step that was not measured"
    " is the cheapest volume in the catalogue that lifts the last limit; its effect is an upper bound."
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
    """The ratio of every pair: how many times as fast the arm of a row is as the arm of a column."""
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

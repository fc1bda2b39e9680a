"""Cost and durability in words, for the page and for the terminal."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.cost import ArmCost
from pgdyno.report.section import Matrix, Note, Section, listed
from pgdyno.report.words import FigureRow

from ..base.text import UNKNOWN, gib, money, probability

MONTH, EQUAL, MILLION, MILLION_EQUAL, LOSS, FRONT = range(6)
"""Which figure a row is."""
_FRONTS = {"latency_ms_p99": "p99"}


def cost_section(comparison: Comparison) -> Section | None:
    """What each arm costs, and how long it lasts."""
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
    """What to know of these figures, in sentences."""
    arms = [comparison.costs[arm.index] for arm in comparison.arms]
    sentences = []
    if any(arm.usd_per_month is not None for arm in arms):
        million = any(arm.usd_per_million_transactions is not None for arm in arms)
        sentences.append(
            ("Per million transactions: at the measured rate, all month. " if million else "")
            + "Prices are of the volumes alone, from the day of the runs."
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
            "On the cost front: no other arm costs less without being slower beyond doubt, by"
            f" {comparison.metric.title} or by the p99 of the response time."
        )
    if any(arm.loss_per_year is not None for arm in arms):
        sentences.append(
            "Lost within a year: from the published failure rates, as if volumes failed independently and none were replaced;"
            " of a RAID-0 every volume is needed."
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
    """By which measure the arm is on the cost front; ``headline`` is the short name of the one that arms are compared by."""
    if not cost.front:
        return UNKNOWN
    return " and ".join(_FRONTS.get(name, headline) for name, on in cost.front.items() if on) or "no"


def _has_front(arms: list[ArmCost]) -> bool:
    """Whether there is one: arms that cost the same are not told apart by what they cost."""
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

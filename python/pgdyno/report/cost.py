"""Cost and durability in words, for the page and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.cost import GIB
from pgdyno.analysis.verdict import figures
from pgdyno.report.words import UNKNOWN, Row

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.cost import ArmCost

MONTH, EQUAL, MILLION, MILLION_EQUAL, LOSS, FRONT = range(6)
"""Which figure a row is."""
PERCENT_MIN = 1e-4
"""A smaller probability is not told from the failure of anything else in a data centre."""
_FRONTS = {"latency_ms_p99": "p99"}


def rows(comparison: Comparison) -> list[Row]:
    """The figures of each arm, for arms as columns; empty where there is neither a price nor a failure rate."""
    return [row for _, row in numbered_rows(comparison)]


def numbered_rows(comparison: Comparison) -> list[tuple[int, Row]]:
    """The same, each with which figure it is."""
    arms = [comparison.costs[arm.index] for arm in comparison.arms]
    every = [
        (MONTH, Row("US$ a month", tuple(money(one.usd_per_month) for one in arms))),
        (MILLION, Row("US$ per million transactions", tuple(money(one.usd_per_million_transactions) for one in arms))),
        *_at_equal_size(arms),
        (LOSS, Row("lost within a year", tuple(map(loss, arms)))),
        *(
            [(FRONT, Row("on the cost front", tuple(front(one, comparison.unit.short) for one in arms)))]
            if len(arms) > 1
            else []
        ),
    ]
    return [(which, row) for which, row in every if any(cell != UNKNOWN for cell in row.cells)]


def notes(comparison: Comparison) -> list[str]:
    """What to know of these figures, in sentences."""
    arms = [comparison.costs[arm.index] for arm in comparison.arms]
    sentences = []
    if any(one.usd_per_month is not None for one in arms):
        million = any(one.usd_per_million_transactions is not None for one in arms)
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
    if len(arms) > 1 and any(one.front for one in arms):
        sentences.append(
            "On the cost front: no other arm costs less without being slower beyond doubt, by"
            f" {comparison.unit.per_second} or by the p99 of the response time."
        )
    if any(one.loss is not None for one in arms):
        sentences.append(
            "Lost within a year: from the published failure rates, as if volumes failed independently and none were replaced;"
            " of a RAID-0 every volume is needed."
        )
    return sentences


def money(usd: float | None) -> str:
    """US dollars: cents as prices have them, three digits below a dollar."""
    if usd is None:
        return UNKNOWN
    if 0 < usd < 1:
        return f"${figures(usd)}"
    return f"${usd:,.0f}" if usd == round(usd) else f"${usd:,.2f}"


def loss(cost: ArmCost) -> str:
    """``0.8 % to 1.6 %``: the ends of what is published."""
    if cost.ends_with_its_instance:
        return "with its instance"
    if cost.loss is None:
        return UNKNOWN
    low, high = _percent(cost.loss.low), _percent(cost.loss.high)
    return low if low == high else f"{low} to {high}"


def front(cost: ArmCost, rate: str = "TPS") -> str:
    """By which measure the arm is on the cost front; ``rate`` is what its figures count in a second."""
    if not cost.front:
        return UNKNOWN
    return " and ".join(rate if name == "tps" else _FRONTS[name] for name, on in cost.front.items() if on) or "no"


def gib(size_bytes: int | None) -> str:
    """A capacity in GiB, as providers sell it."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / GIB:,.0f} GiB"


def _at_equal_size(arms: list[ArmCost]) -> list[tuple[int, Row]]:
    if not _unequal(arms):
        return []
    size = gib(arms[0].equal_size_bytes)
    month = tuple(money(one.usd_per_month_at_equal_size) for one in arms)
    million = tuple(money(one.usd_per_million_transactions_at_equal_size) for one in arms)
    return [
        (EQUAL, Row(f"US$ a month at {size}", month)),
        (MILLION_EQUAL, Row(f"US$ per million transactions at {size}", million)),
    ]


def _unequal(arms: list[ArmCost]) -> bool:
    return any(one.size_bytes != one.equal_size_bytes for one in arms if one.equal_size_bytes is not None)


def _percent(share: float) -> str:
    percent = share * 100
    return f"< {PERCENT_MIN:f}".rstrip("0") + " %" if percent < PERCENT_MIN else f"{percent:.2g} %"

"""Goals: conditions that an arm must meet to be recommended, as people write them: ``tps>=2000, p99<=20ms``.

A goal changes what is recommended and nothing that is measured. Whether an arm meets it, :mod:`pgdyno.analysis.choice` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from .errors import InputError

EXAMPLE: Final = "tps>=2000, p99<=20ms"
LENGTH_MAX: Final = 500
"""Characters of a goal; ten conditions need a third of them."""
TIMES_S: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_PART = re.compile(
    r"([A-Za-z][A-Za-z0-9_]*)\s*(>=|<=|=>|=<|==|=|>|<|≥|≤)\s*(\$?)(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z%/]*)"
)
_OPERATORS: Final = {">=": ">=", "≥": ">=", "<=": "<=", "≤": "<=", ">": ">", "<": "<"}


@dataclass(frozen=True)
class GoalFigure:
    """What a condition can be about."""

    name: str
    """As documents have it."""
    kind: Literal["count", "time", "money"]
    better: Literal["more", "less"]
    unit_s: float = 1.0
    """Seconds in the figure's own unit, if it is a time."""
    words: str = ""
    """``a p99 of``, before the value; empty where the value is followed by what it counts."""


FIGURES: Final = {
    "tps": GoalFigure("tps", "count", "more"),
    "nopm": GoalFigure("nopm", "count", "more"),
    "qps": GoalFigure("qps", "count", "more"),
    "mean": GoalFigure("latency_ms_mean", "time", "less", 1e-3, "a mean response time of"),
    "p50": GoalFigure("latency_ms_p50", "time", "less", 1e-3, "a median response time of"),
    "p95": GoalFigure("latency_ms_p95", "time", "less", 1e-3, "a p95 of"),
    "p99": GoalFigure("latency_ms_p99", "time", "less", 1e-3, "a p99 of"),
    "response": GoalFigure("response_ms", "time", "less", 1e-3, "a mean response time of"),
    "late": GoalFigure("replay_late_s", "time", "less", 1.0, "an end that is late by"),
    "seconds": GoalFigure("seconds", "time", "less", 1.0, "a time of"),
    "geomean": GoalFigure("geomean_s", "time", "less", 1.0, "a geometric mean of"),
    "price": GoalFigure("usd_per_month", "money", "less"),
}
"""Name in a goal -> the figure."""
_TRANSACTIONS: Final = ("tps", "nopm")
_MEASURED_WITH: Final = {
    "tps": _TRANSACTIONS,
    "qps": _TRANSACTIONS,
    "nopm": ("nopm",),
    "mean": (*_TRANSACTIONS, "response_ms"),
    "p50": (*_TRANSACTIONS, "response_ms"),
    "p95": (*_TRANSACTIONS, "response_ms"),
    "p99": (*_TRANSACTIONS, "response_ms"),
    "response": ("response_ms",),
    "late": ("response_ms",),
    "seconds": ("seconds",),
    "geomean": ("geomean_s",),
}
"""Name in a goal -> headlines of the workloads that have the figure; a price goes with each."""


@dataclass(frozen=True)
class GoalCondition:
    """One condition of a goal."""

    name: str
    """As it is written: ``p99``."""
    operator: str
    """``>=``, ``<=``, ``>`` or ``<``."""
    value: float
    """In the figure's own unit, as documents have it: milliseconds of ``latency_ms_p99``."""
    written: str
    """The value with its unit: ``20 ms``."""

    @property
    def figure(self) -> GoalFigure:
        """What it is about."""
        return FIGURES[self.name]

    @property
    def words(self) -> str:
        """``p99 <= 20 ms``."""
        return f"{self.name} {self.operator} {self.written}"

    def met_by(self, value: float) -> bool:
        """Whether a figure's value is good enough."""
        return {
            ">=": value >= self.value,
            "<=": value <= self.value,
            ">": value > self.value,
            "<": value < self.value,
        }[self.operator]

    def shortfall(self, value: float) -> float:
        """How many times the value would have to be better; 1 or less where it is good enough."""
        if self.figure.better == "more":
            return math.inf if value <= 0 else self.value / value
        return value / self.value


@dataclass(frozen=True)
class Goal:
    """Conditions that must all be met."""

    conditions: tuple[GoalCondition, ...]

    @property
    def words(self) -> str:
        """``tps >= 2000 and p99 <= 20 ms``."""
        return " and ".join(condition.words for condition in self.conditions)


def parse_goal(text: str, what: str) -> Goal:
    """The goal in a text; ``what`` is the flag or the key that an :class:`InputError` names, with the part that is wrong."""
    try:
        return read_goal(text)
    except InputError as error:
        raise InputError(
            f"{what}: {error.message}", remedy=error.remedy, code=error.code, data=error.data | {"flag": what}
        ) from None


def read_goal(text: str) -> Goal:
    """The goal in a text; an :class:`InputError` names the part that is wrong."""
    if len(text) > LENGTH_MAX:
        raise InputError(
            f"a goal of {len(text):,} characters is too long",
            remedy=f"write at most {LENGTH_MAX} characters, for example {EXAMPLE}",
            code="goal.too_long",
            data={"characters": len(text), "characters_max": LENGTH_MAX},
        )
    if not text.strip():
        raise _wrong(text, "the goal is empty", f"write it as {EXAMPLE}", "empty")
    return Goal(tuple(_condition(part.strip()) for part in text.split(",")))


def require_measured(goal: Goal, headlines: Collection[str]) -> None:
    """Refuse a goal about a figure that no workload with these headlines measures: better than after the runs."""
    for condition in goal.conditions:
        if not any(headline in _MEASURED_WITH.get(condition.name, headlines) for headline in headlines):
            known = [
                name
                for name in FIGURES
                if any(headline in _MEASURED_WITH.get(name, headlines) for headline in headlines)
            ]
            raise _wrong(
                condition.words,
                f"`{condition.words}`: this workload does not measure {condition.name}",
                f"use {', '.join(known)}",
                "figure.unmeasured",
            )


def _condition(part: str) -> GoalCondition:
    match = _PART.fullmatch(part)
    if match is None:
        digits = part.isascii() and part.isdigit()
        remedy = "write numbers without a thousands separator: 2000" if digits else f"write it as {EXAMPLE}"
        raise _wrong(part, f"`{part}` is not a condition", remedy, "part.unreadable")
    name, operator, dollar, number, unit = match.groups()
    figure = FIGURES.get(name.lower())
    if figure is None:
        raise _wrong(part, f"`{part}`: there is no figure `{name}`", f"use {', '.join(FIGURES)}", "figure.unknown")
    if operator not in _OPERATORS:
        better = ">=" if figure.better == "more" else "<="
        raise _wrong(
            part,
            f"`{part}`: `{operator}` is not a comparison",
            f"write {name}{better}{number}{unit}",
            "operator.unknown",
        )
    operator = _OPERATORS[operator]
    if (operator[0] == ">") is not (figure.better == "more"):
        right = operator.translate(str.maketrans("<>", "><"))
        raise _wrong(
            part,
            f"`{part}`: of {name.lower()} {figure.better} is better, so it needs {'a minimum' if figure.better == 'more' else 'a maximum'}",
            f"write {name.lower()}{right}{dollar}{number}{unit}",
            "direction.wrong",
        )
    value, written = _value(part, figure, dollar, number, unit)
    if value <= 0:
        raise _wrong(part, f"`{part}`: every arm or none meets 0", "write a value above 0", "value.zero")
    return GoalCondition(name.lower(), operator, value, written)


def _value(part: str, figure: GoalFigure, dollar: str, number: str, unit: str) -> tuple[float, str]:
    """The value in the figure's own unit, and in words."""
    if figure.kind == "time":
        if dollar or unit not in TIMES_S:
            missing = "has no unit" if not unit else f"`{unit}` is not a unit of time"
            raise _wrong(
                part, f"`{part}`: {number} {missing}" if not unit else f"`{part}`: {missing}",
                f"write {number}ms or {number}s", "unit.missing" if not unit else "unit.unknown",
            )  # fmt: skip
        return float(number) * TIMES_S[unit] / figure.unit_s, f"{number} {unit}"
    if unit or (dollar and figure.kind != "money"):
        raise _wrong(part, f"`{part}`: `{dollar or unit}` is not understood", f"write {number} alone", "unit.unknown")
    return float(number), f"${number} a month" if figure.kind == "money" else number


def _wrong(part: str, message: str, remedy: str, code: str) -> InputError:
    return InputError(message, remedy=remedy, code=f"goal.{code}", data={"part": part})

"""One finding about one run, and how serious it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "invalid", "unknown"]


@dataclass(frozen=True)
class Finding:
    """One check of one run."""

    check: str
    """What was looked at, the same words for every run."""
    level: Level
    figure: str
    """What was found, with its number and unit; a sentence's end without its full stop."""


def worst(levels: Iterable[Level]) -> Level:
    """The most serious of several levels; ``ok`` for none."""
    order: tuple[Level, ...] = ("ok", "unknown", "warn", "invalid")
    return max(levels, key=order.index, default="ok")


def graded(value: float, warn: float, invalid: float) -> Level:
    """The level of a value that is worse the larger it is."""
    return "invalid" if value > invalid else "warn" if value > warn else "ok"


def percent(share: float) -> str:
    """A share for people; a little is not nothing."""
    if share == 0:
        return "0 %"
    if share < 0.0005:
        return "< 0.1 %"
    return f"{share * 100:.1f} %"

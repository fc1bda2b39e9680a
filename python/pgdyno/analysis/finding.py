"""A finding about one run, and how serious it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "invalid", "unknown"]


@dataclass(frozen=True)
class CheckResult:
    """One check of one run."""

    check: str
    """What was looked at, the same words for every run."""
    level: Level
    figure: str
    """What was found, with its number and unit; a sentence's end without its full stop."""


def why_invalid(findings: Iterable[CheckResult]) -> tuple[str, ...]:
    """Why the numbers of a run must not be used, each reason with its check; empty for a valid run."""
    return tuple(f"{finding.check}: {finding.figure}" for finding in findings if finding.level == "invalid")


def worst(levels: Iterable[Level]) -> Level:
    """The most serious of several levels; ``ok`` for none."""
    order: tuple[Level, ...] = ("ok", "unknown", "warn", "invalid")
    return max(levels, key=order.index, default="ok")


def graded(value: float, warn: float, invalid: float) -> Level:
    """The level of a value that is worse the larger it is."""
    return "invalid" if value > invalid else "warn" if value > warn else "ok"

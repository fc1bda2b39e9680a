"""What a number of cuts shows, and what it does not exclude."""

from __future__ import annotations

import math


def excluded(cuts: int, confidence: float = 0.95) -> float:
    """The N of "fewer than 1 in N" after ``cuts`` cuts without a failure: at a larger share one would have failed with this
    confidence (for 95 %, the rule of three: Hanley and Lippman-Hand, JAMA 1983).

    It is of the instants and contents that were drawn from these recordings, which are not all that a device may leave.
    """
    return 1 / (1 - math.pow(1 - confidence, 1 / cuts))


def shown(cuts: int, confidence: float = 0.99) -> float:
    """The N of "a fault of 1 in N would have been seen with 99 %"."""
    return excluded(cuts, confidence)


def in_words(cuts: int, failures: int) -> str:
    """The verdict in one line."""
    if not cuts:
        return "no cut was made"
    if failures:
        return f"{failures:,} of {cuts:,} power cuts left a database that lost an acknowledged commit or is damaged"
    return (
        f"0 of {cuts:,} power cuts lost an acknowledged commit or left damage: fewer than 1 in {excluded(cuts):,.0f} do (95 %);"
        f" a fault of 1 in {shown(cuts):,.0f} would have been seen with 99 %"
    )

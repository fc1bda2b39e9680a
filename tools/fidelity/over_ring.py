"""The record of volumes whose requests arrive over io_uring, beside that by /dev/fuse: its claims, and no point worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fidelity import claims
from tools.fidelity.claim import Claim
from tools.fidelity.point import PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tools.fidelity.cell import Cell
    from tools.fidelity.point import Point

RATE = 0.005
"""Farther from the model than by /dev/fuse by so much at most: two measurements of one way differ by a third of it."""
ABOVE_LIMIT = 0.03
"""The same of each of p1 to p99 where requests wait for a limit."""
ALONE = 0.02
"""The same of the median of single requests; of those below half a millisecond the bar is that of io2bx."""
ALONE_SHORT, SHORT_NS = 0.05, 450e3
AT_LIMIT = 0.98
"""A job that does this share of what is asked waits for its limit."""


def cells(all_cells: Iterable[Cell]) -> list[Cell]:
    """What is measured over io_uring: pgdyno's own volumes."""
    return [cell for cell in all_cells if cell.world == "pgdyno"]


def judge(classic: Iterable[Point], ring: list[Point]) -> list[Claim]:
    """Every claim on the ring's own points, and that none of them is worse."""
    return [*claims.judge(ring), no_worse(classic, ring)]


def no_worse(classic: Iterable[Point], ring: list[Point]) -> Claim:
    """Rate, p1 to p99 above limits, and medians of single requests, point by point."""
    before = {point.cell: point for point in classic}
    faults, judged, largest = [], 0, (0.0, "")
    for point in ring:
        other = before.get(point.cell)
        if other is None or point.modelled is None or other.modelled is None:
            continue
        for what, allowed, here, there in _errors(point, other):
            judged += 1
            worse = abs(here) - abs(there)
            name = f"{point.cell.volume} {point.cell.job}: {what}"
            largest = max(largest, (worse, name))
            if worse > allowed:
                faults.append(f"{name} {here:+.2%}, by /dev/fuse {there:+.2%}")
    worst = f"{len(faults)} of {judged}; farther by {largest[0]:.2%} at most ({largest[1]})"
    bar = f"rate by {RATE:.1%}, p1 to p99 above limits by {ABOVE_LIMIT:.0%}, medians at depth 1 by {ALONE:.0%} to {ALONE_SHORT:.0%}"
    return Claim(
        "over io_uring: farther from the model than by /dev/fuse", f"none: {bar}", worst, not faults, tuple(faults)
    )


def _errors(point: Point, other: Point) -> Iterator[tuple[str, float, float, float]]:
    """What is compared: its name, how much worse it may be, its error, and that by /dev/fuse."""
    yield "rate", RATE, _error(point.measured.iops, _iops(point)), _error(other.measured.iops, _iops(other))
    asked = point.asked_iops
    if point.cell.job.depth == 1:
        allowed = ALONE_SHORT if _median_ns(point) < SHORT_NS else ALONE
        yield "p50", allowed, _percentile_error(point, 50.0), _percentile_error(other, 50.0)
    elif asked is not None and _iops(point) >= AT_LIMIT * asked:
        for percent in PERCENTILES:
            yield f"p{percent:g}", ABOVE_LIMIT, _percentile_error(point, percent), _percentile_error(other, percent)


def _iops(point: Point) -> float:
    return point.modelled.iops if point.modelled else 0.0


def _median_ns(point: Point) -> float:
    return point.modelled.percentile_ns(50.0) if point.modelled else 0.0


def _percentile_error(point: Point, percent: float) -> float:
    modelled = point.modelled.percentile_ns(percent) if point.modelled else 0.0
    return _error(point.measured.percentile_ns(percent), modelled)


def _error(found: float, wanted: float) -> float:
    return found / wanted - 1 if wanted else 0.0

"""What pgdyno claims of every type, of arrays and instances, and of dilation: judged on the part ``types``."""

from __future__ import annotations

from collections.abc import Callable

from tools.fidelity import kinds
from tools.fidelity.cell import Cell
from tools.fidelity.claim import Claim, of_errors
from tools.fidelity.point import Point

Points = dict[Cell, Point]

RATE_ERROR = 0.01
"""Of a job of seconds, or one request: the record's bar for a single second."""
MEDIAN_ERROR, QUICK_MEDIAN_ERROR, QUICK_NS = 0.02, 0.05, 450_000
"""The record's bars for gp3 and, below that median (real time, as it is held against real microseconds), for io2bx."""
PACED = 0.99
"""At this share of its limit a volume paces single requests: one that comes late waits the less, and only all of them
together can be held against the model."""
ARRAY_ERROR = 0.01
INSTANCE_ERROR = 0.003
CLOSE_SHARE = 0.99


def rate_of_types(points: Points) -> Claim:
    """Each type's rate, at its default and at the most, is its limit's; or less, where service time keeps it below."""
    errors, allowed = {}, {}
    for cell in kinds.cells():
        point = points[cell]
        if cell.job.depth > 1 and cell.instance is None:
            assert point.modelled is not None
            wanted = min(point.modelled.iops, point.asked_iops or point.modelled.iops)
            errors[said(point)] = point.measured.iops / wanted - 1
            allowed[said(point)] = max(RATE_ERROR, cell.dilation / (wanted * cell.job.seconds))
    return _within("every type: rate of a short job", f"within {RATE_ERROR:.0%} or one request", errors, allowed)


def single_of_types(points: Points) -> Claim:
    """Each type's single requests take what the model says of the same ones.

    They are few in a short job: the error is that of each against itself, and not of one median against another.
    """
    errors, allowed = {}, {}
    for cell in kinds.cells():
        point = points[cell]
        if cell.job.depth == 1:
            assert point.modelled is not None
            assert point.paired is not None
            quick = point.modelled.percentile_ns(50) * cell.dilation < QUICK_NS
            paced = point.asked_iops is not None and point.modelled.iops > PACED * point.asked_iops
            medians = point.measured.percentile_ns(50) / point.modelled.percentile_ns(50) - 1
            errors[said(point)] = medians if paced else point.paired.median_error
            allowed[said(point)] = QUICK_MEDIAN_ERROR if quick else MEDIAN_ERROR
    bar = f"within {MEDIAN_ERROR:.0%}, below {QUICK_NS / 1e6:g} ms within {QUICK_MEDIAN_ERROR:.0%}"
    return _within("every type: median error at depth 1, each request against its own", bar, errors, allowed)


def array_of_four(points: Points) -> Claim:
    """Four volumes striped have four times the rate of one."""
    result, four = (points[cell] for cell in kinds.array())
    error = four.measured.iops / (4 * result.measured.iops) - 1
    return of_errors("RAID-0 of four: 4 x the IOPS of one", ARRAY_ERROR, {said(four): error})


def shared_instance(points: Points) -> Claim:
    """Two volumes behind an instance have what it has."""
    point = points[kinds.shared()]
    assert point.asked_iops is not None, "the volumes and their instance have limits"
    name = f"two of 10,000 IOPS behind an instance of {point.asked_iops:,.0f}: their sum"
    return of_errors(name, INSTANCE_ERROR, {said(point): point.measured.iops / point.asked_iops - 1})


def close_when_dilated(points: Points) -> Claim:
    """Single requests one by one as fio timed them; of many together those that the daemon released in time."""
    shares = {}
    for cell in kinds.cells():
        point = points[cell]
        if cell.dilation == kinds.DILATION and point.paired is not None:
            shares[said(point)] = point.paired.close_share
        elif cell in list(kinds.dilated()):
            assert point.daemon is not None
            shares[said(point)] = 1 - point.daemon.late / point.daemon.requests
    faults = tuple(f"{what}: {share:.2%}" for what, share in shares.items() if share < CLOSE_SHARE)
    what, least = min(shares.items(), key=lambda item: item[1])
    name = f"dilation {kinds.DILATION}: requests within 5 % of their modelled time"
    return Claim(name, f"{CLOSE_SHARE:.0%} at least", f"{least:.2%} at least ({what})", not faults, faults)


CLAIMS: dict[str, Callable[[Points], Claim]] = {
    claim.__name__: claim
    for claim in (rate_of_types, single_of_types, array_of_four, shared_instance, close_when_dilated)
}


def said(point: Point) -> str:
    """A point in a line."""
    cell = point.cell
    instance = "" if cell.instance is None else f" on {cell.instance}"
    dilated = "" if cell.dilation == 1 else f", dilation {cell.dilation}"
    return f"{cell.volume}{instance} {cell.job}{dilated}"


def _within(name: str, bar: str, errors: dict[str, float], allowed: dict[str, float]) -> Claim:
    """A claim with a bar for each point; the worst is the one that is nearest to its own."""
    faults = tuple(f"{what}: {error:+.2%}" for what, error in errors.items() if abs(error) > allowed[what])
    what, worst = max(errors.items(), key=lambda item: abs(item[1]) / allowed[item[0]])
    return Claim(name, bar, f"{worst:+.2%} of {len(errors)} ({what})", not faults, faults)

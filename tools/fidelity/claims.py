"""What pgdyno claims of an emulated volume, each with its bar, judged on the points of a record.

A claim looks at whole jobs: seconds from which the hypervisor took CPU time are left out only where single seconds are
judged, and a job with much of that was measured again (:mod:`tools.fidelity.measure`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from tools.fidelity import claims_of_kinds, kinds, matrix
from tools.fidelity.cell import Cell
from tools.fidelity.claim import Claim, of_errors
from tools.fidelity.point import PERCENTILES, Point

RATE_ERROR = 0.002
"""The rate is what is paid for; 0.2 % is well below what a difference of two volumes can show."""
SECOND_ERROR, SECOND_SHARE = 0.01, 0.99
"""Of single seconds; one request is allowed where it is more than the share."""
FIFO_ERROR = 0.03
GAMMA_ERROR = 0.10
GAMMA = {50.0: 0.84, 90.0: 1.94, 99.0: 3.32}
"""Percentiles of a gamma law of shape 2, in means."""
DEPTH_1_ERROR = {"gp3": {50.0: 0.02, 99.0: 0.05}, "io2bx": {50.0: 0.05, 99.0: 0.10}}
"""io2bx takes a third of gp3's time, and the same few microseconds weigh three times as much."""
DISTANCE, DISTANCE_REQUESTS = 0.03, 100_000


def judge(points: Iterable[Point]) -> list[Claim]:
    """Every claim. :class:`KeyError` with the cell when a point is missing."""
    by_cell = {point.cell: point for point in points}
    return [claim(by_cell) for claim in CLAIMS.values()]


def judge_part(part: str, points: Iterable[Point]) -> list[Claim]:
    """The claims that need no more than one part of the record."""
    by_cell = {point.cell: point for point in points}
    return [claim(by_cell) for claim in OF_PART.get(part, {}).values()]


def rate(points: dict[Cell, Point]) -> Claim:
    """The rate over a minute."""
    errors = {}
    for point in _rate_points(points):
        assert point.asked_iops is not None, "each of these volumes has a limit"
        errors[_job(point)] = point.measured.iops / point.asked_iops - 1
    return of_errors("rate over 60 s", RATE_ERROR, errors)


def seconds(points: dict[Cell, Point]) -> Claim:
    """The rate in single seconds."""
    judged, faults = 0, []
    for point in _rate_points(points):
        assert point.asked_iops is not None
        allowed = max(SECOND_ERROR, 1 / point.asked_iops)
        for second in point.steady_seconds:
            if second.steal_ticks == 0:
                judged += 1
                error = point.iops_of(second) / point.asked_iops - 1
                if abs(error) > allowed:
                    faults.append(f"{_job(point)}: a second with {error:+.2%}")
    share = 1 - len(faults) / judged if judged else 0.0
    return Claim(
        "rate in single seconds without host steal",
        f"within {SECOND_ERROR:.0%} or one request in {SECOND_SHARE:.0%} of them",
        f"{share:.1%} of {judged}",
        share >= SECOND_SHARE,
        tuple(faults),
    )


def fifo(points: dict[Cell, Point]) -> Claim:
    """The shape of latency above the limit, first come, first served."""
    point = points[Cell("rate", "pgdyno", *matrix.RATE_JOBS[0])]
    assert point.asked_iops is not None
    ideal_ns = point.cell.job.depth / point.asked_iops * 1e9
    errors = {f"p{p:g}": point.measured.percentile_ns(p) / ideal_ns - 1 for p in PERCENTILES}
    return of_errors("order=fifo at depth 32: p1 to p99 of depth / IOPS", FIFO_ERROR, errors)


def gamma(points: dict[Cell, Point]) -> Claim:
    """The shape of latency above the limit, as measured on EBS."""
    point = points[Cell("rate", "pgdyno", *matrix.RATE_JOBS[1])]
    measured = point.measured
    errors = {
        f"p{p:g}": measured.percentile_ns(p) / measured.latency.mean_ns / wanted - 1 for p, wanted in GAMMA.items()
    }
    shape = "/".join(f"{wanted:g}" for wanted in GAMMA.values())
    return of_errors(f"order=gamma at depth 32: p50/p90/p99 of {shape} x the mean", GAMMA_ERROR, errors)


def depth_1_gp3(points: dict[Cell, Point]) -> Claim:
    """Single requests of gp3."""
    return _depth_1(points, "gp3")


def depth_1_io2bx(points: dict[Cell, Point]) -> Claim:
    """Single requests of io2bx."""
    return _depth_1(points, "io2bx")


def distance(points: dict[Cell, Point]) -> Claim:
    """The whole distribution, below and above the limit."""
    faults, shown = [], []
    for cell in (matrix.KS_CELL, Cell("rate", "pgdyno", *matrix.RATE_JOBS[1])):
        point = points[cell]
        assert point.modelled is not None
        distance, requests = point.measured.latency.distance(point.modelled.latency), point.measured.latency.total
        shown.append(f"{distance:.3f} of {requests:,} at depth {cell.job.depth}")
        if distance > DISTANCE or requests < DISTANCE_REQUESTS:
            faults.append(f"{_job(point)}: {shown[-1]}")
    bar = f"at most {DISTANCE:g} over {DISTANCE_REQUESTS:,} requests"
    return Claim("gp3: KS distance of measured and modelled latency", bar, ", ".join(shown), not faults, tuple(faults))


def replay(points: dict[Cell, Point]) -> Claim:
    """The model says the same again."""
    counts = [(p.daemon.replay_identical, p.daemon.replay_grants, _job(p)) for p in points.values() if p.daemon]
    faults = tuple(f"{job}: {identical:,} of {grants:,}" for identical, grants, job in counts if identical != grants)
    total = sum(grants for _, grants, _ in counts)
    return Claim(
        "replay of every log in virtual time", "identical to the nanosecond", f"{total:,} requests", not faults, faults
    )


CLAIMS: dict[str, Callable[[dict[Cell, Point]], Claim]] = {
    claim.__name__: claim for claim in (rate, seconds, fifo, gamma, depth_1_gp3, depth_1_io2bx, distance, replay)
} | claims_of_kinds.CLAIMS
OF_PART = {kinds.PART: claims_of_kinds.CLAIMS}


def _rate_points(points: dict[Cell, Point]) -> list[Point]:
    return [points[Cell("rate", "pgdyno", volume, job)] for volume, job in matrix.RATE_JOBS]


def _depth_1(points: dict[Cell, Point], kind: str) -> Claim:
    """The error of each percentile is the middle one of the repetitions: one burst of a neighbour does not decide."""
    errors: dict[tuple[str, float], list[float]] = {}
    for repetition in range(1, matrix.REPETITIONS + 1):
        for cell in matrix.depth_1(repetition):
            if cell.volume.startswith(f"{kind}:"):
                modelled = points[cell].modelled
                assert modelled is not None
                for p in DEPTH_1_ERROR[kind]:
                    error = points[cell].measured.percentile_ns(p) / modelled.percentile_ns(p) - 1
                    errors.setdefault((cell.job.mix, p), []).append(error)
    middle = {key: median(error) for key, error in errors.items()}
    faults = tuple(
        f"{mix} p{p:g}: {error:+.1%} (of {', '.join(f'{value:+.1%}' for value in sorted(errors[mix, p]))})"
        for (mix, p), error in middle.items()
        if abs(error) > DEPTH_1_ERROR[kind][p]
    )
    text = ", ".join(f"{mix} p{p:g} {error:+.1%}" for (mix, p), error in middle.items())
    bar = ", ".join(f"p{p:g} within {allowed:.0%}" for p, allowed in DEPTH_1_ERROR[kind].items())
    return Claim(f"{kind} at depth 1, of the model's", bar, text, not faults, faults)


def _job(point: Point) -> str:
    return f"{point.cell.volume} {point.cell.job}"

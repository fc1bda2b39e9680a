"""Each claim holds on a record that is as the model says, and is broken by what it is about."""

from __future__ import annotations

import pytest

from tests.fidelity import synthetic
from tools.fidelity import matrix
from tools.fidelity.cell import Cell
from tools.fidelity.claims import CLAIMS, judge
from tools.fidelity.point import Point, Side

RATE = Cell("rate", "pgdyno", *matrix.RATE_JOBS[2])
FIFO = Cell("rate", "pgdyno", *matrix.RATE_JOBS[0])
GAMMA = Cell("rate", "pgdyno", *matrix.RATE_JOBS[1])
GP3_READ, GP3_WRITE, IO2_READ, _ = matrix.depth_1(1)


def faster(side: Side, factor: float) -> Side:
    """All latencies times ``factor``."""
    return side.model_copy(update={"latency_ns": [(round(value * factor), count) for value, count in side.latency_ns]})


def spoilt(point: Point, how: str) -> Point:
    """A point with one thing wrong."""
    if how == "rate":
        measured = point.measured.model_copy(update={"iops": point.measured.iops * 0.997})
        return point.model_copy(update={"measured": measured})
    if how == "seconds":
        slow = [second.model_copy(update={"bytes": second.bytes * 9 // 10}) for second in point.seconds[10:30]]
        return point.model_copy(update={"seconds": [*point.seconds[:10], *slow, *point.seconds[30:]]})
    if how == "replay":
        assert point.daemon is not None
        return point.model_copy(update={"daemon": point.daemon.model_copy(update={"replay_identical": 999})})
    return point.model_copy(update={"measured": faster(point.measured, float(how))})


def judged(changes: dict[Cell, str]) -> dict[str, bool]:
    points = [spoilt(p, changes[p.cell]) if p.cell in changes else p for p in synthetic.record()]
    return {name: claim.holds for name, claim in zip(CLAIMS, judge(points), strict=True)}


def test_a_record_as_the_model_says_holds_every_claim() -> None:
    asked_errors = [claim for claim in judge(synthetic.record()) if not claim.holds]
    assert not asked_errors


@pytest.mark.parametrize(
    ("cells", "how", "broken"),
    [
        ([RATE], "rate", "rate"),
        ([RATE], "seconds", "seconds"),
        ([FIFO], "1.05", "fifo"),
        ([matrix.KS_CELL], "1.1", "distance"),
        ([RATE], "replay", "replay"),
    ],
)
def test_what_is_wrong_breaks_its_claim_and_no_other(cells: list[Cell], how: str, broken: str) -> None:
    document = judged(dict.fromkeys(cells, how))
    assert [name for name, holds in document.items() if not holds] == [broken]


def test_a_shape_that_is_not_gamma_breaks_two_claims() -> None:
    """The FIFO point in the place of the gamma one: constant latency."""
    points = {p.cell: p for p in synthetic.record()}
    points[GAMMA] = points[GAMMA].model_copy(update={"measured": points[FIFO].measured})
    assert [name for name, claim in zip(CLAIMS, judge(points.values()), strict=True) if not claim.holds] == [
        "gamma",
        "distance",
    ]


def test_one_of_three_repetitions_does_not_decide_and_two_do() -> None:
    second, third = (next(iter(matrix.depth_1(repetition))) for repetition in (2, 3))
    assert all(judged({GP3_READ: "1.04"}).values())
    document = judged({second: "1.04", third: "1.04"})
    assert [name for name, holds in document.items() if not holds] == ["depth_1_gp3"]


def test_io2bx_is_allowed_what_gp3_is_not() -> None:
    cells = [cell for repetition in (1, 2, 3) for cell in matrix.depth_1(repetition)]
    document = judged(dict.fromkeys(cells, "1.04"))
    assert not document["depth_1_gp3"]
    assert document["depth_1_io2bx"]


def test_a_second_with_steal_is_not_judged() -> None:
    points = {p.cell: p for p in synthetic.record()}
    stolen = [second.model_copy(update={"bytes": 0, "steal_ticks": 30}) for second in points[RATE].seconds[10:30]]
    seconds = [*points[RATE].seconds[:10], *stolen, *points[RATE].seconds[30:]]
    points[RATE] = points[RATE].model_copy(update={"seconds": seconds})
    assert all(claim.holds for claim in judge(points.values()))


def test_a_missing_point_is_no_success() -> None:
    with pytest.raises(KeyError):
        judge(p for p in synthetic.record() if p.cell != FIFO)

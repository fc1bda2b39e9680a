"""The record over io_uring: what is measured for it, and that a point farther from the model than by /dev/fuse is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fidelity import synthetic
from tools.fidelity import __main__ as program
from tools.fidelity import matrix, over_ring, page
from tools.fidelity.claims import CLAIMS

if TYPE_CHECKING:
    from tools.fidelity.cell import Cell
    from tools.fidelity.point import Point

CELLS = over_ring.cells(matrix.cells())
ALONE = next(cell for cell in CELLS if cell.part == "depth-1")
MANY = next(cell for cell in CELLS if cell.part == "rate" and cell.job.depth == 32)


def record(**scaled: tuple[Cell, float]) -> list[Point]:
    """Points as the model says; ``iops`` and ``latency`` of a cell are so many times as large."""
    points = [point for point in synthetic.record() if point.cell.world == "pgdyno"]
    for what, (cell, factor) in scaled.items():
        at = CELLS.index(cell)
        side = points[at].measured
        if what == "iops":
            side = side.model_copy(update={"iops": side.iops * factor})
        else:
            bins = [(round(value * factor), count) for value, count in side.latency_ns]
            side = side.model_copy(update={"latency_ns": bins})
        points[at] = points[at].model_copy(update={"measured": side})
    return points


def test_every_volume_of_pgdynos_is_measured_and_no_peer() -> None:
    assert {cell.world for cell in CELLS} == {"pgdyno"}
    assert {cell.part for cell in CELLS} == set(matrix.parts())
    root, cells = program.place("uring")
    assert (root, cells) == (program.RESULTS / "uring", CELLS)
    assert program.place("classic") == (program.RESULTS, matrix.cells())


def test_a_record_as_the_model_says_holds_every_claim_and_is_on_the_page() -> None:
    judged = over_ring.judge(synthetic.record(), record())
    assert len(judged) == len(CLAIMS) + 1
    assert [str(claim) for claim in judged if not claim.holds] == []
    text = page.over_ring(synthetic.MACHINE, record(), judged)
    for claim in judged:
        assert f"| {claim.name} | {claim.bar} | {claim.found} | yes |" in text


@pytest.mark.parametrize(
    ("what", "cell", "factor", "faults"),
    [
        ("iops", MANY, 0.994, ["rate"]),
        ("iops", MANY, 0.996, []),
        ("latency", ALONE, 1.03, ["p50"]),
        ("latency", ALONE, 1.01, []),
        ("latency", MANY, 1.05, ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]),
    ],
)
def test_what_is_worse_is_named_where_it_is_not_as_bad_by_dev_fuse(
    what: str, cell: Cell, factor: float, faults: list[str]
) -> None:
    spoilt = record(**{what: (cell, factor)})
    claim = over_ring.no_worse(synthetic.record(), spoilt)
    assert [fault.split(": ")[1].split(" ")[0] for fault in claim.faults] == faults
    assert claim.holds is not bool(faults)
    assert over_ring.no_worse(spoilt, spoilt).holds, "as far from the model either way"

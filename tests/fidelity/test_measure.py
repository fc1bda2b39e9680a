"""What is measured again, and which try stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fidelity import synthetic
from tools.fidelity import matrix, measure
from tools.fidelity.device import Bench
from tools.fidelity.point import Point


@pytest.mark.parametrize(
    ("steal_ticks", "kept", "tries"),
    [([0], 0, 1), ([50, 1], 1, 2), ([50, 9, 20], 1, 3)],
    ids=["quiet at once", "quiet the second time", "never quiet"],
)
def test_the_try_from_which_least_was_stolen_stays(
    monkeypatch: pytest.MonkeyPatch, steal_ticks: list[int], kept: int, tries: int
) -> None:
    """Ticks of a job's each second: two of a hundred are 1 % of two cores."""
    cell = matrix.cells()[0]
    made: list[Point] = []

    def once(_cell: object, _bench: object) -> Point:
        seconds = [synthetic.second(index, 3000, 4, steal_ticks[len(made)]) for index in range(10)]
        made.append(synthetic.point(cell, number=len(made)).model_copy(update={"seconds": seconds}))
        return made[-1]

    monkeypatch.setattr(measure, "_once", once)
    unused = Path("unused")
    point = measure.measure(cell, Bench(folder=unused, image=unused, file=unused, state_dir=unused), cores=2)
    assert (point.begin, point.tries, len(made)) == (made[kept].begin, tries, tries)

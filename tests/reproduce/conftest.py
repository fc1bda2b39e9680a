"""A document with one comparison, its experiment files, and recorded runs of them that nobody made."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base import installation
from pgdyno.published.library import DocumentLibrary, library
from tests.analysis.synthetic import GP3, IO2BX, Arm, Plan, make_experiment
from tests.experiment.documents import FAKE
from tests.published.conftest import GOOD

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = """
[comparison.answer]
experiment = "trial"
metric = "tps"
high = { "world.volume" = "io2bx:size=100GiB,iops=16000" }
low = { "world.volume" = "gp3:size=100GiB" }
cause = "the disks are slow"
[[comparison.answer.varied]]
what = "memory"
choice = "32 GiB"
experiment = "larger"
high = { "world.volume" = "io2bx:size=100GiB,iops=16000" }
low = { "world.volume" = "gp3:size=100GiB" }
"""
RUNS = """
[[run]]
experiment = "trial"
[[run]]
experiment = "larger"
full_only = true
[[comparison]]
"""
ROWS = (
    'rows = [["1-1", 2, 10.5, 210.0], ["1-1", 4, 20, 400]]',
    'rows = [["1-1", 200, 20, 400], ["1-1", 100, 10, 200]]',
)
CHART = """[[chart]]
name = "TPS by size"
column = "cells_tps"
x = "vcpus"
x_title = "GiB"
experiment = "trial"
metric = "tps"
factor = "world.volume"
level = "gp3:size={vcpus}GiB"
full_only_above = 100
[[chart.line]]
name = "gp3"
where = { table = "1-1" }
[[arithmetic]]
"""
FILE = FAKE.replace("clients = 4", "clients = 64").replace(
    '["gp3", "io2bx"]', '["gp3:size=100GiB", "io2bx:size=100GiB,iops=16000"]'
)
"""The made-up world does 1,000 transactions a second on this gp3, and 4,000 on this io2bx."""


@dataclass(frozen=True)
class Shelf:
    """A folder that stands for what came with pgdyno, and one of results."""

    root: Path
    results: Path

    def write(self, *changes: tuple[str, str], name: str = "post") -> DocumentLibrary:
        """Write the document with parts replaced (old, new)."""
        text = GOOD.replace('unanswered = "nobody ran it"\n', ANSWER, 1).replace("[[comparison]]\n", RUNS, 1)
        for old, new in (('name = "post"', f'name = "{name}"'), *changes):
            assert old in text, old
            text = text.replace(old, new, 1)
        (self.root / "catalog" / "published" / f"{name}.toml").write_text(text)
        return library()

    def charted(self, *changes: tuple[str, str]) -> DocumentLibrary:
        """Write it with a chart of two points, of which the experiment file has the first."""
        return self.write(ROWS, ("[[arithmetic]]\n", CHART), *changes)

    def record(self, name: str = "trial", tps: float = 3000, low: Arm = GP3, **plan: Any) -> Path:
        """Record runs of an experiment file, in which io2bx does ``tps`` and gp3 1,000 transactions a second."""
        arms = (replace(low, factors=(), spread=0.002), replace(IO2BX, tps=tps, spread=0.002))
        directory = make_experiment(self.results / name, replace(Plan(arms=arms, measure_s=20), **plan))
        file = directory / "experiment.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"name": name}))
        return directory.rename(self.results / f"{name}-{directory.name}")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The shelf, with the document as it is and both experiment files."""
    root = tmp_path / "came"
    for folder in ("catalog/published", "experiments"):
        (root / folder).mkdir(parents=True)
    monkeypatch.setattr(installation, "data_folder", lambda name: root / name)
    for name in ("trial", "larger"):
        (root / "experiments" / f"{name}.toml").write_text(FILE)
    shelf = Shelf(root, tmp_path / "results")
    shelf.results.mkdir()
    shelf.write()
    return shelf

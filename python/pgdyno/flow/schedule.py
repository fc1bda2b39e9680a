"""Which run is made next: the planned ones in their order; then, while a budget lasts, more of the arms that scatter most.

A run counts from its directory, so an experiment that is continued makes what an uninterrupted one would have made: what a further
block has is decided by the blocks before it, and where a run stands in it by the seed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pgdyno.experiment import Cell, Experiment

from ..analysis import statistics
from ..analysis.run import headline_of
from ..analysis.statistics import Group, Scatter
from ..results import open_experiment
from ..results.record import RunRecord

CellSeconds = Callable[["Cell"], float]
"""Estimate of how long a run takes."""


@dataclass(frozen=True)
class Allowance:
    """How long the runs may still take; endless without a limit."""

    at_once_s: float = math.inf
    """For this invocation (``--budget``)."""
    in_all_s: float = math.inf
    """For the experiment, whenever its runs were made (``budget`` of the file)."""
    spent_s: float = 0.0
    """Of that, by runs that were there."""
    began_s: float = field(default_factory=time.monotonic)

    @property
    def of_file(self) -> bool:
        """Whether it is the file's budget that ends first, which ``--budget`` cannot lengthen."""
        return self.in_all_s - self.spent_s < self.at_once_s

    @property
    def left_s(self) -> float:
        """What is left of the shorter one."""
        elapsed_s = time.monotonic() - self.began_s
        return min(self.at_once_s - elapsed_s, self.in_all_s - self.spent_s - elapsed_s)


def allowance(experiment: Experiment, directory: Path | None, budget_s: float | None) -> Allowance:
    """What an experiment may take; ``directory`` is the one that is continued."""
    runs = () if directory is None else open_experiment(directory).runs
    spent_s = math.fsum(seconds_of(run.record) for run in runs)
    asked_s = experiment.file.budget_s
    return Allowance(math.inf if budget_s is None else budget_s, math.inf if asked_s is None else asked_s, spent_s)


def seconds_of(run: RunRecord) -> float:
    """What a run took, all in all."""
    return math.fsum(run.seconds.values())


def further(
    experiment: Experiment, directory: Path, left_s: Callable[[], float], estimate: CellSeconds
) -> Iterator[Cell]:
    """Runs beyond the planned replicates, as long as they fit into what is left.

    Each must be in ``directory`` when the next one is asked for. A block that has no run that fits is the end.
    """
    for cells in islice(experiment.blocks(), experiment.replicates, None):
        records = [run.record for run in open_experiment(directory).runs]
        there = {record.position for record in records}
        lacking = [cell for cell in cells if cell.position not in there]
        scatter = scatter_of(record for record in records if record.block < cells[0].block)
        wanted = _fitting(statistics.chosen(scatter, _groups(experiment)), lacking, scatter, left_s(), estimate)
        if not wanted:
            return
        for cell in lacking:
            if cell.arm.index in wanted:
                if _seconds(cell, scatter, estimate) > left_s():
                    return
                yield cell


def scatter_of(records: Iterable[RunRecord]) -> dict[int, Scatter]:
    """What runs have shown, by the index of their arm; one that did nothing shows nothing but its time."""
    logs: dict[int, list[float]] = {}
    seconds: dict[int, list[float]] = {}
    for record in records:
        value = headline_of(record).of(record)
        logs.setdefault(record.arm_index, []).extend([math.log(value)] if value > 0 else [])
        seconds.setdefault(record.arm_index, []).append(seconds_of(record))
    return {
        arm: statistics.Scatter(tuple(values), math.fsum(seconds[arm]) / len(seconds[arm]), len(seconds[arm]))
        for arm, values in logs.items()
    }


def _groups(experiment: Experiment) -> list[Group]:
    alone = len(experiment.factors) < 2 or experiment.file.design == "one-at-a-time"
    return statistics.groups_of([tuple(arm.levels.values()) for arm in experiment.arms], alone)


def _fitting(
    groups: Sequence[Group], lacking: Sequence[Cell], scatter: dict[int, Scatter], left_s: float, estimate: CellSeconds
) -> set[int]:
    """Arms of the best groups that fit together; a long one is passed over for a shorter one.

    ``lacking`` are the cells of the block that have no run yet. What has one takes no time again: of an interrupted block
    its runs are off ``left_s`` already.
    """
    takes = {cell.arm.index: _seconds(cell, scatter, estimate) for cell in lacking}
    wanted: set[int] = set()
    for group in groups:
        if math.fsum(takes.get(arm, 0.0) for arm in wanted | group) <= left_s:
            wanted |= group
    return wanted


def _seconds(cell: Cell, scatter: dict[int, Scatter], estimate: CellSeconds) -> float:
    known = scatter.get(cell.arm.index)
    return estimate(cell) if known is None else known.seconds

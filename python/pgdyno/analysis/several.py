"""Several experiments with the same arms beside each other: by how much each arm is better than the first, in each, and over all.

The experiments may differ in anything else, as in a document that tries two volumes under four loads: each has ratios of its own,
paired by block. The mean over experiments is geometric, and has no interval: it is of these loads and of no others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.paired import by_block, figures_by_name, paired

from ..base.errors import InputError
from .statistics import Estimate

TIMES = ("latency_ms_p99", "read_ms_mean", "write_ms_mean")
"""Figures beside the one by which an experiment's arms are compared; less is better in each."""
MAIN = "main figure"
"""What that one is called where experiments have different ones: transactions in one, queries in another."""


@dataclass(frozen=True)
class ArmRow:
    """One figure of one arm against the first arm."""

    arm: str
    figure: str
    gains: tuple[Estimate | None, ...]
    """How many times better in each experiment; None where it has no such figure, or runs of either arm are invalid."""

    @property
    def mean(self) -> float | None:
        """The geometric mean over the experiments that have it; None where none does."""
        known = [math.log(gain.mean) for gain in self.gains if gain is not None]
        return math.exp(math.fsum(known) / len(known)) if known else None


@dataclass(frozen=True)
class Several:
    """The experiments beside each other."""

    first: str
    """The arm that the others are compared with."""
    names: tuple[str, ...]
    """The experiments."""
    rows: tuple[ArmRow, ...]
    invalid: tuple[str, ...]
    """Arms with runs that must not be used, each with its experiment."""


def several(comparisons: Sequence[Comparison]) -> Several:
    """Put experiments beside each other. :class:`InputError` where they have not two arms in common."""
    arms = [{arm.volume: arm for arm in comparison.arms} for comparison in comparisons]
    common = [name for name in arms[0] if all(name in arm for arm in arms)]
    if len(common) < 2:
        raise InputError(
            "these experiments have no two arms in common, so there is nothing to sum up",
            remedy="name experiments with the same levels; `pgdyno runs` lists them",
        )
    first, *others = common
    titles = {of[first].metric.title for of in arms}
    main = titles.pop() if len(titles) == 1 else MAIN
    rows = [
        row
        for name in others
        for row in (
            ArmRow(name, main, tuple(_main(arm[name], arm[first]) for arm in arms)),
            *(
                ArmRow(name, title, tuple(_time(arm[name], arm[first], time) for arm in arms))
                for time, title in _titles()
            ),
        )
        if row.mean is not None
    ]
    invalid = [
        f"{name} of {each.experiment.name}"
        for each, of in zip(comparisons, arms, strict=True)
        for name in common
        if not of[name].valid
    ]
    return Several(first, tuple(comparison.experiment.name for comparison in comparisons), tuple(rows), tuple(invalid))


def _titles() -> list[tuple[str, str]]:
    known = figures_by_name()
    return [(name, known[name].title.removesuffix(", ms")) for name in TIMES]


def _main(arm: ArmSummary, first: ArmSummary) -> Estimate | None:
    over, under = (arm, first) if arm.metric.better == "more" else (first, arm)
    return paired(over.by_block, under.by_block).ratio if arm.valid and first.valid else None


def _time(arm: ArmSummary, first: ArmSummary, name: str) -> Estimate | None:
    of = figures_by_name()[name].of
    return paired(by_block(first, of), by_block(arm, of)).ratio if arm.valid and first.valid else None

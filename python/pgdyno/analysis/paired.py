"""Two arms of an experiment by any figure: their ratio, paired by block, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pgdyno.analysis.arm import ArmSummary, Replicate
from pgdyno.analysis.metric import METRICS, of_volume

from .figures import DATA
from .run import HEADLINES, RunFigures
from .statistics import Estimate, ratio_interval

Block = tuple[str, int]
"""The experiment and the number of a block: the runs of one block are compared with each other."""


Measured = TypeVar("Measured")
"""What has figures: a run, or a load."""


@dataclass(frozen=True)
class NamedFigure(Generic[Measured]):
    """A figure by the name that tables, CSV and JSON have for it."""

    name: str
    title: str
    unit: str
    of: Callable[[Measured], float | None]


@dataclass(frozen=True)
class PairOfArms:
    """Two arms by one figure."""

    high: float | None
    """The mean of the first arm over the blocks that have both, of all its replicates where none has; None without the figure."""
    low: float | None
    ratio: Estimate | None
    """None where no block has the figure of both, above zero."""


def figures_by_name() -> Mapping[str, NamedFigure[RunFigures]]:
    """Every headline, every metric of a run, and those of the volume of the data."""
    figures: dict[str, NamedFigure[RunFigures]] = {
        headline.name: NamedFigure(
            headline.name,
            headline.title,
            headline.short,
            lambda run, headline=headline: headline.of(run.record) or None,  # type: ignore[misc] # a default binds the loop's value
        )
        for headline in HEADLINES.values()
    }
    return figures | {
        item.name: NamedFigure(item.name, item.title, item.unit, item.of) for item in (*METRICS, *of_volume(DATA))
    }


def by_block(arm: ArmSummary, of: Callable[[RunFigures], float | None]) -> dict[Block, float]:
    """A figure of each replicate that has it, above zero."""
    return {replicate.block: value for replicate in arm.replicates if (value := _known(replicate, of))}


def paired(over: Mapping[Block, float], under: Mapping[Block, float]) -> PairOfArms:
    """Compare two arms by a figure of each of their blocks. The two figures are those that the ratio is made of."""
    pairs = [(value, under[block]) for block, value in over.items() if block in under]
    if not pairs:
        return PairOfArms(_mean(over.values()), _mean(under.values()), None)
    high, low = map(_mean, zip(*pairs, strict=True))
    return PairOfArms(high, low, ratio_interval(pairs))


def _known(replicate: Replicate, of: Callable[[RunFigures], float | None]) -> float | None:
    value = of(replicate.figures)
    return value if value is not None and value > 0 else None


def _mean(values: Collection[float]) -> float | None:
    return sum(values) / len(values) if values else None

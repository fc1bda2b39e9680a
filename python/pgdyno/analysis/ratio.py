"""Ratios of arms, paired by block, by the headline or any other figure; and the usual variation between runs and between hosts.

All runs of a block are made on one host, so the ratio of two arms contains whatever a host does to both. A block that is not whole lost
its host, or has not ended: its runs are left out, and another block takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pgdyno.analysis.arm import ArmSummary, Replicate
from pgdyno.analysis.metric import METRICS, of_volume

from ..results.record import HostRecord
from .figures import DATA
from .run import HEADLINES, RunFigures
from .statistics import (
    LEVEL,
    Estimate,
    detectable_difference,
    distinguishable,
    equivalent_within,
    ratio_interval,
    replicates_needed,
    t_quantile,
    unpaired_ratio,
)

PAIRED_MAX = 48
"""Arms of which every pair is compared: a thousand pairs. A larger sweep is read along its axes."""


@dataclass(frozen=True)
class Ratio:
    """The headline of one arm over that of another, paired by block."""

    index: int
    to_index: int
    estimate: Estimate | None
    """None when no block has a run of both."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1; False without an interval, which says nothing either way."""
        return self.estimate is not None and distinguishable(self.estimate)

    @property
    def has_interval(self) -> bool:
        """Whether the arms were run often enough for an interval: a single run of each has none."""
        return self.estimate is not None and self.estimate.low is not None

    @property
    def equivalent_within(self) -> float | None:
        """A difference of this or more is ruled out; None for one replicate."""
        return None if self.estimate is None else equivalent_within(self.estimate)

    @property
    def detectable(self) -> float | None:
        """The difference that replicates like these find in four experiments of five; None for one replicate."""
        return None if self.estimate is None else detectable_difference(self.estimate)

    @property
    def replicates_needed(self) -> int | None:
        """Replicates that would find :data:`~pgdyno.analysis.statistics.DIFFERENCE_OF_INTEREST` as often."""
        return None if self.estimate is None else replicates_needed(self.estimate)


def ratio_of(arm: ArmSummary, base: ArmSummary) -> Ratio:
    """One arm against another."""
    under = base.by_block
    pairs = [(value, under[block]) for block, value in arm.by_block.items() if block in under]
    return Ratio(arm.index, base.index, ratio_interval(pairs) if pairs else None)


def every_pair(arms: Sequence[ArmSummary]) -> tuple[Ratio, ...]:
    """Each arm against each one before it; nothing of more than :data:`PAIRED_MAX` arms."""
    if len(arms) > PAIRED_MAX:
        return ()
    return tuple(ratio_of(arm, base) for place, arm in enumerate(arms) for base in arms[:place])


def gain_of(arm: ArmSummary, base: ArmSummary) -> Estimate | None:
    """How many times faster one arm is than another, whichever way its headline is better; None where no block has both."""
    over, under = (arm, base) if arm.metric.better == "more" else (base, arm)
    return ratio_of(over, under).estimate


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


DEGREES_MIN = 2
"""One degree of freedom bounds nothing: its factor is 12.7."""


@dataclass(frozen=True)
class NoiseFloor:
    """How far apart two runs of one arm lie that were made in the same block."""

    difference: float
    """Relative: of 20 pairs 19 differ by less (0.02 is 2 %). A difference of two single runs below it says nothing."""
    degrees: int
    """Degrees of freedom that it rests on."""


def noise_floor(arms: Sequence[ArmSummary]) -> NoiseFloor | None:
    """From the blocks that have a run of every arm; None where they are too few."""
    by_arm = [arm.by_block for arm in arms]
    shared = [block for block in by_arm[0] if all(block in values for values in by_arm)]
    return floor_of([[math.log(values[block]) for block in shared] for values in by_arm])


def floor_of(logs: Sequence[Sequence[float]]) -> NoiseFloor | None:
    """From logarithms by arm and block. What an arm is and what a block's time was like are both taken out.

    The residuals are those of a two-way layout without interaction, (arms - 1) x (blocks - 1) degrees of freedom; of one
    arm alone, those around its mean, so that drift of the host is in it.
    """
    arms, blocks = len(logs), len(logs[0])
    degrees = (max(2, arms) - 1) * (blocks - 1)
    if degrees < DEGREES_MIN:
        return None
    of_arm = [math.fsum(row) / blocks for row in logs]
    whole = math.fsum(of_arm) / arms
    of_block = [math.fsum(row[place] for row in logs) / arms if arms > 1 else whole for place in range(blocks)]
    squares = math.fsum(
        (row[place] - of_arm[index] - of_block[place] + whole) ** 2
        for index, row in enumerate(logs)
        for place in range(blocks)
    )
    deviation = math.sqrt(squares / degrees)
    return NoiseFloor(math.expm1(t_quantile(degrees, LEVEL) * deviation * math.sqrt(2)), degrees)


@dataclass(frozen=True)
class UnpairedRuns:
    """Runs of a block that is not whole."""

    host: str
    block: int
    runs: int
    of: int
    """Arms: what a whole block has."""


@dataclass(frozen=True)
class SpreadHost:
    """One of the hosts."""

    name: str
    record: HostRecord
    blocks: int
    runs: int
    ratio: Estimate | None
    """Its headline over that of the first host; None for the first itself, and where no arm has a figure on both."""


def whole_blocks(figures: Sequence[RunFigures], arms: int) -> tuple[list[RunFigures], tuple[UnpairedRuns, ...]]:
    """The runs that are compared, and those that are left out because their block is not whole."""
    blocks: dict[tuple[str, int], list[RunFigures]] = {}
    for run in figures:
        blocks.setdefault((run.record.experiment_id, run.record.block), []).append(run)
    left = [runs for runs in blocks.values() if runs[0].record.world.host.label is not None and len(runs) < arms]
    out = {id(run) for runs in left for run in runs}
    unpaired = (
        UnpairedRuns(str(runs[0].record.world.host.label), runs[0].record.block, len(runs), arms) for runs in left
    )
    return [run for run in figures if id(run) not in out], tuple(unpaired)


def hosts_of(arms: Sequence[ArmSummary]) -> tuple[SpreadHost, ...]:
    """The hosts in the order of their names; none where the runs were made on the machine that was asked."""
    records = {
        host.label: host
        for arm in arms
        for replicate in arm.replicates
        if (host := replicate.figures.record.world.host).label is not None
    }
    logs = {name: [_logs(arm, name) for arm in arms] for name in sorted(records)}
    first = next(iter(logs), None)
    return tuple(
        SpreadHost(
            name,
            records[name],
            len(
                {
                    replicate.block
                    for arm in arms
                    for replicate in arm.replicates
                    if replicate.figures.record.world.host.label == name
                }
            ),
            sum(replicate.figures.record.world.host.label == name for arm in arms for replicate in arm.replicates),
            None if first is None or name == first else _ratio(of_arms, logs[first]),
        )
        for name, of_arms in logs.items()
    )


def _logs(arm: ArmSummary, name: str) -> list[float]:
    """Logarithms of the headlines of an arm on a host."""
    here = [replicate for replicate in arm.replicates if replicate.figures.record.world.host.label == name]
    return [math.log(replicate.headline) for replicate in here if replicate.headline > 0]


def _ratio(over: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> Estimate | None:
    """Paired by arm: each was run on both. A single arm leaves nothing to pair, and is compared by its blocks."""
    both = [(values, other) for values, other in zip(over, under, strict=True) if values and other]
    if not both:
        return None
    if len(both) == 1:
        results, other = ([math.exp(log) for log in side] for side in both[0])
        return unpaired_ratio(results, other)
    return ratio_interval([(_spread_mean(item), _spread_mean(other)) for item, other in both])


def _spread_mean(logs: Sequence[float]) -> float:
    return math.exp(math.fsum(logs) / len(logs))

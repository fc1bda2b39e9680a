"""What variation is normal here: by how much two runs of one arm differ, from the runs that were made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary

from .statistics import LEVEL, t_quantile

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

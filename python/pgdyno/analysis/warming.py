"""Transactions until a volume made from a snapshot is as fast as a warm one.

For reading and not for verdicts: it comes from the seconds of a run, so it has one value for each replicate, and all are shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.series import series_of

from ..base.specification import without_init
from .run import TPS

SHARE = 0.9
"""Within 10 % of warm: less than that is the noise of seconds."""
WINDOW_S = 5.0
"""TPS is the mean of this time: a checkpoint's second must not count as cold."""
FACTORS = ("world.restored", "world.volume", "world.volumes")


@dataclass(frozen=True)
class WarmingEffect:
    """A cold arm beside its warm one."""

    cold: ArmSummary
    warm: ArmSummary
    seconds: tuple[float | None, ...]
    """For each block that both have, the time from when measuring begins; None where it did not come to it."""
    measured_s: float
    """How long was measured."""


def warmings(factors: Sequence[Factor], arms: Sequence[ArmSummary]) -> tuple[WarmingEffect, ...]:
    """Each arm whose volumes were made from snapshots, and that has a warm one beside it: the same in all else that was varied."""
    of = [place for place, factor in enumerate(factors) if factor.name.split(".tablespace")[0] not in FACTORS]
    warm = [arm for arm in arms if not _is_cold(arm)]
    results = []
    for arm in arms:
        alike = [summary for summary in warm if all(summary.levels[place] == arm.levels[place] for place in of)]
        if not alike or not _is_cold(arm) or arm.metric is not TPS:
            continue
        beside = next((item for item in alike if _bought(item) == _bought(arm)), alike[0])
        results.append(_warming(arm, beside))
    return tuple(results)


def settles(tps: Sequence[float | None], warm_tps: float, bin_seconds: float) -> float | None:
    """When TPS is within 10 % of warm: the first instant at which that holds of the next seconds, and of all that follow; None if never."""
    values = [value or 0.0 for value in tps]
    bins = max(1, math.ceil(WINDOW_S / bin_seconds))
    least = SHARE * warm_tps
    for place in range(max(1, len(values) - bins + 1)):
        window, rest = values[place : place + bins], values[place:]
        if window and math.fsum(window) >= least * len(window) and math.fsum(rest) >= least * len(rest):
            return place * bin_seconds
    return None


def _warming(cold: ArmSummary, warm: ArmSummary) -> WarmingEffect:
    seconds = []
    for replicate in cold.replicates:
        if replicate.block in warm.by_block:
            series = series_of(replicate.figures.run)
            seconds.append(settles(series.columns["tps"], warm.by_block[replicate.block], series.bin_seconds))
    return WarmingEffect(cold, warm, tuple(seconds), cold.replicates[0].figures.record.measure.seconds)


def _is_cold(arm: ArmSummary) -> bool:
    return any(volume.resolved.get("initialization") for volume in arm.volumes.values())


def _bought(arm: ArmSummary) -> dict[str, str]:
    """Its volumes by role, whatever they were made from."""
    return {role: without_init(str(volume.resolved.get("spec", ""))) for role, volume in arm.volumes.items()}

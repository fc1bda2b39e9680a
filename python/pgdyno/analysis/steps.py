"""The steps of a set: from its cheapest arm to its fastest one, and the cheapest thing beyond that helps. One ladder for all arms.

An arm that was measured comes before anything that was not, so two arms of a set are never told to buy against each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pgdyno.analysis.binding.arm import ArmBinding
from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.binding.remedy import Remedy
from pgdyno.analysis.choice import NEARLY_AS_FAST, BestOption, Option
from pgdyno.analysis.replay import replay_of

STEPS_MAX: Final = 6
"""Measured steps that are named; of more the last ones."""


@dataclass(frozen=True)
class StepResult:
    """One step."""

    label: str
    """The arm, or what to do beyond the measured ones, as a sentence's end."""
    arm: int | None
    """Index of the arm; None of what was not measured."""
    spec: str | None
    """The volume, or the type of the instance, to buy; None of an arm, and where nothing is bought."""
    usd_per_month: float | None
    value: float | None
    """The headline that was measured; None of what was not."""
    ratio: float | None
    """Times as fast as the step before it; of what was not measured at most. None of the first one."""
    limit: Limit | None
    """What holds it back; of what was not measured the limit that is met next."""
    remedy: Remedy | None = None
    """Of what was not measured."""


def steps_of(choice: BestOption, bindings: Mapping[int, ArmBinding]) -> tuple[StepResult, ...]:
    """The steps of a set; empty without a valid arm."""
    climbed: list[Option] = []
    for option in sorted(choice.options, key=_price):
        if not climbed or _is_faster(option, climbed[-1]):
            if climbed and _price(option) == _price(climbed[-1]):
                climbed.pop()
            climbed.append(option)
    climbed = climbed[-STEPS_MAX:]
    if not climbed:
        return ()
    steps = [
        _measured(option, None if not place else climbed[place - 1], bindings) for place, option in enumerate(climbed)
    ]
    # Where options cost alike the chosen one is as good as the fastest, and it is its limit that a reader will meet.
    top = choice.chosen if choice.chosen is not None and _price(choice.chosen) == _price(climbed[-1]) else climbed[-1]
    if top is not climbed[-1]:
        steps[-1] = _measured(top, climbed[-2] if len(climbed) > 1 else None, bindings)
    remedy = bindings[top.arm.index].remedy
    if remedy is not None and not _is_measured(remedy, choice):
        steps.append(
            StepResult(
                label=remedy.action,
                arm=None,
                spec=remedy.spec,
                usd_per_month=remedy.usd_per_month,
                value=None,
                ratio=remedy.tps_ratio_max,
                limit=remedy.then,
                remedy=remedy,
            )
        )
    return tuple(steps)


def _price(option: Option) -> float:
    return math.inf if option.usd_per_month is None else option.usd_per_month


def _is_faster(option: Option, than: Option) -> bool:
    """Whether it is worth a step: faster by what another arm may be slower by and still be recommended, or in time where that is late."""
    if option.kept_up is not than.kept_up:
        return option.kept_up
    gain = than.gain(option)
    return gain is not None and gain.mean < NEARLY_AS_FAST


def _measured(option: Option, before: Option | None, bindings: Mapping[int, ArmBinding]) -> StepResult:
    gain = None if before is None else option.gain(before)
    verdict = bindings[option.arm.index].verdict
    return StepResult(
        label=option.label,
        arm=option.arm.index,
        spec=None,
        usd_per_month=option.usd_per_month,
        value=option.arm.headline.mean,
        ratio=None if gain is None else gain.mean,
        # A replay in its time is held back by nothing.
        limit=None if replay_of(option.arm) is not None and option.kept_up else verdict.limit,
    )


def _is_measured(remedy: Remedy, choice: BestOption) -> bool:
    """Whether what a remedy would buy is an arm of the set already."""
    specs = {
        volume.resolved.get("spec")
        for option in (*choice.options, *choice.left_out)
        for volume in option.arm.volumes.values()
    }
    types = {option.arm.replicates[0].figures.record.world.instance.type for option in choice.options}
    return remedy.spec is not None and remedy.spec in specs | types

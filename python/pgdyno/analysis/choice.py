"""The arm to take of a set: the cheapest that meets the goal or, without one, the cheapest that is about as fast as the fastest.

Arms with different work are not alternatives to each other. Arms that differ only in their work are one :class:`Option`, which is as
good as in the work that it does worst. The steps lead from the cheapest arm to the fastest one, and to the cheapest thing beyond that
helps: one ladder for all arms. A measured arm comes before anything that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.binding.arm import ArmBinding
from pgdyno.analysis.binding.remedy import Remedy
from pgdyno.analysis.factors import JOINT, Factor
from pgdyno.analysis.metric import METRICS, figure_of
from pgdyno.analysis.ratio import gain_of
from pgdyno.analysis.replay import replay_of
from pgdyno.analysis.sweep import axis_of

from ..base.goal import Goal, GoalCondition
from .binding.rules import Limit
from .run import HEADLINES, TRANSACTIONS
from .statistics import Estimate, t_interval

NEARLY_AS_FAST: Final = 0.95
"""Ratio to the fastest from which an arm is about as fast: a twentieth is less than what another hour of the day changes."""
_HOW = ("workload.clients", "workload.threads", "workload.protocol", "workload.bulk.", "workload.load.")
"""Factors below ``workload`` that say how the work is sent, which its owner may choose, and not what is asked for."""
_GIVEN = ("workload.", "client.", "world.dilation")
"""Factors that are not chosen: what is asked for, from how far away, and how slowly the test's time goes."""
_PURCHASES = ("world.volume", "instance.type")
"""Prefixes of factors whose levels cost money."""


@dataclass(frozen=True)
class Option:
    """What can be bought or used: arms that differ in the work that is asked of them alone."""

    label: str
    arms: Mapping[tuple[int, ...], ArmSummary]
    """By the levels of the factors that are not chosen."""
    place: tuple[int, ...]
    """Where its levels stand on the axes of the experiment; empty without axes."""
    instance_priced: bool
    """Whether the arms differ in the instance, so that its price is part of the option's."""

    @property
    def arm(self) -> ArmSummary:
        """Its first arm."""
        return next(iter(self.arms.values()))

    @property
    def valid(self) -> bool:
        """Whether the figures of each of its arms can be used."""
        return all(arm.valid and arm.by_block for arm in self.arms.values())

    @cached_property
    def usd_per_month(self) -> float | None:
        """List price; None where a part of it is not known."""
        volumes = self.arm.usd_per_month
        if not self.instance_priced or volumes is None:
            return volumes
        instance = self.arm.replicates[0].figures.record.world.instance.usd_per_month
        return None if instance is None else volumes + instance

    @property
    def given_up(self) -> bool:
        """Whether it is without a setting that durability rests on."""
        return any(arm.given_up for arm in self.arms.values())

    @property
    def kept_up(self) -> bool:
        """Whether each of its replays ended in its time; True of other workloads."""
        return all(item is None or item.kept_up for item in map(replay_of, self.arms.values()))

    def gain(self, other: Option) -> Estimate | None:
        """How many times faster it is than another, in the work in which it does worst; None where no block has runs of both."""
        gains = [gain_of(arm, other.arms[work]) for work, arm in self.arms.items() if work in other.arms]
        known = [gain for gain in gains if gain is not None]
        return min(known, key=lambda gain: gain.mean, default=None)

    @cached_property
    def p99_ms(self) -> float | None:
        """The 99th percentile of the response time in the work that it does worst; None without any."""
        known = [p99 for arm in self.arms.values() if (p99 := arm.latency_ms.percentile(99))]
        return max(known, default=None)

    def value(self, condition: GoalCondition) -> Estimate | None:
        """The figure of a condition in the work that meets it worst; its interval is that of single runs. None where it was not measured."""
        if condition.name == "price":
            usd = self.usd_per_month
            return None if usd is None else Estimate(usd, None, None, 1)
        estimates = [_value(arm, condition.figure.name) for arm in self.arms.values()]
        known = [estimate for estimate in estimates if estimate is not None]
        return (
            max(known, key=lambda item: condition.shortfall(item.mean))
            if known and len(known) == len(estimates)
            else None
        )


@dataclass(frozen=True)
class BestOption:
    """The options of a set, and the one to take."""

    options: tuple[Option, ...]
    """Whose figures can be used."""
    left_out: tuple[Option, ...]
    """Invalid ones."""
    set_aside: tuple[Option, ...]
    """Ones that gave up durability beside others that did not: that is not a way to be faster."""
    chosen: Option | None
    fastest: Option | None
    """The fastest option; None without any."""
    candidates: tuple[Option, ...]
    """Options that are good enough; the chosen one is the cheapest of them."""
    purchase: bool
    """Whether options differ in what they cost, or in what would be bought."""

    def against(self, other: Option) -> Estimate | None:
        """How many times faster the chosen one is than another."""
        return None if self.chosen is None else self.chosen.gain(other)


def choose(arms: Sequence[ArmSummary], factors: Sequence[Factor], goal: Goal | None) -> BestOption:
    """Judge a set of arms; nothing is chosen where none is good enough."""
    every = options_of(arms, factors)
    valid = tuple(option for option in every if option.valid)
    options = tuple(option for option in valid if not option.given_up) or valid
    left_out = tuple(option for option in every if not option.valid)
    fastest = _fastest(options)
    candidates = _candidates(options, fastest, goal)
    purchase = any(factor.name.startswith(_PURCHASES) and len(factor.levels) > 1 for factor in factors) or (
        len({option.usd_per_month for option in options}) > 1
    )
    set_aside = tuple(option for option in valid if option not in options)
    return BestOption(options, left_out, set_aside, _cheapest(candidates), fastest, candidates, purchase)


def options_of(arms: Sequence[ArmSummary], factors: Sequence[Factor]) -> tuple[Option, ...]:
    """The options of a set, in the order of their first arms; works that not every option did are left aside."""
    given = [place for place, factor in enumerate(factors) if _is_given(factor, arms, place)]
    chosen = [place for place in range(len(factors)) if place not in given]
    summaries: dict[tuple[int, ...], dict[tuple[int, ...], ArmSummary]] = {}
    for arm in arms:
        levels = arm.levels or (0,) * len(factors)
        work = tuple(levels[place] for place in given)
        summaries.setdefault(tuple(levels[place] for place in chosen), {})[work] = arm
    common = set.intersection(*(set(works) for works in summaries.values()))
    axes = {place: axis_of(place, factors[place]) for place in chosen}
    instance_priced = len({arm.replicates[0].figures.record.world.instance.type for arm in arms}) > 1
    return tuple(
        Option(
            label=next(iter(works.values())).label
            if not given
            else JOINT.join(factors[place].labels[level] for place, level in zip(chosen, levels, strict=True)),
            arms={work: works[work] for work in works if work in (common or works)},
            place=tuple(
                axis.place[level]
                for place, level in zip(chosen, levels, strict=True)
                if (axis := axes[place]) is not None
            ),
            instance_priced=instance_priced,
        )
        for levels, works in summaries.items()
    )


def _is_given(factor: Factor, arms: Sequence[ArmSummary], place: int) -> bool:
    """Whether the reader does not choose the levels of a factor. One that sets several keys is that where it changes the work."""
    if "." in factor.name:
        return factor.name.startswith(_GIVEN) and not factor.name.startswith(_HOW)
    works = {arm.levels[place]: _work(arm) for arm in arms}
    return any(work != next(iter(works.values())) for work in works.values())


def _work(arm: ArmSummary) -> dict[str, Any]:
    how = {name.removeprefix("workload.").rstrip(".") for name in _HOW} | {"seed", "driver_cpus"}
    return {name: value for name, value in arm.replicates[0].figures.record.workload.items() if name not in how}


def _value(arm: ArmSummary, name: str) -> Estimate | None:
    """A figure of an arm, with the interval of single runs around it."""
    if name == arm.metric.name:
        return arm.headline if arm.by_block else None
    if name in ("tps", "nopm"):
        counted = [HEADLINES[name].of(replicate.figures.record) for replicate in arm.replicates]
        # What a load or a replay counts is rows or statements.
        return t_interval(counted) if min(counted) > 0 and arm.unit is TRANSACTIONS else None
    metric = next((item for item in METRICS if item.name == name), None)
    figure = None if metric is None else figure_of(arm, metric)
    return None if figure is None else Estimate(figure.value, figure.of_runs.low, figure.of_runs.high, figure.of_runs.n)


def _fastest(options: Sequence[Option]) -> Option | None:
    """The option with the best figure, by the sum of its logarithms over all works."""

    def speed(option: Option) -> float:
        return math.fsum(math.log(arm.metric.gain(arm.headline.mean)) for arm in option.arms.values())

    return max(options, key=speed, default=None)


def _candidates(options: Sequence[Option], fastest: Option | None, goal: Goal | None) -> tuple[Option, ...]:
    """Options that are good enough. A replay that did not end in its time is not, unless the goal says how late it may be."""
    in_time = [option for option in options if option.kept_up]
    if goal is not None:
        allowed = options if any(condition.name == "late" for condition in goal.conditions) else in_time
        return tuple(option for option in allowed if meets(option, goal))
    fastest = _fastest(in_time)
    if fastest is None:
        return ()
    return tuple(
        option
        for option in in_time
        if option is fastest or ((gain := option.gain(fastest)) is not None and gain.mean >= NEARLY_AS_FAST)
    )


def meets(option: Option, goal: Goal) -> bool:
    """Whether an option meets every condition of a goal, by the values that were measured."""
    values = [(condition, option.value(condition)) for condition in goal.conditions]
    return all(value is not None and condition.met_by(value.mean) for condition, value in values)


def shortfall(option: Option, goal: Goal) -> float:
    """How many times better an option would have to be to meet a goal; infinite where a figure was not measured."""
    values = [(condition, option.value(condition)) for condition in goal.conditions]
    return max(math.inf if value is None else condition.shortfall(value.mean) for condition, value in values)


def _cheapest(candidates: Sequence[Option]) -> Option | None:
    """The cheapest; of equal ones the least along the axes (the fewest clients), then the fastest. What has no price comes last."""

    def order(option: Option) -> tuple[float, tuple[int, ...], float]:
        usd = option.usd_per_month
        arm = option.arm
        return (math.inf if usd is None else usd, option.place, -arm.metric.gain(arm.headline.mean))

    return min(candidates, key=order, default=None)


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

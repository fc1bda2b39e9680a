"""Extrapolation to a dilation of one: arms slowed by two or more factors predict a machine that need not be slowed.

In slowed time a transaction spends D at the volumes and H / d on the host, at dilation d. So its response time is a straight line in
1 / d, and with it the inverse of a closed loop's throughput. Two dilations give the line, and the line at 1 is the figure of a machine
with enough cores (docs/concept/dilation.md). Noise is multiplied on the way: from 4 and 8 by up to nine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.factors import Factor

from ..base.text import number
from .binding.rules import CAPS, TITLES, Limit
from .dilation import bound_by_cpu, host_time
from .ratio import Block
from .statistics import Estimate, ratio_interval, t_interval

FACTOR = "world.dilation"
LEVELS_MIN = 2
"""Dilations above 1 that a line needs. One of 1 is not used: it is the truth, to be compared with."""
CURVED_SHARE = 0.02
"""A third dilation this far from the line contradicts it, where its interval says so too; the line then has no meaning at 1."""
READING_SHARE, CPU_SHARE = 0.01, 0.05
"""How much of a transaction's time its reads may take more or less at another dilation, and by how much its CPU time may differ. Beyond that
D or H is not one figure: in the same time a slowed run does more transactions, and its memory gets warmer;
and between waits that are longer for the host, what the CPU's caches held is lost (docs/concept/dilation.md)."""


@dataclass(frozen=True)
class Undilated:
    """One combination of the other factors, at dilation 1."""

    label: str
    """The levels of the other factors; ``all`` where there is no other."""
    arms: tuple[ArmSummary, ...]
    """Those above dilation 1, ascending."""
    measured: ArmSummary | None
    """The arm at dilation 1, where there is one."""
    by_block: Mapping[Block, float]
    """The headline at dilation 1 in each block that has all dilations; empty where it is refused."""
    noise: float | None
    """How many times the noise of a run the noise of that figure is."""
    because: str = ""
    """Why it is refused: a clause; empty where it is not."""

    @property
    def estimate(self) -> Estimate | None:
        """The headline at dilation 1, with its interval."""
        return t_interval([*self.by_block.values()]) if self.by_block else None

    def ratio_to(self, other: Undilated) -> Estimate | None:
        """This one's headline against another's, paired by block."""
        pairs = [(value, other.by_block[block]) for block, value in self.by_block.items() if block in other.by_block]
        return ratio_interval(pairs) if pairs else None


def undilated(
    factors: Sequence[Factor], arms: Sequence[ArmSummary], limits: Mapping[int, Limit | None]
) -> tuple[Undilated, ...]:
    """Every combination of the other factors that has two dilations above 1, in the order of its first arm.

    ``limits`` has the limit that bound in each arm, by its index.
    """
    place = next((at for at, factor in enumerate(factors) if factor.name == FACTOR), None)
    if place is None:
        return ()
    alike: dict[tuple[int, ...], list[ArmSummary]] = {}
    for arm in arms:
        alike.setdefault((*arm.levels[:place], *arm.levels[place + 1 :]), []).append(arm)
    others = [factor for at, factor in enumerate(factors) if at != place]
    results = []
    for levels, same in alike.items():
        label = ", ".join(factor.labels[level] for factor, level in zip(others, levels, strict=True)) or "all"
        slowed = sorted((arm for arm in same if arm.dilation > 1), key=lambda arm: arm.dilation)
        if len(slowed) >= LEVELS_MIN:
            truth = next((arm for arm in same if arm.dilation == 1), None)
            results.append(_taken(label, tuple(slowed), truth, limits))
    return tuple(results)


def _taken(
    label: str, arms: tuple[ArmSummary, ...], truth: ArmSummary | None, limits: Mapping[int, Limit | None]
) -> Undilated:
    times = [{block: _time(arm, value) for block, value in arm.by_block.items()} for arm in arms]
    blocks = [block for block in times[0] if all(block in time_ for time_ in times)]
    because = _refused(arms, limits)
    if not because and not blocks:
        because = "no block has a run at each dilation"
    if not because:
        because = _curved(
            [arm.dilation for arm in arms], [[time_[block] for time_ in times] for block in blocks]
        ) or _unalike(arms[0], arms[-1], blocks)
    if because:
        return Undilated(label, arms, truth, {}, None, because)
    weights = weights_at_one([arm.dilation for arm in arms])
    at_one = {block: math.fsum(w * time_[block] for w, time_ in zip(weights, times, strict=True)) for block in blocks}
    if min(at_one.values()) <= 0:
        return Undilated(label, arms, truth, {}, None, "the difference between the dilations is smaller than the noise")
    means = [math.fsum(time_[block] for block in blocks) / len(blocks) for time_ in times]
    middle = math.fsum(at_one.values()) / len(blocks)
    noise = math.sqrt(math.fsum((w * mean) ** 2 for w, mean in zip(weights, means, strict=True))) / middle
    return Undilated(label, arms, truth, {block: _time(arms[0], item) for block, item in at_one.items()}, noise)


def weights_at_one(dilations: Sequence[int]) -> list[float]:
    """What each dilation's time counts for in the time at dilation 1: least squares in the inverse of the dilation."""
    inverse = [1 / dilation for dilation in dilations]
    middle = math.fsum(inverse) / len(inverse)
    squares = math.fsum((number - middle) ** 2 for number in inverse)
    return [1 / len(inverse) + (1 - middle) * (number - middle) / squares for number in inverse]


def _time(arm: ArmSummary, headline: float) -> float:
    """A time from a headline, and back: a rate is the inverse of one."""
    return headline if arm.metric.better == "less" else 1 / headline


def _refused(arms: Sequence[ArmSummary], limits: Mapping[int, Limit | None]) -> str:
    """Why the line cannot hold, by what is known of the arms; empty where there is no reason against it."""
    for arm in arms:
        record = arm.replicates[0].figures.record
        if record.workload.get("closed") is False:
            return "the rate is given, so throughput says nothing of response times"
        if any(bound_by_cpu(replicate.figures) is not None for replicate in arm.replicates):
            return f"the cores are full at dilation {arm.dilation}"
    of_caps = {limits.get(arm.index) if limits.get(arm.index) in CAPS else None for arm in arms}
    if len(of_caps) > 1:
        named = {arm.dilation: limits.get(arm.index) for arm in arms}
        text = " and ".join(
            f"{'no limit of storage' if limit is None or limit not in CAPS else TITLES[limit]} at {dilation}"
            for dilation, limit in named.items()
        )
        return f"not the same binds: {text}"
    return ""


def _curved(dilations: Sequence[int], times: Sequence[Sequence[float]]) -> str:
    """Which dilation between the least and the largest contradicts their line; empty where none does."""
    first, last = 1 / dilations[0], 1 / dilations[-1]
    for place, dilation in enumerate(dilations[1:-1], 1):
        part = (1 / dilation - last) / (first - last)
        off = t_interval([time_[place] / (time_[-1] + part * (time_[0] - time_[-1])) - 1 for time_ in times])
        sure = off.low is not None and off.high is not None and not off.low <= 0 <= off.high
        if sure and abs(off.mean) > CURVED_SHARE:
            return f"dilation {dilation} contradicts the line of the others by {off.mean:+.1%}".replace("%", " %")
    return ""


def _unalike(first: ArmSummary, last: ArmSummary, blocks: Sequence[Block]) -> str:
    """Whether a transaction's reads or its CPU time differ between dilations; empty where they do not, or were not counted."""
    of = [{replicate.block: host_time(replicate.figures) for replicate in arm.replicates} for arm in (first, last)]
    pairs = [(item, other) for item, other in ((of[0][block], of[1][block]) for block in blocks) if item and other]
    read = [(item.reads_ms, other.reads_ms, item.response_ms) for item, other in pairs]
    if differs := _differs(read, READING_SHARE):
        return (
            f"a transaction reads for {number(differs[0])} ms at dilation {first.dilation} and for {number(differs[1])} ms at {last.dilation}, so the"
            " volumes' part is not one figure: the memory was warmer, or reads waited longer, at one of them"
        )
    if differs := _differs([(item.cpu_ms, other.cpu_ms, item.cpu_ms) for item, other in pairs], CPU_SHARE):
        return (
            f"a transaction takes {number(differs[0])} ms of this host's CPU at dilation {first.dilation} and {number(differs[1])} ms at {last.dilation}, so the"
            " host's part is not one figure: caches lose more in longer waits"
        )
    return ""


def _differs(
    times: Sequence[tuple[float | None, float | None, float | None]], share: float
) -> tuple[float, float] | None:
    """Both means where they differ by more than this share of the third.

    No interval: that they are the same is what the line rests on, and a few runs that scatter do not show it.
    """
    known = [
        (value, other, whole) for value, other, whole in times if value is not None and other is not None and whole
    ]
    if not known or abs(math.fsum((item - other) / whole for item, other, whole in known)) <= share * len(known):
        return None
    return math.fsum(item for item, _, _ in known) / len(known), math.fsum(other for _, other, _ in known) / len(known)

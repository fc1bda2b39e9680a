"""Where one more run tells most: of arms that scatter differently, those whose mean is the least certain for its time.

One more run of an arm takes ``variance / (n (n + 1))`` off the variance of its mean. Runs go to the arms with the most of that for
each second (the greedy form of Neyman's allocation, 1934). What decides is how runs scatter and never what they came to, so the means
stay unbiased: of normal values mean and variance are independent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.analysis.interval import variance

PRIOR_DEGREES = 2.0
"""Two or three runs hardly determine a variance, so the mean variance of all arms is added with these degrees of freedom: two
runs of an arm then weigh a third, ten runs four fifths (moderated variances, Smyth, 2004)."""
SHARE = 0.5
"""Share of the groups that get another run in a block. A smaller one would follow the noise of the variances; a larger one would hardly choose."""

Group = frozenset[int]
"""Indexes of arms that are run together, because their ratios are what is asked."""


@dataclass(frozen=True)
class Scatter:
    """What the runs of one arm have shown so far."""

    logs: tuple[float, ...]
    """Logarithm of the headline of each run."""
    seconds: float
    """What a run of it takes, all in all."""
    runs: int
    """How many there were; those that did nothing have no logarithm."""


def groups_of(levels: Sequence[Sequence[object]], paired_with_first: bool) -> list[Group]:
    """Which arms belong together; ``levels`` are the levels of each arm by index.

    With several factors in full combination, arms that differ in the first factor alone. Otherwise ratios are taken to the
    first arm, so each arm is grouped with that.
    """
    if paired_with_first:
        return [frozenset({0, index}) for index in range(1, len(levels))] or [frozenset({0})]
    by_rest: dict[tuple[object, ...], set[int]] = {}
    for index, each in enumerate(levels):
        by_rest.setdefault(tuple(each[1:]), set()).add(index)
    return [frozenset(group) for group in by_rest.values()]


def chosen(scatter: Mapping[int, Scatter], groups: Sequence[Group]) -> list[Group]:
    """The groups that are worth another run, the best first: :data:`SHARE` of them, and any with an arm of a single run.

    An arm that ``scatter`` does not have was never run. One whose runs had no transactions has no ratio to anything: its
    groups get no further run.
    """
    variances = moderated_variances(scatter)
    single = [group for group in groups if any(_count(scatter, arm) < 2 for arm in group)]
    rest = [group for group in groups if group not in single and all(arm in variances for arm in group)]
    gains = {group: _gain(group, scatter, variances) for group in rest}
    best = sorted(gains, key=lambda group: (-gains[group], sorted(group)))
    wanted = math.ceil(SHARE * len(groups))
    return [*single, *best[: max(0, wanted - len(single))]]


def moderated_variances(scatter: Mapping[int, Scatter]) -> dict[int, float]:
    """Index of each arm with two runs or more -> variance of its logarithms, drawn towards the mean of all."""
    own = {arm: variance(other.logs) for arm, other in scatter.items() if len(other.logs) > 1}
    degrees = {arm: len(scatter[arm].logs) - 1 for arm in own}
    total = sum(degrees.values())
    pooled = math.fsum(own[arm] * degrees[arm] for arm in own) / total if total else 0.0
    return {arm: (PRIOR_DEGREES * pooled + degrees[arm] * own[arm]) / (PRIOR_DEGREES + degrees[arm]) for arm in own}


def _gain(group: Collection[int], scatter: Mapping[int, Scatter], variances: Mapping[int, float]) -> float:
    """What one more run of each arm takes off the variance of their means, for each second that it takes."""
    taken = math.fsum(variances[arm] / (_count(scatter, arm) * (_count(scatter, arm) + 1)) for arm in group)
    return taken / max(1e-9, math.fsum(scatter[arm].seconds for arm in group))


def _count(scatter: Mapping[int, Scatter], arm: int) -> int:
    return scatter[arm].runs if arm in scatter else 0

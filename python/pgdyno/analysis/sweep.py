"""Sweeps: the factors whose levels are numbers, as axes, the arms along them, and the scalability law fitted to the clients.

A factor is an axis when its levels are numbers (``16``, ``512MiB``, ``30s``) and at least three. The clients come first, because
most sweeps are about a server under more of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.factors import Factor

from .run import TPS, Headline

if TYPE_CHECKING:
    import numpy as np


SCALING_LEVELS_MIN = 4
"""Three constants go through any three points; a fourth shows whether the law describes anything."""
DEVIATION_MAX = 0.15
"""Where runs lie further from the curve than this (root mean square, relative), the law is not what they follow: the constants
would be names for noise."""
_STARTS = ((0.01, 1e-6), (0.1, 1e-4), (0.5, 1e-3), (0.95, 1e-2))
"""(contention, coherence) to search from: from nearly linear to nearly saturated."""


@dataclass(frozen=True)
class Scaling:
    """A fitted law."""

    rate_tps: float
    """Transactions per second of one client by itself."""
    contention: float
    """0 to 1."""
    coherence: float
    deviation: float
    """How far runs lie from the curve: root mean square of the difference of logarithms."""
    clients: tuple[float, float]
    """The range that it was fitted to."""

    def tps(self, clients: float) -> float:
        """What the law predicts for this number of clients."""
        waiting = 1 + self.contention * (clients - 1) + self.coherence * clients * (clients - 1)
        return self.rate_tps * clients / waiting

    @property
    def follows(self) -> bool:
        """Whether runs lie on the curve closely enough to speak of its constants."""
        return self.deviation <= DEVIATION_MAX

    @property
    def peak_clients(self) -> float | None:
        """Clients beyond which more of them do less; None where the curve never falls."""
        if self.coherence <= 1e-12:
            return None
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherence))


def fit(points: Sequence[tuple[float, float]]) -> Scaling | None:
    """The law through (clients, TPS), by least squares of the logarithms: each point counts by its relative error.

    None for fewer than four numbers of clients.
    """
    import numpy as np
    from scipy.optimize import least_squares

    known = [(clients, tps) for clients, tps in points if clients > 0 and tps > 0]
    if len({clients for clients, _ in known}) < SCALING_LEVELS_MIN:
        return None
    n = np.array([clients for clients, _ in known])
    logs = np.log([tps for _, tps in known])

    def residuals(constants: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rate, contention, coherence = constants
        residuals: np.ndarray[Any, Any] = (
            rate + np.log(n) - np.log(1 + contention * (n - 1) + coherence * n * (n - 1)) - logs
        )
        return residuals

    limits = ([-np.inf, 0.0, 0.0], [np.inf, 1.0, 1.0])
    tried = []
    for contention, coherence in _STARTS:
        # The rate that fits the first point, if these were the other two.
        rate = float(-residuals(np.array([0.0, contention, coherence]))[0])
        tried.append(least_squares(residuals, [rate, contention, coherence], bounds=limits, x_scale="jac"))
    best = min(tried, key=lambda item: float(item.cost))
    rate, contention, coherence = (float(value) for value in best.x)
    deviation = math.sqrt(2 * float(best.cost) / len(known))
    return Scaling(math.exp(rate), contention, coherence, deviation, (float(n.min()), float(n.max())))


CLIENTS = "workload.clients"
LEVELS_MIN = 3
"""Two points are a comparison; a course needs three."""
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_UNITS = {
    "": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "B": 1.0,
    "kB": 2.0**10,
    "MB": 2.0**20,
    "GB": 2.0**30,
    "TB": 2.0**40,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
"""pgdyno's, and those of PostgreSQL's settings, whose kB has 1024 bytes: elsewhere decimal sizes are refused when read."""
_SETTINGS = "postgres.parameters."


@dataclass(frozen=True)
class Axis:
    """A factor along which something is drawn, in the order of its values."""

    factor: int
    """Its place among the factors."""
    name: str
    title: str
    values: tuple[float, ...]
    """Ascending; sizes in bytes, durations in seconds, else as written."""
    texts: tuple[str, ...]
    """The levels as written, in that order."""
    place: Mapping[int, int]
    """Level of the factor -> place on the axis."""


@dataclass(frozen=True)
class SweepGroup:
    """Arms that differ in the axes alone: of a sweep over two volumes, those of one volume."""

    index: int
    label: str
    """Its other levels; empty where there is no other factor."""
    arms: Mapping[tuple[int, int], ArmSummary]
    """(place on ``x``, place on ``along``) -> arm; the second is 0 where there is no second axis."""

    @cached_property
    def of_runs(self) -> list[float]:
        """The headline of every run."""
        return [replicate.headline for arm in self.arms.values() for replicate in arm.replicates]

    @property
    def metric(self) -> Headline:
        """By which its arms are compared."""
        return next(iter(self.arms.values())).metric

    @property
    def best(self) -> ArmSummary:
        """The arm whose headline is the best."""
        return (self.most if self.metric.better == "more" else self.least)[1]

    @property
    def worst(self) -> ArmSummary:
        """The arm whose headline is the worst."""
        return (self.least if self.metric.better == "more" else self.most)[1]

    @property
    def most(self) -> tuple[tuple[int, int], ArmSummary]:
        """Where its headline is the largest, and that arm."""
        return max(self.arms.items(), key=lambda item: item[1].headline.mean)

    @property
    def least(self) -> tuple[tuple[int, int], ArmSummary]:
        """Where it is the smallest."""
        return min(self.arms.items(), key=lambda item: item[1].headline.mean)


@dataclass(frozen=True)
class Sweep:
    """The arms of an experiment along one or two axes."""

    x: Axis
    along: Axis | None
    variants: tuple[SweepGroup, ...]

    @cached_property
    def laws(self) -> tuple[Scaling | None, ...]:
        """The law of each variant's growth; None where the first axis is not the clients, or has too few of them."""
        if self.x.name != CLIENTS or self.variants[0].metric is not TPS:
            return tuple(None for _ in self.variants)
        return tuple(
            fit(
                [
                    (self.x.values[x], replicate.headline)
                    for (x, _), arm in variant.arms.items()
                    for replicate in arm.replicates
                ]
            )
            for variant in self.variants
        )

    @property
    def axes(self) -> tuple[Axis, ...]:
        """One or two."""
        return (self.x,) if self.along is None else (self.x, self.along)

    @property
    def second(self) -> tuple[int, ...]:
        """Places on the second axis."""
        return (0,) if self.along is None else tuple(range(len(self.along.values)))

    def common_load(self) -> tuple[int, int] | None:
        """The place at which the headlines of all variants together are the best, of those that every one has."""
        shared = set.intersection(*(set(variant.arms) for variant in self.variants))
        if not shared:
            return None
        sign = 1 if self.variants[0].metric.better == "more" else -1
        return max(
            sorted(shared), key=lambda at: sign * sum(variant.arms[at].headline.mean for variant in self.variants)
        )

    def words(self, at: tuple[int, int]) -> str:
        """A place in words: ``16 clients``, ``16 clients and 100 transactions``."""
        texts = [f"{axis.texts[place]} {axis.title}" for axis, place in zip(self.axes, at, strict=False)]
        return " and ".join(texts)


def sweep_of(factors: Sequence[Factor], arms: Sequence[ArmSummary]) -> Sweep | None:
    """The sweep that an experiment is; None where no factor has three numbers as levels."""
    axes = sorted(
        (axis for place, factor in enumerate(factors) if (axis := axis_of(place, factor)) is not None),
        key=lambda axis: (axis.name != CLIENTS, -len(axis.values), axis.factor),
    )
    if not axes:
        return None
    x, along = axes[0], axes[1] if len(axes) > 1 else None
    variants = _variants(factors, arms, x, along)
    return Sweep(x, along, variants) if variants else None


def axis_of(place: int, factor: Factor) -> Axis | None:
    """A factor as an axis; None where its levels are not comparable numbers, or fewer than three."""
    values = [number_of(level) for level in factor.levels]
    known = [value for value in values if value is not None]
    if factor.name.startswith(_SETTINGS) and _has_both(factor.levels):
        return None
    if len(known) < len(values) or len(set(known)) < LEVELS_MIN or len(set(known)) < len(known):
        return None
    order = sorted(range(len(known)), key=lambda level: known[level])
    return Axis(
        factor=place,
        name=factor.name,
        title=factor.title,
        values=tuple(known[level] for level in order),
        texts=tuple(factor.levels[level] for level in order),
        place={level: at for at, level in enumerate(order)},
    )


def _has_both(levels: Sequence[str]) -> bool:
    """Whether some have a unit and others none: a bare number is in its setting's own unit, which is not known here."""
    units = {level.lstrip("0123456789. ") != "" for level in levels if number_of(level) != 0}
    return len(units) > 1


def number_of(level: str) -> float | None:
    """The number that a level is, in its base unit; None for anything else."""
    match = _NUMBER.fullmatch(level.strip())
    if match is None or match[2] not in _UNITS:
        return None
    return float(match[1]) * _UNITS[match[2]]


def _variants(
    factors: Sequence[Factor], arms: Sequence[ArmSummary], x: Axis, along: Axis | None
) -> tuple[SweepGroup, ...]:
    """Those that have a course: in a design of one factor at a time only one has."""
    swept = {axis.factor for axis in (x, along) if axis is not None}
    summaries: dict[tuple[int, ...], dict[tuple[int, int], ArmSummary]] = {}
    for arm in arms:
        rest = tuple(level for place, level in enumerate(arm.levels) if place not in swept)
        second = 0 if along is None else along.place[arm.levels[along.factor]]
        summaries.setdefault(rest, {})[x.place[arm.levels[x.factor]], second] = arm
    others = [factor for place, factor in enumerate(factors) if place not in swept]
    with_course = [
        (rest, each) for rest, each in sorted(summaries.items()) if len({at for at, _ in each}) >= LEVELS_MIN
    ]
    return tuple(
        SweepGroup(index, " · ".join(factor.labels[level] for factor, level in zip(others, rest, strict=True)), each)
        for index, (rest, each) in enumerate(with_course)
    )

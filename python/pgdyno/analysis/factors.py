"""The factors of an experiment: short names of their levels, and the effect of each over all others.

An experiment file names a factor by its path (``world.volume``); a record has its levels as they were written
(``gp3:size=100GiB``), an empty one as its meaning (``no wal volume``). A reader wants ``volume`` and ``gp3``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from pgdyno.analysis.arm import ArmSummary

from ..results.record import ExperimentRecord, RunRecord
from .statistics import LEVEL, Estimate, distinguishable, stratified_ratio

VOLUME = "world.volume"
"""The factor of a comparison of volumes."""
JOINT = " · "
"""Between the levels in the name of an arm."""

LABEL_MAX = 27
"""Characters of a volume that is named as it was written; a longer one has the name of its type."""

_TITLES = {
    "world.volume": "volume",
    "world.volumes": "volumes",
    "world.volumes.data": "volume",
    "world.file_system": "file system",
    "world.mount_options": "mount options",
    "world.dilation": "dilation",
    "workload.files": "scripts",
    "instance.type": "instance",
    "instance.memory": "memory",
    "postgres.bin": "PostgreSQL",
    "postgres.settings": "settings",
}
_SELF_EXPLAINING = {*_TITLES, "workload.kind", "workload.script", "workload.files", "workload.test"} - {
    "instance.memory",
    "world.mount_options",
    "world.dilation",
}
"""Factors whose levels need no name beside them: ``gp3``, ``ext4``, ``tuned``."""
_VOLUMES = "world.volumes."


@dataclass(frozen=True)
class Factor:
    """One factor of an experiment."""

    name: str
    """Its path in the experiment file."""
    title: str
    """What people call it."""
    levels: tuple[str, ...]
    """As the record has them; the first is the reference."""
    labels: tuple[str, ...]
    """A short name for each that stands by itself, unique within the factor: ``no wal volume``."""
    cells: tuple[str, ...]
    """What each is called below the factor's title: ``none``."""


def factors_of(experiment: ExperimentRecord, runs: Sequence[RunRecord]) -> tuple[Factor, ...]:
    """The factors of an experiment; ``runs`` tell what a level turned out to be (a version, a volume's type).

    An experiment from before there were factors is a comparison of volumes.
    """
    texts = experiment.factors or {VOLUME: tuple(dict.fromkeys(experiment.arms))}
    label = _label_alone if len(texts) == 1 else _label
    return tuple(
        Factor(
            name,
            factor_title(name),
            levels,
            labels=_unique(tuple(label(name, level, runs) for level in levels), levels),
            cells=_unique(tuple(_cell(name, level, runs) for level in levels), levels),
        )
        for name, levels in texts.items()
    )


def _label_alone(name: str, level: str, runs: Sequence[RunRecord]) -> str:
    """A level of the only factor: a volume as it was written, while a table has room for that."""
    return level if factor_title(name) == "volume" and 0 < len(level) <= LABEL_MAX else _label(name, level, runs)


def levels_of(factors: Sequence[Factor], run: RunRecord) -> tuple[int, ...]:
    """The place of the run's level in each factor."""
    document = run.factors or {VOLUME: run.arm}
    return tuple(factor.levels.index(document[factor.name]) for factor in factors)


def arm_label(factors: Sequence[Factor], levels: Sequence[int]) -> str:
    """The name of an arm: its levels, joined."""
    return JOINT.join(factor.labels[level] for factor, level in zip(factors, levels, strict=True))


def factor_title(name: str) -> str:
    """``world.volume`` is the volume, ``world.volumes.wal`` the wal volume, ``workload.clients`` the clients."""
    if name in _TITLES:
        return _TITLES[name]
    if name.startswith(_VOLUMES):
        return f"{name.removeprefix(_VOLUMES).strip(chr(34))} volume"
    return name.rpartition(".")[2].replace("_", " ") if not name.startswith("postgres.") else name.rpartition(".")[2]


def _label(name: str, level: str, runs: Sequence[RunRecord]) -> str:
    title, cell = factor_title(name), _cell(name, level, runs)
    if name == "postgres.bin":
        return f"PG {cell}" if cell[:1].isdigit() else cell
    if cell == "none":
        return f"no {title}"
    if name.startswith(_VOLUMES) and title != "volume":
        return f"{title.removesuffix(' volume')} on {cell}"
    # A name without a dot sets several keys, whose levels say which.
    return cell if name in _SELF_EXPLAINING or "." not in name or title in cell else f"{title} {cell}"


def _cell(name: str, level: str, runs: Sequence[RunRecord]) -> str:
    having = [run for run in runs if (run.factors or {VOLUME: run.arm}).get(name) == level]
    if name == "postgres.bin":
        return having[0].postgres.version if having else level
    if level in ("", "none", f"no {factor_title(name)}"):
        return "none"
    if name == VOLUME or name.startswith(_VOLUMES):
        return _volume_type(name, level, having)
    return level


def _volume_type(name: str, level: str, having: Sequence[RunRecord]) -> str:
    """The type that the specification was resolved to, or the part of it before the options."""
    world = having[0].world if having else None
    role = name.removeprefix(_VOLUMES).strip('"') if name.startswith(_VOLUMES) else "data"
    if world is not None and role in world.volumes:
        return str(world.volumes[role].spec.get("type") or level)
    return level.partition(":")[0]


def _unique(labels: tuple[str, ...], levels: tuple[str, ...]) -> tuple[str, ...]:
    """Labels that two levels share give way to the levels themselves."""
    return tuple(
        label if labels.count(label) == 1 else (level or label) for label, level in zip(labels, levels, strict=True)
    )


Levels = tuple[int, ...]
Block = tuple[str, int]


@dataclass(frozen=True)
class Effect:
    """One level of a factor against its first level."""

    factor: int
    """Place of the factor in the experiment."""
    level: int
    estimate: Estimate | None
    """Ratio of the headline; None when no pair of runs differs in this alone."""
    combinations: int
    """Combinations of the other factors that it is a mean over."""
    within: tuple[Within, ...] = ()
    """The effect at each level of another factor on which it was seen to depend."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.estimate is not None and distinguishable(self.estimate)


@dataclass(frozen=True)
class Within:
    """An effect at one level of another factor."""

    factor: int
    """The other factor."""
    level: int
    estimate: Estimate


def main_effects(factors: Sequence[Factor], arms: Sequence[ArmSummary]) -> tuple[Effect, ...]:
    """The effect of every level after the first of every factor; empty for one factor, whose arms are its levels."""
    if len(factors) < 2:
        return ()
    logs = _logs(arms)
    looked = combinations(factors, 2)
    contrasts = sum((len(number.levels) - 1) * (len(other.levels) - 1) for number, other in looked)
    return tuple(
        _effect(logs, factors, factor, level, contrasts)
        for factor in range(len(factors))
        for level in range(1, len(factors[factor].levels))
    )


def _effect(
    logs: dict[Levels, dict[Block, float]], factors: Sequence[Factor], factor: int, level: int, contrasts: int
) -> Effect:
    strata = _strata(logs, factor, level)
    estimate = stratified_ratio(list(strata.values())) if strata else None
    within = tuple(
        item
        for other in range(len(factors))
        if other != factor and _depends(logs, factors, factor, level, other, contrasts)
        for item in _within(strata, other, len(factors[other].levels))
    )
    return Effect(factor, level, estimate, len(strata), within)


def _logs(arms: Sequence[ArmSummary]) -> dict[Levels, dict[Block, float]]:
    """Levels -> block -> logarithm of the headline; a run that did nothing has none."""
    return {arm.levels: {block: math.log(value) for block, value in arm.by_block.items()} for arm in arms}


def _strata(logs: dict[Levels, dict[Block, float]], factor: int, level: int) -> dict[Levels, list[float]]:
    """Levels of the other factors (this one at 0) -> logarithms of the ratio in each block that has both runs."""
    strata = {}
    for levels, base in logs.items():
        over = logs.get(_at(levels, factor, level), {})
        values = [over[block] - base[block] for block in base if block in over]
        if levels[factor] == 0 and values:
            strata[levels] = values
    return strata


def _within(strata: dict[Levels, list[float]], other: int, count: int) -> Iterator[Within]:
    for level in range(count):
        kept = [values for levels, values in strata.items() if levels[other] == level]
        if kept:
            yield Within(other, level, stratified_ratio(kept))


def _depends(
    logs: dict[Levels, dict[Block, float]],
    factors: Sequence[Factor],
    factor: int,
    level: int,
    other: int,
    contrasts: int,
) -> bool:
    """Whether the effect differs between levels of another factor beyond doubt.

    Each pair of levels is asked at a level that makes one false hint in twenty experiments, however many are asked
    (Bonferroni): a hint that comes by chance would send the reader astray.
    """
    for at in range(1, len(factors[other].levels)):
        strata = []
        for levels, base in logs.items():
            if levels[factor] or levels[other]:
                continue
            corners = [logs.get(_at(_at(levels, factor, a), other, b), {}) for a, b in product((level, 0), (at, 0))]
            both, over, under = corners[0], corners[1], corners[2]
            shared = [block for block in base if all(block in corner for corner in corners)]
            strata.append([both[block] - under[block] - over[block] + base[block] for block in shared])
        if any(strata) and distinguishable(stratified_ratio(strata, 1 - (1 - LEVEL) / contrasts)):
            return True
    return False


def _at(levels: Levels, place: int, level: int) -> Levels:
    return (*levels[:place], level, *levels[place + 1 :])

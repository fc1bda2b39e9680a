"""Runs that were spread over hosts: which may be paired, and how far the hosts are apart.

All runs of a block are of one host, so the ratio of two arms holds what a host does to both. A block that is not whole lost its host, or
has not ended: its runs are left out, and another block has its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary

from ..results.record import HostRecord
from .run import RunFigures
from .statistics import Estimate, ratio_interval, unpaired_ratio


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
    return ratio_interval([(_mean(item), _mean(other)) for item, other in both])


def _mean(logs: Sequence[float]) -> float:
    return math.exp(math.fsum(logs) / len(logs))

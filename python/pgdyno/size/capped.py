"""Whether the load that was measured stood at a limit already: then what was wanted is not in the file.

A volume delivers no more than its limit, however much is asked of it. So a load that was measured on a volume that is too small
looks as if that volume sufficed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.size.demand import MIB, Demand
from pgdyno.text import percent

if TYPE_CHECKING:
    from pgdyno.size.demand import Series

NEAR = 0.03
"""Within 3 % of the maximum counts as at it: a limiter's own rate moves less from second to second."""
SHARE_MIN = 0.05
"""A load without a limit is rarely at its maximum; 5 % of the time there is a plateau."""
QUEUE_MIN = 2.0
"""At a limit requests wait: their queue is at least twice as long as at other times."""
INTERVALS_MIN = 20
"""Fewer intervals have a twentieth of them at the maximum by themselves."""


@dataclass(frozen=True)
class Capped:
    """Signs of a limit."""

    share: float
    """Share of the time that was spent at it."""
    sentence: str
    level: float | None = None
    """The most that was done, at which it stood; None where the provider says that there was a limit."""
    unit: str = ""
    """``IOPS`` or ``MiB/s``, of the level."""


def find(demand: Demand) -> Capped | None:
    """Signs that the load was capped, the provider's own first; ``None`` when there are none."""
    samples, total = demand.measured.samples, demand.measured.seconds
    flagged = sum(sample.seconds for sample in samples if sample.limited) / total
    if flagged > 0:
        return Capped(
            flagged, f"the provider says that for {percent(flagged)} of the time more was asked for than is provisioned"
        )
    queues = [sample.queue_length for sample in samples]
    if len(samples) < INTERVALS_MIN or any(queue is None for queue in queues):
        return None
    import numpy as np

    load, queue = demand.load, np.array(queues, dtype=np.float64)
    figures = (
        (load.reads_per_s + load.writes_per_s, "IOPS"),
        ((load.read_bytes_per_s + load.write_bytes_per_s) / MIB, "MiB/s"),
    )
    found = [one for one in (_plateau(*figure, queue, load.seconds) for figure in figures) if one is not None]
    return max(found, key=lambda one: one.share, default=None)


def _plateau(load: Series, unit: str, queue: Series, seconds: Series) -> Capped | None:
    import numpy as np

    top = load >= load.max() * (1 - NEAR)
    share = float(seconds[top].sum() / seconds.sum())
    if share < SHARE_MIN or top.all():
        return None
    longer = float(np.mean(queue[top])) / max(float(np.mean(queue[~top])), 1e-9)
    if longer < QUEUE_MIN:
        return None
    return Capped(
        share,
        f"for {percent(share)} of the time the load stood at {load.max():,.0f} {unit} with a queue {longer:.1f} times"
        " as long as else: it looks capped",
        float(load.max()),
        unit,
    )

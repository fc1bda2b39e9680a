"""Whether the load that was measured stood at a limit already: then what was wanted is not in the file.

A volume delivers no more than its limit, however much is asked of it. So a load that was measured on a volume that is too small
looks as if that volume sufficed. Signs, the surest first: the provider's own checks; the limits of the volume that was bought; a
plateau with a queue; a plateau at what a volume comes with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ...base.catalog import Catalog
from ...base.errors import InputError
from ...base.specification import Rate, VolumeSpec
from ...base.text import percent
from .demand import MIB, Demand, Series, asked_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Chosen: TypeAlias = "NDArray[np.bool_]"

NEAR = 0.03
"""Within 3 % of the maximum counts as at it: a limiter's own rate moves less from second to second."""
VERY_NEAR = 0.01
"""Without a queue only a limiter's own constancy is a sign; minutes of it differ by less than 1 %."""
SHARE_MIN = 0.05
"""A load without a limit is rarely at its maximum; 5 % of the time there is a plateau."""
ALONE_MIN = 0.2
"""Share of the time that a plateau must last where nothing else is a sign."""
QUEUE_MIN = 2.0
"""At a limit requests wait: their queue is at least twice as long as at other times."""
INTERVALS_MIN = 20
"""Fewer intervals have a twentieth of them at the maximum by themselves."""
LEVEL_MIN = 3
"""Intervals of the same rate that cannot be an accident where requests wait far longer than usual."""
FAR_MS = 50.0
"""Five times what a request takes at most: AWS says single-digit milliseconds for SSD, and a disk of st1 takes some 10 ms."""
USUAL_MS = 10.0
"""What a request may take where nothing waits (whitepaper: below 10 ms)."""
WAITING_MS = 2.0
"""Requests of a volume at its limit that wait at all: gp3 takes 1 ms when it is idle."""
EXCESS = 1.2
"""A volume does up to a second's worth more than its rate after a pause, and no fifth more for long."""
EXCESS_SHARE = 0.01
STEPS = (2.0, 4.0, 8.0)
"""Times the measured load: where what was wanted is not known, one buys a step and measures again."""
TYPICAL = ("gp3", "rds-gp3:size=400GiB")
"""Volumes whose limits many have, since they come with them; of gp2 3,000 IOPS are the most on credits."""


@dataclass(frozen=True)
class HeadroomStep:
    """What carries a multiple of the measured load at the least price."""

    times: float
    needed_iops: float
    needed_mib_per_s: float
    spec: str
    usd_per_month: float | None


@dataclass(frozen=True)
class CapEvidence:
    """Signs of a limit."""

    share: float
    """Share of the time that was spent at it."""
    sentence: str
    level: float | None = None
    """The most that was done, at which it stood; None where the provider says that there was a limit."""
    unit: str = ""
    """``IOPS`` or ``MiB/s``, of the level."""
    is_certain: bool = True
    """Whether requests waited there, or a check or the volume's own limit says it; else it looks so."""
    wanted_iops: float | None = None
    """What the requests that waited would need to take 10 ms each (Little's law); None where the file has no queue, or it is less."""
    steps: tuple[HeadroomStep, ...] = ()
    """What to buy next, as long as it is less than what was wanted."""


@dataclass(frozen=True)
class _CappedCourse:
    """The load over time as it is counted, with the queue where it is known."""

    ops_per_s: Series
    mib_per_s: Series
    seconds: Series
    queue: Series | None

    @property
    def figures(self) -> tuple[tuple[Series, str], ...]:
        return (self.ops_per_s, "IOPS"), (self.mib_per_s, "MiB/s")

    def share(self, chosen: Chosen) -> float:
        """The share of the time that the chosen intervals make."""
        return float(self.seconds[chosen].sum() / self.seconds.sum())

    def wait_ms(self, chosen: Chosen) -> float | None:
        """How long a request takes in these intervals, by Little's law; None where the queue is not known."""
        import numpy as np

        if self.queue is None:
            return None
        done = float(np.dot(self.ops_per_s[chosen], self.seconds[chosen]))
        held = float(np.dot(self.queue[chosen], self.seconds[chosen]))
        return held / done * 1000 if done else None

    def wanted_iops(self, chosen: Chosen) -> float | None:
        """Requests in flight over 10 ms; None where that is no more than was done."""
        import numpy as np

        if self.queue is None:
            return None
        wanted = float(np.average(self.queue[chosen], weights=self.seconds[chosen])) / USUAL_MS * 1000
        return wanted if wanted > float(self.ops_per_s.max()) else None


def find(
    demand: Demand, bought: VolumeSpec | None = None, typical: Sequence[tuple[str, float, float]] = ()
) -> CapEvidence | None:
    """Signs that the load was capped, the surest first; ``None`` when there are none.

    ``bought`` is the volume that was measured, ``typical`` names of volumes with the IOPS and MiB/s that many have.
    :class:`InputError` when the load is more than the volume that was bought does.
    """
    at_limit = None if bought is None else _of_bought(demand, bought)
    return _of_provider(demand) or at_limit or _of_course(demand, typical)


def typical_limits(catalog: Catalog) -> list[tuple[str, float, float]]:
    """Limits that come with volumes, by the volume's title."""
    results = [item for item in map(catalog.find, TYPICAL) if item is not None]
    return [
        (
            result.title,
            result.charged_iops.sustained * result.columns,
            result.charged_bytes.sustained / MIB * result.columns,
        )
        for result in results
    ]


def _of_provider(demand: Demand) -> CapEvidence | None:
    import numpy as np

    samples = demand.measured.samples
    flagged = np.array([bool(sample.limited) for sample in samples])
    if not flagged.any():
        return None
    course = _course(demand)
    share = course.share(flagged)
    return CapEvidence(
        share,
        f"the provider says that for {percent(share)} of the time more was asked for than is provisioned",
        wanted_iops=course.wanted_iops(flagged),
    )


def _course(demand: Demand) -> _CappedCourse:
    import numpy as np

    load, samples = demand.load, demand.measured.samples
    queues = [sample.queue_length for sample in samples]
    queue = None if any(queue is None for queue in queues) else np.array(queues, dtype=np.float64)
    return _CappedCourse(
        load.reads_per_s + load.writes_per_s,
        (load.read_bytes_per_s + load.write_bytes_per_s) / MIB,
        load.seconds,
        queue,
    )


def _of_bought(demand: Demand, bought: VolumeSpec) -> CapEvidence | None:
    """Whether it stood at a limit of the volume that was measured."""
    course = _course(demand)
    result = asked_of(demand, bought.charge, bought.columns)
    sides = (
        (result.ops_per_s, bought.charged_iops, bought.columns / bought.charge.read_tokens, "IOPS"),
        (result.bytes_per_s, bought.charged_bytes, bought.columns / MIB, "MiB/s"),
    )
    for load, rate, scale, unit in sides:
        if course.share(load > rate.maximum * EXCESS) > EXCESS_SHARE:
            raise InputError(
                f"--bought: {demand.measured.device} did up to {load.max() * scale:,.0f} {unit}, and {bought.spec} does at most"
                f" {rate.maximum * scale:,.0f}",
                remedy="name the volume that was measured, with its size, IOPS and throughput, or omit --bought",
                code="size.bought.exceeded",
                data={"unit": unit, "measured": float(load.max() * scale), "maximum": rate.maximum * scale},
            )
    evidences = [evidence for side in sides if (evidence := _at_rate(course, *side, bought.spec)) is not None]
    return max(evidences, key=lambda evidence: evidence.share, default=None)


def _at_rate(course: _CappedCourse, load: Series, rate: Rate, scale: float, unit: str, spec: str) -> CapEvidence | None:
    import numpy as np

    at_sustained = np.abs(load / rate.sustained - 1) <= NEAR
    if not rate.bursts:
        at_sustained = load >= rate.sustained * (1 - NEAR)
    at_maximum = load >= rate.maximum * (1 - NEAR)
    for chosen, level, what in (
        (at_sustained, rate.sustained, "without credits"),
        (at_maximum, rate.maximum, "on credits"),
    ):
        share, wait_ms = course.share(chosen), course.wait_ms(chosen)
        if share < SHARE_MIN or (wait_ms is not None and wait_ms < WAITING_MS):
            continue
        on_what = f" {what}" if rate.bursts else ""
        return CapEvidence(
            share,
            f"for {percent(share)} of the time the load stood at the {level * scale:,.0f} {unit} that {spec} does{on_what}"
            + (f", and a request took {wait_ms:,.0f} ms" if wait_ms is not None else ""),
            level * scale,
            unit,
            wanted_iops=course.wanted_iops(chosen),
        )
    return None


def _of_course(demand: Demand, typical: Sequence[tuple[str, float, float]]) -> CapEvidence | None:
    """Whether the load looks as if it stood at a limit that is not known."""
    course = _course(demand)
    signs: tuple[Callable[[_CappedCourse, Series, str], CapEvidence | None], ...] = (
        _waiting,
        _longer_queue,
        partial(_typical, typical),
        _alone,
    )
    for sign in signs:
        results = [
            result for load, unit in course.figures if load.any() and (result := sign(course, load, unit)) is not None
        ]
        if results:
            return max(results, key=lambda result: result.share)
    return None


def _waiting(course: _CappedCourse, load: Series, unit: str) -> CapEvidence | None:
    """A constant rate at which requests wait far longer than any volume takes, even for the whole time."""
    top = load >= load.max() * (1 - NEAR)
    wait_ms = course.wait_ms(top)
    if int(top.sum()) < LEVEL_MIN or course.share(top) < SHARE_MIN or wait_ms is None or wait_ms < FAR_MS:
        return None
    return CapEvidence(
        course.share(top),
        f"for {percent(course.share(top))} of the time the load stood at {load.max():,.0f} {unit}, and a request took {wait_ms:,.0f} ms,"
        " far more than a volume takes that is not at a limit",
        float(load.max()),
        unit,
        wanted_iops=course.wanted_iops(top),
    )


def _longer_queue(course: _CappedCourse, load: Series, unit: str) -> CapEvidence | None:
    """A plateau with a longer queue than at other times."""
    import numpy as np

    top = load >= load.max() * (1 - NEAR)
    if course.queue is None or load.size < INTERVALS_MIN or course.share(top) < SHARE_MIN or top.all():
        return None
    longer = float(np.mean(course.queue[top])) / max(float(np.mean(course.queue[~top])), 1e-9)
    if longer < QUEUE_MIN:
        return None
    return CapEvidence(
        course.share(top),
        f"for {percent(course.share(top))} of the time the load stood at {load.max():,.0f} {unit} with a queue {longer:.1f} times"
        " as long as at other times: it looks capped",
        float(load.max()),
        unit,
        wanted_iops=course.wanted_iops(top),
    )


def _typical(
    typical: Sequence[tuple[str, float, float]], course: _CappedCourse, load: Series, unit: str
) -> CapEvidence | None:
    """A plateau at what a volume comes with, and nothing above it."""
    top = load >= load.max() * (1 - NEAR)
    wait_ms = course.wait_ms(top)
    if load.size < INTERVALS_MIN or course.share(top) < SHARE_MIN or (wait_ms is not None and wait_ms < WAITING_MS):
        return None
    level = float(load.max())
    named = next((name for name, *limits in typical if abs(level / limits[unit != "IOPS"] - 1) <= VERY_NEAR), None)
    if named is None:
        return None
    return CapEvidence(
        course.share(top),
        f"for {percent(course.share(top))} of the time the load stood at {level:,.0f} {unit}, which is what {named} comes with: it looks"
        " capped",
        level,
        unit,
        is_certain=False,
        wanted_iops=course.wanted_iops(top),
    )


def _alone(course: _CappedCourse, load: Series, unit: str) -> CapEvidence | None:
    """A plateau of a file without a queue: only its constancy is a sign."""
    top = load >= load.max() * (1 - VERY_NEAR)
    share = course.share(top)
    if course.queue is not None or load.size < INTERVALS_MIN or not ALONE_MIN <= share < 1:
        return None
    return CapEvidence(
        share,
        f"for {percent(share)} of the time the load stood at {load.max():,.0f} {unit} and never above; the file has no queue that would"
        " tell, but it looks capped",
        float(load.max()),
        unit,
        is_certain=False,
    )


def steps(
    evidence: CapEvidence, demand: Demand, choose: Callable[[float], tuple[str, float | None] | None]
) -> Iterator[HeadroomStep]:
    """What to buy next: ``choose`` says what carries this multiple of the load, and its price. A volume is named once."""
    named: set[str] = set()
    for times in (1.0, *STEPS):
        if times > 1 and evidence.wanted_iops is not None and demand.needed_iops * times > 2 * evidence.wanted_iops:
            return
        best = choose(times)
        if best is not None and best[0] not in named:
            named.add(best[0])
            yield HeadroomStep(times, demand.needed_iops * times, demand.needed_mib_per_s * times, *best)

"""The verdict on a run and on an arm over its replicates, from the limits of their seconds; and the mean of those seconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from pgdyno.analysis.binding.evidence import Cpu, Evidence, Second, evidence_of
from pgdyno.analysis.binding.rules import judge
from pgdyno.analysis.binding.sessions import SessionStates

from ..run import RunFigures
from .device import DeviceActivity
from .evidence import Checkpoints
from .rules import CAPS, BindingLimit, Confidence, Limit

SHARE_HIGH = 0.60
"""Share of the seconds from which the limit that binds in them is the verdict, with high confidence."""
SHARE_LOW = 0.35
"""Share of the seconds below which no limit stands out."""
RIVAL_MAX = 0.25
"""Share of the seconds from which another limit counts as a second one."""
SHARE_NAMED = 0.20
"""Share of the seconds from which a limit is named beside the one that bound most: lifting that one alone leaves it."""
TIE = 0.10
"""Share of the seconds by which two limits that are reached about as often differ at most."""
SURE_MIN = 0.60
"""Share of the limit's own seconds that must be sure: one second of noise in three is what ten looks at a few sessions bring."""
SECONDS_MIN = 5
"""With fewer seconds nothing is said with confidence."""
CAPPED_INSIDE_MIN = 0.30
"""Share of the seconds in checkpoints: a limit that is reached less often is not reached because of them."""
CAPPED_OUTSIDE_MAX = 0.30
"""Share of the seconds outside of checkpoints: a limit that is reached more often there binds without them."""
INSIDE_TO_OUTSIDE = 2.0
"""Times as often inside as outside: the same limit in both is the volume's."""
OUTSIDE_MIN = 5
"""Seconds outside of checkpoints; with fewer, no share is computed."""
_OF_WRITES: frozenset[Limit] = frozenset((*CAPS, "commit_latency"))
"""What bytes that are written make worse."""


@dataclass(frozen=True)
class BindingVerdict:
    """The limit that bound over some seconds."""

    limit: Limit | None
    """None where none stands out."""
    role: str | None
    """The volume that it is a limit of; None where it is not a limit of a volume."""
    confidence: Confidence
    shares: Mapping[Limit, float]
    """Limit -> share of the seconds in which it bound, the largest first; what is left is not explained."""

    @property
    def share(self) -> float:
        """Share of the seconds in which the limit bound."""
        return 0.0 if self.limit is None else self.shares[self.limit]

    @property
    def beside(self) -> Mapping[Limit, float]:
        """Other limits that bound in many seconds -> the share of these."""
        return {limit: share for limit, share in self.shares.items() if limit != self.limit and share >= SHARE_NAMED}

    @property
    def remediable(self) -> BindingVerdict:
        """The verdict that a remedy is for: where the clients asked for no more in many seconds, that of the others."""
        if self.limit != "client" or not self.beside:
            return self
        return replace(self, limit=next(iter(self.beside)), role=None, confidence="low")


@dataclass(frozen=True)
class RunBinding:
    """One run."""

    evidence: Evidence
    seconds: tuple[BindingLimit | None, ...]
    verdict: BindingVerdict

    @property
    def spans(self) -> tuple[tuple[int, int, Limit | None], ...]:
        """(first second, one after the last, limit) of neighbours with the same answer."""
        spans: list[tuple[int, int, Limit | None]] = []
        for place, binding_limit in enumerate(self.seconds):
            limit = None if binding_limit is None else binding_limit.limit
            if spans and spans[-1][2] == limit:
                spans[-1] = (spans[-1][0], place + 1, limit)
            else:
                spans.append((place, place + 1, limit))
        return tuple(spans)

    def unjudged(self) -> RunBinding:
        """The same run without a limit in any second: for numbers that must not be used."""
        return RunBinding(self.evidence, (None,) * len(self.seconds), total([]))


def bind_run(run: RunFigures) -> RunBinding:
    """The verdict of a run, from its tables."""
    return of_evidence(evidence_of(run))


def of_evidence(evidence: Evidence) -> RunBinding:
    """The verdict of a run, from its seconds."""
    results = [judge(second, evidence.given) for second in evidence.seconds]
    seconds = tuple(because_of_checkpoints(results, evidence.checkpoints))
    return RunBinding(evidence, seconds, total([seconds]))


def total(runs: Sequence[Sequence[BindingLimit | None]]) -> BindingVerdict:
    """Over the seconds of one run or several; where runs disagree, nothing is said with high confidence."""
    every = [limit for run in runs for limit in run]
    counted = Counter(item.limit for item in every if item is not None)
    parts: dict[Limit, float] = dict.fromkeys((limit for limit, _ in counted.most_common()), 0.0)
    for element in every:
        if element is not None:
            parts[element.limit] += element.share
    shares = {limit: part / len(every) for limit, part in sorted(parts.items(), key=lambda item: -item[1])}
    if not shares:
        return BindingVerdict(None, None, "unknown", shares)
    # Which one, and how surely, the seconds decide; how long, the parts of them.
    counts = {name: count / len(every) for name, count in counted.most_common()}
    limit, share = next(iter(counts.items()))
    rivals = [(name, other) for name, other in counts.items() if other > share - TIE and name != "client"]
    if limit == "client" and rivals and rivals[0][1] >= SHARE_LOW:
        # As many seconds in which something was short: that is what can be lifted.
        limit, share = rivals[0]
    if share < SHARE_LOW:
        return BindingVerdict(None, None, "unknown", shares)
    of_it = [item for item in every if item is not None and item.limit == limit]
    roles = Counter(item.role for item in of_it)
    rival = max((other / len(every) for name, other in counted.items() if name != limit), default=0.0)
    high = (
        len(every) >= SECONDS_MIN
        and share >= SHARE_HIGH
        and rival <= RIVAL_MAX
        and sum(item.sure for item in of_it) >= SURE_MIN * len(of_it)
        and all(_most(run) in (limit, None) for run in runs)
    )
    return BindingVerdict(limit, roles.most_common(1)[0][0], "high" if high else "low", shares)


def because_of_checkpoints(
    limits: Sequence[BindingLimit | None], checkpoints: Checkpoints
) -> list[BindingLimit | None]:
    """Seconds at a limit that is reached only because a checkpoint writes: then it is the checkpoint that binds."""
    inside = [limit for limit, within in zip(limits, checkpoints.inside, strict=True) if within]
    outside = [limit for limit, within in zip(limits, checkpoints.inside, strict=True) if not within]
    if not inside:
        return list(limits)
    if checkpoints.too_often:
        return [_theirs(limit, _OF_WRITES) for limit in limits]
    if len(outside) < OUTSIDE_MIN:
        return list(limits)
    within, without = _capped(inside), _capped(outside)
    if within < CAPPED_INSIDE_MIN or without > CAPPED_OUTSIDE_MAX or within < INSIDE_TO_OUTSIDE * without:
        return list(limits)
    return [_theirs(limit, CAPS) if here else limit for limit, here in zip(limits, checkpoints.inside, strict=True)]


def _theirs(limit: BindingLimit | None, of: frozenset[Limit]) -> BindingLimit | None:
    if limit is None or limit.limit not in of:
        return limit
    return BindingLimit("checkpoints", sure=limit.sure and limit.limit in CAPS, role=limit.role, share=limit.share)


def _capped(limits: Sequence[BindingLimit | None]) -> float:
    return sum(limit is not None and limit.limit in CAPS for limit in limits) / len(limits)


def _most(run: Sequence[BindingLimit | None]) -> Limit | None:
    """The limit of most seconds of a run; None where it has none."""
    counted = Counter(limit.limit for limit in run if limit is not None)
    return counted.most_common(1)[0][0] if counted else None


@dataclass(frozen=True)
class SecondMeans:
    """Means over seconds. None and absent are what no second had."""

    sessions: SessionStates | None
    devices: Mapping[str, DeviceActivity]
    cpu: Cpu | None


def means_of(run: RunBinding, limit: Limit) -> SecondMeans:
    """Over the seconds in which ``limit`` bound; over all where it bound in none of this run."""
    bound = [
        second
        for second, item in zip(run.evidence.seconds, run.seconds, strict=True)
        if item is not None and item.limit == limit
    ]
    return mean_second(bound or run.evidence.seconds)


def mean_second(seconds: Sequence[Second]) -> SecondMeans:
    """Over some seconds."""
    sessions = [second.sessions for second in seconds if second.sessions is not None]
    cpus = [second.cpu for second in seconds if second.cpu is not None]
    roles = dict.fromkeys(role for second in seconds for role in second.devices)
    return SecondMeans(
        sessions=SessionStates(*_columns(astuple(session) for session in sessions)) if sessions else None,
        devices={role: _device([s.devices[role] for s in seconds if role in s.devices]) for role in roles},
        cpu=_cpu(cpus) if cpus else None,
    )


def _device(devices: Sequence[DeviceActivity]) -> DeviceActivity:
    reads, writes, read_mib, write_mib = _columns(
        (device.reads_per_s, device.writes_per_s, device.read_mib_per_s, device.write_mib_per_s) for device in devices
    )
    # A second with few requests has as many of them in the mean as it had.
    timed = [(device.request_ms, device.iops) for device in devices if device.request_ms is not None]
    requests = math.fsum(iops for _, iops in timed)
    whole_ms = math.fsum(request_ms * iops for request_ms, iops in timed)
    return DeviceActivity(
        reads_per_s=reads,
        writes_per_s=writes,
        read_mib_per_s=read_mib,
        write_mib_per_s=write_mib,
        request_ms=None if not timed else whole_ms / requests if requests else 0.0,
        queue_length=_known([device.queue_length for device in devices]),
        reading=_known([device.reading for device in devices]),
    )


def _known(values: Sequence[float | None]) -> float | None:
    """The mean of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _cpu(cpus: Sequence[Cpu]) -> Cpu:
    idle, harness, other, driver = _columns((c.idle, c.harness, c.other, c.driver_busy) for c in cpus)
    seen = [(cpu.server, cpu.server_busy) for cpu in cpus if cpu.server is not None and cpu.server_busy is not None]
    server, busy = _columns(seen) if seen else (None, None)
    return Cpu(idle, harness, other, driver, server, busy)


def _columns(rows: Iterable[tuple[float, ...]]) -> list[float]:
    """The mean of each column."""
    return [math.fsum(column) / len(column) for column in zip(*rows, strict=True)]

"""The remedy for the limit that binds: the cheapest thing in the catalogue that helps, its price, and by how much at most.

The need decides. Where a limit of what was bought binds, it is the cheapest volume that carries the load with a margin; where sessions
wait for requests that are not held up, it is the volume that answers soonest; where the CPU binds, the cheapest instance with more of
it in the long run. What carries the load is found by the one search (:mod:`pgdyno.advise.size.search`) when the run ends, and is in its record.

How much it helps is bounded, not predicted: by the new limit, by every other limit that the run came near to, and in a closed loop by
the part of the sessions' time that was waiting for the volume. The least of these bounds is the expected effect, and the one that is
reached first is the next limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.analysis.binding.evidence import Evidence, KnownConditions
from pgdyno.analysis.binding.sessions import SessionStates
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding
from pgdyno.analysis.durability import loss_of_volume

from ...base.text import number, probability
from ...results.record import InstanceOfferRecord, OfferRecord, VolumeRecord
from ..figures import DATA
from .device import PAGE_BYTES, DeviceActivity
from .evidence import Circumstances
from .rules import CAPS, Limit
from .verdict import SecondMeans, means_of

Bound = tuple[Limit, float]


@dataclass(frozen=True)
class Room:
    """The bounds of one run. Each limit's is what there is over what was used, at the mix that was measured."""

    given: KnownConditions
    means: SecondMeans
    capped: bool
    """Whether requests queued at a limit of what was bought: with more of it they would take what they usually do."""
    arrivals: float | None
    """Arrivals that were due over those that were served, in an open loop; None where they do not bind."""
    vcpus: int | None

    def with_volume(self, role: str, offer: OfferRecord) -> tuple[float, Limit]:
        """With a volume for a role that does more: the least bound, and whose it is."""
        bounds = [*self._of_others(role, offer), *self._of_arrivals()]
        bounds += self._of_waiting(role, self.means.devices[role], offer)
        return _least(bounds)

    def with_sooner(self, role: str, limit: Limit, offer: OfferRecord) -> tuple[float | None, Limit | None]:
        """With a volume for a role that answers sooner: the least bound, and whose it is. In an open loop no more transactions follow from
        it, and what is bounded is how much sooner they end; None where no session was seen.
        """
        waiting = list(self._of_waiting(role, self.means.devices[role], offer, limit))
        if not waiting:
            return None, None
        return _least(waiting if self.arrivals is not None else [*self._of_others(role, offer), *waiting])

    def usual_ms(self, role: str, limit: Limit) -> float | None:
        """How long a request of the kind that ``limit`` is about takes now on an idle volume; None where that is not known."""
        bought, device = self.given.bought.get(role), self.means.devices.get(role)
        if bought is None or bought.usual is None or device is None:
            return None
        return bought.usual.ms(PAGE_BYTES, _write_share(device, limit))

    def offered_ms(self, role: str, limit: Limit, offer: OfferRecord) -> float | None:
        """The same of an offer."""
        if offer.read_ms is None or offer.write_ms is None:
            return None
        writes = _write_share(self.means.devices[role], limit)
        return offer.read_ms * (1 - writes) + offer.write_ms * writes

    @property
    def used_vcpus(self) -> float | None:
        """VCPUs of the instance that the server uses; None where they were not seen."""
        cpu = self.means.cpu
        return None if cpu is None or cpu.server_busy is None or not self.vcpus else cpu.server_busy * self.vcpus

    def with_instance(self, offer: InstanceOfferRecord) -> tuple[float, Limit]:
        """With another instance: the least bound, and whose it is."""
        more = offer.vcpus / self.vcpus if self.vcpus else 1.0
        return _least(
            [*self._of_devices(), *self._of_instance(offer), *self._of_cpu(more), *self._of_arrivals()],
        )

    def _of_others(self, role: str, offer: OfferRecord) -> Iterator[Bound]:
        """Every rate with an offer for a role: of the other volumes, the instance, the CPU, and the offer itself."""
        device = self.means.devices[role]
        yield from self._of_devices(without=role)
        yield from self._of_instance(None)
        yield from self._of_cpu(self.given.cpu_share)
        yield "volume_iops", _over(offer.iops, device.iops)
        yield "volume_throughput", _over(offer.mib_per_s, device.mib_per_s)

    def _of_devices(self, without: str | None = None) -> Iterator[Bound]:
        for role, device in self.means.devices.items():
            bought = self.given.bought.get(role)
            if bought is None or role == without:
                continue
            iops = bought.used_iops(device)
            size = bought.used_throughput(device.mib_per_s)
            yield "volume_iops", math.inf if not iops else 1 / iops
            yield "volume_throughput", math.inf if not size else 1 / size

    def _of_instance(self, offer: InstanceOfferRecord | None) -> Iterator[Bound]:
        iops = sum(device.iops for device in self.means.devices.values())
        mib_per_s = sum(device.mib_per_s for device in self.means.devices.values())
        if offer is not None:
            limits: tuple[float | None, float | None] = (offer.iops, offer.mib_per_s)
        elif self.given.instance is not None:
            # What lies above the baseline is there for half an hour a day, and is not room.
            limits = (self.given.instance.iops.sustained, self.given.instance.mib_per_s.sustained)
        else:
            return
        yield "instance_bandwidth", min(_over(limits[0], iops), _over(limits[1], mib_per_s))

    def _of_cpu(self, more: float) -> Iterator[Bound]:
        cpu = self.means.cpu
        if cpu is not None and cpu.server_busy:
            yield "server_cpu", more / cpu.server_busy

    def _of_arrivals(self) -> Iterator[Bound]:
        if self.arrivals is not None:
            yield "client", self.arrivals

    def _of_waiting(
        self, role: str, device: DeviceActivity, offer: OfferRecord, about: Limit | None = None
    ) -> Iterator[Bound]:
        """In a closed loop sessions that wait less send more, and no more than that (Amdahl's law). In an open one they send what arrives;
        then it is yielded only of those that are at work, where the remedy is ``about`` how long they wait.
        """
        sessions = self.means.sessions
        if sessions is None or (self.arrivals is not None and about is None):
            return
        whole = sessions.all if self.arrivals is None else sessions.all - sessions.client
        left = self._time_left(role, device, offer, about)
        if whole <= 0 or left is None:
            return
        part = _waiting_time(sessions, role, "wal" in self.means.devices) / whole
        limit: Limit = "commit_latency" if sessions.commit > sessions.read + sessions.write else "volume_latency"
        rest = 1 - part * (1 - min(1.0, left))
        yield limit, math.inf if rest <= 0 else 1 / rest

    def _time_left(self, role: str, device: DeviceActivity, offer: OfferRecord, about: Limit | None) -> float | None:
        """What a request would take over what it took; None where the usual latency is not known."""
        of: Limit = about or "volume_latency"
        usual_ms, new_ms = self.usual_ms(role, of), self.offered_ms(role, of, offer)
        if usual_ms is None or new_ms is None or usual_ms <= 0:
            return None
        if not self.capped:
            return new_ms / usual_ms
        return new_ms / device.request_ms if device.request_ms else None


def room_of(evidence: Evidence, means: SecondMeans, around: Circumstances, verdict: BindingVerdict) -> Room:
    """The bounds of a run in the seconds that ``means`` is the mean of."""
    return Room(
        given=evidence.given,
        means=means,
        capped=verdict.limit in CAPS,
        arrivals=around.arrivals,
        vcpus=around.instance.vcpus,
    )


def _waiting_time(sessions: SessionStates, role: str, has_wal: bool) -> float:
    """Sessions whose time the volume of a role decides; who waits for a lock waits for what its holder does."""
    commit, rest = sessions.commit, sessions.read + sessions.write
    own = commit if role == "wal" else rest if role == DATA and has_wal else commit + rest
    behind = sessions.lock * own / sessions.at_work if sessions.at_work > 0 else 0.0
    return own + behind


def _write_share(device: DeviceActivity, limit: Limit) -> float:
    """Of what the limit is about: commits write."""
    return 1.0 if limit == "commit_latency" else device.write_share


def _over(limit: float | None, used: float) -> float:
    return math.inf if limit is None or used <= 0 else limit / used


def _least(bounds: list[Bound]) -> tuple[float, Limit]:
    limit, ratio = min(bounds, key=lambda bound: bound[1])
    return ratio, limit


MARGIN = 1.2
"""Times what was used that an offer must have, which is what ``pgdyno size`` asks of one where nothing else is said."""
ANY = 1.05
"""Times the transactions that an offer must make possible to be named."""
SOONER = 0.9
"""Share of the time of a request now from which a volume answers sooner: less is within the spread of such volumes."""
AS_SOON = 1.02
"""Times the shortest time of a request: of volumes that differ by less the cheapest is taken."""
CPU_MARGIN = 1.2
"""Times the vCPUs that are used that an instance must have."""
LOSS_EQUAL = 1.5
"""Times the published probability of loss: what differs by less is the same."""
RATIO_MAX = 10.0
"""A bound above this says nothing: other limits, which the run did not come near to, are met long before."""

_WITHOUT: dict[Limit, str] = {
    "volume_iops": "more IOPS, or fewer requests: more memory, larger commits, fewer indexes with random keys",
    "volume_throughput": "more throughput, or fewer bytes: wal_compression, more memory, a separate volume for WAL",
    "burst_bucket": "a volume whose rate does not end with its credits",
    "instance_bandwidth": "an instance with more EBS bandwidth; a faster volume would change nothing",
    "volume_latency": "a volume with lower latency, more memory so that less is read, or more clients",
    "commit_latency": "a volume for WAL with lower latency, several changes in one transaction, or more clients that commit"
    " together; synchronous_commit = off if losing the last transactions is acceptable",
    "checkpoints": "fewer checkpoints: a larger max_wal_size and checkpoint_timeout, which lengthen recovery and cost nothing",
    "server_cpu": "more or faster cores, or statements that compute less",
    "locks": "keep transactions short and avoid hot rows; faster storage won't help much",
    "client": "the server has headroom: raise the load, move the client closer, or buy a smaller volume",
    "synchronous_standby": "a faster volume for the standby's WAL, or a closer standby",
    "connections": "a connection pooler in transaction mode; more connections need more memory, and a restart",
    "no_answer": "the server's log says why it did not answer",
    "harness": "use a larger machine for the test, or slow time down with --dilation: this run measured the test harness, not the server",
}
"""What helps where nothing is bought, or the price is not known."""
OF_VOLUMES: frozenset[Limit] = frozenset(
    {"volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency"}
)
_SAY_WHAT = "check --bought: the volume did more than it allows, so nothing can be recommended"
_WATCHED: dict[Limit, str] = {
    "client": "no upgrade needed: the clients aren't sending more work",
    "harness": "move other processes off this host, or give the server dedicated CPUs",
}
"""The same for a server that was watched."""


@dataclass(frozen=True)
class Remedy:
    """What to do, what it costs, and what it can bring at most."""

    action: str
    """A sentence's end without its full stop."""
    spec: str | None = None
    """The volume, or the type of the instance, to buy instead; None where nothing is bought."""
    usd_per_month: float | None = None
    """Of that volume or instance."""
    usd_more_per_month: float | None = None
    """More a month than what there is; negative where it costs less; 0 where nothing is bought."""
    tps_ratio_max: float | None = None
    """Times the transactions at most; None where it is not known."""
    then: Limit | None = None
    """The limit that is met there."""


def remedy_of(run: RunBinding, verdict: BindingVerdict, around: Circumstances) -> Remedy | None:
    """The remedy for the limit of a verdict; None without one."""
    limit = verdict.limit
    if limit is None:
        return None
    means = means_of(run, limit)
    room = room_of(run.evidence, means, around, verdict)
    role = verdict.role or DATA
    result = None
    if limit in OF_VOLUMES and _is_contradicted(run, role, means):
        return Remedy(_SAY_WHAT)
    if limit in ("volume_iops", "volume_throughput", "burst_bucket"):
        result = _carries(role, around, means, room)
    elif limit in ("volume_latency", "commit_latency"):
        result = _answers_sooner(limit, role, around, means, room)
    elif limit in ("instance_bandwidth", "server_cpu"):
        result = _instance(limit, around, means, room)
    return result or _without(limit, run)


def _is_contradicted(run: RunBinding, role: str, means: SecondMeans) -> bool:
    """Whether a volume that is only said to be bought did what it cannot: then the catalogue must not be asked from there."""
    bought, device = run.evidence.given.bought.get(role), means.devices.get(role)
    output = not run.evidence.given.driven and role not in run.evidence.given.inferred
    return output and bought is not None and device is not None and bought.is_contradicted(device)


def _without(limit: Limit, run: RunBinding) -> Remedy:
    if not run.evidence.given.driven and limit in _WATCHED:
        return Remedy(_WATCHED[limit])
    if limit != "checkpoints":
        return Remedy(_WITHOUT[limit])
    checkpoints = run.evidence.checkpoints
    ratio = checkpoints.outside_ratio
    if checkpoints.too_often and checkpoints.moved_share is not None:
        # There is no time without them to compare with; a volume that moves so much less has room for so much more.
        ratio = 1 / max(1 - checkpoints.moved_share, 1 / RATIO_MAX)
    return Remedy(
        _WITHOUT[limit],
        usd_more_per_month=0.0,
        tps_ratio_max=None if ratio is None else max(1.0, min(ratio, RATIO_MAX)),
    )


@dataclass(frozen=True)
class _Option:
    spec: str
    usd_per_month: float | None
    ratio: float | None
    then: Limit | None
    loss_per_year_max: float | None = None


def _carries(role: str, around: Circumstances, means: SecondMeans, room: Room) -> Remedy | None:
    """The cheapest volume that carries the load with its margin, unless another limit leaves nothing of it."""
    volume, device = around.volumes.get(role), means.devices.get(role)
    if volume is None or device is None:
        return None
    for offer in volume.offers:
        if offer.spec == volume.spec.get("spec"):
            return None  # what there is carries it for the least
        if not _has(offer.iops, device.iops) or not _has(offer.mib_per_s, device.mib_per_s):
            continue  # it carries the mean load of the run, and not that of these seconds
        ratio, then = room.with_volume(role, offer)
        if ratio >= ANY:
            return _of_volume(
                _Option(offer.spec, offer.usd_per_month, ratio, then, offer.loss_per_year_max), role, volume
            )
        if then == "instance_bandwidth":
            return _instance(then, around, means, room)
    return None


def _has(limit: float | None, used: float) -> bool:
    return limit is None or limit >= used * MARGIN * (1 - 1e-9)


def _answers_sooner(limit: Limit, role: str, around: Circumstances, means: SecondMeans, room: Room) -> Remedy | None:
    """The volume that answers soonest of those that carry the load, if it does sooner than the present one."""
    volume, device = around.volumes.get(role), means.devices.get(role)
    now = None if device is None else room.usual_ms(role, limit)
    if volume is None or device is None or now is None:
        return None
    times = [(ms, offer) for offer in volume.offers if (ms := room.offered_ms(role, limit, offer)) is not None]
    soonest = min((ms for ms, _ in times), default=math.inf)
    if soonest > now * SOONER:
        return None
    ms, offer = min(
        (time_ for time_ in times if time_[0] <= soonest * AS_SOON),
        key=lambda item: (item[1].usd_per_month, item[1].spec),
    )
    ratio, then = room.with_sooner(role, limit, offer)
    if ratio is not None and ratio < ANY:
        return None
    option = _Option(offer.spec, offer.usd_per_month, ratio, then, offer.loss_per_year_max)
    what = "a write" if limit == "commit_latency" else "a request"
    return _of_volume(option, role, volume, f", where {what} takes {number(ms)} instead of {number(now)} ms")


def _of_volume(chosen: _Option, role: str, volume: VolumeRecord, why: str = "") -> Remedy:
    now = volume.spec.get("usd_per_month")
    what = "" if role == DATA else f" for its {role} volume"
    action = f"buy {chosen.spec}{what}{why}{_more_easily_lost(chosen, volume)}"
    return _bought(chosen, action, None if now is None else float(now))


def _more_easily_lost(chosen: _Option, volume: VolumeRecord) -> str:
    """That something cheaper is also lost more easily, where it is."""
    now = loss_of_volume(volume.spec)
    if now is None or chosen.loss_per_year_max is None or chosen.loss_per_year_max <= now.high * LOSS_EQUAL:
        return ""
    return f" (annual failure rate {probability(chosen.loss_per_year_max)} instead of {probability(now.high)})"


def _instance(limit: Limit, around: Circumstances, means: SecondMeans, room: Room) -> Remedy | None:
    """The cheapest instance that always carries what binds: the EBS traffic, or the computing."""
    instance = around.instance
    if limit == "server_cpu" and instance.storage_only:
        return None
    used = room.used_vcpus
    vcpus = used * CPU_MARGIN if limit == "server_cpu" and used is not None else 0.0
    iops = sum(device.iops for device in means.devices.values())
    mib_per_s = sum(device.mib_per_s for device in means.devices.values())
    for offer in instance.offers:
        if offer.vcpus < vcpus or not _has(offer.iops, iops) or not _has(offer.mib_per_s, mib_per_s):
            continue
        ratio, then = room.with_instance(offer)
        if ratio >= ANY:
            option = _Option(offer.type, offer.usd_per_month, ratio, then)
            return _bought(option, f"take a {offer.type}", instance.usd_per_month)
    return None


def _bought(chosen: _Option, action: str, now: float | None) -> Remedy:
    usd = chosen.usd_per_month
    ratio = chosen.ratio
    return Remedy(
        action=action,
        spec=chosen.spec,
        usd_per_month=usd,
        usd_more_per_month=None if now is None or usd is None else round(usd - now, 2),
        tps_ratio_max=None if ratio is None else min(ratio, RATIO_MAX) if math.isfinite(ratio) else RATIO_MAX,
        then=chosen.then,
    )

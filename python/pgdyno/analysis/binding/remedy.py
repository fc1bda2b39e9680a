"""What to do about the limit that binds: the cheapest thing in the catalogue that helps, its price, and by how much at most.

The need decides. Where a limit of what was bought binds, it is the cheapest volume that carries the load with a margin; where sessions
wait for requests that are not held up, it is the volume that answers soonest; where the CPU binds, the cheapest instance with more of
it in the long run. What carries the load is found by the one search (:mod:`pgdyno.advise.size.search`) when the run ends, and is in its record.

How much it helps is bounded, not predicted: by the new limit, by every other limit that the run came near to, and in a closed loop by
the part of the sessions' time that was waiting for the volume. The least of these bounds is the expected effect, and the one that is
reached first is the next limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno.analysis.binding.circumstances import Circumstances
from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.binding.means import SecondMeans, means_of
from pgdyno.analysis.binding.room import Room, room_of
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding
from pgdyno.analysis.durability import loss_of_volume

from ...base.text import number, probability
from ...results.record import VolumeRecord
from ..figures import DATA

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
    "volume_throughput": "more throughput, or fewer bytes: wal_compression, more memory, WAL on a volume of its own",
    "burst_bucket": "a volume whose rate does not end with its credits",
    "instance_bandwidth": "an instance with more EBS bandwidth; a faster volume would change nothing",
    "volume_latency": "a volume that answers sooner, more memory so that less is read, or more clients",
    "commit_latency": "a volume for WAL that answers sooner, several changes in one transaction, or more clients that commit"
    " together; synchronous_commit = off where the last transactions may be lost",
    "checkpoints": "fewer checkpoints: a larger max_wal_size and checkpoint_timeout, which cost time to recover and no money",
    "server_cpu": "more or faster cores, or statements that compute less",
    "locks": "shorter transactions, and rows that fewer of them change; storage changes little",
    "client": "more clients or arrivals, a client that is nearer, or less to pay for: the server could do more",
    "synchronous_standby": "a standby that confirms sooner: a faster volume for its WAL, or a nearer one",
    "connections": "a connection pooler in transaction mode; more connections need more memory, and a restart",
    "no_answer": "the server's log says why it did not answer",
    "laboratory": "a larger machine for the test, or slower time (--dilation): the server was not measured here",
}
"""What helps where nothing is bought, or the price is not known."""
OF_VOLUMES: frozenset[Limit] = frozenset(
    {"volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency"}
)
_SAY_WHAT = (
    "say with --bought what the volume was bought with: it did more than what is named can, so nothing is offered"
)
_WATCHED: dict[Limit, str] = {
    "client": "nothing to buy: the clients ask for no more",
    "laboratory": "move the other processes of this host elsewhere, or give the server CPUs of its own",
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
            continue  # a step of the ladder of an older record
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

"""What to do about the limit that binds: the cheapest thing in the catalogue that helps, its price, and by how much at most.

What could be bought on the day of the run is in its record. How much it helps is bounded, not predicted: by the new limit,
by every other limit that the run came near to, and in a closed loop by the part of the sessions' time that was waiting for
the volume. The least of these bounds is the expected effect, and the one that is reached first is the next limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.binding.means import Means, means_of
from pgdyno.analysis.binding.room import Room, room_of
from pgdyno.analysis.durability import loss_of_volume
from pgdyno.analysis.volume_figures import DATA
from pgdyno.text import probability

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pgdyno.analysis.binding.circumstances import Circumstances
    from pgdyno.analysis.binding.verdict import RunBinding, Verdict
    from pgdyno.store.record import VolumeRecord

WORTHWHILE = 1.25
"""Times the transactions that an offer must make possible: less is not worth moving a database."""
ANY = 1.05
"""Times the transactions from which an offer is named where none is worthwhile."""
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
    "laboratory": "a larger machine for the test, or slower time (--dilation): the server was not measured here",
}
"""What helps where nothing is bought, or the price is not known."""
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


def remedy_of(run: RunBinding, verdict: Verdict, around: Circumstances) -> Remedy | None:
    """The remedy for the limit of a verdict; None without one."""
    limit = verdict.limit
    if limit is None:
        return None
    means = means_of(run, limit)
    room = room_of(run.evidence, means, around, verdict)
    if limit in ("volume_iops", "volume_throughput", "burst_bucket", "volume_latency", "commit_latency"):
        found = _volume(verdict.role or DATA, around, means, room)
    elif limit in ("instance_bandwidth", "server_cpu"):
        found = _instance(limit, around, room)
    else:
        found = None
    return found or _without(limit, run)


def _without(limit: Limit, run: RunBinding) -> Remedy:
    if not run.evidence.given.driven and limit in _WATCHED:
        return Remedy(_WATCHED[limit])
    if limit != "checkpoints":
        return Remedy(_WITHOUT[limit])
    found = run.evidence.checkpoints
    ratio = found.outside_ratio
    if found.too_often and found.moved_share is not None:
        # There is no time without them to compare with; a volume that moves so much less has room for so much more.
        ratio = 1 / max(1 - found.moved_share, 1 / RATIO_MAX)
    return Remedy(
        _WITHOUT[limit],
        usd_more_per_month=0.0,
        tps_ratio_max=None if ratio is None else max(1.0, min(ratio, RATIO_MAX)),
    )


@dataclass(frozen=True)
class _Option:
    spec: str
    usd_per_month: float
    ratio: float
    then: Limit
    loss_per_year_max: float | None = None


def _volume(role: str, around: Circumstances, means: Means, room: Room) -> Remedy | None:
    """The cheapest volume of those that were for sale."""
    volume = around.volumes.get(role)
    if volume is None or means.devices.get(role) is None:
        return None
    options = (
        _Option(offer.spec, offer.usd_per_month, *room.with_volume(role, offer), offer.loss_per_year_max)
        for offer in volume.offers
    )
    chosen = _cheapest(options)
    if chosen is None:
        return None
    now = volume.spec.get("usd_per_month")
    what = "" if role == DATA else f" for its {role} volume"
    action = f"buy {chosen.spec}{what}{_more_easily_lost(chosen, volume)}"
    return _bought(chosen, action, None if now is None else float(now))


def _more_easily_lost(chosen: _Option, volume: VolumeRecord) -> str:
    """That something cheaper is also lost more easily, where it is."""
    now = loss_of_volume(volume.spec)
    if now is None or chosen.loss_per_year_max is None or chosen.loss_per_year_max <= now.high * LOSS_EQUAL:
        return ""
    return f" (annual failure rate {probability(chosen.loss_per_year_max)} instead of {probability(now.high)})"


def _instance(limit: Limit, around: Circumstances, room: Room) -> Remedy | None:
    """The cheapest instance of those that were to be had."""
    instance = around.instance
    options = (_Option(offer.type, offer.usd_per_month, *room.with_instance(offer)) for offer in instance.offers)
    chosen = _cheapest(options)
    if chosen is None or (limit == "server_cpu" and instance.storage_only):
        return None
    return _bought(chosen, f"take a {chosen.spec}", instance.usd_per_month)


def _cheapest(options: Iterable[_Option]) -> _Option | None:
    """The cheapest that is worthwhile; else the one that brings most, if it brings anything."""
    known = list(options)
    worthwhile = [one for one in known if one.ratio >= WORTHWHILE]
    if worthwhile:
        return min(worthwhile, key=lambda one: (one.usd_per_month, -one.ratio))
    return max(
        (one for one in known if one.ratio >= ANY), key=lambda one: (one.ratio, -one.usd_per_month), default=None
    )


def _bought(chosen: _Option, action: str, now: float | None) -> Remedy:
    return Remedy(
        action=action,
        spec=chosen.spec,
        usd_per_month=chosen.usd_per_month,
        usd_more_per_month=None if now is None else round(chosen.usd_per_month - now, 2),
        tps_ratio_max=min(chosen.ratio, RATIO_MAX) if math.isfinite(chosen.ratio) else RATIO_MAX,
        then=chosen.then,
    )

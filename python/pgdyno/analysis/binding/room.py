"""How many times the transactions each limit leaves room for, as a run's means say; and with something else bought."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.analysis.binding.bought import PAGE_BYTES
from pgdyno.analysis.binding.circumstances import Circumstances
from pgdyno.analysis.binding.device import DeviceActivity
from pgdyno.analysis.binding.evidence import Evidence, KnownConditions
from pgdyno.analysis.binding.limits import CAPS, Limit
from pgdyno.analysis.binding.means import SecondMeans
from pgdyno.analysis.binding.sessions import SessionStates
from pgdyno.analysis.binding.verdict import BindingVerdict

from ...results.record import InstanceOfferRecord, OfferRecord
from ..figures import DATA

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

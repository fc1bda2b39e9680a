"""What the snapshots of a policy come to on each day: bytes, price, and how old the data may be that is lost.

Snapshots are incremental: of the ones that exist the oldest holds all data, and each other one the blocks that changed since the
one before it. A deleted one leaves what the next one needs. Writes hit the data evenly, so what changes in a time t at a rate c of
S bytes is S (1 - exp(-c t / S)): a block that is written twice counts once.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from .policy import SnapshotSchedule
from .timeline import PlannedSnapshot, snapshots

DAYS_PER_MONTH = 730 / 24
"""A month of 730 hours, as everywhere in pgdyno's prices."""
_DAY_S = 86_400.0
_GIB = 1 << 30
_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Data:
    """What is to be kept."""

    size_bytes: int
    changed_bytes_per_day: float

    def changed_bytes(self, seconds: float) -> float:
        """Bytes of the blocks that differ after so much time."""
        if not self.size_bytes:
            return 0.0
        return -math.expm1(-self.changed_bytes_per_day * seconds / _DAY_S / self.size_bytes) * self.size_bytes

    def stored_bytes(self, instants: Sequence[dt.datetime]) -> float:
        """Bytes of incremental snapshots of these instants, in order."""
        gaps = pairwise(instants)
        increments = sum(self.changed_bytes((later - earlier).total_seconds()) for earlier, later in gaps)
        return self.size_bytes + increments if instants else 0.0


@dataclass(frozen=True)
class Day:
    """The end of one day."""

    date: dt.date
    snapshots: tuple[tuple[str, dt.datetime], ...]
    """Schedule and instant of each one that exists and is not archived, the oldest first."""
    archived: int
    fast: int
    """Pairs of a snapshot and a zone with fast snapshot restore."""
    stored_bytes: float
    archived_bytes: float
    copied_bytes: dict[str, float]
    """Bytes of the copies, by region."""
    usd: float
    """Price of the day."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        named = [{"schedule": schedule, "at": at.isoformat()} for schedule, at in self.snapshots]
        return asdict(self) | {"date": self.date.isoformat(), "snapshots": named}


def days(
    policy: Sequence[SnapshotSchedule], data: Data, prices: Mapping[str, float], begin: dt.date, count: int
) -> tuple[list[Day], float | None]:
    """Each of ``count`` days from ``begin`` on; and the longest time from one snapshot to the next, in seconds, which is how old the data
    can be that is lost (None with fewer than two).
    """
    first = dt.datetime.combine(begin, dt.time(), dt.UTC)
    taken = snapshots(policy, first, first + count * _DAY)
    results = []
    for number in range(count):
        end = first + (number + 1) * _DAY - dt.timedelta(microseconds=1)
        results.append(_day(begin + number * _DAY, [item for item in taken if item.at <= end], end, data, prices))
    gaps = [(later.at - earlier.at).total_seconds() for earlier, later in pairwise(taken)]
    return results, max(gaps, default=None)


def _day(
    date: dt.date, taken: Sequence[PlannedSnapshot], now: dt.datetime, data: Data, prices: Mapping[str, float]
) -> Day:
    there = [snapshot for snapshot in taken if snapshot.exists(now)]
    archived = sum(snapshot.is_archived(now) for snapshot in taken)
    fast = sum(snapshot.fast_zones for snapshot in there if snapshot.is_fast(now))
    regions: dict[str, list[dt.datetime]] = {}
    for snapshot in taken:
        for region, until in snapshot.copies:
            if now < until:
                regions.setdefault(region, []).append(snapshot.at)
    copied = {region: data.stored_bytes(instants) for region, instants in sorted(regions.items())}
    stored, in_archive = data.stored_bytes([snapshot.at for snapshot in there]), float(archived * data.size_bytes)
    month = (stored + sum(copied.values())) / _GIB * prices["gib_month_usd"]
    month += in_archive / _GIB * prices["archive_gib_month_usd"]
    return Day(
        date=date,
        snapshots=tuple((snapshot.schedule, snapshot.at) for snapshot in there),
        archived=archived,
        fast=fast,
        stored_bytes=stored,
        archived_bytes=in_archive,
        copied_bytes=copied,
        usd=month / DAYS_PER_MONTH + fast * 24 * prices["fast_restore_hour_usd"],
    )

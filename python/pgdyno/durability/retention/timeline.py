"""Which snapshots of a policy exist when: a pure function of the policy and of time.

A snapshot is taken at the instant of its schedule (the provider begins within an hour of it). Where several schedules are due at one
instant there is one snapshot, of the schedule that keeps longest.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .policy import SnapshotSchedule


@dataclass(frozen=True)
class PlannedSnapshot:
    """One snapshot, and when it becomes what. What is after the end of the time looked at is None."""

    schedule: str
    at: dt.datetime
    leaves_at: dt.datetime | None
    """When it is deleted, or goes into the archive."""
    archived_until: dt.datetime | None
    """None if it does not go into the archive, or is still there at the end."""
    archives: bool
    """Whether it goes into the archive."""
    fast_until: dt.datetime | None
    """When fast snapshot restore is disabled for it."""
    fast_zones: int
    copies: tuple[tuple[str, dt.datetime], ...]
    """Region of each copy, and when it is deleted."""

    def exists(self, now: dt.datetime) -> bool:
        """Whether it is among the incremental ones."""
        return self.at <= now and (self.leaves_at is None or now < self.leaves_at)

    def is_archived(self, now: dt.datetime) -> bool:
        """Whether it is in the archive."""
        left = self.archives and self.leaves_at is not None and self.leaves_at <= now
        return left and (self.archived_until is None or now < self.archived_until)

    def is_fast(self, now: dt.datetime) -> bool:
        """Whether fast snapshot restore is enabled for it."""
        return self.fast_zones > 0 and self.exists(now) and (self.fast_until is None or now < self.fast_until)


def snapshots(policy: Sequence[SnapshotSchedule], begin: dt.datetime, end: dt.datetime) -> list[PlannedSnapshot]:
    """Every snapshot that the policy takes from ``begin`` on and before ``end``, in order."""
    due: dict[dt.datetime, SnapshotSchedule] = {}
    for schedule in policy:
        for at in schedule.when.instants(begin, end):
            due[at] = max(due.get(at, schedule), schedule, key=_keeps)
    own: dict[str, list[dt.datetime]] = defaultdict(list)
    for at in sorted(due):
        own[due[at].name].append(at)
    return fates(policy, own, end)


def fates(
    policy: Sequence[SnapshotSchedule], taken: Mapping[str, Sequence[dt.datetime]], end: dt.datetime
) -> list[PlannedSnapshot]:
    """What becomes before ``end`` of snapshots that were ``taken`` at instants, in order, for each schedule by its name."""
    snapshots = [
        _snapshot(schedule, taken.get(schedule.name, ()), place, end)
        for schedule in policy
        for place in range(len(taken.get(schedule.name, ())))
    ]
    return sorted(snapshots, key=lambda snapshot: snapshot.at)


def next_due(
    policy: Sequence[SnapshotSchedule], after: dt.datetime, before: dt.datetime
) -> tuple[dt.datetime, SnapshotSchedule] | None:
    """The first instant after ``after`` and not after ``before`` at which a snapshot is due, and its schedule; None without one."""
    tick = dt.timedelta(microseconds=1)
    first = [(next(iter(schedule.when.instants(after + tick, before + tick)), None), schedule) for schedule in policy]
    due = [(at, item) for at, item in first if at is not None]
    if not due:
        return None
    earliest = min(at for at, _ in due)
    return earliest, max((item for at, item in due if at == earliest), key=_keeps)


def _keeps(schedule: SnapshotSchedule) -> float:
    keep = schedule.keep
    return float(keep.count or 0) if keep.age_s is None else keep.age_s


def _snapshot(
    schedule: SnapshotSchedule, instants: Sequence[dt.datetime], place: int, end: dt.datetime
) -> PlannedSnapshot:
    def after(count: int) -> dt.datetime | None:
        """When ``count`` newer ones have been taken."""
        return instants[place + count] if place + count < len(instants) else None

    def before_end(at: dt.datetime | None) -> dt.datetime | None:
        return at if at is not None and at < end else None

    at, keep = instants[place], schedule.keep
    leaves_at = after(keep.count) if keep.count is not None else before_end(_later(at, keep.age_s or 0.0))
    archived_until = None
    if schedule.archive_s is not None and leaves_at is not None:
        archived_until = before_end(_later(leaves_at, schedule.archive_s))
    return PlannedSnapshot(
        schedule=schedule.name,
        at=at,
        leaves_at=leaves_at,
        archived_until=archived_until,
        archives=schedule.archive_s is not None,
        fast_until=after(schedule.fast_count) if schedule.fast_count else None,
        fast_zones=schedule.fast_zones,
        copies=tuple((copy.region, _later(at, copy.age_s)) for copy in schedule.copies),
    )


def _later(at: dt.datetime, seconds: float) -> dt.datetime:
    """The last instant that there is where the sum is past it: a hundred years are an age that may be asked for."""
    try:
        return at + dt.timedelta(seconds=seconds)
    except OverflowError:
        return dt.datetime.max.replace(tzinfo=dt.UTC)

"""A policy that runs on attached volumes: takes what is due, and does to each snapshot what its schedule says.

What is to become of a snapshot is decided by the function that the dry run uses (:func:`pgdyno.durability.retention.timeline.fates`), of the instants at which
snapshots were taken. Whatever was done before is read from the snapshots, so a policy that is started again resumes. An instant that passed
while none ran is not made up for.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import PgdynoError
from ...machine import snapshot, snapshot_copy, snapshot_delete, snapshot_fast, snapshot_file
from ...machine.snapshot_file import VolumeSnapshot
from ...machine.volume import AttachedVolume
from .policy import SnapshotSchedule
from .timeline import PlannedSnapshot as Fate
from .timeline import fates, next_due

LOOK_S = 30.0
"""The longest time between two looks: ages end, and pending snapshots are completed."""
_PENDING_S = 1.0


@dataclass(frozen=True)
class Action:
    """Something that was done, or that failed."""

    kind: str
    """``taken``, ``not_taken``, ``archived``, ``copied``, ``fast``, ``not_fast`` or ``deleted``."""
    what: str
    """For people."""
    names: tuple[str, ...] = ()
    """Of snapshots."""


class Keeper:
    """Runs a policy; each :meth:`look` does what is due at an instant, in UTC."""

    def __init__(
        self,
        policy: Sequence[SnapshotSchedule],
        volumes: Callable[[], Sequence[AttachedVolume]],
        state: Path,
        now: dt.datetime,
        *,
        rate_mib_per_s: float | None = None,
    ) -> None:
        self._policy = policy
        self._volumes = volumes
        self._state = state
        self._looked = now
        self._rate = rate_mib_per_s

    def look(self, now: dt.datetime) -> list[Action]:
        """Take what became due since the last look, once, and bring every snapshot of the policy to where it belongs."""
        due = None
        while (results := next_due(self._policy, self._looked, now)) is not None:
            self._looked, due = results[0], results
        self._looked = now
        done = [] if due is None else self._take(*due)
        return done + self._keep(now)

    def wait_s(self, now: dt.datetime) -> float:
        """How long nothing is due."""
        if any(snapshot.left_s(time.time()) for snapshot in self._own()):
            return _PENDING_S
        results = next_due(self._policy, now, now + dt.timedelta(seconds=LOOK_S))
        return LOOK_S if results is None else (results[0] - now).total_seconds()

    def _own(self) -> list[VolumeSnapshot]:
        names = {schedule.name for schedule in self._policy}
        of = {volume.name for volume in self._volumes()}
        listed = snapshot_file.read(self._state).snapshots
        return [item for item in listed if item.schedule in names and item.volume in of]

    def _take(self, at: dt.datetime, schedule: SnapshotSchedule) -> list[Action]:
        """One set of each instance's volumes."""
        sets: dict[int, list[AttachedVolume]] = defaultdict(list)
        for volume in self._volumes():
            sets[volume.daemon.pid].append(volume)
        done = []
        for together in sets.values():
            of = ", ".join(volume.name for volume in together)
            try:
                taken = snapshot.take(together, rate_mib_per_s=self._rate)
            except PgdynoError as error:
                done.append(Action("not_taken", f"no snapshot of {of} ({schedule.name}): {error.message}"))
                continue
            names = tuple(snapshot.name for snapshot in taken.snapshots)
            facts = {"schedule": schedule.name, "due_unix_s": at.timestamp()}
            snapshot_file.changed(self._state, dict.fromkeys(names, facts))
            done.append(Action("taken", f"{' '.join(names)} of {of} ({schedule.name})", names))
        return done

    def _keep(self, now: dt.datetime) -> list[Action]:
        own = self._own()
        originals = [snapshot for snapshot in own if not snapshot.region]
        instants: dict[str, list[dt.datetime]] = defaultdict(list)
        for original in originals:
            if (at := _due(original)) not in instants[original.schedule]:
                instants[original.schedule].append(at)
        known = {
            (fate.schedule, fate.at): fate for fate in fates(self._policy, instants, now + dt.timedelta(microseconds=1))
        }
        done = []
        for original in originals:
            done += self._settle(original, known[original.schedule, _due(original)], now)
        for own_snapshot in own:
            if own_snapshot.region and not self._is_kept(own_snapshot, now):
                done.append(self._deleted(own_snapshot))
        return done

    def _settle(self, snapshot: VolumeSnapshot, fate: Fate, now: dt.datetime) -> list[Action]:
        """What is due for one snapshot."""
        if not fate.exists(now) and not fate.is_archived(now):
            return [self._deleted(snapshot)]
        if snapshot.left_s(time.time()) > 0:
            return []
        done = []
        there = {other.region for other in snapshot_file.read(self._state).snapshots if other.image == snapshot.image}
        for region, until in fate.copies:
            if region not in there and now < until and not snapshot.archived:
                [made] = snapshot_copy.copy([snapshot], region, self._state, rate_mib_per_s=self._rate)
                snapshot_file.changed(self._state, {made.name: {"schedule": snapshot.schedule}})
                done.append(Action("copied", f"{made.name} is a copy of {snapshot.name} in {region}", (made.name,)))
        zones = fate.fast_zones if fate.is_fast(now) else 0
        if zones != snapshot.fast_zones:
            _ = (
                snapshot_fast.enable([snapshot], zones, self._state)
                if zones
                else snapshot_fast.disable([snapshot], self._state)
            )
            text = "enabled" if zones else "disabled"
            done.append(
                Action("fast" if zones else "not_fast", f"fast restore of {snapshot.name} is {text}", (snapshot.name,))
            )
        if fate.is_archived(now) and not snapshot.archived:
            snapshot_copy.archive([snapshot], self._state)
            done.append(Action("archived", f"{snapshot.name} is archived", (snapshot.name,)))
        return done

    def _is_kept(self, snapshot: VolumeSnapshot, now: dt.datetime) -> bool:
        """Whether a copy is young enough."""
        schedule = next(other for other in self._policy if other.name == snapshot.schedule)
        ages = [copy.age_s for copy in schedule.copies if copy.region == snapshot.region]
        return bool(ages) and now < _due(snapshot) + dt.timedelta(seconds=ages[0])

    def _deleted(self, snapshot: VolumeSnapshot) -> Action:
        snapshot_delete.delete([snapshot], self._state)
        return Action(
            "deleted",
            f"{snapshot.name} is deleted" + (f" in {snapshot.region}" if snapshot.region else ""),
            (snapshot.name,),
        )


def _due(snapshot: VolumeSnapshot) -> dt.datetime:
    return dt.datetime.fromtimestamp(snapshot.due_unix_s, dt.UTC)

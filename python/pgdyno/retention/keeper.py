"""A policy that runs on attached volumes: takes what is due, and does to each snapshot what its schedule says.

What is to become of a snapshot is decided by the function that the dry run uses (:func:`pgdyno.retention.timeline.fates`), of the instants at which
snapshots were taken. Whatever was done before is read from the snapshots, so a policy that is started again resumes. An instant that passed
while none ran is not made up for.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.errors import PgdynoError
from pgdyno.host import snapshot, snapshot_copy, snapshot_delete, snapshot_fast, snapshot_file
from pgdyno.retention.timeline import fates, next_due

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.host.snapshot_file import Snapshot
    from pgdyno.host.volume import AttachedVolume
    from pgdyno.retention.policy import Schedule
    from pgdyno.retention.timeline import Snapshot as Fate

LOOK_S = 30.0
"""The longest time between two looks: ages end, and pending snapshots are completed."""
_PENDING_S = 1.0


@dataclass(frozen=True)
class Deed:
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
        policy: Sequence[Schedule],
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

    def look(self, now: dt.datetime) -> list[Deed]:
        """Take what became due since the last look, once, and bring every snapshot of the policy to where it belongs."""
        due = None
        while (found := next_due(self._policy, self._looked, now)) is not None:
            self._looked, due = found[0], found
        self._looked = now
        done = [] if due is None else self._take(*due)
        return done + self._keep(now)

    def wait_s(self, now: dt.datetime) -> float:
        """How long nothing is due."""
        if any(one.left_s(time.time()) for one in self._own()):
            return _PENDING_S
        found = next_due(self._policy, now, now + dt.timedelta(seconds=LOOK_S))
        return LOOK_S if found is None else (found[0] - now).total_seconds()

    def _own(self) -> list[Snapshot]:
        names = {one.name for one in self._policy}
        of = {one.name for one in self._volumes()}
        listed = snapshot_file.read(self._state).snapshots
        return [one for one in listed if one.schedule in names and one.volume in of]

    def _take(self, at: dt.datetime, schedule: Schedule) -> list[Deed]:
        """One set of each instance's volumes."""
        sets: dict[int, list[AttachedVolume]] = defaultdict(list)
        for one in self._volumes():
            sets[one.daemon.pid].append(one)
        done = []
        for together in sets.values():
            of = ", ".join(one.name for one in together)
            try:
                taken = snapshot.take(together, rate_mib_per_s=self._rate)
            except PgdynoError as error:
                done.append(Deed("not_taken", f"no snapshot of {of} ({schedule.name}): {error.message}"))
                continue
            names = tuple(one.name for one in taken.snapshots)
            facts = {"schedule": schedule.name, "due_unix_s": at.timestamp()}
            snapshot_file.changed(self._state, dict.fromkeys(names, facts))
            done.append(Deed("taken", f"{' '.join(names)} of {of} ({schedule.name})", names))
        return done

    def _keep(self, now: dt.datetime) -> list[Deed]:
        own = self._own()
        originals = [one for one in own if not one.region]
        instants: dict[str, list[dt.datetime]] = defaultdict(list)
        for one in originals:
            if (at := _due(one)) not in instants[one.schedule]:
                instants[one.schedule].append(at)
        known = {
            (fate.schedule, fate.at): fate for fate in fates(self._policy, instants, now + dt.timedelta(microseconds=1))
        }
        done = []
        for one in originals:
            done += self._settle(one, known[one.schedule, _due(one)], now)
        for one in own:
            if one.region and not self._is_kept(one, now):
                done.append(self._deleted(one))
        return done

    def _settle(self, one: Snapshot, fate: Fate, now: dt.datetime) -> list[Deed]:
        """What is due for one snapshot."""
        if not fate.exists(now) and not fate.is_archived(now):
            return [self._deleted(one)]
        if one.left_s(time.time()) > 0:
            return []
        done = []
        there = {other.region for other in snapshot_file.read(self._state).snapshots if other.image == one.image}
        for region, until in fate.copies:
            if region not in there and now < until and not one.archived:
                [made] = snapshot_copy.copy([one], region, self._state, rate_mib_per_s=self._rate)
                snapshot_file.changed(self._state, {made.name: {"schedule": one.schedule}})
                done.append(Deed("copied", f"{made.name} is a copy of {one.name} in {region}", (made.name,)))
        zones = fate.fast_zones if fate.is_fast(now) else 0
        if zones != one.fast_zones:
            _ = snapshot_fast.enable([one], zones, self._state) if zones else snapshot_fast.disable([one], self._state)
            said = "enabled" if zones else "disabled"
            done.append(Deed("fast" if zones else "not_fast", f"fast restore of {one.name} is {said}", (one.name,)))
        if fate.is_archived(now) and not one.archived:
            snapshot_copy.archive([one], self._state)
            done.append(Deed("archived", f"{one.name} is archived", (one.name,)))
        return done

    def _is_kept(self, one: Snapshot, now: dt.datetime) -> bool:
        """Whether a copy is young enough."""
        schedule = next(other for other in self._policy if other.name == one.schedule)
        ages = [copy.age_s for copy in schedule.copies if copy.region == one.region]
        return bool(ages) and now < _due(one) + dt.timedelta(seconds=ages[0])

    def _deleted(self, one: Snapshot) -> Deed:
        snapshot_delete.delete([one], self._state)
        return Deed("deleted", f"{one.name} is deleted" + (f" in {one.region}" if one.region else ""), (one.name,))


def _due(one: Snapshot) -> dt.datetime:
    return dt.datetime.fromtimestamp(one.due_unix_s, dt.UTC)

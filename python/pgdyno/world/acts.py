"""What events do to the volumes and the server of an emulated world."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pgdyno.experiment.event import ALL, EventTable

from ..base.errors import PgdynoError
from ..base.quantity import duration_words
from ..base.text import size
from ..machine import power_cut, snapshot
from ..machine.volume import AttachedVolume
from ..server.cluster import Cluster

RECOVERY_TIMEOUT_S = 900.0
"""Crash recovery that takes longer is a failed event. Ten minutes are reported of 4 GB of WAL (AWS Database Blog, on bulk loads)."""


class Acts:
    """Does events. ``start`` starts the server again, as it was started, within the seconds that it is given."""

    def __init__(self, volumes: Mapping[str, AttachedVolume], cluster: Cluster, start: Callable[[float], None]) -> None:
        self._volumes = volumes
        self._cluster = cluster
        self._start = start
        self._away = threading.Event()
        self._failed: set[str] = set()

    def __call__(self, event: EventTable) -> str:
        """Do an event, and say what came of it. :class:`PgdynoError` when it fails."""
        if event.do in ("kill", "cut"):
            return self._restart(self._cluster.kill if event.do == "kill" else self._cut)
        if event.do == "snapshot":
            return self._take(event)
        volume = self._volumes[event.target]
        if event.do == "modify":
            assert event.spec is not None
            optimizing_s = None if event.optimizing_s is None else round(event.optimizing_s)
            answer = volume.modify(event.spec, rule=event.rule, optimizing_s=optimizing_s)
            return f"{answer['spec']['spec']}, {answer['modification']['state']}"
        if event.do == "fail":
            self._failed.add(event.target)
            return f"{len(volume.fail(event.fault_document())['faults'])} in force"
        return f"{len(volume.heal()['faults'])} left"

    def end(self) -> None:
        """Heal what was failed, so that the tables can be checked."""
        for role in sorted(self._failed):
            self._volumes[role].heal()

    def server_died(self) -> PgdynoError | None:
        """What the server died of unless an event ended it; None while it lives, or recovers from one."""
        return None if self._away.is_set() else self._cluster.death()

    def _take(self, event: EventTable) -> str:
        chosen = list(self._volumes.values()) if event.target == ALL else [self._volumes[event.target]]
        taken = snapshot.take(chosen, rate_mib_per_s=event.rate_mib_per_s)
        slower = int(chosen[0].facts.get("dilation") or 1)
        pending_s = max(snapshot.pending_s for snapshot in taken.snapshots) / slower
        stored = size(sum(snapshot.stored_bytes for snapshot in taken.snapshots))
        return f"{stored}, pending {duration_words(pending_s)}, held up requests for at most {taken.waited_s / slower * 1e3:.2f} ms"

    def _restart(self, end: Callable[[], None]) -> str:
        self._away.set()
        end()
        self._start(RECOVERY_TIMEOUT_S)
        self._away.clear()
        return "recovered"

    def _cut(self) -> None:
        mounted = {volume.block_device: volume.mount for volume in self._volumes.values() if volume.mount is not None}
        power_cut.cut(mounted, self._cluster.kill)

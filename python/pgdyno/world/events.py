"""Events of a run: refusals before it, actions on volumes and server, and the timeline that starts them."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from pgdyno.experiment import Experiment
from pgdyno.probe.samples import ProbeTables
from pgdyno.world.resolved import ResolvedArm

from ..base import catalog
from ..base.errors import PgdynoError
from ..base.quantity import duration_words
from ..base.specification import VolumeSpec
from ..base.text import size
from ..experiment.events import ALL, ON_SERVER, EventTable
from ..machine import power_cut, preflight, snapshot
from ..machine.instance_type import resolve_type
from ..machine.volume import AttachedVolume
from ..results.record import Check
from ..results.tables import SubjectClock
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


LASTS_MAX_S = 900.0
"""The longest that a run waits, after its load has ended, for an event that has begun: a recovery of many GB of WAL."""


class EventTimeline:
    """Runs events on a thread of its own, one after the other; one that is due while another runs begins after it.

    ``act`` does an event and returns what came of it in words; ``price_of`` is the price a month of the volume of a role. Leaving the ``with`` block begins no further event and waits for
    the one that runs.
    """

    def __init__(
        self,
        events: Iterable[EventTable],
        act: Callable[[EventTable], str],
        clock: SubjectClock,
        price_of: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        self._events = tuple(events)
        self._price_of = price_of
        self._act = act
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pgdyno-events", daemon=True)
        self._begin_ns = 0
        self._rows: list[dict[str, Any]] = []
        self._error: PgdynoError | None = None

    def begin(self) -> None:
        """Measuring begins now."""
        self._begin_ns = time.monotonic_ns()
        if self._events:
            self._thread.start()

    def error(self) -> PgdynoError | None:
        """The failure of an event, which is one of the run; None while all that began worked."""
        return self._error

    def require_done(self) -> None:
        """Wait for the event that runs. :class:`PgdynoError` when one failed, or did not come before the load ended."""
        self._end()
        if self._error is not None:
            raise self._error
        if missing := self._events[len(self._rows) :]:
            raise PgdynoError(
                f"the run ended before an event: {missing[0].words}, {missing[0].at_s:g} s after measuring began",
                remedy="use an earlier time, or more work",
            )

    def samples(self) -> ProbeTables:
        """The table of events, on the host's clock; nothing of a run without any."""
        from ..results.tables import from_rows

        return ProbeTables({"world/event": from_rows("world/event", self._rows)} if self._rows else {})

    def explained(self, checks: Iterable[Check]) -> tuple[Check, ...]:
        """Checks of the driver, in which clients may have lost a server that was ended on purpose."""
        away = ", ".join(event.words for event in self._events if event.do in ON_SERVER)
        return tuple(
            check.model_copy(update={"ok": True, "detail": f"{check.detail}; on purpose: {away}"})
            if away and check.name == "clients_lasted" and not check.ok
            else check
            for check in checks
        )

    def __enter__(self) -> Self:
        """Nothing begins yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end()

    def _end(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(LASTS_MAX_S)
            if self._thread.is_alive():
                event = self._events[len(self._rows)]
                self._error = PgdynoError(
                    f"an event did not end within {duration_words(LASTS_MAX_S)}: {event.words}",
                    remedy="read the server's log",
                )

    def _run(self) -> None:
        for event in self._events:
            due_ns = self._begin_ns + round(self._clock.host_s(event.at_s) * 1e9)
            if self._ended.wait(max(0.0, (due_ns - time.monotonic_ns()) / 1e9)):
                return
            begin_ns = time.monotonic_ns()
            try:
                result = self._act(event)
            except PgdynoError as error:
                self._error = PgdynoError(
                    f"an event failed: {event.words}, {event.at_s:g} s after measuring began: {error.message}",
                    remedy=error.remedy,
                )
                return
            except Exception as error:  # noqa: BLE001 - raised by the thread that waits for it
                self._error = PgdynoError(
                    f"an event failed: {event.words}: {error!r}", remedy="this is a bug in pgdyno"
                )
                return
            self._rows.append(
                {
                    "planned_s": event.at_s,
                    "kind": event.do,
                    "target": event.target,
                    "words": event.words,
                    "t_begin_ns": begin_ns,
                    "t_end_ns": time.monotonic_ns(),
                    "result": result,
                    "usd_per_month": self._price_of(event.target) if event.do == "modify" else None,
                }
            )


HOUR_S, TIB = 3600.0, 1 << 40
MODIFYING_S = 5.0
OPTIMIZING_S_PER_TIB, OPTIMIZING_S_MAX = 6 * HOUR_S, 24 * HOUR_S
"""As the daemon's: a modification is in these states one after the other."""
IN_A_DAY = 4
"""Modifications in any 24 hours, by the rule of 2026."""
_GROWERS = {"ext4": "resize2fs", "xfs": "xfs_growfs"}


def require_possible(experiment: Experiment, resolved: ResolvedArm) -> None:
    """:class:`~pgdyno.base.errors.InputError` at the first event that cannot happen in a run of this arm."""
    for number, event in enumerate(resolved.arm.file.event):
        if event.member is not None and event.member >= (there := resolved.volumes[event.target].members):
            raise experiment.origin.error(
                ("event", number, "member"),
                f"there is no member {event.member}",
                f"name one of 0 to {there - 1}",
                code="experiment.event.no_member",
                data={"members": there},
            )
    numbers = {id(event): number for number, event in enumerate(resolved.arm.file.event)}
    becoming: dict[str, VolumeSpec] = dict(resolved.volumes)
    asked_s: dict[str, list[float]] = {}
    completed_s: dict[str, float] = {}
    for event in resolved.arm.events:  # in the order in which they happen
        if event.spec is None:
            continue
        number, role = numbers[id(event)], event.target
        place = ("event", number, "spec")
        with experiment.origin.explained(place):
            wanted = catalog.resolve(event.spec)
        earlier = asked_s.setdefault(role, [])
        problems = (
            *_of_volumes(becoming[role], wanted),
            *_of_machine(resolved, becoming[role], wanted),
            *_of_rule(event, earlier, completed_s.get(role, -math.inf)),
        )
        for reason, message, remedy in problems:
            raise experiment.origin.error(
                place, message, remedy, code=f"experiment.event.{reason}", data={"role": role}
            )
        if resolved.arm.instance.type is not None:
            with experiment.origin.explained(place):
                resolve_type(resolved.arm.instance.type).require_iops([wanted])
        earlier.append(event.at_s)
        completed_s[role] = event.at_s + _modification_s(event, wanted)
        becoming[role] = wanted


def _of_volumes(now: VolumeSpec, wanted: VolumeSpec) -> Iterator[tuple[str, str, str]]:
    """Why one volume cannot become another: reason, message, remedy."""
    if wanted.size_bytes < now.size_bytes:
        has, number = now.size_bytes >> 30, wanted.size_bytes >> 30
        yield (
            "smaller",
            f"a volume can only be made larger: it has {has} GiB, and this has {number} GiB",
            f"add size={has}GiB",
        )
    if wanted.spec == now.spec:
        yield "same", f"the volume is {now.spec} already at this time", "give other figures, or omit the event"
    if now.document.get("volatile") or wanted.document.get("volatile"):
        yield "volatile", "the disks of an instance cannot be modified", "modify a volume"
    if _layout(now) != _layout(wanted):
        yield (
            "layout",
            f"the members of an array can be modified, its layout cannot: the volume is {now.spec}",
            "keep its layout and give other figures",
        )


def _layout(spec: VolumeSpec) -> tuple[Any, ...]:
    array = spec.document.get("array") or {}
    return tuple(array.get(key) for key in ("columns", "copies", "chunk_kib", "multi_az_ms"))


def _of_machine(resolved: ResolvedArm, now: VolumeSpec, wanted: VolumeSpec) -> Iterator[tuple[str, str, str]]:
    """Why this machine cannot make the file system larger. A plan can be made without root, for another user."""
    kind = resolved.arm.world.file_system
    if wanted.size_bytes <= now.size_bytes or os.geteuid() != 0:
        return
    if kind == "ext4" and not preflight.may_exceed_resources():
        yield (
            "cannot_grow",
            "a mounted ext4 file system grows only with CAP_SYS_RESOURCE, which this process does not have",
            'use world.file_system = "xfs", or keep the size; in a container pass `--cap-add SYS_RESOURCE`',
        )
    elif (missing := preflight.missing_programs(_GROWERS[kind])) != []:
        yield "no_grower", f"this machine has no {missing[0]}, which makes the file system larger", "install it"


def _of_rule(event: EventTable, earlier: list[float], completed_s: float) -> Iterator[tuple[str, str, str]]:
    """Why the provider would refuse it after the modifications before it, all in seconds since measuring began."""
    if not earlier:
        return
    if event.rule == "2023":
        if event.at_s < earlier[-1] + 6 * HOUR_S:
            yield "too_soon", "a volume is modified at most once in 6 hours (rule of 2023)", 'use rule = "2026"'
        return
    if len(earlier) >= IN_A_DAY and event.at_s < earlier[-IN_A_DAY] + 24 * HOUR_S:
        yield (
            "too_soon",
            "a volume is modified at most four times in 24 hours (rule of 2026)",
            "omit one of the modifications",
        )
    if event.at_s < completed_s:
        yield (
            "too_soon",
            f"its last modification is completed only {completed_s:,.0f} s after measuring began (rule of 2026)",
            'give the one before it optimizing = "0s", or let this one happen later',
        )


def _modification_s(event: EventTable, wanted: VolumeSpec) -> float:
    """Until it is completed."""
    optimizing_s = event.optimizing_s
    if optimizing_s is None:
        optimizing_s = min(OPTIMIZING_S_MAX, OPTIMIZING_S_PER_TIB * wanted.size_bytes / wanted.columns / TIB)
    return min(MODIFYING_S, optimizing_s) + optimizing_s

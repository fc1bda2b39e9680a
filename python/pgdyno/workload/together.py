"""Several drivers with one load: all connect, begin at one instant, and their figures are added up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pgdyno.workload import added, driving
from pgdyno.workload.driving import Alarm, DriverProcess
from pgdyno.workload.elsewhere import RemoteHost
from pgdyno.workload.kind.clients import Clients
from pgdyno.workload.native_record import SECOND_NS, DriverOutput, Line, driver_record
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.share import DriverShare
from pgdyno.workload.watch import now_ns

from ..base.errors import PgdynoError
from ..results.record import Check, DriverHostRecord
from ..results.tables import SubjectClock

LEAD_MS = 250
"""Between giving the instant and the instant: a driver needs less than a millisecond, on a busy machine some tens of them."""
_PROBES_S = 120.0
"""What lies between the last driver's connections and the instant: the probes begin."""


@dataclass(frozen=True)
class LostDriver:
    """A driver that ended before its time."""

    share: DriverShare
    at_ns: int
    """When that was noticed; CLOCK_MONOTONIC."""
    error: PgdynoError


@dataclass(frozen=True)
class MergedOutput:
    """What all drivers said."""

    parts: Mapping[str, DriverOutput]
    """By the name of the driver."""
    said: DriverOutput
    """As one driver would have said it."""
    shares: Sequence[DriverShare]
    lost: LostDriver | None = None
    """The first one; then the figures are not used."""
    hosts: Mapping[str, DriverHostRecord] = field(default_factory=dict)
    """Where each ran, by its name; empty where that was here."""

    def outcome(self, whole: Outcome, spec: Clients, clock: SubjectClock) -> Outcome:
        """The run, from what the figures of all come to: with each driver by its name, and whether all lasted."""
        threads = {share.name: share.threads for share in self.shares}
        drivers = {
            name: driver_record(spec.model_copy(update={"threads": threads[name]}), part, clock).model_copy(
                update={"host": self.hosts.get(name)}
            )
            for name, part in self.parts.items()
        }
        return replace(whole, drivers=drivers, checks=(*whole.checks, self._lasted(clock)))

    def _lasted(self, clock: SubjectClock) -> Check:
        detail = f"{len(self.parts)} drivers, each until the end"
        if self.lost is not None:
            after_ns = self.lost.at_ns - int(self.said.ready["begin_ns"])
            after_s = after_ns / clock.dilation / SECOND_NS
            detail = f"{self.lost.share.name} was lost {after_s:.1f} s after the load began: {self.lost.error.message}"
        return Check(name="drivers_lasted", ok=self.lost is None, detail=detail)


class Drivers:
    """Drivers that share a load; leaving the ``with`` block ends those that are still at work by force."""

    def __init__(
        self,
        document: dict[str, Any],
        shares: Sequence[DriverShare],
        folder: Path,
        *,
        prefix: Sequence[str] = (),
        dilation: int = 1,
        hosts: Mapping[str, RemoteHost] | None = None,
    ) -> None:
        """Start all, and return when all clients are connected.

        ``document`` is the whole load's; each driver has a log in ``folder``. ``hosts`` are those of the drivers, by name.
        """
        self._shares, elsewhere = tuple(shares), hosts or {}
        self._hosts = {name: host.record(document["server"]) for name, host in elsewhere.items()}
        within_s = _PROBES_S + driving.start_s(document, dilation)
        values = {"begin": {"told": {"within_ms": round(1000 * within_s)}}}
        self._stack, self._drivings = contextlib.ExitStack(), list[DriverProcess]()
        with contextlib.ExitStack() as starting:
            for share in self._shares:
                log = folder / f"{share.name.replace(' ', '-')}.err"
                result, there = share.of(document) | values, elsewhere.get(share.name)
                process = DriverProcess(result, log, prefix=prefix, dilation=dilation, elsewhere=there)
                starting.push(process)
                self._drivings.append(process)
            # All connect their clients at the same time; their clocks are asked one after the other, undisturbed.
            for process in self._drivings:
                process.connected()
            self._stack = starting.pop_all()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of this machine."""
        return () if self._hosts else tuple(driving.pid for driving in self._drivings)

    @property
    def ready(self) -> Line:
        """What the first one said when it was ready; all begin at the same instant."""
        return self._drivings[0].said.ready

    @property
    def said(self) -> list[DriverOutput]:
        """What each said."""
        return [driving.said for driving in self._drivings]

    def begin(self, lead_ms: int = LEAD_MS) -> None:
        """Give all one instant to begin at, which is to come."""
        begin_ns = now_ns() + lead_ms * 1_000_000
        for driver in self._drivings:
            driver.begin_at(begin_ns)

    def follow(self, output: Callable[[Line], None], alarms: Sequence[Alarm] = ()) -> MergedOutput:
        """Until all have ended: ``heard`` gets the counts of each second that all have told, ``alarms`` ring in their order.

        A driver that is lost ends the others. That is an error before it has told a second of the measure phase, and later a
        failed check.
        """
        seconds = _Seconds(len(self._drivings), output)
        broken = driving.follow(self._drivings, lambda _, line: seconds.hear(line), alarms)
        lost = self._lost(broken)
        parts = {
            share.name: output if output.summary is not None else replace(output, summary=added.summary_of(output))
            for share, output in zip(self._shares, self.said, strict=True)
        }
        return MergedOutput(parts, added.said(list(parts.values())), self._shares, lost, self._hosts)

    def _lost(self, broken: Sequence[DriverProcess]) -> LostDriver | None:
        """The first that was lost; one that a refused statement ended has its summary, which says so."""
        first = next((process for process in broken if process.lost is not None), None)
        if first is None or first.lost is None:
            return None
        share = self._shares[self._drivings.index(first)]
        early = [
            share.name
            for share, driving in zip(self._shares, self._drivings, strict=True)
            if driving.said.summary is None and all(second["warmup"] for second in driving.said.seconds)
        ]
        if early:
            raise PgdynoError(
                f"{share.name} was lost before {early[0]} had measured a second: {first.lost.message}",
                remedy=first.lost.remedy,
            )
        return LostDriver(share, first.ended_ns, first.lost)

    def __enter__(self) -> Self:
        """They run already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End them."""
        self._stack.close()


class _Seconds:
    """Counts of seconds, handed on when every driver has told of the second."""

    def __init__(self, drivers: int, output: Callable[[Line], None]) -> None:
        self._drivers = drivers
        self._heard = output
        self._waiting: dict[int, list[Line]] = {}

    def hear(self, line: Line) -> None:
        waiting = self._waiting.setdefault(line["begin_ns"], [])
        waiting.append(line)
        if len(waiting) == self._drivers:
            del self._waiting[line["begin_ns"]]
            counts = {name: sum(other[name] for other in waiting) for name in ("succeeded", "failed")}
            self._heard({name: line[name] for name in ("begin_ns", "end_ns", "warmup")} | counts)

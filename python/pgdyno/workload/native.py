"""Runs of pgdyno's own driver, ``pgdyno-engine drive``: one process, or several whose figures are added up."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pgdyno.workload import histogram, native_record
from pgdyno.workload.clock import now_ns
from pgdyno.workload.native_record import SECOND_NS, ClientPhases, DriverOutput, Line, driver_record
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ..base import engine
from ..base.errors import PgdynoError
from ..results.record import Check, DriverHostRecord
from ..results.tables import SubjectClock
from .clients import Clients
from .outcome import DriverShare, Progress, RemoteHost, shares_of
from .process import Alarm, DriverProcess, follow, start_s

TAIL_MS = 500
"""The load continues for this time after the measured phase, so that it is complete until its end and during its reading."""
DRAIN_MS = 60_000
"""How long transactions may take that have begun when the load ends: one may wait for a slow volume."""


def run(server: Server, request: RunRequest, spec: Clients) -> Outcome:
    """Run ``spec`` by pgdyno's own driver.

    The measure phase is made of whole seconds of the host. ``request.out_dir`` receives ``drive.jsonl`` and ``drive.err``,
    which of several drivers each has.
    """
    clock, out_dir = request.clock, request.out_dir
    out_dir.mkdir(parents=True, exist_ok=True)
    measure_ms = 1000 * max(1, math.ceil(clock.host_s(request.duration_s) - 1e-6))
    warmup_ms = round(1000 * clock.host_s(request.warmup_s))
    values = document(spec.dilated(clock.dilation), warmup_ms, measure_ms + TAIL_MS, spec.seed)
    values["dilation"] = clock.dilation
    values |= spec.order(server, clock.dilation)
    shares = shares_of(request.drivers, spec.clients, spec.threads, tuple(request.hosts))
    output: MergedOutput | None = None
    if len(shares) > 1 or request.hosts:
        with Drivers(
            values, shares, out_dir, prefix=request.prefix, dilation=clock.dilation, hosts=request.hosts
        ) as drivers:
            request.on_start(*drivers.pids)
            drivers.begin()
            span = span_of(drivers.ready, warmup_ms, measure_ms)
            output = drivers.follow(shown(span, request.progress, clock.dilation), _edges(span, request))
        _keep(drivers.outputs, out_dir / "drive.jsonl")
        driver_output = output.output
    else:
        log, command = out_dir / "drive.err", spec.command
        with DriverProcess(values, log, command=command, prefix=request.prefix, dilation=clock.dilation) as driving:
            request.on_start(driving.pid)
            span = span_of(driving.output.ready, warmup_ms, measure_ms)
            driver_output = driving.follow(shown(span, request.progress, clock.dilation), _edges(span, request))
        _keep([driver_output], out_dir / "drive.jsonl")
    ending = native_record.ending(driver_output)
    if ending is not None and native_record.account_total(driver_output).succeeded == 0:
        raise PgdynoError(ending["message"], remedy=ending["remedy"], code=ending["code"], data=ending["data"])
    made = native_record.outcome(spec, driver_output, span, clock)
    return made if output is None else output.outcome(made, spec, clock)


def _edges(span: ClientPhases, request: RunRequest) -> list[Alarm]:
    return [Alarm(span.begin_ns, request.on_measure_begin), Alarm(span.end_ns, request.on_measure_end)]


def require(clients: Clients) -> None:
    """Refuse what the driver cannot read: a script's mistake is said with its line and column."""
    engine.run_json(["drive", "--check"], document(clients, 0, 1000))


def document(spec: Clients, warmup_ms: int, duration_ms: int, seed: int = 1) -> dict[str, Any]:
    """The driver's input for a workload, without the server."""
    if spec.rate_per_s is not None:
        arrivals: str | dict[str, Any] = {spec.arrivals: {"rate_per_s": spec.rate_per_s}}
    else:
        arrivals = "closed" if spec.think_ms is None else {"think": {"ms": spec.think_ms}}
    return {
        "workload": spec.native(),
        "clients": spec.clients,
        "threads": spec.threads,
        "protocol": spec.protocol,
        "arrivals": arrivals,
        "warmup_ms": warmup_ms,
        "duration_ms": duration_ms,
        "late_max_ms": spec.late_max_ms,
        "tries_max": spec.tries_max,
        "drain_ms": DRAIN_MS,
        "seed": seed,
    }


def span_of(ready: Line, warmup_ms: int, measure_ms: int) -> ClientPhases:
    """The phases of a driver that is ready, and knows when it begins."""
    bench_ns = int(ready["begin_ns"])
    begin_ns = bench_ns + warmup_ms * 1_000_000
    return ClientPhases(bench_ns, begin_ns, begin_ns + measure_ms * 1_000_000)


def shown(span: ClientPhases, progress: Progress, dilation: int = 1) -> Callable[[dict[str, Any]], None]:
    """Callback that shows ``progress`` for each second of the driver; TPS in the subject's time."""

    def on_line(line: dict[str, Any]) -> None:
        share = (line["end_ns"] - span.bench_ns) / (span.end_ns - span.bench_ns)
        seconds = max(1, line["end_ns"] - line["begin_ns"]) / SECOND_NS
        tps = line["succeeded"] / seconds * dilation
        failed = f", {line['failed']:,} failed" if line["failed"] else ""
        progress(min(1.0, share), f"{'warm up' if line['warmup'] else 'measure'}: {tps:,.0f} tps{failed}")

    return on_line


def _keep(parts: Iterable[DriverOutput], path: Path) -> None:
    """The first and last line of each driver, as they were; what lies between is in the tables."""
    import json

    lines = [line for part in parts for line in ({"ready": part.ready}, {"summary": part.summary})]
    try:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    except OSError as error:
        raise PgdynoError(f"{path} cannot be written: {error.strerror}", remedy="free some space") from error


LEAD_MS = 250
"""Between giving the instant and the instant: a driver needs less than a millisecond, on a busy machine some tens of them."""
_PROBES_S = 120.0
"""Seconds from the last driver's connections to the instant: the probes begin."""


@dataclass(frozen=True)
class LostDriver:
    """A driver that ended before its time."""

    share: DriverShare
    at_ns: int
    """When that was noticed; CLOCK_MONOTONIC."""
    error: PgdynoError


@dataclass(frozen=True)
class MergedOutput:
    """Output of all drivers."""

    parts: Mapping[str, DriverOutput]
    """By the name of the driver."""
    output: DriverOutput
    """Merged as the output of one driver."""
    shares: Sequence[DriverShare]
    lost: LostDriver | None = None
    """The first one; then the figures are not used."""
    hosts: Mapping[str, DriverHostRecord] = field(default_factory=dict)
    """Host of each driver, by its name; empty on this host."""

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
            after_ns = self.lost.at_ns - int(self.output.ready["begin_ns"])
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
        within_s = _PROBES_S + start_s(document, dilation)
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
        """Line of the first driver when it was ready; all begin at the same instant."""
        return self._drivings[0].output.ready

    @property
    def outputs(self) -> list[DriverOutput]:
        """Output of each driver."""
        return [driving.output for driving in self._drivings]

    def begin(self, lead_ms: int = LEAD_MS) -> None:
        """Give all one instant to begin at, which is to come."""
        begin_ns = now_ns() + lead_ms * 1_000_000
        for driver in self._drivings:
            driver.begin_at(begin_ns)

    def follow(self, on_line: Callable[[Line], None], alarms: Sequence[Alarm] = ()) -> MergedOutput:
        """Until all have ended: ``on_line`` gets the counts of each second that all have told, ``alarms`` ring in their order.

        A driver that is lost ends the others. That is an error before it has told a second of the measure phase, and later a
        failed check.
        """
        seconds = _Seconds(len(self._drivings), on_line)
        broken = follow(self._drivings, lambda _, line: seconds.add(line), alarms)
        lost = self._lost(broken)
        parts = {
            share.name: output if output.summary is not None else replace(output, summary=summary_of(output))
            for share, output in zip(self._shares, self.outputs, strict=True)
        }
        return MergedOutput(parts, merged(list(parts.values())), self._shares, lost, self._hosts)

    def _lost(self, broken: Sequence[DriverProcess]) -> LostDriver | None:
        """The first that was lost; one that a refused statement ended has its summary, which says so."""
        first = next((process for process in broken if process.lost is not None), None)
        if first is None or first.lost is None:
            return None
        share = self._shares[self._drivings.index(first)]
        early = [
            share.name
            for share, driving in zip(self._shares, self._drivings, strict=True)
            if driving.output.summary is None and all(second["warmup"] for second in driving.output.seconds)
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

    def __init__(self, drivers: int, on_line: Callable[[Line], None]) -> None:
        self._drivers = drivers
        self._on_line = on_line
        self._waiting: dict[int, list[Line]] = {}

    def add(self, line: Line) -> None:
        waiting = self._waiting.setdefault(line["begin_ns"], [])
        waiting.append(line)
        if len(waiting) == self._drivers:
            del self._waiting[line["begin_ns"]]
            counts = {name: sum(other[name] for other in waiting) for name in ("succeeded", "failed")}
            self._on_line({name: line[name] for name in ("begin_ns", "end_ns", "warmup")} | counts)


_COUNTS = ("succeeded", "rolled_back", "failed", "skipped_late", "skipped_ended", "retries")
_OF_LINE = (*_COUNTS, "cpu_ns", "connections_lost", "down_ns")
_OF_SUMMARY = (
    "scheduled_with_warmup",
    "settled_in_warmup",
    "process_user_ns",
    "process_system_ns",
    "clients_disconnected",
)
_LATEST = ("connect_ns", "begin_late_ns", "woke_late_ns")
_UNTOLD = {"count": 0}
"""Lateness of several drivers: see the module."""


def merged(parts: Sequence[DriverOutput]) -> DriverOutput:
    """Output of one driver with the whole load; each part has its summary, and all began at the same instant."""
    readies = [part.ready for part in parts]
    ready = readies[0] | {
        "clients": sum(ready["clients"] for ready in readies),
        "connect_ns": max(ready["connect_ns"] for ready in readies),
    }
    at: dict[int, list[Line]] = {}
    for part in parts:
        for second in part.seconds:
            at.setdefault(second["begin_ns"], []).append(second)
    seconds = [line(at[begin_ns]) | {"warmup": at[begin_ns][0]["warmup"]} for begin_ns in sorted(at)]
    return DriverOutput(ready, seconds, _summary([part.summary for part in parts if part.summary is not None]))


def line(lines: Sequence[Line]) -> Line:
    """Seconds or summaries of the same workload as one, without what only one of these has."""
    return {
        "begin_ns": min(line["begin_ns"] for line in lines),
        "end_ns": max(line["end_ns"] for line in lines),
        **_sums(lines, _OF_LINE),
        "scripts": [_part(same, (*_COUNTS,), ("response_us", "service_us")) for same in _by_place(lines, "scripts")],
        "statements": [_part(same, ("count",), ("service_us",)) for same in _by_place(lines, "statements")],
        "queries": _added([line["queries"] for line in lines]),
        "errors": _added([line["errors"] for line in lines]),
        "lag_us": _UNTOLD,
        "wake_us": _UNTOLD,
    }


def summary_of(part: DriverOutput) -> Line:
    """The summary of a driver that was lost before it could say one: its seconds after the warm-up, of which there are some.

    What it had begun since the last of them is in no account.
    """
    measured = [second for second in part.seconds if not second["warmup"]]
    result = line(measured)
    settled = [sum(second[name] for name in _COUNTS if name != "retries") for second in part.seconds]
    warmup = sum(count for count, second in zip(settled, part.seconds, strict=True) if second["warmup"])
    return result | {
        **_rates(result),
        "connect_ns": part.ready["connect_ns"],
        "begin_late_ns": 0,
        "woke_late_ns": 0,
        **dict.fromkeys(_OF_SUMMARY, 0),
        "scheduled_with_warmup": sum(settled),
        "settled_in_warmup": warmup,
        "inputs": {},
        "reconnects_failed": {},
        "reconnect_error": None,
        "ended_by": None,
        "unit": "us",
    }


def _summary(summaries: Sequence[Line]) -> Line:
    result = line(summaries)
    return result | {
        **_rates(result),
        **_sums(summaries, _OF_SUMMARY),
        **{name: max(summary[name] for summary in summaries) for name in _LATEST},
        "inputs": _added([summary["inputs"] for summary in summaries]),
        "reconnects_failed": _added([summary["reconnects_failed"] for summary in summaries]),
        "reconnect_error": _first(summaries, "reconnect_error"),
        "ended_by": _first(summaries, "ended_by"),
        "unit": "us",
    }


def _first(summaries: Sequence[Line], name: str) -> Any:
    """First of them that is not None."""
    return next((summary[name] for summary in summaries if summary[name] is not None), None)


def _rates(line: Line) -> dict[str, float]:
    seconds = max(1, line["end_ns"] - line["begin_ns"]) / SECOND_NS
    return {"tps": line["succeeded"] / seconds, "qps": sum(line["queries"].values()) / seconds}


def _by_place(lines: Sequence[Line], name: str) -> list[list[Line]]:
    """The scripts, or statements, that stand at the same place: drivers of one workload have the same."""
    names = {tuple(entry["name"] for entry in line[name]) for line in lines}
    if len(names) != 1:
        raise PgdynoError(
            f"the drivers of one load ran different {name}",
            remedy="this is a bug in pgdyno if `pgdyno doctor` finds nothing",
        )
    return [list(same) for same in zip(*(line[name] for line in lines), strict=True)]


def _part(same: Sequence[Line], counts: Sequence[str], histograms: Sequence[str]) -> Line:
    return (
        dict(same[0])
        | _sums(same, counts)
        | {name: histogram.added(line[name] for line in same) for name in histograms}
    )


def _sums(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, int]:
    return {name: sum(line[name] for line in lines) for name in names}


def _added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for count in counts for name in count)
    return {name: sum(count.get(name, 0) for count in counts) for name in names}

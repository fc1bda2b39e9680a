"""Runs pgdyno's own driver, ``pgdyno-engine drive``: together with a run's probes, or alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pgdyno.workload import native_record
from pgdyno.workload.driving import Alarm, DriverProcess
from pgdyno.workload.kind.clients import Clients
from pgdyno.workload.loaded import Progress
from pgdyno.workload.native_record import SECOND_NS, ClientPhases, DriverOutput, Line
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.share import shares_of
from pgdyno.workload.together import Drivers, MergedOutput

from ..base import engine
from ..base.errors import PgdynoError

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
        _keep(drivers.said, out_dir / "drive.jsonl")
        driver_output = output.said
    else:
        log, command = out_dir / "drive.err", spec.command
        with DriverProcess(values, log, command=command, prefix=request.prefix, dilation=clock.dilation) as driving:
            request.on_start(driving.pid)
            span = span_of(driving.said.ready, warmup_ms, measure_ms)
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
    """What tells ``progress`` how far it is when the driver has told a second; TPS in the subject's time."""

    def heard(line: dict[str, Any]) -> None:
        share = (line["end_ns"] - span.bench_ns) / (span.end_ns - span.bench_ns)
        seconds = max(1, line["end_ns"] - line["begin_ns"]) / SECOND_NS
        tps = line["succeeded"] / seconds * dilation
        failed = f", {line['failed']:,} failed" if line["failed"] else ""
        progress(min(1.0, share), f"{'warm up' if line['warmup'] else 'measure'}: {tps:,.0f} tps{failed}")

    return heard


def _keep(parts: Iterable[DriverOutput], path: Path) -> None:
    """The first and last line of each driver, as they were; what lies between is in the tables."""
    import json

    lines = [line for part in parts for line in ({"ready": part.ready}, {"summary": part.summary})]
    try:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    except OSError as error:
        raise PgdynoError(f"{path} cannot be written: {error.strerror}", remedy="free some space") from error

"""Runs pgdyno's own driver, ``pgdyno-engine drive``: together with a run's probes, or alone."""

from __future__ import annotations

import math
import os
import selectors
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pgdyno import _engine
from pgdyno.errors import EngineError, PgdynoError
from pgdyno.workload import native_record
from pgdyno.workload.native_record import SECOND_NS, Said, Span
from pgdyno.workload.watch import now_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from pgdyno.workload.kind.clients import Clients
    from pgdyno.workload.loaded import Progress
    from pgdyno.workload.outcome import Outcome, RunRequest
    from pgdyno.workload.server import Server

TAIL_MS = 500
"""The load continues for this time after the measured phase, so that it is complete until its end and during its reading."""
DRAIN_MS = 60_000
"""How long transactions may take that have begun when the load ends: one may wait for a slow volume."""
GRACE_MS = 10_000
"""The driver keeps its own deadlines; when it is so much later than all of them, it hangs."""
LOGIN_S = 6.0
"""What the log-in of a client takes at most: six round trips (TCP, TLS, SCRAM) of a second each (``client.rtt_ms``).
They come one after the other."""
_EXIT_S = 10.0
"""Between the end of what the driver says and its own."""


@dataclass(frozen=True)
class Alarm:
    """Something to be done at an instant of CLOCK_MONOTONIC while the driver works; it should be quick."""

    at_ns: int
    ring: Callable[[], None]


class Driving:
    """A driver at work; leaving the ``with`` block ends it by force if it still is."""

    def __init__(
        self,
        document: Mapping[str, Any],
        log: Path,
        *,
        prefix: Sequence[str] = (),
        dilation: int = 1,
    ) -> None:
        """Start it, and return when all clients are connected and begin. What it refuses is raised.

        ``document`` is its specification, ``log`` takes its standard error. A round trip is ``dilation`` times as long as
        it is said to be.
        """
        start_s = _engine.TIMEOUT_S + LOGIN_S * dilation * int(document["clients"])
        self._engine = _engine.spawn(["drive"], document, log=log, prefix=prefix, timeout_s=start_s)
        self._rest = b""
        self._give_up_ns = now_ns() + 1_000_000 * (
            int(document["warmup_ms"]) + int(document["duration_ms"]) + int(document["drain_ms"]) + GRACE_MS
        )
        self.said = Said(self._engine.ready)

    @property
    def pid(self) -> int:
        """The driver's process."""
        return self._engine.process.pid

    def follow(self, heard: Callable[[dict[str, Any]], None], alarms: Sequence[Alarm] = ()) -> Said:
        """Until the driver has ended: ``heard`` gets each second, ``alarms`` ring in their order.

        May be called again after an interruption. Raises what the driver ended with when it has no summary. One that a refused
        statement ended has one, which says so in ``ended_by``.
        """
        assert self._engine.process.stdout is not None
        stream = self._engine.process.stdout.fileno()
        waiting, rung = list(alarms), False
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                due_ns = min([self._give_up_ns, *(alarm.at_ns for alarm in waiting[:1])])
                if selector.select(max(0.0, (due_ns - now_ns()) / SECOND_NS)):
                    text = os.read(stream, 1 << 20)
                    if not text:
                        break
                    self._hear(text, heard)
                while waiting and now_ns() >= waiting[0].at_ns:
                    waiting.pop(0).ring()
                    rung = True
                if now_ns() >= self._give_up_ns:
                    raise EngineError("the driver did not end in time", remedy="look at the server's log")
        # What was started is ended, also if the driver ended early.
        for alarm in waiting if rung else ():
            alarm.ring()
        code, summary = self._wait(), self.said.summary
        if summary is None or (code != 0 and summary["ended_by"] is None):
            raise self._engine.failure()
        return self.said

    def stop(self) -> None:
        """Let it end soon: no transaction is started any more, and it prints its summary."""
        if self._engine.process.poll() is None:
            self._engine.process.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        """It runs already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        process = self._engine.process
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _wait(self) -> int:
        try:
            return self._engine.process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            raise EngineError("the driver closed its output and did not end", remedy="run `pgdyno doctor`") from None

    def _hear(self, text: bytes, heard: Callable[[dict[str, Any]], None]) -> None:
        import json

        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "second" in said:
                self.said.seconds.append(said["second"])
                heard(said["second"])
            elif "summary" in said:
                self.said.summary = said["summary"]


def run(server: Server, request: RunRequest, spec: Clients) -> Outcome:
    """Run ``spec`` by pgdyno's own driver.

    The measure phase is made of whole seconds of the host. ``request.out_dir`` receives ``drive.err`` and ``drive.jsonl``.
    """
    clock, out_dir = request.clock, request.out_dir
    out_dir.mkdir(parents=True, exist_ok=True)
    measure_ms = 1000 * max(1, math.ceil(clock.host_s(request.duration_s) - 1e-6))
    warmup_ms = round(1000 * clock.host_s(request.warmup_s))
    asked = document(spec.dilated(clock.dilation), warmup_ms, measure_ms + TAIL_MS, spec.seed)
    asked["dilation"] = clock.dilation
    with Driving(
        asked | {"server": server.endpoint.named("pgdyno drive")},
        out_dir / "drive.err",
        prefix=request.prefix,
        dilation=clock.dilation,
    ) as driving:
        request.on_start(driving.pid)
        span = span_of(driving.said, warmup_ms, measure_ms)
        said = driving.follow(
            shown(span, request.progress, clock.dilation),
            [Alarm(span.begin_ns, request.on_measure_begin), Alarm(span.end_ns, request.on_measure_end)],
        )
    _keep(said, out_dir / "drive.jsonl")
    ending = native_record.ending(said)
    if ending is not None and native_record.account_total(said).succeeded == 0:
        raise PgdynoError(ending["message"], remedy=ending["remedy"])
    return native_record.outcome(spec, said, span, clock)


def require(asked: Clients) -> None:
    """Refuse what the driver cannot read: a script's mistake is said with its line and column."""
    _engine.run_json(["drive", "--check"], document(asked, 0, 1000))


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


def span_of(said: Said, warmup_ms: int, measure_ms: int) -> Span:
    """The phases of a driver that is ready."""
    bench_ns = int(said.ready["begin_ns"])
    begin_ns = bench_ns + warmup_ms * 1_000_000
    return Span(bench_ns, begin_ns, begin_ns + measure_ms * 1_000_000)


def shown(span: Span, progress: Progress, dilation: int = 1) -> Callable[[dict[str, Any]], None]:
    """What tells ``progress`` how far it is when the driver has told a second; TPS in the subject's time."""

    def heard(line: dict[str, Any]) -> None:
        share = (line["end_ns"] - span.bench_ns) / (span.end_ns - span.bench_ns)
        seconds = max(1, line["end_ns"] - line["begin_ns"]) / SECOND_NS
        tps = line["succeeded"] / seconds * dilation
        failed = f", {line['failed']:,} failed" if line["failed"] else ""
        progress(min(1.0, share), f"{'warm up' if line['warmup'] else 'measure'}: {tps:,.0f} tps{failed}")

    return heard


def _keep(said: Said, path: Path) -> None:
    """The driver's first and last line, as they were; what lies between is in the tables."""
    import json

    lines = ({"ready": said.ready}, {"summary": said.summary})
    try:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    except OSError as error:
        raise PgdynoError(f"{path} cannot be written: {error.strerror}", remedy="free some space") from error

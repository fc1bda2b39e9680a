"""Runs the server's own pgbench and turns its log into the record of a workload.

One run of pgbench covers warm-up and measurement, so nothing reconnects or restarts between them: when measuring
begins and ends is decided here, and the log is cut there. A transaction belongs to the phase in which it ended.

pgbench's own sums are not used as results: its counts of each script are shared by its threads without a lock and lose
some (11,944 + 35,959 of 47,908 in a trial). Its total is compared to the log.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.errors import PgdynoError
from pgdyno.store.record import Account, Anchor, Check, Phase
from pgdyno.store.scratch import scratch_directory
from pgdyno.workload import histogram, pgbench_log
from pgdyno.workload.client import environment, pgbench_path
from pgdyno.workload.load import LoadOutcome, Progress, load
from pgdyno.workload.spec import PgbenchSpec, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pgdyno.store.writer import RunWriter

__all__ = ["LoadOutcome", "PgbenchOutcome", "PgbenchSpec", "load", "run"]

_NS = 1_000_000_000
_GRACE_S = 60.0
"""How long pgbench may take to end after its time is up: a transaction may wait for a slow volume."""
_EDGE_S = 0.1
"""Measuring ends at least this long before pgbench stops, so that the load is whole until then."""
_PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.]+|NaN) ms")


@dataclass(frozen=True)
class PgbenchOutcome:
    """What a run of pgbench came to."""

    spec: PgbenchSpec
    phases: tuple[Phase, ...]
    """warmup and measure; CLOCK_MONOTONIC."""
    account: Account
    """Transactions that ended in the measure phase."""
    account_total: Account
    """Every transaction since pgbench began, those after the measure phase too: what the tables must agree with."""
    writes_total: int
    """Succeeded transactions, since pgbench began, of the scripts that write a row of history."""
    retries: int
    connect_ms: float
    """pgbench's ``initial connection time``."""
    exit_code: int
    latency: pa.Table
    throughput: pa.Table
    service: pa.Table | None
    """Latency from the actual start; an open loop only."""
    histograms: dict[str, Any]
    """``workload/latency.hdr.json``: the measure phase, by script and whole."""
    checks: tuple[Check, ...]
    command: tuple[str, ...] = field(default=())

    @property
    def tps(self) -> float:
        """Succeeded transactions per second of the measure phase."""
        measure = self.phases[-1]
        return self.account.succeeded / measure.seconds if measure.seconds else 0.0

    def write(self, writer: RunWriter) -> None:
        """Put tables and histograms into a run's directory."""
        import json

        writer.table("workload/latency", self.latency)
        writer.table("workload/throughput", self.throughput)
        if self.service is not None:
            writer.table("workload/service", self.service)
        writer.file("workload/latency.hdr.json").write_text(json.dumps(self.histograms, indent=1) + "\n")


@dataclass
class _Timeline:
    """When things happened, in nanoseconds of CLOCK_MONOTONIC."""

    started_ns: int
    stops_ns: int
    """When pgbench's own timer ends it."""
    bench_ns: int = 0
    """When its clients had connected and went to work; 0 until known."""
    begin_ns: int = 0
    end_ns: int = 0
    """The measure phase, planned until it happened."""


def run(
    server: Server,
    spec: PgbenchSpec,
    duration_s: float,
    out_dir: Path,
    *,
    warmup_s: float = 0.0,
    on_start: Callable[[int], None] | None = None,
    on_measure_begin: Callable[[], None] | None = None,
    on_measure_end: Callable[[], None] | None = None,
    progress: Progress | None = None,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> PgbenchOutcome:
    """Run ``spec`` for ``warmup_s`` and then ``duration_s`` seconds of measuring.

    ``out_dir`` receives ``pgbench.out`` and ``pgbench.err``. ``on_start`` gets pgbench's process id at once;
    ``on_measure_begin`` and ``on_measure_end`` are called when the phase begins and ends and should be quick;
    ``progress`` about once a second. ``prefix`` is a command that runs pgbench (``taskset -c 1``).

    Even without a warm-up, measuring begins about a second after the clients started, when pgbench first reports.
    Raises :class:`PgdynoError` with pgbench's messages when it could not work; clients that were lost on the way are
    a failed check of the outcome instead.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(out_dir) as scratch:
        seconds = math.ceil(warmup_s + duration_s + 1.0 + spec.clients / 50)
        command = (*prefix, *_arguments(server, spec, seconds, scratch))
        anchor = Anchor.read()
        started_ns = _now_ns()
        with (out_dir / "pgbench.out").open("wb") as out:
            process = subprocess.Popen(
                command, env=environment(server, env), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
            )
        watch = _Watch(
            process=process,
            time=_Timeline(started_ns, started_ns + seconds * _NS),
            warmup_s=warmup_s,
            duration_s=duration_s,
            edges=(on_measure_begin or _nothing, on_measure_end or _nothing),
            progress=progress or (lambda _share, _text: None),
        )
        try:
            if on_start is not None:
                on_start(process.pid)
            watch.until_the_end()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            (out_dir / "pgbench.err").write_text("\n".join(watch.messages) + "\n")
        printed = (out_dir / "pgbench.out").read_text(errors="replace")
        if process.returncode not in (0, 2) or not watch.time.begin_ns:
            raise _failure(process.returncode, watch.messages)
        log = pgbench_log.read(
            sorted(scratch.glob("log.*")), anchor, open_loop=not spec.closed, retries=spec.tries_max != 1
        )
    return _outcome(spec, watch, log, printed, command)


def _arguments(server: Server, spec: PgbenchSpec, seconds: int, log_directory: Path) -> list[str]:
    """The command line. ``-n``: no vacuum and no truncation of history, which is counted afterwards."""
    arguments = [str(pgbench_path(server)), "-n", "-P", "1", "-T", str(seconds)]
    arguments += ["-c", str(spec.clients), "-j", str(spec.threads), "-M", spec.protocol]
    arguments += ["--random-seed", str(spec.seed), "-l", "--log-prefix", str(log_directory / "log")]
    for name, weight in spec.scripts:
        arguments += ["-b", f"{name}@{weight}"]
    if spec.rate_per_s is not None:
        arguments += ["-R", f"{spec.rate_per_s:g}"]
    if spec.latency_limit_ms is not None:
        arguments += ["-L", f"{spec.latency_limit_ms:g}"]
    if spec.tries_max != 1:
        arguments += ["--max-tries", str(spec.tries_max)]
    return arguments


@dataclass
class _Watch:
    """Waits for pgbench, reads what it says, and calls when the measure phase begins and ends."""

    process: subprocess.Popen[bytes]
    time: _Timeline
    warmup_s: float
    duration_s: float
    edges: tuple[Callable[[], None], Callable[[], None]]
    progress: Progress
    messages: list[str] = field(default_factory=list)
    exited_ns: int = 0
    _measuring: bool = False
    _measured: bool = False
    _rest: bytes = b""

    def until_the_end(self) -> None:
        """Return when pgbench has ended; it is ended by force when it overruns."""
        assert self.process.stderr is not None
        stream = self.process.stderr.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                deadline_ns = self._next_deadline_ns()
                if selector.select(max(0.0, (deadline_ns - _now_ns()) / _NS)):
                    text = os.read(stream, 65536)
                    if not text:
                        break
                    self._hear(text)
                self._turn()
        self.process.wait()
        self.exited_ns = _now_ns()
        if self.time.end_ns > self.exited_ns:
            self.time.end_ns = max(self.time.begin_ns, self.exited_ns)
        if self._measuring and not self._measured:
            self.edges[1]()

    def _next_deadline_ns(self) -> int:
        if self.time.bench_ns and not self._measuring:
            return self.time.begin_ns
        if self._measuring and not self._measured:
            return self.time.end_ns
        return self.time.stops_ns + int(_GRACE_S * _NS)

    def _turn(self) -> None:
        """Begin or end the measure phase if it is time, or give up."""
        now_ns = _now_ns()
        if now_ns < self._next_deadline_ns():
            return
        if self.time.bench_ns and not self._measuring:
            self._measuring = True
            self.time.begin_ns, self.time.end_ns = now_ns, now_ns + int(self.duration_s * _NS)
            self.edges[0]()
        elif self._measuring and not self._measured:
            self._measured = True
            self.edges[1]()
        else:
            self.process.kill()
            raise PgdynoError(
                f"pgbench did not end within {_GRACE_S:g} s after its time was up",
                remedy="the server or the volume hangs: look at the server's log and `pgdyno volume stats`",
            )

    def _hear(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            said = line.decode(errors="replace").strip()
            self.messages.append(said)
            if found := _PROGRESS.match(said):
                if not self.time.bench_ns:
                    self._plan(_now_ns() - int(float(found[1]) * _NS))
                self._show(found)

    def _plan(self, bench_ns: int) -> None:
        """Place the measure phase, now that it is known when the clients began.

        The time they took to connect comes out of pgbench's duration; should it be more than was allowed for, the
        warm-up is shortened, never the measurement.
        """
        self.time.bench_ns = bench_ns
        last_ns = self.time.stops_ns - int((self.duration_s + _EDGE_S) * _NS)
        self.time.begin_ns = max(_now_ns(), min(bench_ns + int(self.warmup_s * _NS), last_ns))
        self.time.end_ns = self.time.begin_ns + int(self.duration_s * _NS)

    def _show(self, found: re.Match[str]) -> None:
        total_s = (self.time.end_ns - self.time.bench_ns) / _NS
        done_s = (_now_ns() - self.time.bench_ns) / _NS
        doing = "measure" if self._measuring else "warm up"
        self.progress(min(1.0, done_s / total_s), f"{doing}: {float(found[2]):,.0f} tps, {found[3]} ms")


def _outcome(
    spec: PgbenchSpec, watch: _Watch, log: pgbench_log.TransactionLog, printed: str, command: Sequence[str]
) -> PgbenchOutcome:
    begin_ns, end_ns, bench_ns = watch.time.begin_ns, watch.time.end_ns, watch.time.bench_ns
    names = [name for name, _ in spec.scripts]
    edges = pgbench_log.edges_ns(bench_ns, begin_ns, end_ns)
    latency = pgbench_log.latency_table(log, edges, names)
    total = log.account()
    writers = (number for number, name in enumerate(names) if name != "select-only")
    return PgbenchOutcome(
        spec=spec,
        phases=(
            Phase(name="warmup", begin_ns=bench_ns, end_ns=begin_ns),
            Phase(name="measure", begin_ns=begin_ns, end_ns=end_ns),
        ),
        account=log.account(begin_ns, end_ns),
        account_total=total,
        writes_total=sum(log.account(script=number).succeeded for number in writers),
        retries=log.retries,
        connect_ms=_printed_number(printed, r"initial connection time = ([\d.]+) ms") or 0.0,
        exit_code=watch.process.returncode,
        latency=latency,
        throughput=pgbench_log.throughput_table(log, edges, names),
        service=None if spec.closed else pgbench_log.latency_table(log, edges, names, service=True),
        histograms=histogram.document(latency, begin_ns, end_ns),
        checks=(_log_is_complete(total, printed), _clients_lasted(watch), _time_was_whole(watch)),
        command=tuple(command),
    )


def _log_is_complete(total: Account, printed: str) -> Check:
    processed = _printed_number(printed, r"number of transactions actually processed: (\d+)")
    failed = _printed_number(printed, r"^number of failed transactions: (\d+)") or 0
    skipped = _printed_number(printed, r"^number of transactions skipped: (\d+)") or 0
    said = None if processed is None else (int(processed), int(failed), int(skipped))
    found = (total.succeeded, total.failed, total.skipped)
    return Check(
        name="transaction_log_complete",
        ok=said == found,
        detail=f"succeeded, failed, skipped: {found} in the log, {said} by pgbench's own count",
    )


def _clients_lasted(watch: _Watch) -> Check:
    lost = [line for line in watch.messages if "aborted" in line]
    detail = "every client worked to the end" if not lost else f"{len(lost)} messages, the first: {lost[0]}"
    return Check(name="clients_lasted", ok=not lost and watch.process.returncode == 0, detail=detail)


def _time_was_whole(watch: _Watch) -> Check:
    """The load lasted through the measure phase: pgbench was still at work when it ended."""
    measured_s = (watch.time.end_ns - watch.time.begin_ns) / _NS
    left_s = (min(watch.time.stops_ns, watch.exited_ns) - watch.time.end_ns) / _NS
    return Check(
        name="measured_under_load",
        ok=measured_s >= watch.duration_s - 1e-3 and left_s >= 0,
        detail=f"measured {measured_s:.3f} s of {watch.duration_s:g} s; the load went on for {left_s:.3f} s after it",
    )


def _printed_number(printed: str, pattern: str) -> float | None:
    found = re.search(pattern, printed, re.MULTILINE)
    return float(found[1]) if found else None


def _failure(code: int | None, messages: list[str]) -> PgdynoError:
    said = [line for line in messages if line and not line.startswith("progress:")]
    return PgdynoError(
        f"pgbench failed (exit code {code}): {' / '.join(said[-3:]) or 'it said nothing'}",
        remedy="load the tables first, and look at the server's log",
    )


def _nothing() -> None:
    """Stand for a callback that nobody asked for."""


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

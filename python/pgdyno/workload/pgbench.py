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
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.workload import histogram
from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ..base import engine
from ..base.errors import PgdynoError
from ..machine.scratch import scratch_directory
from ..results.record import Account, Anchor, Check, DriverRecord, RunPhase
from ..results.tables import SubjectClock
from .clients import Clients
from .outcome import Progress
from .server import environment, pgbench_path

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class TransactionLog:
    """Every transaction of a run of pgbench. The arrays have the same length; order means nothing."""

    end_ns: np.ndarray[Any, Any]
    """When it ended (or was skipped), on CLOCK_MONOTONIC until :meth:`on` says otherwise."""
    script: np.ndarray[Any, Any]
    """Its number in the order of the specification."""
    latency_us: np.ndarray[Any, Any]
    """From the scheduled start in an open loop, else from the start; over all tries. 0 unless it succeeded."""
    lag_us: np.ndarray[Any, Any]
    """Open loop: from the scheduled start to the start. 0 in a closed loop."""
    succeeded: np.ndarray[Any, Any]
    skipped: np.ndarray[Any, Any]
    """Booleans; neither means failed."""
    retries: int
    """Tries after the first one, all transactions together."""

    def __len__(self) -> int:
        """Number of transactions."""
        return len(self.end_ns)

    def on(self, clock: SubjectClock) -> TransactionLog:
        """The same in the subject's time."""
        return replace(
            self,
            end_ns=clock.instant_ns(self.end_ns),
            latency_us=clock.durations_us(self.latency_us),
            lag_us=clock.durations_us(self.lag_us),
        )

    def extent_ns(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """From the begin of the first transaction to after the end of the last; what is given where there is none."""
        if not len(self):
            return begin_ns, end_ns
        return int((self.end_ns - self.latency_us * 1000).min()), int(self.end_ns.max()) + 1

    def account(self, begin_ns: int | None = None, end_ns: int | None = None, script: int | None = None) -> Account:
        """Count those that ended in [begin, end), of one script or of all; without limits, every one."""
        import numpy as np

        inside = np.ones(len(self), dtype=bool)
        if begin_ns is not None:
            inside &= self.end_ns >= begin_ns
        if end_ns is not None:
            inside &= self.end_ns < end_ns
        if script is not None:
            inside &= self.script == script
        succeeded, skipped = int((inside & self.succeeded).sum()), int((inside & self.skipped).sum())
        scheduled = int(inside.sum())
        return Account(
            scheduled=scheduled, skipped=skipped, succeeded=succeeded, failed=scheduled - succeeded - skipped
        )


def read(paths: Sequence[Path], anchor: Anchor, *, open_loop: bool, retries: bool) -> TransactionLog:
    """Read the log files of one run; ``open_loop`` and ``retries`` say which columns pgbench wrote.

    Raises :class:`PgdynoError` when a line does not have those columns.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [_read_file(path, open_loop, retries) for path in paths if path.stat().st_size > 0]
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return TransactionLog(none, none, none, none, none.astype(bool), none.astype(bool), 0)
    table = pa.concat_tables(parts)
    outcome = table["outcome"]
    succeeded = pc.utf8_is_digit(outcome)
    latency = pc.cast(pc.if_else(succeeded, outcome, "0"), pa.int64())
    end_unix_ns = table["epoch_s"].to_numpy() * _SECOND_NS + table["epoch_us"].to_numpy() * 1000
    lag = table["lag_us"].to_numpy() if open_loop else np.zeros(len(table), dtype=np.int64)
    return TransactionLog(
        end_ns=end_unix_ns - anchor.unix_ns + anchor.monotonic_ns,
        script=table["script"].to_numpy(),
        latency_us=latency.to_numpy(),
        lag_us=lag,
        succeeded=succeeded.to_numpy(),
        skipped=pc.equal(outcome, "skipped").to_numpy(),
        retries=int(pc.sum(table["retries"]).as_py()) if retries else 0,
    )


def _read_file(path: Path, open_loop: bool, retries: bool) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    names = ["client", "transaction", "outcome", "script", "epoch_s", "epoch_us"]
    names += ["lag_us"] * open_loop + ["retries"] * retries
    types = dict.fromkeys(names, pa.int64()) | {"outcome": pa.string()}
    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, use_threads=True),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=types, include_columns=[name for name in names if name not in ("client", "transaction")]
            ),
        )
    except pa.ArrowInvalid as error:
        raise PgdynoError(
            f"pgbench's log {path.name} is not understood: {error}", remedy="use pgbench of PostgreSQL 15 to 18"
        ) from error


def edges_ns(first_ns: int, begin_ns: int, end_ns: int) -> np.ndarray[Any, Any]:
    """Borders of the seconds of a run: whole ones back from ``begin_ns`` to ``first_ns``, then on to ``end_ns``.

    The measure phase is therefore made of whole bins; only its last one may be shorter than a second.
    ``first_ns`` is known to some hundredths of a second, so a bin that lacks that little counts as whole.
    """
    import numpy as np

    before = max(0, (begin_ns - first_ns + _SECOND_NS // 20) // _SECOND_NS)
    edges = np.arange(begin_ns - before * _SECOND_NS, end_ns, _SECOND_NS, dtype=np.int64)
    return np.append(edges, end_ns)


def latency_table(
    log: TransactionLog, edges: np.ndarray[Any, Any], scripts: Sequence[str], *, service: bool = False
) -> pa.Table:
    """``workload/latency`` (or ``workload/service``: without the lag) of those that succeeded between the edges."""
    import numpy as np
    import pyarrow as pa

    second = np.searchsorted(edges, log.end_ns, side="right") - 1
    chosen = log.succeeded & (second >= 0) & (second < len(edges) - 1)
    latency = (log.latency_us - log.lag_us if service else log.latency_us)[chosen]
    at, script, bucket, count = histogram.per_second(second[chosen], log.script[chosen], latency)
    return pa.table(
        {
            "t_begin_ns": edges[at],
            "t_end_ns": edges[at + 1],
            "script": pa.array(np.array(scripts, dtype=object)[script], type=pa.string()),
            "latency_us": bucket,
            "count": count,
        }
    )


def throughput_table(log: TransactionLog, edges: np.ndarray[Any, Any], scripts: Sequence[str]) -> pa.Table:
    """``workload/throughput``: for every second and script, zeros included."""
    import numpy as np
    import pyarrow as pa

    seconds = len(edges) - 1
    second = np.searchsorted(edges, log.end_ns, side="right") - 1
    inside = (second >= 0) & (second < seconds)
    failed = ~log.succeeded & ~log.skipped

    def counted(mask: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        chosen = mask & inside
        return np.bincount(second[chosen] * len(scripts) + log.script[chosen], minlength=seconds * len(scripts))

    return pa.table(
        {
            "t_begin_ns": np.repeat(edges[:-1], len(scripts)),
            "t_end_ns": np.repeat(edges[1:], len(scripts)),
            "script": pa.array(list(scripts) * seconds, type=pa.string()),
            "transactions": counted(log.succeeded),
            "failed": counted(failed),
            "skipped": counted(log.skipped),
        }
    )


_GRACE_S = 60.0
"""Seconds that pgbench may take to end after its time is up: a transaction may wait for a slow volume."""
_EDGE_S = 0.1
"""Measuring ends at least this long before pgbench stops, so that the load is whole until then."""
_PROGRESS = re.compile(r"progress: ([\d.]+) s, ([\d.]+) tps, lat ([\d.]+|NaN) ms")


@dataclass
class RunTimeline:
    """Instants of a run, in nanoseconds of CLOCK_MONOTONIC."""

    started_ns: int
    stops_ns: int
    """When pgbench's own timer ends it."""
    bench_ns: int = 0
    """When its clients had connected and went to work; 0 until known."""
    begin_ns: int = 0
    end_ns: int = 0
    """The measure phase, planned until it happened."""


@dataclass
class PgbenchMonitor:
    """Waits for pgbench, reads what it says, and calls when the measure phase begins and ends.

    All of it in the host's time, which is pgbench's; only what is shown is in the subject's.
    """

    process: subprocess.Popen[bytes]
    time: RunTimeline
    warmup_s: float
    duration_s: float
    edges: tuple[Callable[[], None], Callable[[], None]]
    progress: Progress
    dilation: int = 1
    messages: list[str] = field(default_factory=list)
    exited_ns: int = 0
    _measuring: bool = False
    _measured: bool = False
    _rest: bytes = b""

    def begin_at_once(self) -> None:
        """Measure until pgbench ends by itself, after its number of transactions; at most :data:`_GRACE_S` too long."""
        self._measuring = True
        self.time.bench_ns = self.time.begin_ns = now_ns()
        # Not when its time is up: what is counted then would lack the transactions after it, which are measured too.
        self.time.end_ns = self.time.stops_ns + int(_GRACE_S * SECOND_NS)
        self.edges[0]()

    def until_the_end(self) -> None:
        """Return when pgbench has ended; it is ended by force when it overruns."""
        assert self.process.stderr is not None
        stream = self.process.stderr.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                deadline_ns = self._next_deadline_ns()
                if selector.select(max(0.0, (deadline_ns - now_ns()) / SECOND_NS)):
                    text = os.read(stream, 65536)
                    if not text:
                        break
                    self._read(text)
                self._turn()
        self.process.wait()
        self.exited_ns = now_ns()
        if self.time.end_ns > self.exited_ns:
            self.time.end_ns = max(self.time.begin_ns, self.exited_ns)
        if self._measuring and not self._measured:
            self.edges[1]()

    def _next_deadline_ns(self) -> int:
        if self.time.bench_ns and not self._measuring:
            return self.time.begin_ns
        if self._measuring and not self._measured:
            return self.time.end_ns
        return self.time.stops_ns + int(_GRACE_S * SECOND_NS)

    def _turn(self) -> None:
        """Begin or end the measure phase if it is time, or give up."""
        at_ns = now_ns()
        if at_ns < self._next_deadline_ns():
            return
        if self.time.bench_ns and not self._measuring:
            self._measuring = True
            self.time.begin_ns, self.time.end_ns = at_ns, at_ns + int(self.duration_s * SECOND_NS)
            self.edges[0]()
        elif self._measuring and not self._measured:
            self._measured = True
            self.edges[1]()
        else:
            self.process.kill()
            raise PgdynoError(
                f"pgbench did not end within {_GRACE_S:g} s after its time was up",
                remedy="the server or the volume hangs: look at the server's log and `pgdyno volume stats`; a run of a"
                " fixed number of transactions may need a longer workload.duration",
            )

    def _read(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            result = line.decode(errors="replace").strip()
            self.messages.append(result)
            if match := _PROGRESS.match(result):
                if not self.time.bench_ns:
                    self._plan(now_ns() - int(float(match[1]) * SECOND_NS))
                self._show(match)

    def _plan(self, bench_ns: int) -> None:
        """Place the measure phase, now that it is known when the clients began.

        The time they took to connect comes out of pgbench's duration; should it be more than was allowed for, the
        warm-up is shortened, never the measurement.
        """
        self.time.bench_ns = bench_ns
        last_ns = self.time.stops_ns - int((self.duration_s + _EDGE_S) * SECOND_NS)
        self.time.begin_ns = max(now_ns(), min(bench_ns + int(self.warmup_s * SECOND_NS), last_ns))
        self.time.end_ns = self.time.begin_ns + int(self.duration_s * SECOND_NS)

    def _show(self, match: re.Match[str]) -> None:
        total_s = (self.time.end_ns - self.time.bench_ns) / SECOND_NS
        done_s = (now_ns() - self.time.bench_ns) / SECOND_NS
        doing = "measure" if self._measuring else "warm up"
        tps, latency_ms = float(match[2]) * self.dilation, float(match[3]) / self.dilation
        self.progress(min(1.0, done_s / total_s), f"{doing}: {tps:,.0f} tps, {latency_ms:.3f} ms")


_CONNECT_MAX_S = 30.0
"""For one transaction that asks for nothing, with a log-in."""


def refusal(server: Server, env: Mapping[str, str] | None = None) -> str | None:
    """Reason why the server's pgbench cannot connect to it although pgdyno's libpq can; None if it can.

    It is tried, with a script that asks for nothing: the program may be built without TLS, or its libpq be too old for a
    keyword.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write("SELECT 1;\n")
        script.flush()
        command = [str(pgbench_path(server)), "-n", "-c", "1", "-t", "1", "-f", script.name]
        try:
            done = subprocess.run(
                command,
                env=environment(server, env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_CONNECT_MAX_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it did not within {_CONNECT_MAX_S:g} s"
    lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
    return None if done.returncode == 0 else " ".join(lines[0].split()) if lines else f"exit code {done.returncode}"


def run(server: Server, request: RunRequest, spec: Clients) -> Outcome:
    """Run ``spec`` by pgbench, which counts in whole microseconds of the host.

    ``request.out_dir`` receives ``pgbench.out`` and ``pgbench.err``.

    Even without a warm-up, measuring begins about a second after the clients started, when pgbench first reports. A run of a
    fixed number of transactions is measured from the begin of the first one to the end of the last; it may take a minute more than ``request.duration_s``.
    Raises :class:`PgdynoError` with pgbench's messages when it could not work; clients that were lost on the way are
    a failed check of the outcome instead.
    """
    clock, out_dir = request.clock, request.out_dir
    out_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(out_dir) as scratch:
        counted = spec.transactions is not None
        seconds = math.ceil(
            clock.host_s(request.warmup_s + request.duration_s) + (0.0 if counted else 1.0 + spec.clients / 50)
        )
        command = (*request.prefix, *_arguments(server, spec.dilated(clock.dilation), seconds, scratch))
        anchor = Anchor.read()
        started_ns = now_ns()
        with (out_dir / "pgbench.out").open("wb") as out:
            process = subprocess.Popen(
                engine.child(command),
                env=environment(server, request.env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
            )
        watch = PgbenchMonitor(
            process=process,
            time=RunTimeline(started_ns, started_ns + seconds * SECOND_NS),
            warmup_s=clock.host_s(request.warmup_s),
            duration_s=clock.host_s(request.duration_s),
            edges=(request.on_measure_begin, request.on_measure_end),
            progress=request.progress,
            dilation=clock.dilation,
        )
        try:
            request.on_start(process.pid)
            if counted:
                watch.begin_at_once()
            watch.until_the_end()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            (out_dir / "pgbench.err").write_text("\n".join(watch.messages) + "\n")
        printed = (out_dir / "pgbench.out").read_text(errors="replace")
        if process.returncode not in (0, 2) or not watch.time.begin_ns:
            raise _failure(process.returncode, watch.messages)
        log = read(sorted(scratch.glob("log.*")), anchor, open_loop=not spec.closed, retries=spec.tries_max != 1)
    if counted:
        watch.time.bench_ns, watch.time.end_ns = log.extent_ns(watch.time.bench_ns, watch.time.end_ns)
        watch.time.begin_ns = watch.time.bench_ns
    return _outcome(spec, watch, log, printed, command, clock)


def _arguments(server: Server, spec: Clients, seconds: int, log_directory: Path) -> list[str]:
    """The command line. ``-n``: no vacuum and no truncation of history, which is counted afterwards."""
    arguments = [str(pgbench_path(server)), "-n", "-P", "1"]
    arguments += ["-T", str(seconds)] if spec.transactions is None else ["-t", str(spec.transactions)]
    arguments += ["-c", str(spec.clients), "-j", str(spec.threads), "-M", spec.protocol]
    arguments += ["--random-seed", str(spec.seed), "-l", "--log-prefix", str(log_directory / "log")]
    arguments += spec.pgbench_words(log_directory)
    if spec.rate_per_s is not None:
        arguments += ["-R", f"{spec.rate_per_s:g}"]
    if spec.late_max_ms is not None:
        arguments += ["-L", str(spec.late_max_ms)]
    if spec.tries_max != 1:
        arguments += ["--max-tries", str(spec.tries_max)]
    return arguments


def _outcome(
    spec: Clients,
    watch: PgbenchMonitor,
    of_host: TransactionLog,
    printed: str,
    command: Sequence[str],
    clock: SubjectClock,
) -> Outcome:
    log = of_host.on(clock)
    begin_ns, end_ns = clock.instant_ns(watch.time.begin_ns), clock.instant_ns(watch.time.end_ns)
    bench_ns = clock.instant_ns(watch.time.bench_ns)
    names = [name for name, _ in spec.mix]
    edges = edges_ns(bench_ns, begin_ns, end_ns)
    latency = latency_table(log, edges, names)
    total = log.account()
    writers = (number for number, name in enumerate(names) if name in spec.history_writers)
    return Outcome(
        phases=(
            RunPhase(name="warmup", begin_ns=bench_ns, end_ns=begin_ns),
            RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns),
        ),
        account=log.account(begin_ns, end_ns),
        account_total=total,
        writes_total=sum(log.account(script=number).succeeded for number in writers),
        uncounted_max=spec.clients if watch.process.returncode else 0,
        latency=latency,
        throughput=throughput_table(log, edges, names),
        service=None if spec.closed else latency_table(log, edges, names, service=True),
        statement=None,
        histograms=histogram.document(latency, begin_ns, end_ns),
        checks=(
            _log_is_complete(total, printed),
            _clients_lasted(watch),
            _time_was_whole(watch) if spec.transactions is None else _all_were_made(spec, total),
        ),
        driver=_driver(spec, log, printed, clock),
        command=tuple(command),
    )


def _driver(spec: Clients, log: TransactionLog, printed: str, clock: SubjectClock) -> DriverRecord:
    connect_ms = _printed_number(printed, r"initial connection time = ([\d.]+) ms")
    version = re.search(r"pgbench \(([\d.]+\w*)", printed)
    return DriverRecord(
        engine="pgbench",
        version=version[1] if version else None,
        threads=spec.threads,
        connect_ms=None if connect_ms is None else connect_ms / clock.dilation,
        retries=log.retries,
    )


def _log_is_complete(total: Account, printed: str) -> Check:
    processed = _printed_number(printed, r"number of transactions actually processed: (\d+)")
    failed = _printed_number(printed, r"^number of failed transactions: (\d+)") or 0
    skipped = _printed_number(printed, r"^number of transactions skipped: (\d+)") or 0
    numbers = None if processed is None else (int(processed), int(failed), int(skipped))
    counts = (total.succeeded, total.failed, total.skipped)
    return Check(
        name="transaction_log_complete",
        ok=numbers == counts,
        detail=f"succeeded, failed, skipped: {counts} in the log, {numbers} by pgbench's own count",
    )


def _clients_lasted(watch: PgbenchMonitor) -> Check:
    lost = [line for line in watch.messages if "aborted" in line]
    detail = "every client worked to the end" if not lost else f"{len(lost)} messages, the first: {lost[0]}"
    return Check(name="clients_lasted", ok=not lost and watch.process.returncode == 0, detail=detail)


def _time_was_whole(watch: PgbenchMonitor) -> Check:
    """The load lasted through the measure phase: pgbench was still at work when it ended."""
    measured_s = (watch.time.end_ns - watch.time.begin_ns) / SECOND_NS
    left_s = (min(watch.time.stops_ns, watch.exited_ns) - watch.time.end_ns) / SECOND_NS
    return Check(
        name="measured_under_load",
        ok=measured_s >= watch.duration_s - 1e-3 and left_s >= 0,
        detail=f"measured {measured_s:.3f} s of {watch.duration_s:g} s; the load continued for {left_s:.3f} s after it",
    )


def _all_were_made(spec: Clients, total: Account) -> Check:
    """Each client made as many transactions as it was asked for."""
    each = spec.transactions or 0
    number = spec.clients * each
    return Check(
        name="all_transactions_made",
        ok=total.scheduled == number,
        detail=f"{total.scheduled:,} of {number:,}: {each:,} by each of {spec.clients} clients",
    )


def _printed_number(printed: str, pattern: str) -> float | None:
    match = re.search(pattern, printed, re.MULTILINE)
    return float(match[1]) if match else None


def _failure(code: int | None, messages: list[str]) -> PgdynoError:
    texts = [line for line in messages if line and not line.startswith("progress:")]
    return PgdynoError(
        f"pgbench failed (exit code {code}): {' / '.join(texts[-3:]) or '(no output)'}",
        remedy="see pgbench's messages and the server's log",
    )

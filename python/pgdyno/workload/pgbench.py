"""Runs the server's own pgbench and turns its log into the record of a workload.

One run of pgbench covers warm-up and measurement, so nothing reconnects or restarts between them: when measuring
begins and ends is decided here, and the log is cut there. A transaction belongs to the phase in which it ended.

pgbench's own sums are not used as results: its counts of each script are shared by its threads without a lock and lose
some (11,944 + 35,959 of 47,908 in a trial). Its total is compared to the log.
"""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgdyno.workload import histogram, pgbench_log
from pgdyno.workload.client import environment, pgbench_path
from pgdyno.workload.kind.clients import Clients
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.watch import SECOND_NS, PgbenchMonitor, RunTimeline, now_ns

from ..base import engine
from ..base.errors import PgdynoError
from ..machine.scratch import scratch_directory
from ..results.record import Account, Anchor, Check, DriverRecord, RunPhase
from ..results.tables import SubjectClock

_CONNECT_MAX_S = 30.0
"""For one transaction that asks for nothing, with a log-in."""


def refusal(server: Server, env: Mapping[str, str] | None = None) -> str | None:
    """Why the server's pgbench cannot connect to it although pgdyno's libpq can; None if it can.

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
        log = pgbench_log.read(
            sorted(scratch.glob("log.*")), anchor, open_loop=not spec.closed, retries=spec.tries_max != 1
        )
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
    of_host: pgbench_log.TransactionLog,
    printed: str,
    command: Sequence[str],
    clock: SubjectClock,
) -> Outcome:
    log = of_host.on(clock)
    begin_ns, end_ns = clock.instant_ns(watch.time.begin_ns), clock.instant_ns(watch.time.end_ns)
    bench_ns = clock.instant_ns(watch.time.bench_ns)
    names = [name for name, _ in spec.mix]
    edges = pgbench_log.edges_ns(bench_ns, begin_ns, end_ns)
    latency = pgbench_log.latency_table(log, edges, names)
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
        throughput=pgbench_log.throughput_table(log, edges, names),
        service=None if spec.closed else pgbench_log.latency_table(log, edges, names, service=True),
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


def _driver(spec: Clients, log: pgbench_log.TransactionLog, printed: str, clock: SubjectClock) -> DriverRecord:
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
        f"pgbench failed (exit code {code}): {' / '.join(texts[-3:]) or 'it said nothing'}",
        remedy="pgbench's messages and the server's log say more",
    )

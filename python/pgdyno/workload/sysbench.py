"""Runs the original sysbench (1.0, as Debian has it) and turns what it prints into the record of a workload.

Released versions cannot leave a warm-up out of their figures, so the warm-up is a run of its own, after which the clients
connect anew. A run prints a histogram of the whole, whose buckets are 1.8 % wide, and a line each second: so latency is
known of the measure phase only, and throughput of each second to the hundredth of a transaction.

Every client is a thread. With a rate, latency counts from the schedule; the time from the actual start is not told.
"""

from __future__ import annotations

import math
import os
import re
import selectors
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.errors import HostError, PgdynoError
from pgdyno.store.record import Account, Check, DriverRecord, Phase
from pgdyno.store.subject_clock import SubjectClock
from pgdyno.workload import histogram
from pgdyno.workload.client import environment
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.spec import LEGACY
from pgdyno.workload.watch import SECOND_NS, now_ns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from pgdyno.workload.load import Progress
    from pgdyno.workload.spec import Server, WorkloadAsked, WorkloadSpec

PROGRAM = "sysbench"
LEGACY_SCRIPT = Path("/usr/share/sysbench/tests/include/oltp_legacy/oltp.lua")
"""Where packages of 1.0 have the test of 0.5, if they have it."""
GRACE_S = 60.0
"""How long it may take to connect, and to end after its time: a transaction may wait for a slow volume."""
_SEED_MAX = 2**31 - 1
_STARTED = "Threads started!"
_SECOND = re.compile(r"\[ (\d+)s \] thds: \d+ tps: ([\d.]+) ")
_BUCKET = re.compile(r"^\s*([\d.]+) \|\**\s*(\d+)$", re.MULTILINE)


def require(asked: WorkloadAsked) -> None:
    """Refuse a test that this machine's sysbench does not have; :class:`HostError` says how to get it."""
    if shutil.which(PROGRAM) is None:
        raise HostError(
            'engine = "sysbench" needs the original program, and it is not installed',
            remedy='install the package sysbench (1.0.20), or take engine = "native"',
        )
    if asked.test == LEGACY and not LEGACY_SCRIPT.is_file():
        raise HostError(
            f"this sysbench has no {LEGACY}: {LEGACY_SCRIPT} does not exist",
            remedy='take engine = "native", which has that transaction',
        )


def run(
    server: Server,
    spec: WorkloadSpec,
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
    clock: SubjectClock | None = None,
) -> Outcome:
    """Run ``spec`` by sysbench: :class:`~pgdyno.workload.outcome.Runner` says what is what.

    ``on_start`` gets the process that measures; ``out_dir`` receives ``sysbench.out``.
    """
    require(spec)
    out_dir.mkdir(parents=True, exist_ok=True)
    clock = clock or SubjectClock()
    show = progress or (lambda _share, _text: None)
    measure_s = max(1, math.ceil(clock.host_s(duration_s) - 1e-6))
    warm_s = math.ceil(clock.host_s(warmup_s) - 1e-6)
    command = (*prefix, *_arguments(server, spec.dilated(clock.dilation)))
    variables = environment(server, env, PROGRAM)
    bench_ns = now_ns()
    warmed = _Run(spec.test)
    if warm_s:
        share = warm_s / (warm_s + measure_s)
        warmed.follow((*command, f"--time={warm_s}", "run"), variables, warm_s, lambda s, t: show(s * share, t))
    else:
        share = 0.0
    measured = _Run(spec.test, clock.dilation)
    edges = (on_start, on_measure_begin, on_measure_end)
    measured.follow(
        (*command, "--histogram=on", f"--time={measure_s}", "run"),
        variables,
        measure_s,
        lambda s, t: show(share + s * (1 - share), t),
        edges,
    )
    (out_dir / "sysbench.out").write_text("".join(part.printed for part in (warmed, measured)))
    return _outcome(spec, warmed, measured, min(bench_ns, measured.begin_ns), measure_s, clock, command)


def _arguments(server: Server, spec: WorkloadSpec) -> list[str]:
    """The command line but for the time. No password is on it: libpq takes that from the environment."""
    import psycopg

    with psycopg.connect(server.dsn) as connection:
        info = connection.info
        where = [f"--pgsql-{name}={value}" for name, value in
                 (("host", info.host), ("port", info.port), ("user", info.user), ("db", info.dbname))]  # fmt: skip
    legacy = spec.test == LEGACY
    sizes = ("oltp-tables-count", "oltp-table-size") if legacy else ("tables", "table-size")
    arguments = [PROGRAM, str(LEGACY_SCRIPT) if legacy else spec.test, "--db-driver=pgsql", *where]
    arguments += [f"--{sizes[0]}={spec.tables}", f"--{sizes[1]}={spec.rows}", f"--threads={spec.clients}"]
    arguments += [f"--rand-type={spec.keys}", f"--rand-seed={spec.seed % _SEED_MAX + 1}", "--report-interval=1"]
    if not legacy:
        arguments.append(f"--db-ps-mode={'auto' if spec.protocol == 'prepared' else 'disable'}")
    if spec.test == "oltp_insert":
        arguments.append("--auto-inc=on")
    arguments += [_option(name, value, legacy=legacy) for name, value in spec.options.told(spec.test).items()]
    if spec.rate_per_s is not None:
        # It takes whole numbers only; a rate that this changes is refused before (WorkloadAsked.rates_instead).
        arguments.append(f"--rate={max(1, round(spec.rate_per_s))}")
    return arguments


def _option(name: str, value: int | bool, *, legacy: bool) -> str:
    """An option on the command line; those of the script of 0.5 begin with `oltp-`."""
    text = ("on" if value else "off") if isinstance(value, bool) else str(value)
    return f"--{'oltp-' if legacy else ''}{name.replace('_', '-')}={text}"


@dataclass
class _Run:
    """One run of sysbench, and what it printed."""

    test: str
    dilation: int = 1
    printed: str = ""
    begin_ns: int = 0
    """When its threads started."""
    seconds: list[float] = field(default_factory=list)
    """Transactions of each."""

    def follow(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        time_s: int,
        show: Progress,
        edges: tuple[Callable[[int], None] | None, Callable[[], None] | None, Callable[[], None] | None] = (
            None,
            None,
            None,
        ),
    ) -> None:
        """Start it and hear it to its end. ``edges`` are called with its process, when it begins, and ``time_s`` later."""
        on_start, on_begin, on_end = edges
        process = subprocess.Popen(
            command, env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            if on_start is not None:
                on_start(process.pid)
            self._hear(process, time_s, show, on_begin, on_end)
            code = process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            raise _hangs() from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if code != 0 or self.number(r"total number of events:\s+(\d+)") is None:
            said = [line for line in self.printed.splitlines() if "FATAL" in line] or self.printed.splitlines()[-3:]
            raise PgdynoError(
                f"sysbench failed (exit code {code}): {' / '.join(said[:3])}",
                remedy="load the tables first, and look at the server's log",
            )

    def _hear(
        self,
        process: subprocess.Popen[bytes],
        time_s: int,
        show: Progress,
        on_begin: Callable[[], None] | None,
        on_end: Callable[[], None] | None,
    ) -> None:
        assert process.stdout is not None
        stream, give_up_ns = process.stdout.fileno(), now_ns() + int((time_s + 2 * GRACE_S) * SECOND_NS)
        rest, ending = b"", on_end
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                end_ns = self.begin_ns + time_s * SECOND_NS if self.begin_ns and ending else give_up_ns
                if selector.select(max(0.0, (end_ns - now_ns()) / SECOND_NS)):
                    text = os.read(stream, 1 << 16)
                    if not text:
                        break
                    *lines, rest = (rest + text).split(b"\n")
                    for line in lines:
                        self._line(line.decode(errors="replace"), time_s, show, on_begin)
                if ending is not None and self.begin_ns and now_ns() >= self.begin_ns + time_s * SECOND_NS:
                    ending()
                    ending = None
                if now_ns() >= give_up_ns:
                    raise _hangs()
        self.printed += rest.decode(errors="replace")
        if ending is not None and self.begin_ns:
            ending()

    def _line(self, line: str, time_s: int, show: Progress, on_begin: Callable[[], None] | None) -> None:
        self.printed += line + "\n"
        if line.startswith(_STARTED):
            self.begin_ns = now_ns()
            if on_begin is not None:
                on_begin()
        elif found := _SECOND.match(line):
            self.seconds.append(float(found[2]))
            doing = "measure" if on_begin is not None else "warm up"
            show(min(1.0, int(found[1]) / time_s), f"{doing}: {float(found[2]) * self.dilation:,.0f} tps")

    def number(self, pattern: str) -> float | None:
        """A figure of the report at its end."""
        found = re.search(pattern, self.printed)
        return float(found[1]) if found else None

    def count(self, what: str) -> int:
        """A count of the report; 0 of a run that never was."""
        return int(self.number(rf"{what}:\s+(\d+)") or 0)


def _outcome(
    spec: WorkloadSpec,
    warmed: _Run,
    measured: _Run,
    bench_ns: int,
    measure_s: int,
    clock: SubjectClock,
    command: Sequence[str],
) -> Outcome:
    seconds = measured.number(r"total time:\s+([\d.]+)s") or 0.0
    begin_ns = clock.instant_ns(measured.begin_ns)
    end_ns = clock.instant_ns(measured.begin_ns + int(seconds * SECOND_NS))
    latency = _latency(spec, measured, begin_ns, end_ns, clock)
    succeeded, before = measured.count("total number of events"), warmed.count("total number of events")
    account = Account(scheduled=succeeded, skipped=0, succeeded=succeeded, failed=0)
    total = Account(scheduled=succeeded + before, skipped=0, succeeded=succeeded + before, failed=0)
    version = re.search(r"^sysbench ([\d.]+)", measured.printed, re.MULTILINE)
    return Outcome(
        spec=spec,
        phases=(
            Phase(name="warmup", begin_ns=clock.instant_ns(bench_ns), end_ns=begin_ns),
            Phase(name="measure", begin_ns=begin_ns, end_ns=end_ns),
        ),
        account=account,
        account_total=total,
        writes_total=0,
        uncounted_max=measured.count("reconnects") + warmed.count("reconnects"),
        latency=latency,
        throughput=_throughput(spec, measured, end_ns, clock),
        service=None,
        statement=None,
        histograms=histogram.document(latency, begin_ns, end_ns),
        checks=_checks(measured, seconds, measure_s),
        driver=DriverRecord(
            engine="sysbench",
            version=version[1] if version else None,
            threads=spec.clients,
            retries=measured.count("ignored errors"),
            connections_lost=measured.count("reconnects"),
        ),
        queries=measured.count("queries"),
        command=tuple(command),
    )


def _checks(measured: _Run, seconds: float, measure_s: int) -> tuple[Check, ...]:
    events, transactions = measured.count("total number of events"), measured.count("transactions")
    counted = sum(int(count) for _, count in _BUCKET.findall(measured.printed))
    lost = measured.count("reconnects")
    return (
        Check(
            name="nothing_is_missing",
            ok=events == counted,
            detail=f"{events:,} events, {transactions:,} transactions, {counted:,} in the histogram",
        ),
        Check(name="clients_lasted", ok=lost == 0, detail=f"{lost} connections were lost"),
        Check(
            name="measured_under_load",
            ok=seconds >= measure_s - 0.01,
            detail=f"measured {seconds:.3f} s of {measure_s} s",
        ),
    )


def _latency(spec: WorkloadSpec, measured: _Run, begin_ns: int, end_ns: int, clock: SubjectClock) -> pa.Table:
    """Of the whole measure phase, from the histogram."""
    import numpy as np
    import pyarrow as pa

    found = _BUCKET.findall(measured.printed)
    latency = np.array([round(float(value) * 1000) for value, _ in found], dtype=np.int64)
    times = np.array([int(count) for _, count in found], dtype=np.int64)
    zeros = np.zeros(len(found), dtype=np.int64)
    _, _, bucket, count = histogram.per_second(zeros, zeros, clock.durations_us(latency), times)
    return pa.table(
        {
            "t_begin_ns": pa.array([begin_ns] * len(bucket), pa.int64()),
            "t_end_ns": pa.array([end_ns] * len(bucket), pa.int64()),
            "script": pa.array([spec.test] * len(bucket), pa.string()),
            "latency_us": bucket,
            "count": count,
        }
    )


def _throughput(spec: WorkloadSpec, measured: _Run, end_ns: int, clock: SubjectClock) -> pa.Table:
    """Of each second of the host, to the nearest transaction; of the last one, which is not told, what is left of all.

    What was tried again is no failed transaction.
    """
    import pyarrow as pa

    told = [round(tps) for tps in measured.seconds]
    edges = [clock.instant_ns(measured.begin_ns + place * SECOND_NS) for place in range(len(told) + 1)]
    rest = measured.count("total number of events") - sum(told)
    if rest > 0 and edges[-1] < end_ns:
        edges, told = [*edges, end_ns], [*told, rest]
    return pa.table(
        {
            "t_begin_ns": pa.array(edges[:-1], pa.int64()),
            "t_end_ns": pa.array(edges[1:], pa.int64()),
            "script": pa.array([spec.test] * len(told), pa.string()),
            "transactions": pa.array(told, pa.int64()),
            "failed": pa.array([0] * len(told), pa.int64()),
            "skipped": pa.array([0] * len(told), pa.int64()),
        }
    )


def _hangs() -> PgdynoError:
    return PgdynoError(
        f"sysbench did not end within {GRACE_S:g} s after its time was up",
        remedy="the server or the volume hangs: look at the server's log and `pgdyno volume stats`",
    )

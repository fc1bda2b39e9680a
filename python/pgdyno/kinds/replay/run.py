"""Runner of replays: it starts the engine that sends a capture, and makes the run's outcome of its lines. No value of the capture is in the record."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.workload import histogram
from pgdyno.workload.clock import now_ns
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ...base import engine as _engine
from ...base.errors import EngineError
from ...base.session import Connection
from ...results import record, tables
from ...results.tables import SubjectClock
from ...results.work_record import (
    ComparedStatement,
    DoubtfulPlace,
    LikenessRecord,
    ReadingRecord,
    ReplayedError,
    ReplayedKeys,
    ReplayedStatement,
    ReplayRecord,
    SequenceFit,
    StatementWork,
    TimeDistribution,
)
from .capture import Counts, shape_of
from .selection import ReplaySelection

if TYPE_CHECKING:
    import psycopg


STATEMENTS_MAX = 200
"""Shapes that a record has, by their time here or in production; an application has some hundred that matter, and one that writes
values into names has thousands."""
OTHERS = "(other statements)"
_CATALOG = "pg_catalog."
_COUNTS = (
    "statements",
    "executed",
    "failed_as_recorded",
    "newly_failed",
    "no_longer_failed",
    "not_begun",
    "not_asked",
    "sessions",
    "lanes",
    "connections_lost",
    "copies_made",
    "log_entries",
    "log_lost",
)


def record_of(
    summary: Mapping[str, Any], speed: float, dilation: int = 1, *, accept_losses: bool = False
) -> ReplayRecord:
    """The engine's summary in the subject's time, which is ``dilation`` times slower; ``speed`` is the subject's too."""
    return ReplayRecord(
        **{name: summary[name] for name in _COUNTS},
        left_out=summary["left_out"],
        left_out_statements=dict(Counter(summary["left_out_statements"]).most_common(STATEMENTS_MAX)),
        recorded_s=summary["recorded_us"] / 1e6,
        left_out_s=summary["left_out_us"] / 1e6,
        reading=ReadingRecord(**summary["reading"], accepted=accept_losses),
        captured_s=summary["captured_s"],
        due_s=summary["captured_s"] / speed,
        took_s=summary["took_s"] / dilation,
        ended_by=summary["ended_by"] or "",
        response=_times(summary["response_us"], dilation),
        service=_times(summary["service_us"], dilation),
        recorded=_times(summary["recorded_service_us"], 1),
        behind=_times(summary["behind_us"], dilation),
        keys=_keys(summary["keys"], dilation),
        errors=tuple(
            ReplayedError(**other)
            for other in sorted(summary["errors"], key=lambda error: -error["count"])[:STATEMENTS_MAX]
        ),
        by_statement=tuple(_statement(document, dilation) for document in _most(summary["by_statement"])),
    )


def _times(figures: Mapping[str, Any], dilation: int) -> TimeDistribution:
    document = {f"{name}_ms": figures[name] / 1e3 / dilation for name in ("mean", "p50", "p99", "max")}
    return TimeDistribution(count=figures["count"], **document)


def _keys(document: Mapping[str, Any] | None, dilation: int) -> ReplayedKeys | None:
    if document is None:
        return None
    counts = {name: count for name, count in document.items() if name not in ("waited_us", "fits", "doubtful_places")}
    sequences = tuple(SequenceFit(**fit) for fit in document["fits"])
    return ReplayedKeys(
        **counts,
        doubtful_places=tuple(DoubtfulPlace(**doubtful_place) for doubtful_place in document["doubtful_places"]),
        sequences=sequences,
        waited_s=document["waited_us"] / 1e6 / dilation,
    )


def _statement(document: Mapping[str, Any], dilation: int) -> ReplayedStatement:
    timed = document["timed"]
    return ReplayedStatement(
        statement=document["statement"],
        calls=document["calls"],
        response_ms=document["response_us"] / document["calls"] / 1e3 / dilation,
        timed=timed,
        service_ms=document["us"] / timed / 1e3 / dilation if timed else None,
        recorded_ms=document["recorded_us"] / timed / 1e3 if timed else None,
    )


def _most(statements: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those with the most time, the first the one with the most; the others as one at the end."""
    ordered = sorted(statements, key=lambda statement: -max(statement["us"], statement["recorded_us"]))
    most, others = ordered[:STATEMENTS_MAX], ordered[STATEMENTS_MAX:]
    if not others:
        return most
    names = ("calls", "response_us", "timed", "us", "recorded_us")
    return [*most, {"statement": OTHERS} | {name: sum(document[name] for document in others) for name in names}]


NOTHING = Counts(calls=0, rows=0, exec_ms=0.0, wal_records=0, wal_images=0, wal_bytes=0, blocks=0)


def likeness_of(
    production: Mapping[str, Counts], here: Mapping[str, Counts], left_out: Iterable[str], *, whole: bool
) -> LikenessRecord:
    """Production's statements beside this run's, both by shape.

    Those that were ``left_out`` are not compared, nor those of the system's catalogs, which are of each server: those of
    ``pgdyno capture stats`` are among them.
    """
    not_sent = {shape_of(text) for text in left_out}
    wanted = (text for text in production if text not in not_sent and _CATALOG not in text)
    shapes = sorted(wanted, key=lambda text: -production[text].exec_ms)
    counts = [(shape, production[shape], here.get(shape, NOTHING)) for shape in shapes[:STATEMENTS_MAX]]
    if others := shapes[STATEMENTS_MAX:]:
        counts.append(
            (OTHERS, _sum([production[item] for item in others]), _sum([here.get(item, NOTHING) for item in others]))
        )
    return LikenessRecord(
        whole=whole,
        statements=tuple(
            ComparedStatement(
                statement=shape, production=StatementWork(**asdict(there)), here=StatementWork(**asdict(own))
            )
            for shape, there, own in counts
        ),
    )


def _sum(counts: Sequence[Counts]) -> Counts:
    return Counts(**{name: sum(getattr(count, name) for count in counts) for name in asdict(NOTHING)})


LONG_S = 5.0
"""Seconds that an application's own locks hardly ever last; those of other sessions may last for hours."""
LOOK_S = 2.0
"""Seconds from look to look: the server locks its table of locks for each."""
_PRESENT = "SELECT pid FROM pg_catalog.pg_stat_activity WHERE pid IS NOT NULL"
_WAITS = """
SELECT DISTINCT blocker.pid, waiting.pid,
       CASE WHEN waiting.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
            THEN waiting.relation::pg_catalog.regclass::pg_catalog.text END,
       role.usename
FROM pg_catalog.pg_locks AS waiting
CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.pg_blocking_pids(waiting.pid)) AS blocker (pid)
LEFT JOIN pg_catalog.pg_stat_activity AS role ON role.pid = blocker.pid
WHERE NOT waiting.granted AND waiting.waitstart < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => %s)
"""


class Waits:
    """Blockers of sessions that began after this was made: older sessions, and prepared transactions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._present = {int(row[0]) for row in connection.execute(_PRESENT).fetchall()}
        self._told: set[int] = set()
        self._looked = time.monotonic()

    def notices(self) -> list[str]:
        """A sentence for each of them that has not been told yet. What cannot be asked is not told: a replay does not end for it."""
        import psycopg

        if time.monotonic() < self._looked + LOOK_S:
            return []
        self._looked = time.monotonic()
        try:
            rows = self._connection.execute(_WAITS, [LONG_S]).fetchall()
        except psycopg.Error:
            return []
        notices = []
        for blocker, waiting, table, role in rows:
            if waiting in self._present or blocker in self._told or not (blocker == 0 or blocker in self._present):
                continue
            self._told.add(blocker)
            whose = "a prepared transaction" if blocker == 0 else f"session {blocker}{f' of {role}' if role else ''}"
            which = f" on {table}" if table else ""
            notices.append(
                f"{whose} is not the replay's, and has kept its statements waiting for more than {LONG_S:g} s by a lock{which};"
                " end it: the replay waits for it until its own time is over"
            )
        return notices


_READY_S = 600.0
"""Until the index and the texts of a capture are read: a capture of a day has some ten gigabytes."""
_GRACE_S = 60.0
"""The engine keeps its own deadline; when it is so much later, it hangs."""
_EXIT_S = 10.0
NAME = "statements"
"""The script of the tables: all statements together."""
Line = dict[str, Any]


@dataclass(frozen=True)
class ReplayRunner:
    """Replays a part of a capture; it is a :class:`pgdyno.workload.outcome.Runner`."""

    selection: ReplaySelection
    seed: int = 0
    """Of what is drawn: made rows."""
    newer: Mapping[str, Any] | None = None
    """Beyond which keys of the capture a database is newer than it, and nothing is sent; None where a run judges it afterwards."""

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Send its statements, for ``request.duration_s`` at most. What is measured is all of it; there is no warm-up."""
        clock, output = request.clock, ReplayOutput()
        limit_s = clock.host_s(request.duration_s)
        request.out_dir.mkdir(parents=True, exist_ok=True)
        order = self.selection.document() | {
            "endpoints": self.selection.endpoints(server),
            "speed": self.selection.speed / clock.dilation,
            "second_ms": 1000 * clock.dilation,
            "limit_s": limit_s,
            "keys": self.selection.keys_on(server, clock.dilation),
            "copies": self.selection.copies_on(server),
            "seed": self.seed,
            "newer": self.newer,
        }
        # The session that looks comes first: the engine begins to send as soon as it is ready.
        with _looking(server) as session, self._sending(order, request) as engine:
            waits = Waits(session)
            request.on_start(engine.process.pid)
            begin_ns = int(engine.ready["begin_ns"])
            time.sleep(max(0.0, (begin_ns - now_ns()) / 1e9))
            request.on_measure_begin()
            for line in _lines(engine, limit_s + _GRACE_S):
                output.take(line)
                for notice in waits.notices():
                    output.note = f"; {notice}"
                if "progress" in line:
                    request.progress(line["progress"]["share"], output.words + output.note)
            request.on_measure_end()
            if output.summary is None:
                raise engine.failure()
        return output.outcome(self.selection, begin_ns, clock)

    @staticmethod
    @contextlib.contextmanager
    def _sending(order: dict[str, Any], request: RunRequest) -> Iterator[_engine.EngineProcess]:
        """The engine that sends, ended at the end of the block."""
        log = request.out_dir / "replay.err"
        engine = _engine.spawn(["capture", "replay"], order, log=log, timeout_s=_READY_S, prefix=request.prefix)
        try:
            yield engine
        finally:
            _end(engine.process)


def _looking(server: Server) -> psycopg.Connection[tuple[Any, ...]]:
    """A session beside the replay's."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    password = server.endpoint.order("pgdyno")["password"]
    return psycopg.connect(make_conninfo(server.dsn, password=password or ""), autocommit=True)


def _lines(engine: _engine.EngineProcess, patience_s: float) -> Iterator[Line]:
    """Lines of its output, until it ends. :class:`EngineError` when it does not end in time."""
    assert engine.process.stdout is not None
    pipe, rest, deadline = engine.process.stdout.fileno(), b"", time.monotonic() + patience_s
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
            raise EngineError("the replay did not end in time", remedy="look at the server's log")
        text = os.read(pipe, 1 << 20)
        if not text:
            break
        *lines, rest = (rest + text).split(b"\n")
        yield from (json.loads(line) for line in lines)
    engine.process.wait(_EXIT_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


class ReplayOutput:
    """Output of the engine."""

    def __init__(self) -> None:
        self.seconds: list[Line] = []
        self.summary: Line | None = None
        self.words = "replay"
        self.note = ""
        """Locks of others that its statements wait for."""

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of it."""
        if "second" in line:
            result = dict(line["second"])
            self.seconds.append(result)
            late = result["behind_us"]["max"] / 1e6
            failed = f", {result['newly_failed']:,} failed newly" if result["newly_failed"] else ""
            self.words = f"replay: at most {late:,.2f} s late{failed}"
        elif "progress" in line:
            self.words = f"{line['progress']['answered']:,} statements, {self.words}"
        elif "summary" in line:
            self.summary = dict(line["summary"])

    def outcome(self, selection: ReplaySelection, begin_ns: int, clock: SubjectClock) -> Outcome:
        """Outcome of the run, in the time of ``clock``."""
        assert self.summary is not None
        result = record_of(self.summary, selection.speed, clock.dilation, accept_losses=selection.accept_losses)
        phase = record.RunPhase(
            name="measure",
            begin_ns=clock.instant_ns(begin_ns),
            end_ns=clock.instant_ns(max(begin_ns + 1, int(self.summary["end_ns"]))),
        )
        account = record.Account(
            scheduled=result.statements,
            skipped=sum(result.left_out.values()) + result.not_begun,
            succeeded=result.executed,
            rolled_back=result.failed_as_recorded,
            failed=result.newly_failed + result.no_longer_failed,
        )
        latency = _latency(self.seconds, "response_us", clock)
        return Outcome(
            phases=(phase,),
            account=account,
            account_total=account,
            writes_total=0,
            uncounted_max=result.connections_lost,
            latency=latency,
            throughput=tables.from_rows("workload/throughput", self._throughput(clock)),
            service=_latency(self.seconds, "service_us", clock),
            statement=None,
            histograms=histogram.document(latency, phase.begin_ns, phase.end_ns),
            checks=tuple(self._checks(result)),
            driver=self._driver(result, phase, clock.dilation),
            replay=result,
            replay_seconds=tables.from_rows("workload/replay", self._rows(clock)),
        )

    def _checks(self, replay_record: ReplayRecord) -> Iterator[record.Check]:
        assert self.summary is not None
        calls = int(self.summary["calls"])
        ok = replay_record.statements + replay_record.not_asked == calls
        detail = f"{replay_record.statements:,} statements asked for and {replay_record.not_asked:,} others are the {calls:,} of the capture"
        yield record.Check(name="every_statement", ok=ok, detail=detail if ok else f"not true: {detail}")
        lost = replay_record.connections_lost
        detail = (
            f"{lost:,} of {replay_record.sessions:,} sessions were lost"
            if lost
            else f"all {replay_record.sessions:,} sessions lasted"
        )
        yield record.Check(name="sessions", ok=not lost, detail=detail)

    def _driver(self, replay_record: ReplayRecord, phase: record.RunPhase, dilation: int) -> record.DriverRecord:
        assert self.summary is not None
        errors = Counter[str]()
        for error in replay_record.errors:
            errors[error.sqlstate] += error.count
        return record.DriverRecord(
            engine="replay",
            threads=max(1, int(self.summary["threads"])),
            cpu_ns=round(self.summary["cpu_s"] * 1e9),
            elapsed_ns=phase.end_ns - phase.begin_ns,
            transactions=replay_record.executed + replay_record.failed_as_recorded,
            wake=_lateness(self.summary["late_us"], dilation),
            lag=_lateness(self.summary["behind_us"], dilation),
            errors=dict(errors),
            connections_lost=replay_record.connections_lost,
        )

    def _throughput(self, clock: SubjectClock) -> list[dict[str, Any]]:
        return [
            _edges(line, clock)
            | {
                "script": NAME,
                "transactions": line["executed"] + line["failed_as_recorded"],
                "failed": line["newly_failed"] + line["no_longer_failed"],
                "skipped": 0,
            }
            for line in self.seconds
        ]

    def _rows(self, clock: SubjectClock) -> list[dict[str, Any]]:
        ends = ("executed", "failed_as_recorded", "newly_failed", "no_longer_failed")
        return [
            _edges(line, clock)
            | {name: line[name] for name in ends}
            | {f"behind_us_{name}": line["behind_us"][name] / clock.dilation for name in ("mean", "max")}
            for line in self.seconds
        ]


def _edges(line: Line, clock: SubjectClock) -> dict[str, int]:
    return {
        "t_begin_ns": clock.instant_ns(int(line["begin_ns"])),
        "t_end_ns": clock.instant_ns(int(line["end_ns"])),
    }


def _latency(seconds: Sequence[Line], which: str, clock: SubjectClock) -> Any:
    """``workload/latency`` (of ``response_us``) or ``workload/service``."""
    rows = []
    for line in seconds:
        if line[which] is None:
            continue
        values, counts = histogram.buckets(line[which])
        edges = _edges(line, clock)
        counted = Counter[int]()
        for value, count in zip(histogram.bucket_us(clock.durations_us(values)).tolist(), counts.tolist(), strict=True):
            counted[value] += count
        rows += [edges | {"script": NAME, "latency_us": value, "count": count} for value, count in counted.items()]
    return tables.from_rows("workload/latency", rows)


def _lateness(figures: Mapping[str, Any], dilation: int) -> record.Lateness | None:
    if not figures["count"]:
        return None
    document = {f"{name}_us": figures[name] / dilation for name in ("mean", "p50", "p99", "max")}
    return record.Lateness(count=figures["count"], **document)

"""The runner of streams of queries: it starts the process that drives them, and makes the run's outcome of what it says."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.errors import PgdynoError
from pgdyno.store import record, tables
from pgdyno.store.subject_clock import SubjectClock
from pgdyno.store.work_record import RefreshRecord, StreamsRecord
from pgdyno.workload import histogram
from pgdyno.workload.helper_process import HelperProcess, Words, environment
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.watch import now_ns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pgdyno.workload.server import Server
    from pgdyno.workload.tpch.streams import Streams

_WORDS = Words("the process of the streams", "the streams of queries", "raise workload.duration")
_GRACE_S = 60.0
"""The process keeps its own deadline and then cancels; when it is so much later, it hangs."""
_SECOND_NS = 1_000_000_000
Line = dict[str, Any]


@dataclass(frozen=True)
class Running:
    """Runs streams of queries; it is a :class:`pgdyno.workload.outcome.Runner`."""

    streams: Streams

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Ask all queries, for ``request.duration_s`` at most. What is measured is all of it; there is no warm-up.

        :class:`PgdynoError` when not a single query brought its rows. One that failed or was cancelled is a failed check.
        """
        own, heard = request.clock, Heard(self.streams)
        limit_s = own.host_s(request.duration_s)
        request.out_dir.mkdir(parents=True, exist_ok=True)
        command = [*request.prefix, sys.executable, "-m", "pgdyno.workload.tpch.driving"]
        with (
            self._rows(request.out_dir) as folder,
            HelperProcess(command, request.out_dir / "streams.log", environment(request.env), _WORDS) as process,
        ):
            heard.spill = process.ask(self.streams.document(server.dsn, limit_s, folder))["spill"] or ""
            request.on_start(process.pid)
            request.on_measure_begin()
            begin_ns = now_ns()
            with contextlib.closing(process.go(limit_s + _GRACE_S)) as lines:
                told_ns = begin_ns
                for line in lines:
                    heard.take(line)
                    if now_ns() - told_ns >= _SECOND_NS:
                        request.progress(heard.share, heard.words)
                        told_ns = now_ns()
            request.on_measure_end()
        if heard.end is None:
            raise process.failure(limit_s)
        if not any(not line["error"] for line in heard.queries):
            first = next((line for line in heard.queries if line["error"]), None)
            raise PgdynoError(
                "no query brought its rows" if first is None else f"query {first['query']}: {first['error']}",
                remedy="raise workload.duration" if heard.end["stopped"] else "see the server's log",
            )
        return heard.outcome(begin_ns, own)

    @contextlib.contextmanager
    def _rows(self, out_dir: Path) -> Iterator[Path | None]:
        """A folder with what the refresh functions insert and delete; the process has it in memory before it begins."""
        functions = self.streams.functions
        if functions is None:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="refresh-", dir=out_dir) as folder:
            functions.make(Path(folder))
            yield Path(folder)


class Heard:
    """What the process has said."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.queries: list[Line] = []
        self.refresh: list[Line] = []
        self.end: Line | None = None
        self.spill = ""
        """Why temporary bytes were not counted; empty if they were."""
        self.words = "ask queries"

    @property
    def share(self) -> float:
        """How far it is, by the number of queries."""
        return len(self.queries) / max(1, self._streams.planned)

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of it."""
        if "query" in line:
            found = dict(line["query"])
            self.queries.append(found)
            seconds = (found["end_ns"] - found["begin_ns"]) / 1e9
            self.words = (
                f"{len(self.queries):,} of {self._streams.planned:,} queries, Q{found['query']} took {seconds:.2f} s"
            )
        elif "refresh" in line:
            self.refresh.append(dict(line["refresh"]))
        elif "end" in line:
            self.end = dict(line)

    def outcome(self, begin_ns: int, clock: SubjectClock) -> Outcome:
        """What the run came to, in the time of ``clock``."""
        assert self.end is not None
        phase = record.Phase(
            name="measure", begin_ns=clock.instant_ns(begin_ns), end_ns=clock.instant_ns(int(self.end["t_ns"]))
        )
        rows = [self._row(line, clock) for line in self.queries]
        good = [row for row in rows if not row["error"]]
        account = record.Account(
            scheduled=self._streams.planned,
            skipped=self._streams.planned - len(rows),
            succeeded=len(good),
            failed=len(rows) - len(good),
        )
        latency = tables.from_rows("workload/latency", _latency(good))
        return Outcome(
            phases=(phase,),
            account=account,
            account_total=account,
            writes_total=0,
            uncounted_max=0,
            latency=latency,
            throughput=tables.from_rows("workload/throughput", _throughput(rows, phase)),
            service=None,
            statement=None,
            histograms=histogram.document(latency, phase.begin_ns, phase.end_ns + _SECOND_NS),
            checks=tuple(self._checks(rows)),
            driver=record.DriverRecord(
                engine="streams",
                threads=self._streams.clients,
                cpu_ns=int(self.end["cpu_ns"]),
                elapsed_ns=phase.end_ns - phase.begin_ns,
                transactions=len(good),
            ),
            streams=_streams_record(good, rows, self.spill, [self._function(line, clock) for line in self.refresh]),
            query_rows=tables.from_rows("workload/query", rows),
        )

    def _function(self, line: Line, clock: SubjectClock) -> RefreshRecord:
        return RefreshRecord(
            **line
            | {"begin_ns": clock.instant_ns(int(line["begin_ns"])), "end_ns": clock.instant_ns(int(line["end_ns"]))}
        )

    def _row(self, line: Line, clock: SubjectClock) -> dict[str, Any]:
        return {
            "stream": line["stream"],
            "query_set": line["set"],
            "place": line["place"],
            "query": line["query"],
            "parameters": json.dumps(line["parameters"], sort_keys=True),
            "t_begin_ns": clock.instant_ns(int(line["begin_ns"])),
            "t_end_ns": clock.instant_ns(int(line["end_ns"])),
            "rows": line["rows"],
            "rows_hash": line["rows_hash"],
            "temp_bytes": line["temp_bytes"],
            "plan": line["plan"],
            "error": "cancelled" if line["cancelled"] else line["error"],
        }

    def _checks(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[record.Check]:
        assert self.end is not None
        wrong = [f"query {row['query']} of stream {row['stream']}: {row['error']}" for row in rows if row["error"]]
        missing = self._streams.planned - len(rows)
        if missing:
            wrong.append(f"{missing:,} of {self._streams.planned:,} queries were not asked")
        if self.end["stopped"] == "late":
            wrong.append("the run took longer than workload.duration allows")
        detail = "; ".join(wrong) or f"all {self._streams.planned:,} queries brought their rows"
        yield record.Check(name="queries", ok=not wrong, detail=detail)
        done = Counter(row["stream"] for row in rows if not row["error"])
        lost = [number for number in self._streams.numbers if not done[number]]
        if lost:
            names = ", ".join(map(str, lost))
            yield record.Check(name="streams", ok=False, detail=f"no query of stream {names} brought its rows")


def _seconds(row: Mapping[str, Any]) -> float:
    return float(row["t_end_ns"] - row["t_begin_ns"]) / 1e9


def _streams_record(
    good: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], spill: str, refresh: Sequence[RefreshRecord]
) -> StreamsRecord:
    of_query: dict[int, list[float]] = {}
    temp: dict[int, int] = {}
    for row in sorted(good, key=lambda row: int(row["query"])):
        of_query.setdefault(row["query"], []).append(_seconds(row))
        if row["temp_bytes"] is not None:
            temp[row["query"]] = temp.get(row["query"], 0) + int(row["temp_bytes"])
    ends: dict[int, list[int]] = {}
    for row in rows:
        ends.setdefault(row["stream"], []).extend((row["t_begin_ns"], row["t_end_ns"]))
    return StreamsRecord(
        geometric_mean_s=_geometric_mean([one for each in of_query.values() for one in each]),
        query_s={str(query): _geometric_mean(each) for query, each in of_query.items()},
        stream_s={str(stream): (max(each) - min(each)) / 1e9 for stream, each in sorted(ends.items())},
        temp_bytes={str(query): count for query, count in temp.items()},
        temp_unseen=spill,
        refresh=tuple(refresh),
    )


def _geometric_mean(seconds: Sequence[float]) -> float:
    """Of durations, none of which is zero: the clock's resolution is a nanosecond."""
    return math.exp(math.fsum(math.log(max(one, 1e-9)) for one in seconds) / len(seconds))


def _latency(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each query in a bin of its own, as long as the query."""
    import numpy as np

    buckets = histogram.bucket_us(np.array([round(_seconds(row) * 1e6) for row in rows], dtype=np.int64))
    return [
        {
            "t_begin_ns": row["t_begin_ns"],
            "t_end_ns": row["t_end_ns"],
            "script": f"Q{row['query']}",
            "latency_us": int(bucket),
            "count": 1,
        }
        for row, bucket in zip(rows, buckets.tolist(), strict=True)
    ]


def _throughput(rows: Sequence[Mapping[str, Any]], phase: record.Phase) -> list[dict[str, Any]]:
    """Queries that ended in each second of the run."""
    seconds = -((phase.begin_ns - phase.end_ns) // _SECOND_NS)
    ended, failed = Counter[int](), Counter[int]()
    for row in rows:
        (failed if row["error"] else ended)[(row["t_end_ns"] - phase.begin_ns) // _SECOND_NS] += 1
    return [
        {
            "t_begin_ns": phase.begin_ns + second * _SECOND_NS,
            "t_end_ns": min(phase.end_ns, phase.begin_ns + (second + 1) * _SECOND_NS),
            "script": "queries",
            "transactions": ended[second],
            "failed": failed[second],
            "skipped": 0,
        }
        for second in range(seconds)
    ]

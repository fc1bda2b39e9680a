"""Runner of streams of queries, and the outcome from the rows of ``workload/query``, the same for each driver."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.workload import histogram
from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ...base.errors import PgdynoError
from ...results import record, tables
from ...results.tables import SubjectClock
from ...results.work_record import RefreshRecord, StreamsRecord
from ...workload.process import HelperProcess, Words, environment
from .queries import Streams

Row = dict[str, Any]
"""A row of ``workload/query``."""


def outcome(
    phase: record.RunPhase,
    rows: Sequence[Row],
    planned: int,
    *,
    checks: Sequence[record.Check],
    driver: record.DriverRecord,
    spill: str,
    refresh: Sequence[RefreshRecord],
) -> Outcome:
    """All of it is measured. ``rows`` are the queries that were asked, one at least of which brought its rows; ``planned`` is how many
    there were to be. ``spill`` is why temporary bytes were not counted; empty if they were.
    """
    good = [row for row in rows if not row["error"]]
    account = record.Account(
        scheduled=planned, skipped=planned - len(rows), succeeded=len(good), failed=len(rows) - len(good)
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
        histograms=histogram.document(latency, phase.begin_ns, phase.end_ns + SECOND_NS),
        checks=tuple(checks),
        driver=driver,
        streams=_streams(good, rows, spill, refresh),
        query_rows=tables.from_rows("workload/query", list(rows)),
    )


def checks_of(rows: Sequence[Row], planned: int, streams: Sequence[int], *, late: bool) -> Iterator[record.Check]:
    """Check that all queries returned their rows in time, for each stream."""
    wrong = [f"query {row['query']} of stream {row['stream']}: {row['error']}" for row in rows if row["error"]]
    missing = planned - len(rows)
    if missing:
        wrong.append(f"{missing:,} of {planned:,} queries were not asked")
    if late:
        wrong.append("the run took longer than workload.duration allows")
    detail = "; ".join(wrong) or f"all {planned:,} queries brought their rows"
    yield record.Check(name="queries", ok=not wrong, detail=detail)
    done = Counter(row["stream"] for row in rows if not row["error"])
    lost = [number for number in streams if not done[number]]
    if lost:
        names = ", ".join(map(str, lost))
        yield record.Check(name="streams", ok=False, detail=f"no query of stream {names} brought its rows")


def geometric_mean(seconds: Sequence[float]) -> float:
    """Of durations, none of which is zero: the clock's resolution is a nanosecond."""
    return math.exp(math.fsum(math.log(max(value, 1e-9)) for value in seconds) / len(seconds))


def seconds_of(row: Mapping[str, Any]) -> float:
    """Seconds that a query took."""
    return float(row["t_end_ns"] - row["t_begin_ns"]) / 1e9


def _streams(good: Sequence[Row], rows: Sequence[Row], spill: str, refresh: Sequence[RefreshRecord]) -> StreamsRecord:
    of_query: dict[int, list[float]] = {}
    temp: dict[int, int] = {}
    for row in sorted(good, key=lambda row: int(row["query"])):
        of_query.setdefault(row["query"], []).append(seconds_of(row))
        if row["temp_bytes"] is not None:
            temp[row["query"]] = temp.get(row["query"], 0) + int(row["temp_bytes"])
    ends: dict[int, list[int]] = {}
    for row in rows:
        ends.setdefault(row["stream"], []).extend((row["t_begin_ns"], row["t_end_ns"]))
    return StreamsRecord(
        geometric_mean_s=geometric_mean([value for each in of_query.values() for value in each]),
        query_s={str(query): geometric_mean(each) for query, each in of_query.items()},
        stream_s={str(stream): (max(each) - min(each)) / 1e9 for stream, each in sorted(ends.items())},
        temp_bytes={str(query): count for query, count in temp.items()},
        temp_unseen=spill,
        refresh=tuple(refresh),
    )


def _latency(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Each query in a bin of its own, as long as the query."""
    import numpy as np

    buckets = histogram.bucket_us(np.array([round(seconds_of(row) * 1e6) for row in rows], dtype=np.int64))
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


def _throughput(rows: Sequence[Row], phase: record.RunPhase) -> list[dict[str, Any]]:
    """Queries that ended in each second of the run."""
    seconds = -((phase.begin_ns - phase.end_ns) // SECOND_NS)
    ended, failed = Counter[int](), Counter[int]()
    for row in rows:
        (failed if row["error"] else ended)[(row["t_end_ns"] - phase.begin_ns) // SECOND_NS] += 1
    return [
        {
            "t_begin_ns": phase.begin_ns + second * SECOND_NS,
            "t_end_ns": min(phase.end_ns, phase.begin_ns + (second + 1) * SECOND_NS),
            "script": "queries",
            "transactions": ended[second],
            "failed": failed[second],
            "skipped": 0,
        }
        for second in range(seconds)
    ]


_WORDS = Words("the process of the streams", "the streams of queries", "raise workload.duration")
_GRACE_S = 60.0
"""The process keeps its own deadline and then cancels; when it is so much later, it hangs."""
Line = dict[str, Any]


@dataclass(frozen=True)
class QueryStreamsRunner:
    """Runs streams of queries; it is a :class:`pgdyno.workload.outcome.Runner`."""

    streams: Streams

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Ask all queries, for ``request.duration_s`` at most. What is measured is all of it; there is no warm-up.

        :class:`PgdynoError` when not a single query brought its rows. One that failed or was cancelled is a failed check.
        """
        own, output = request.clock, StreamOutput(self.streams)
        limit_s = own.host_s(request.duration_s)
        request.out_dir.mkdir(parents=True, exist_ok=True)
        command = [*request.prefix, sys.executable, "-m", "pgdyno.kinds.tpch.process"]
        with (
            self._rows(request.out_dir) as folder,
            HelperProcess(command, request.out_dir / "streams.log", environment(request.env), _WORDS) as process,
        ):
            output.spill = process.ask(self.streams.document(server.dsn, limit_s, folder))["spill"] or ""
            request.on_start(process.pid)
            request.on_measure_begin()
            begin_ns = now_ns()
            with contextlib.closing(process.go(limit_s + _GRACE_S)) as lines:
                told_ns = begin_ns
                for line in lines:
                    output.take(line)
                    if now_ns() - told_ns >= SECOND_NS:
                        request.progress(output.share, output.words)
                        told_ns = now_ns()
            request.on_measure_end()
        if output.end is None:
            raise process.failure(limit_s)
        if not any(not line["error"] for line in output.queries):
            first = next((line for line in output.queries if line["error"]), None)
            raise PgdynoError(
                "no query returned its rows" if first is None else f"query {first['query']}: {first['error']}",
                remedy="raise workload.duration" if output.end["stopped"] else "see the server's log",
            )
        return output.outcome(begin_ns, own)

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


class StreamOutput:
    """Output of the process."""

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
        """Progress, in queries."""
        return len(self.queries) / max(1, self._streams.planned)

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of it."""
        if "query" in line:
            result = dict(line["query"])
            self.queries.append(result)
            seconds = (result["end_ns"] - result["begin_ns"]) / 1e9
            self.words = (
                f"{len(self.queries):,} of {self._streams.planned:,} queries, Q{result['query']} took {seconds:.2f} s"
            )
        elif "refresh" in line:
            self.refresh.append(dict(line["refresh"]))
        elif "end" in line:
            self.end = dict(line)

    def outcome(self, begin_ns: int, clock: SubjectClock) -> Outcome:
        """Outcome of the run, in the time of ``clock``."""
        assert self.end is not None
        phase = record.RunPhase(
            name="measure", begin_ns=clock.instant_ns(begin_ns), end_ns=clock.instant_ns(int(self.end["t_ns"]))
        )
        rows = [self._row(line, clock) for line in self.queries]
        streams, end = self._streams, self.end
        return outcome(
            phase,
            rows,
            streams.planned,
            checks=tuple(checks_of(rows, streams.planned, streams.numbers, late=end["stopped"] == "late")),
            driver=record.DriverRecord(
                engine="streams",
                threads=streams.clients,
                cpu_ns=int(end["cpu_ns"]),
                elapsed_ns=phase.end_ns - phase.begin_ns,
                transactions=sum(not row["error"] for row in rows),
            ),
            spill=self.spill,
            refresh=[self._function(line, clock) for line in self.refresh],
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

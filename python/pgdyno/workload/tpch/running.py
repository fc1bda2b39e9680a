"""The runner of streams of queries: it starts the process that drives them, and makes the run's outcome of what it says."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.workload.helper_process import HelperProcess, Words, environment
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.tpch import recorded
from pgdyno.workload.tpch.streams import Streams
from pgdyno.workload.watch import SECOND_NS, now_ns

from ...base.errors import PgdynoError
from ...results import record
from ...results.tables import SubjectClock
from ...results.work_record import RefreshRecord

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
        command = [*request.prefix, sys.executable, "-m", "pgdyno.workload.tpch.driving"]
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
                "no query brought its rows" if first is None else f"query {first['query']}: {first['error']}",
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
        """What the run came to, in the time of ``clock``."""
        assert self.end is not None
        phase = record.RunPhase(
            name="measure", begin_ns=clock.instant_ns(begin_ns), end_ns=clock.instant_ns(int(self.end["t_ns"]))
        )
        rows = [self._row(line, clock) for line in self.queries]
        streams, end = self._streams, self.end
        return recorded.outcome(
            phase,
            rows,
            streams.planned,
            checks=tuple(recorded.checks_of(rows, streams.planned, streams.numbers, late=end["stopped"] == "late")),
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

"""Runner of a load: it starts the loader's process, reads its lines and makes the run's outcome of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.workload.clock import now_ns
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ...results import record, tables
from ...results.tables import SubjectClock
from ...results.work_record import BulkLoadedTable, BulkLoadRecord
from ...workload.process import HelperProcess, Words, environment
from .options import BulkTable, Files

_SECOND_NS = 1_000_000_000


@dataclass
class _TableProgress:
    """One table, as it was heard of. Instants are the host's."""

    begin_ns: int = 0
    end_ns: int | None = None
    moments: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    loaded: dict[str, Any] = field(default_factory=dict)

    def points(self) -> list[tuple[int, int]]:
        """(instant, rows that had come in) from its begin to the end of its transfer."""
        points = [(self.begin_ns, 0)]
        for t_ns, event in self.moments:
            if t_ns > points[-1][0]:
                points.append((t_ns, max(points[-1][1], int(event["rows_loaded"]))))
        if self.end_ns is not None:
            later_s = sum(seconds for step, seconds in self.loaded["steps_s"].items() if step != "transfer")
            last_ns = max(points[-1][0] + 1, self.end_ns - round(later_s * 1e9))
            points.append((last_ns, int(self.loaded["rows_loaded"])))
        return points


class LoaderOutput:
    """Output of the loader's process."""

    def __init__(self, files: Sequence[Files]) -> None:
        self._files = {file.table: file for file in files}
        self._sizes = {file.table: file.stored_bytes for file in files}
        self._courses = {file.table: _TableProgress() for file in files}
        self._shares = dict.fromkeys(self._files, 0.0)
        self._checkpoint: dict[str, int] | None = None
        self.end_ns: int | None = None
        self.words = "load"

    @property
    def share(self) -> float:
        """Progress, in bytes of the files."""
        whole = max(1, sum(self._sizes.values()))
        return sum(self._shares[table] * size for table, size in self._sizes.items()) / whole

    def take(self, line: Mapping[str, Any]) -> None:
        """One line of it."""
        if "begin" in line:
            self._courses[line["begin"]].begin_ns = int(line["t_ns"])
        elif "event" in line:
            self._event(line["table"], int(line["t_ns"]), line["event"])
        elif "loaded" in line:
            course = self._courses[line["table"]]
            course.end_ns, course.loaded = int(line["t_ns"]), dict(line["loaded"])
            self._shares[line["table"]] = 1.0
        elif "checkpoint" in line:
            self._checkpoint = dict(line["checkpoint"])
        elif "end" in line:
            self.end_ns = int(line["t_ns"])

    def _event(self, table: str, t_ns: int, event: Mapping[str, Any]) -> None:
        if event["event"] != "progress":
            return
        self._courses[table].moments.append((t_ns, dict(event)))
        self._shares[table] = float(event["share"] or 0.0)
        rows = sum(int(course.moments[-1][1]["rows_loaded"]) for course in self._courses.values() if course.moments)
        self.words = f"{rows:,} rows, {table}, limit: {event['limit']}"

    def outcome(self, bulk: BulkTable, begin_ns: int, end_ns: int, clock: SubjectClock) -> Outcome:
        """Outcome of the run, in the time of ``clock``."""
        done = {table: course.loaded for table, course in self._courses.items()}
        rows = sum(int(loaded["rows_loaded"]) for loaded in done.values())
        account = record.Account(scheduled=rows, skipped=0, succeeded=rows, failed=0)
        phase = record.RunPhase(name="measure", begin_ns=clock.instant_ns(begin_ns), end_ns=clock.instant_ns(end_ns))
        cpu_s = sum(float(loaded["client_cpu_s"]) for loaded in done.values())
        return Outcome(
            phases=(phase,),
            account=account,
            account_total=account,
            writes_total=0,
            uncounted_max=0,
            latency=tables.empty("workload/latency"),
            throughput=tables.from_rows("workload/throughput", self._throughput(phase, clock)),
            service=None,
            statement=None,
            histograms={"histograms": {}},
            checks=tuple(self._checks()),
            driver=record.DriverRecord(
                engine="loader",
                threads=len(os.sched_getaffinity(0)),
                cpu_ns=round(cpu_s * 1e9),
                elapsed_ns=phase.end_ns - phase.begin_ns,
                transactions=rows,
            ),
            bulk_load=self._record(bulk, clock),
            moments=tables.from_rows("workload/bulk_load", self._moments(clock)),
        )

    def _throughput(self, phase: record.RunPhase, clock: SubjectClock) -> list[dict[str, Any]]:
        """Rows of all tables that came in by the second; between two lines of a table they are taken to come evenly."""
        import numpy as np

        length_ns = phase.end_ns - phase.begin_ns
        edges = np.append(np.arange(0, length_ns, _SECOND_NS), length_ns)
        rows = np.zeros(len(edges))
        for course in self._courses.values():
            points = course.points()
            at = [clock.instant_ns(t_ns) - phase.begin_ns for t_ns, _ in points]
            rows += np.interp(edges, at, [count for _, count in points])
        counts = np.diff(np.rint(rows)).astype(int).tolist()
        return [
            {
                "t_begin_ns": phase.begin_ns + begin,
                "t_end_ns": phase.begin_ns + end,
                "script": "load",
                "transactions": count,
                "failed": 0,
                "skipped": 0,
            }
            for begin, end, count in zip(edges.tolist(), edges.tolist()[1:], counts, strict=False)
        ]

    def _moments(self, clock: SubjectClock) -> list[dict[str, Any]]:
        return [
            {
                "t_ns": clock.instant_ns(t_ns),
                "target": table,
                "rows": int(event["rows_loaded"]),
                "bytes": int(event["bytes"]),
                "connections": int(event["connections"]),
                "binding": event["limit"],
            }
            for table, course in self._courses.items()
            for t_ns, event in course.moments
        ]

    def _checks(self) -> Iterator[record.Check]:
        """Check that every row of a generated file was loaded; the loader itself compares its ledger to the files."""
        known = {table: file.rows for table, file in self._files.items() if file.rows is not None}
        loaded = {table: int(course.loaded["rows_loaded"]) for table, course in self._courses.items()}
        wrong = [f"{table}: {loaded[table]:,} of {rows:,}" for table, rows in known.items() if loaded[table] != rows]
        detail = ", ".join(wrong) or f"{sum(loaded.values()):,} rows of {len(loaded)} tables"
        if known:
            yield record.Check(name="rows_of_the_files", ok=not wrong, detail=detail)
        repeated = [table for table, course in self._courses.items() if course.loaded["already"]]
        yield record.Check(
            name="loaded_in_this_run", ok=not repeated, detail=", ".join(repeated) or "no table had been loaded before"
        )

    def _record(self, bulk: BulkTable, clock: SubjectClock) -> BulkLoadRecord:
        made = self._checkpoint
        return BulkLoadRecord(
            parallel=bulk.order == "parallel",
            tables=tuple(self._table(table, clock) for table in self._files),
            checkpoint_s=None if made is None else (made["end_ns"] - made["begin_ns"]) / 1e9 / clock.dilation,
        )

    def _table(self, table: str, clock: SubjectClock) -> BulkLoadedTable:
        course, files = self._courses[table], self._files[table]
        loaded = course.loaded
        assert course.end_ns is not None, "the load came to its end"
        return BulkLoadedTable(
            table=table,
            files=len(files.paths),
            stored_bytes=self._sizes[table],
            bytes=int(loaded["bytes"]),
            rows=int(loaded["rows_loaded"]),
            chunks=int(loaded["chunks"]),
            connections=int(loaded["connections"]),
            begin_ns=clock.instant_ns(course.begin_ns),
            end_ns=clock.instant_ns(course.end_ns),
            seconds={step: round(seconds / clock.dilation, 3) for step, seconds in loaded["steps_s"].items()},
            limits=dict(loaded["limits"]),
            indexes=str(loaded["indexes"]),
        )


WORDS = Words("the loader", "the load", "raise workload.bulk.timeout")


@dataclass(frozen=True)
class BulkLoadRunner:
    """Runs a load; it is a :class:`pgdyno.workload.outcome.Runner`."""

    bulk: BulkTable
    files: tuple[Files, ...]

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Load. There is neither a warm-up nor a duration: what is measured is all of it, from the word go to the checkpoint.

        Raises what the loader ends with; :class:`PgdynoError` when it takes longer than it may.
        """
        own, output = request.clock, LoaderOutput(self.files)
        limit_s = self.bulk.timeout_s * own.dilation
        command = [*request.prefix, sys.executable, "-m", "pgdyno.loader.several"]
        with HelperProcess(command, request.out_dir / "load.log", environment(request.env), WORDS) as process:
            process.ask(self._document(server))
            request.on_start(process.pid)
            request.on_measure_begin()
            begin_ns = now_ns()
            with contextlib.closing(process.go(limit_s)) as lines:
                for line in lines:
                    output.take(line)
                    request.progress(output.share, output.words)
            request.on_measure_end()
        if output.end_ns is None:
            raise process.failure(limit_s)
        return output.outcome(self.bulk, begin_ns, output.end_ns, own)

    def _document(self, server: Server) -> dict[str, Any]:
        """The input of the process."""
        return {
            "parallel": self.bulk.order == "parallel",
            "loads": [self._loader_options(file, server.dsn) for file in self.files],
        }

    def _loader_options(self, files: Files, dsn: str) -> dict[str, Any]:
        """The fields of :class:`pgdyno.loader.LoadOptions` for one table. What is not said is as in `pgdyno load`."""
        bulk = self.bulk
        document: dict[str, Any] = {
            "sources": [str(path) for path in files.paths],
            "into": dsn,
            "table": files.table,
            "create": bulk.generate is None and bulk.definitions is None,
            "vacuum": bulk.vacuum,
            "checkpoint": False,
            "autovacuum_off": bulk.tuned,
            "durable_chunks": not bulk.tuned,
            "indexes": bulk.indexes if bulk.tuned else "keep",
            **({} if bulk.generated is None else bulk.generated.loaded_as),
        }
        if bulk.connections is not None:
            document |= {"connections": bulk.connections, "connections_max": bulk.connections}
        return document if bulk.chunk_bytes is None else document | {"chunk_bytes": bulk.chunk_bytes}

"""What the loader's process has said, and the outcome that it makes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pgdyno.workload.bulk_load.asked import BulkTable
from pgdyno.workload.bulk_load.files import Files
from pgdyno.workload.outcome import Outcome

from ...results import record, tables
from ...results.tables import SubjectClock
from ...results.work_record import BulkLoadedTable, BulkLoadRecord

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
    """What the loader's process has said."""

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
        """How far it is, by the bytes of the files."""
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
        """What the run came to, in the time of ``clock``."""
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
        """That every row of a file that was made here came in; the loader itself has held its ledger against the files."""
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

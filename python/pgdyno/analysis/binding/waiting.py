"""Who waits for data to be read and written, by the samples of pg_stat_activity: seen while it happens, where a counter comes late.

A session that waits for a read has a request in the volume, so at a volume's limit, where all requests wait alike, the sessions of a
use among all that wait are its share of the requests. What the page cache answers is not waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.analysis.binding.sessions import OWN_WORK, state_of
from pgdyno.analysis.binding.uses import What

from ...results import StoredRun

LONG = "LONG TRANSACTION"
"""In place of a command: a transaction that has lasted for so long that its counters are not up to date (``probe/sql``)."""
_REPLICATION = frozenset({"walsender", "walreceiver", "startup"})
_BY_COMMAND: Mapping[str, What] = {
    "VACUUM": "vacuum",
    "ANALYZE": "vacuum",
    "COPY TO": "scans",
    "CREATE INDEX": "scans",
    "CLUSTER": "scans",
    "REPACK": "scans",
}


@dataclass
class WaitCounts:
    """Sessions that were seen to wait, summed over all looks."""

    reads: dict[What, float] = field(default_factory=dict)
    """``reads`` are statements of clients."""
    long_reads: float = 0.0
    """Those of them in long transactions."""
    writes: dict[What, float] = field(default_factory=dict)
    """``evicted_pages`` are pages of data, ``new_data`` files that are extended."""
    late_writes: dict[What, float] = field(default_factory=dict)
    """Those of them that no counter has yet: of long transactions, commands, and temporary files."""

    @property
    def long_share(self) -> float:
        """Share of the statements waiting for reads that are in long transactions."""
        statements = self.reads.get("reads", 0.0)
        return self.long_reads / statements if statements else 0.0


def waiting_of(run: StoredRun) -> WaitCounts:
    """Who waited in the measure phase."""
    wait_counts = WaitCounts()
    for kind, event, backend, command, count in _rows(run):
        state = state_of(kind, event)
        if backend in OWN_WORK or state not in ("read", "write"):
            continue
        what = _use(event.lower(), backend, command)
        if state == "read":
            _add(wait_counts.reads, what, count)
            wait_counts.long_reads += count if what == "reads" and command == LONG else 0
        elif kind == "IO":
            written = _written(event.lower(), what, command)
            _add(wait_counts.writes, written, count)
            if command is not None or written == "temporary_files":
                _add(wait_counts.late_writes, written, count)
    return wait_counts


def _rows(run: StoredRun) -> list[tuple[str, str, str, str | None, int]]:
    table, measure = run.table("probe/wait_events"), run.record.measure
    names = ["t_begin_ns", "wait_event_type", "wait_event", "backend_type", "count"]
    columns = [table[name].to_pylist() for name in names]
    commands = table["command"].to_pylist() if "command" in table.column_names else [None] * table.num_rows
    return [
        (kind or "CPU", event or "", backend or "", command, count)
        for at_ns, kind, event, backend, count, command in zip(*columns, commands, strict=True)
        if measure.begin_ns <= at_ns < measure.end_ns and count
    ]


def _use(event: str, backend: str, command: str | None) -> What:
    if event.startswith("buffile"):
        return "temporary_files"
    if backend in _REPLICATION or event.startswith("basebackup"):
        return "backup_and_replication"
    if backend.startswith("autovacuum"):
        return "vacuum"
    return _BY_COMMAND.get(command or "", "reads")


def _written(event: str, what: What, command: str | None) -> What:
    if what not in ("reads", "scans"):
        return what
    return "new_data" if command == "COPY FROM" or "extend" in event else "evicted_pages"


def _add(to: dict[What, float], what: What, count: int) -> None:
    to[what] = to.get(what, 0.0) + count

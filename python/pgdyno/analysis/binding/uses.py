"""The uses of a volume, and what PostgreSQL's own counters say that each of them asked for.

A counter gets what a session read and wrote when its transaction ends (PostgreSQL's `pgstat_report_stat`): a statement that still
runs is in none. Who waits then is in :mod:`pgdyno.analysis.binding.waiting`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from ...results import StoredRun
from ..figures import BLOCK_BYTES, growth_of, io_growth

What = Literal[
    "reads",
    "scans",
    "commits",
    "whole_pages",
    "checkpoints",
    "evicted_pages",
    "new_data",
    "vacuum",
    "temporary_files",
    "backup_and_replication",
    "not_explained",
]
WHATS: tuple[What, ...] = get_args(What)
TITLES: dict[What, str] = {
    "reads": "reads",
    "scans": "reads of whole tables",
    "commits": "WAL of commits",
    "whole_pages": "whole pages in WAL",
    "checkpoints": "checkpoints",
    "evicted_pages": "pages written to make room",
    "new_data": "new data",
    "vacuum": "vacuum",
    "temporary_files": "temporary files",
    "backup_and_replication": "backup and replication",
    "not_explained": "not explained",
}


@dataclass(frozen=True)
class Claim:
    """Reads and writes of a use over the whole phase. What PostgreSQL counts of data is counted in pages."""

    reads: float = 0.0
    writes: float = 0.0
    read_bytes: float = 0.0
    write_bytes: float = 0.0

    def __add__(self, other: Claim) -> Claim:
        """Both together."""
        return Claim(*(value + another for value, another in zip(self._values, other._values, strict=True)))

    def __mul__(self, times: float) -> Claim:
        """A part of it."""
        return Claim(*(value * times for value in self._values))

    def scaled(self, claim: Claim, done: Claim) -> Claim:
        """Its part of what was ``done``, where more was ``asked``: each figure by a factor of its own."""
        each = zip(self._values, claim._values, done._values, strict=True)
        return Claim(*(value * min(1.0, most / whole) if whole > 0 else 0.0 for value, whole, most in each))

    @property
    def _values(self) -> tuple[float, float, float, float]:
        return self.reads, self.writes, self.read_bytes, self.write_bytes

    @property
    def of_reads(self) -> Claim:
        """Without the writes."""
        return Claim(reads=self.reads, read_bytes=self.read_bytes)

    @property
    def of_writes(self) -> Claim:
        """Without the reads."""
        return Claim(writes=self.writes, write_bytes=self.write_bytes)

    @property
    def requests(self) -> float:
        """Reads and writes."""
        return self.reads + self.writes

    @property
    def bytes(self) -> float:
        """Read and written."""
        return self.read_bytes + self.write_bytes


def has_io(run: StoredRun) -> bool:
    """Whether the server counts by who reads and writes: from 16 on."""
    return bool(run.table("probe/io").num_rows)


def claims_of(run: StoredRun) -> dict[What, Claim]:
    """What is counted for each use; one that nothing counts is absent."""
    of_data = _of_io(run) if has_io(run) else _before_16(run)
    claims: dict[What, Claim] = {}
    for what, claim in (*of_data, *_of_checkpoints(run), *_of_wal(run)):
        claims[what] = claims.get(what, Claim()) + claim
    return claims


def _pages(*, read: float = 0.0, written: float = 0.0) -> Claim:
    """Bytes that are read and written, as pages."""
    return Claim(read / BLOCK_BYTES, written / BLOCK_BYTES, read, written)


def _of_io(run: StoredRun) -> Iterator[tuple[What, Claim]]:
    """From pg_stat_io, 16 and later."""
    for (process, kind, context), grown in io_growth(run, ()).items():
        if kind == "wal" or process == "checkpointer":
            continue  # both are counted elsewhere, in all versions
        writer = _writer(process, kind, context)
        yield _reader(process, kind, context), _pages(read=grown.get("read_bytes", 0.0))
        yield writer, _pages(written=grown.get("write_bytes", 0.0))
        added: What = writer if writer in ("vacuum", "temporary_files") else "new_data"
        yield added, _pages(written=grown.get("extend_bytes", 0.0))


def _reader(process: str, kind: str, context: str) -> What:
    if process in ("walsender", "startup"):
        return "backup_and_replication"
    if context == "vacuum" or process.startswith("autovacuum"):
        return "vacuum"
    if kind == "temp relation":
        return "temporary_files"
    return "scans" if context == "bulkread" else "reads"


def _writer(process: str, kind: str, context: str) -> What:
    reader = _reader(process, kind, context)
    if reader in ("vacuum", "temporary_files", "backup_and_replication"):
        return reader
    return "new_data" if context == "bulkwrite" else "evicted_pages"


def _before_16(run: StoredRun) -> Iterator[tuple[What, Claim]]:
    """Reads of all databases, and what sessions and the background writer wrote, extensions of files with it."""
    counted = growth_of(run, "probe/database", ("blks_read", "tup_returned", "tup_fetched"))
    read, rows = counted.get("blks_read", 0.0) * BLOCK_BYTES, counted.get("tup_returned", 0.0)
    # Rows of a table that no index found are returned and not fetched.
    scanned = max(0.0, rows - counted.get("tup_fetched", 0.0)) / rows if rows > 0 else 0.0
    yield "scans", _pages(read=read * scanned)
    yield "reads", _pages(read=read * (1 - scanned))
    written = growth_of(run, "probe/checkpointer", ("buffers_clean", "buffers_backend"))
    yield "evicted_pages", _pages(written=sum(written.values()) * BLOCK_BYTES)


def _of_checkpoints(run: StoredRun) -> Iterator[tuple[What, Claim]]:
    """Checkpoints, and temporary files, in all versions."""
    pages = growth_of(run, "probe/checkpointer", ("buffers_written",)).get("buffers_written", 0.0)
    yield "checkpoints", _pages(written=pages * BLOCK_BYTES)
    yield "temporary_files", _pages(written=growth_of(run, "probe/database", ("temp_bytes",)).get("temp_bytes", 0.0))


def _of_wal(run: StoredRun) -> Iterator[tuple[What, Claim]]:
    """WAL: its bytes are shared out between whole pages and the rest. A page that is written twice counts twice.

    A commit writes and syncs what is there, whatever is in it, so a write with a sync is a commit's; of the writes beyond them,
    which come when buffers are full, whole pages have their share of the bytes.
    """
    grown = growth_of(run, "probe/wal", ("wal_bytes", "wal_fpi", "wal_write", "wal_sync"))
    made = grown.get("wal_bytes", 0.0)
    by_process = [values for (_, kind, _), values in io_growth(run, ("writes", "fsyncs")).items() if kind == "wal"]
    writes, syncs = grown.get("wal_write", 0.0), grown.get("wal_sync", 0.0)
    if by_process:
        writes, syncs = (sum(values.get(name, 0.0) for values in by_process) for name in ("writes", "fsyncs"))
    handed = sum(values.get("write_bytes", 0.0) for values in by_process)
    size = max(made, handed, writes * BLOCK_BYTES)
    pages = min(grown.get("wal_fpi", 0.0) * BLOCK_BYTES, made)
    further = max(0.0, writes - syncs) * (pages / made if made else 0.0)
    yield "whole_pages", Claim(writes=further, write_bytes=pages)
    yield "commits", Claim(writes=writes - further, write_bytes=max(0.0, size - pages))

"""Consumers of a volume: the device's requests, shared out by PostgreSQL's counters and by who was seen waiting.

Reads are shared out by who waited for them. PostgreSQL counts the reads that it asks of the kernel, whose page cache answers some of
them, so statements whose counters are up to date have no more than they counted. Writes are shared out by counters, since few sessions
wait for them; writes that a counter lacks so far go to the sessions that were seen writing. The rest is ``not explained``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from pgdyno.analysis.binding.sessions import OWN_WORK, state_of

from ...results import StoredRun
from ..figures import BLOCK_BYTES, DATA, device_counters, growth_of, io_growth, volume_roles
from .device import MIB
from .rules import Limit

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


WAL, TEMPORARY = "wal", "temp"
SEEN_MIN = 10
"""Sessions seen to wait, summed over all looks, below which nothing follows: in a second of ten looks, one session."""
SEQUENTIAL_BYTES = 64 * 1024
"""Mean size of reads from which they are of long stretches: half of what the kernel reads ahead by default (128 KiB). A page has 8 KiB."""
READ_AHEAD = 4.0
"""Times what was asked for that the kernel may read: it doubles or quadruples what it reads ahead of a sequence, which may then end."""
IN_FLIGHT = 3.0
"""Requests that a command has in the volume at most while it waits for one, where the server's settings do not say it: the default of
`io_workers` of 18, which are the whole server's; before 18 the kernel reads one window ahead."""
_IO_WORKERS = ("io_workers", "io_max_workers")
"""The setting of 18, and that of 19, whose pool of workers grows (PostgreSQL 19, release notes, "automatic scaling")."""
BY_BYTES: tuple[Limit, ...] = ("volume_throughput", "instance_bandwidth")
"""Limits whose consumers are compared by bytes, not by requests."""


@dataclass(frozen=True)
class Consumer:
    """One use of a volume."""

    what: What
    share: float
    """Share of the volume's requests, or of its bytes where throughput binds."""
    iops: float
    mib_per_s: float


def consumers_of(
    run: StoredRun, role: str = DATA, limit: Limit | None = None, moved: Mapping[str, float | None] | None = None
) -> tuple[Consumer, ...]:
    """The uses of the volume of a role, the largest first; empty where its device was not seen or nothing was counted.

    ``moved`` has the requests and bytes of the whole phase from another source than the device.
    """
    measure = run.record.measure
    names = ("reads", "writes", "read_bytes", "write_bytes")
    if moved is None:
        device = device_counters(run, role)
        moved = {name: device.delta(name, measure.begin_ns, measure.end_ns) for name in names}
    if any(value is None for value in moved.values()) or measure.seconds <= 0:
        return ()
    done = Claim(**{name: float(moved[name] or 0.0) for name in names})
    has = _uses_of(run, role)
    claims = {what: claim for what, claim in claims_of(run).items() if what in has}
    if not claims or not done.reads + done.writes:
        return ()
    waiting = waiting_of(run)
    _new_pages(claims, waiting, has, counted=has_io(run))
    document = {what: Claim() for what in WHATS}
    for what, part in (*_reads(claims, done, waiting, has, _in_flight(run)), *_writes(claims, done, waiting, has)):
        document[what] += part
    return _largest_first(document, done, measure.seconds, by_bytes=limit in BY_BYTES)


def _largest_first(
    claims: Mapping[What, Claim], done: Claim, seconds: float, *, by_bytes: bool
) -> tuple[Consumer, ...]:
    whole = done.bytes if by_bytes else done.requests
    parts = (
        Consumer(what, (claim.bytes if by_bytes else claim.requests) / whole, claim.requests / seconds, claim.bytes / MIB / seconds)
        for what, claim in claims.items()
    )  # fmt: skip
    return (
        tuple(sorted((part for part in parts if part.share > 0), key=lambda consumer: -consumer.share)) if whole else ()
    )


def _in_flight(run: StoredRun) -> float:
    """Requests that a command has in the volume at most while it waits for one."""
    settings = _settings(run)
    return next((float(settings[name] or IN_FLIGHT) for name in _IO_WORKERS if name in settings), IN_FLIGHT)


def _settings(run: StoredRun) -> dict[str, str | None]:
    table = run.table("postgres/settings")
    return dict(zip(table["name"].to_pylist(), table["setting"].to_pylist(), strict=True))


def _uses_of(run: StoredRun, role: str) -> frozenset[What]:
    """The uses of a role's volume: WAL and temporary files may have volumes of their own. Nothing is counted by tablespace."""
    settings = _settings(run)
    spaces = (settings.get("temp_tablespaces") or "").replace('"', "").split(",")
    own: dict[str, frozenset[What]] = {f"tablespace.{name.strip()}": _TEMPORARY for name in spaces}
    own |= {TEMPORARY: _TEMPORARY, WAL: frozenset({"commits", "whole_pages"})}
    elsewhere = [uses for other, uses in own.items() if other in volume_roles(run)]
    return frozenset(WHATS).difference(*elsewhere) if role == DATA else own.get(role, frozenset())


_TEMPORARY: frozenset[What] = frozenset({"temporary_files"})


def _shares(counts: Mapping[What, float], has: Collection[What]) -> dict[What, float]:
    """Shares of those that use the volume; empty where too few were seen."""
    kept = {what: count for what, count in counts.items() if what in has}
    whole = sum(kept.values())
    return {what: count / whole for what, count in kept.items()} if whole >= SEEN_MIN else {}


def _reads(
    claims: Mapping[What, Claim], done: Claim, waiting: WaitCounts, has: Collection[What], in_flight: float
) -> Iterator[tuple[What, Claim]]:
    """Reads by who waited for them; by what was counted where too few were seen to wait."""
    read = done.of_reads
    seen = _shares(waiting.reads, has)
    if not seen:
        yield from _counted({what: claim.of_reads for what, claim in claims.items()}, read, {})
        return
    sequential = read.read_bytes >= SEQUENTIAL_BYTES * read.reads
    statements = seen.pop("reads", 0.0)
    counted, scanned = _of_statements(claims, sequential=sequential)
    covered = min(statements, counted.reads / read.reads if read.reads else 0.0,
                  READ_AHEAD * counted.read_bytes / read.read_bytes if read.read_bytes else 0.0)  # fmt: skip
    yield "scans", read * (covered * scanned)
    yield "reads", read * (covered * (1 - scanned))
    # What no counter has yet: transactions that last; else commands in progress, which have more in flight than they wait for.
    lasting = min(statements - covered, statements * waiting.long_share)
    yield "scans" if sequential else "reads", read * lasting
    rest = statements - covered - lasting
    commands = {what: share for what, share in seen.items() if what in ("vacuum", "scans")}
    further = min(rest, (in_flight - 1) * sum(commands.values()))
    for what, share in seen.items():
        part = further * share / sum(commands.values()) if what in commands else 0.0
        yield what, read * (share + part)
    yield "not_explained", read * (rest - further)


def _of_statements(claims: Mapping[What, Claim], *, sequential: bool) -> tuple[Claim, float]:
    """What statements counted, and the share of it that was read by whole tables."""
    reads, scans = claims.get("reads", Claim()), claims.get("scans", Claim())
    both = reads + scans
    return both, scans.read_bytes / both.read_bytes if both.read_bytes and sequential else 0.0


def _new_pages(claims: dict[What, Claim], waiting: WaitCounts, has: Collection[What], *, counted: bool) -> None:
    """New data among the pages that sessions wrote. A page gets into shared buffers by being read or as a new one; those that are written
    to make room have been the one or the other in that proportion. Before 16 neither is counted, and who was seen to wait for them tells.
    """
    evicted, new = claims.get("evicted_pages", Claim()), claims.get("new_data", Claim())
    if counted:
        added, read = new.writes, sum(claims[what].reads for what in ("reads", "scans") if what in claims)
    else:
        seen = _shares(waiting.writes, has)
        claims["vacuum"] = claims.get("vacuum", Claim()) + evicted * seen.get("vacuum", 0.0)
        evicted *= 1 - seen.get("vacuum", 0.0)
        added, read = waiting.writes.get("new_data", 0.0), waiting.reads.get("reads", 0.0)
    moved = evicted * (added / (added + read) if added else 0.0)
    claims["evicted_pages"], claims["new_data"] = evicted + moved * -1, new + moved


def _writes(
    claims: Mapping[What, Claim], done: Claim, waiting: WaitCounts, has: Collection[What]
) -> Iterator[tuple[What, Claim]]:
    """Writes by what was counted; the rest is of those who were seen to write what no counter has yet."""
    late = _shares(waiting.late_writes, has)
    yield from _counted({what: claim.of_writes for what, claim in claims.items()}, done.of_writes, late)


def _counted(claims: Mapping[What, Claim], done: Claim, late: Mapping[What, float]) -> Iterator[tuple[What, Claim]]:
    """What was counted, scaled down to what the device did; the rest by shares, or not explained."""
    result = sum_of(claims.values())
    scaled = {what: claim.scaled(result, done) for what, claim in claims.items()}
    yield from scaled.items()
    rest = done + sum_of(scaled.values()) * -1
    for what, share in (late or {"not_explained": 1.0}).items():
        yield what, rest * share


def sum_of(claims: Iterable[Claim]) -> Claim:
    """All together."""
    return sum(claims, start=Claim())

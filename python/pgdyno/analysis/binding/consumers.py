"""Whose requests fill a volume: what the device did, shared out by what PostgreSQL counted and by who was seen waiting.

Reads are shared out by who waited for them. PostgreSQL counts what it asks of the kernel, whose page cache answers some of it, so the
statements that counters are up to date with have no more than they counted. Writes are shared out by counters, since few wait for
them; what a counter does not have yet is of those who were seen to write. What the device did beyond is ``not explained``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pgdyno.analysis.binding.device import MIB
from pgdyno.analysis.binding.limits import Limit
from pgdyno.analysis.binding.uses import WHATS, Claim, What, claims_of, has_io
from pgdyno.analysis.binding.waiting import WaitCounts, waiting_of

from ...results import StoredRun
from ..figures import DATA, device_counters, volume_roles

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

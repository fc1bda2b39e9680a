"""Whose requests fill a volume: what PostgreSQL says that it read and wrote, compared with what the device did.

PostgreSQL counts what it asks of the kernel, whose page cache answers some reads and joins some writes. So reads, and writes,
that add up to more than the device's are scaled down to it; what the device did beyond them is ``not explained``: other
processes, files that no counter has (a base backup's reads, temporary files that are read again), the file system's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from pgdyno.analysis.binding.device import MIB
from pgdyno.analysis.server_figures import BLOCK_BYTES, growth_of, io_growth
from pgdyno.analysis.volume_figures import DATA, device_counters, volume_roles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pgdyno.analysis.binding.limits import Limit
    from pgdyno.store import Run

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
WAL = "wal"


@dataclass(frozen=True)
class Consumer:
    """One use of a volume. Requests are the server's operations, which the kernel may have joined."""

    what: What
    share: float
    """Share of the volume's requests, or of its bytes where throughput binds."""
    iops: float
    mib_per_s: float


@dataclass
class _Claim:
    """What PostgreSQL says that it asked for, over the whole phase."""

    what: What
    reads: float = 0.0
    read_bytes: float = 0.0
    writes: float = 0.0
    write_bytes: float = 0.0


def consumers_of(
    run: Run, role: str = DATA, limit: Limit | None = None, moved: Mapping[str, float | None] | None = None
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
    done = {name: float(value or 0.0) for name, value in moved.items()}
    has_wal = WAL in volume_roles(run)
    claims = [claim for claim in _claims(run) if _is_on(claim.what, role, has_wal)]
    if not claims or not done["reads"] + done["writes"]:
        return ()
    scaled = {name: _scale(sum(getattr(claim, name) for claim in claims), done[name]) for name in names}
    found = [_of_claim(claim, scaled, measure.seconds) for claim in claims]
    iops, mib_per_s = sum(one[1] for one in found), sum(one[2] for one in found)
    all_iops = (done["reads"] + done["writes"]) / measure.seconds
    all_mib = (done["read_bytes"] + done["write_bytes"]) / MIB / measure.seconds
    found.append(("not_explained", max(0.0, all_iops - iops), max(0.0, all_mib - mib_per_s)))
    by_bytes = limit == "volume_throughput"
    whole = all_mib if by_bytes else all_iops
    parts = (Consumer(what, (mib if by_bytes else ops) / whole if whole else 0.0, ops, mib) for what, ops, mib in found)
    return tuple(sorted((one for one in parts if one.share > 0), key=lambda one: -one.share))


def _of_claim(claim: _Claim, scaled: Mapping[str, float], seconds: float) -> tuple[What, float, float]:
    """(what, requests per second, MiB/s) of what reached the device."""
    ops = claim.reads * scaled["reads"] + claim.writes * scaled["writes"]
    size = claim.read_bytes * scaled["read_bytes"] + claim.write_bytes * scaled["write_bytes"]
    return claim.what, ops / seconds, size / MIB / seconds


def _scale(claimed: float, done: float) -> float:
    return min(1.0, done / claimed) if claimed > 0 else 0.0


def _is_on(what: What, role: str, has_wal: bool) -> bool:
    is_wal = what in ("commits", "whole_pages")
    return is_wal == (role == WAL) if has_wal else role == DATA


def _claims(run: Run) -> Iterator[_Claim]:
    found: dict[What, _Claim] = {}
    for what, name, value in (*_of_io(run), *_of_counters(run), *_of_wal(run)):
        claim = found.setdefault(what, _Claim(what))
        setattr(claim, name, getattr(claim, name) + value)
    yield from found.values()


def _of_io(run: Run) -> Iterator[tuple[What, str, float]]:
    """From pg_stat_io, 16 and later; before that the reads that the databases count."""
    rows = io_growth(run, ("reads", "writes", "extends"))
    if not rows:
        grown = growth_of(run, "probe/database", ("blks_read",))
        if "blks_read" in grown:
            yield "reads", "reads", grown["blks_read"]
            yield "reads", "read_bytes", grown["blks_read"] * BLOCK_BYTES
        return
    for (process, kind, context), grown in rows.items():
        if kind == "wal" or process == "checkpointer":
            continue  # both are counted elsewhere, in all versions
        reader, writer = _reader(process, kind, context), _writer(process, kind, context)
        yield reader, "reads", grown.get("reads", 0.0)
        yield reader, "read_bytes", grown.get("read_bytes", 0.0)
        yield writer, "writes", grown.get("writes", 0.0)
        yield writer, "write_bytes", grown.get("write_bytes", 0.0)
        added: What = writer if writer in ("vacuum", "temporary_files") else "new_data"
        yield added, "writes", grown.get("extends", 0.0)
        yield added, "write_bytes", grown.get("extend_bytes", 0.0)


def _reader(process: str, kind: str, context: str) -> What:
    if process == "walsender":
        return "backup_and_replication"
    if context == "vacuum" or process.startswith("autovacuum"):
        return "vacuum"
    if kind == "temp relation":
        return "temporary_files"
    return "scans" if context == "bulkread" else "reads"


def _writer(process: str, kind: str, context: str) -> What:
    found = _reader(process, kind, context)
    if found in ("vacuum", "temporary_files", "backup_and_replication"):
        return found
    return "new_data" if context == "bulkwrite" else "evicted_pages"


def _of_counters(run: Run) -> Iterator[tuple[What, str, float]]:
    """Checkpoints, temporary files, and before 16 the background writer."""
    grown = growth_of(run, "probe/checkpointer", ("buffers_written", "buffers_clean"))
    pages = grown.get("buffers_written", 0.0)
    yield "checkpoints", "writes", pages
    yield "checkpoints", "write_bytes", pages * BLOCK_BYTES
    if run.table("probe/io").num_rows == 0:
        cleaned = grown.get("buffers_clean", 0.0)
        yield "evicted_pages", "writes", cleaned
        yield "evicted_pages", "write_bytes", cleaned * BLOCK_BYTES
    temporary = growth_of(run, "probe/database", ("temp_bytes",)).get("temp_bytes", 0.0)
    yield "temporary_files", "writes", temporary / BLOCK_BYTES
    yield "temporary_files", "write_bytes", temporary


def _of_wal(run: Run) -> Iterator[tuple[What, str, float]]:
    """WAL, shared out between whole pages and the rest by their bytes. A page that is written twice counts twice."""
    grown = growth_of(run, "probe/wal", ("wal_bytes", "wal_fpi", "wal_write"))
    made = grown.get("wal_bytes", 0.0)
    by_process = [one for (_, kind, _), one in io_growth(run, ("writes",)).items() if kind == "wal"]
    writes = sum(one.get("writes", 0.0) for one in by_process) if by_process else grown.get("wal_write", 0.0)
    handed = sum(one.get("write_bytes", 0.0) for one in by_process)
    size = max(made, handed, writes * BLOCK_BYTES)
    pages = min(grown.get("wal_fpi", 0.0) * BLOCK_BYTES, made)
    of_pages = pages / made if made else 0.0
    # Writes come from commits as a rule, whatever is in them; whole pages make them longer.
    yield "whole_pages", "writes", writes * of_pages
    yield "whole_pages", "write_bytes", pages
    yield "commits", "writes", writes * (1 - of_pages)
    yield "commits", "write_bytes", max(0.0, size - pages)

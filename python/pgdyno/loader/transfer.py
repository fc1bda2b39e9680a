"""The transfer: ``pgdyno-engine load``, its input and its output."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pgdyno.loader import limit, source
from pgdyno.loader.asked import CONNECTIONS_LIMIT, LoadOptions
from pgdyno.loader.compression import compression_of
from pgdyno.loader.format import Format
from pgdyno.loader.ledger import CHUNKS
from pgdyno.loader.limit import LoadLimit
from pgdyno.loader.server import session_name
from pgdyno.loader.sessions import SessionSampler
from pgdyno.loader.source import RowSource
from pgdyno.loader.table import TableColumn, TargetTable

from ..base import engine
from ..base.endpoint import Endpoint
from ..base.errors import EngineError, InputError

Tell: TypeAlias = Callable[[Mapping[str, Any]], None]

INTERVAL_MS = 1000
NUL = "load.text.nul"
"""The engine's error for a NUL character in text."""
RECENT_S = 5
"""The limit that is shown is that of this number of seconds: a single second has few samples."""
CONNECTIONS_MIN = 2
"""Sessions to begin with at least: what the client takes is a small part of a processor, and a file that two sessions load in a
few seconds is over before a second one would have been added."""
CONNECTIONS_MAX_FACTOR = 2
"""Sessions to end with at most, beside those to begin with: some then wait for the volume while others compute."""


@dataclass(frozen=True)
class TransferRequest:
    """What is to be loaded, and how."""

    asked: LoadOptions
    sources: Sequence[RowSource]
    format: Format
    encoding: str
    header: bool
    columns: Sequence[TableColumn] | None
    """None: all of the table's."""
    table: TargetTable
    job: int | None
    indexes_kept: int = 0
    endpoint: Endpoint | None = None
    """How the engine reaches the server; None where the server fetches the objects itself."""
    types: Sequence[Mapping[str, Any]] | None = None
    """What the values of a stream are held to, by column."""

    @property
    def compressed(self) -> bool:
        """Whether any of the files has to be decompressed."""
        return any(compression_of(source.head) != "none" for source in self.sources)


@dataclass
class TransferResult:
    """What the engine did."""

    rows_loaded: int = 0
    rows_rejected: int = 0
    bytes: int = 0
    chunks: int = 0
    seconds: float = 0.0
    connections: int = 0
    """At the end."""
    client_cpu_s: float = 0.0
    rss_bytes_max: int = 0
    reject_files: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    """What bound -> part of the seconds."""


def connections(options: LoadOptions) -> tuple[int, int]:
    """Sessions to begin and to end with: the server's processors less one, as Amazon's document on loading advises, then adapted."""
    processors = options.server_processors or os.cpu_count() or CONNECTIONS_MIN
    usual = min(CONNECTIONS_LIMIT, max(CONNECTIONS_MIN, processors - 1))
    # Who says only how many there may be does not want more to begin with.
    begin = options.connections or min(usual, options.connections_max or usual)
    most = options.connections_max or options.connections or min(CONNECTIONS_LIMIT, begin * CONNECTIONS_MAX_FACTOR)
    return begin, most


def document(sent: TransferRequest, places: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The engine's input. ``places``: where it finds the sources, as :func:`source.opened` says."""
    options = sent.asked
    begin, most = connections(options)
    assert sent.endpoint is not None, "it was reached before"
    rejects = None if options.reject is None else {"path": str(options.reject.absolute()), "max": options.max_rejects}
    return {
        "server": sent.endpoint.order(session_name(sent.job)),
        "table": sent.table.quoted,
        "columns": [column.quoted for column in sent.columns or ()],
        "format": sent.format.document(),
        "encoding": sent.encoding,
        "header": sent.header,
        "sources": [
            {**place, "compression": compression_of(source.head), "name": source.name}
            for source, place in zip(sent.sources, places, strict=True)
        ],
        "chunk_bytes": options.chunks.document(),
        "connections": begin,
        "connections_max": most,
        "ledger": None if sent.job is None else {"table": CHUNKS, "job": sent.job, "table_oid": sent.table.oid},
        # A chunk takes as long as the rate or the volume says: a role's timeout would end the same one again and again.
        "settings": {"statement_timeout": "0", "synchronous_commit": "on" if options.durable_chunks else "off"},
        "rejects": rejects,
        "types": sent.types,
        "rate_bytes_per_s": options.rate_bytes_per_s,
        "interval_ms": INTERVAL_MS,
    }


def transfer(sent: TransferRequest, tell: Tell) -> TransferResult:
    """Load, and say how it goes. Raises what the engine ends with."""
    failed: list[BaseException] = []
    with (
        source.opened(sent.sources, failed) as (places, descriptors),
        contextlib.closing(engine.lines(["load"], document(sent, places), pass_fds=descriptors)) as result,
    ):
        return follow(sent, _unless(failed, sent.sources, result), tell)


def _unless(
    failed: Sequence[BaseException], sources: Sequence[RowSource], documents: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """The engine's lines. It has one each second, also while it waits for a source that ``failed`` here: then it is ended.

    A file that was written to meanwhile explains everything else that is wrong with it.
    """
    try:
        for line in documents:
            if failed:
                raise source.changed(sources) or failed[0]
            yield line
    except InputError as error:
        if error.code == NUL and any(source.parquet is not None for source in sources):
            error.remedy = "PostgreSQL stores no NUL characters (0x00) in text: write the Parquet file again without them, or use --reject"
        raise


def follow(sent: TransferRequest, documents: Iterable[Mapping[str, Any]], tell: Tell) -> TransferResult:
    """Report the progress of a load, from the lines of the engine or of what takes its place."""
    done = TransferResult(connections=connections(sent.asked)[0])
    watched = _ProgressReader(sent, tell)
    ended = False
    with SessionSampler(sent.asked.into, sent.job) as sessions:
        for line in documents:
            event = line.get("event")
            if event == "progress":
                watched.progress(line, sessions.taken())
                done.connections = max(done.connections, int(line["connections"]))
            elif event == "lost":
                tell({"event": "note", "text": f"waiting for the server: {line.get('message', '')}"})
            elif event == "end":
                _end(done, line)
                ended = True
    if not ended:
        raise EngineError("the engine ended without a result", remedy="run the same command again to resume")
    done.limits = watched.shares()
    return done


def _end(done: TransferResult, line: Mapping[str, Any]) -> None:
    cpu = line.get("cpu_ms") or {}
    done.rows_loaded, done.rows_rejected = int(line["rows_loaded"]), int(line["rows_rejected"])
    done.bytes, done.chunks = int(line["bytes"]), int(line["chunks"])
    done.connections = int(line["connections"])  # without one that was tried and brought nothing
    done.seconds = int(line["elapsed_ms"]) / 1e3
    done.client_cpu_s = (int(cpu.get("user", 0)) + int(cpu.get("system", 0))) / 1e3
    done.rss_bytes_max = int(line.get("rss_bytes_max") or 0)
    done.reject_files = [str(path) for path in line.get("reject_files") or []]


class _ProgressReader:
    """Turns the engine's progress into what people read: share, rate, what is left, what limits."""

    def __init__(self, sent: TransferRequest, tell: Tell) -> None:
        self._sent, self._tell = sent, tell
        self._total = _total_bytes(sent.sources)
        self._recent: deque[limit.Tally] = deque(maxlen=RECENT_S)
        self._limits: list[LoadLimit] = []
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, int] = (time.monotonic(), 0)

    def progress(self, line: Mapping[str, Any], events: Mapping[tuple[str, str], int]) -> None:
        """One line of the engine."""
        tally = limit.Tally()
        tally.add(events, line.get("waits") or {})
        self._recent.append(tally)
        binds = self._binding()
        self._limits.append(binds)
        now, read = time.monotonic(), int(line["bytes"])
        rate = (read - self._last[1]) / max(1e-3, now - self._last[0])
        self._last = (now, read)
        share = self._share(line)
        self._tell(
            {
                "event": "progress",
                "share": share,
                "eta_s": self._left_s(now, share),
                "rows_loaded": int(line["rows_loaded"]),
                "rows_rejected": int(line["rows_rejected"]),
                "bytes": read,
                "bytes_per_s": rate,
                "connections": int(line["connections"]),
                "limit": binds.name,
                "limit_share": binds.share,
            }
        )

    def shares(self) -> dict[str, float]:
        """What bound in how large a part of the seconds."""
        return limit.shares(self._limits)

    def _binding(self) -> LoadLimit:
        together = limit.Tally()
        for tally in self._recent:
            together.add(tally.events, tally.threads_ms)
        return together.limit(compressed=self._sent.compressed, indexes=self._sent.indexes_kept)

    def _share(self, line: Mapping[str, Any]) -> float | None:
        """The share that is done; None if the total is not known."""
        stored = line.get("bytes_stored_total")
        total = stored or self._total
        if not total:
            return None
        read = line.get("bytes_read_stored") if self._sent.compressed and stored else line["bytes"]
        return min(1.0, float(read or 0) / float(total))

    def _left_s(self, now: float, share: float | None) -> float | None:
        """By the rate since the first line: what an earlier run has loaded took this one no time."""
        if share is None:
            return None
        if self._first is None:
            self._first = (now, share)
        began, at_first = self._first
        if share <= at_first or now <= began:
            return None
        return (1.0 - share) * (now - began) / (share - at_first)


def _total_bytes(sources: Sequence[RowSource]) -> float | None:
    sizes = [source.parquet.bytes if source.parquet is not None else source.bytes_stored for source in sources]
    return None if None in sizes else sum(size for size in sizes if size is not None)

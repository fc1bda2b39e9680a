"""What limits a load just now, from where its sessions and its own threads wait.

Both are samples and shares, so a verdict is the largest part of the last seconds and not a proof; without samples it is
unknown, and never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

STARVED_SHARE = 0.5
"""From this part of the workers' time on that they wait for rows, it is the file and not the server that limits: with less,
most of the time is spent beyond the queue."""
CPU = ("CPU", "CPU")
_EXACT: dict[tuple[str, str], str] = {
    CPU: "COPY on the server's CPU",
    ("Client", "ClientRead"): "the client",
    ("Lock", "extend"): "extension lock",
    ("LWLock", "WALWrite"): "WAL",
    ("LWLock", "WALInsert"): "WAL",
    ("LWLock", "BufferContent"): "pages of indexes",
    ("Buffer", "BufferShared"): "pages of indexes",
    ("Buffer", "BufferShareExclusive"): "pages of indexes",
    ("Buffer", "BufferExclusive"): "pages of indexes",
    ("IO", "DataFileRead"): "reads of the volume",
    ("IPC", "SyncRep"): "the synchronous standby",
}
_BEGINS: tuple[tuple[str, str, str], ...] = (
    ("IO", "Wal", "WAL"),
    ("IO", "WAL", "WAL"),
    ("IO", "DataFile", "writes to the volume"),
    ("Lock", "", "locks of others"),
)
"""Kinds of wait events (PostgreSQL 18, "Wait Events"); until 16 those of WAL are written WALWrite, from 17 on WalWrite. From 19 on
the lock of a page is of type Buffer."""
UNKNOWN = "unknown"


@dataclass(frozen=True)
class LoadLimit:
    """What binds, and how large a part of the time it took, 0 to 1."""

    name: str = UNKNOWN
    share: float = 0.0

    def __str__(self) -> str:
        return self.name if self.name == UNKNOWN else f"{self.name} ({self.share:.0%})"


@dataclass
class Tally:
    """Waits of a stretch of time."""

    events: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(type, event) of the sessions that copy -> samples."""
    threads_ms: dict[str, float] = field(default_factory=dict)
    """What the engine's own threads waited for: ``server_ms``, ``queue_empty_ms``, ``rate_ms``, ``client_read_ms``."""

    def add(self, events: Mapping[tuple[str, str], int], threads_ms: Mapping[str, float]) -> None:
        """One more second."""
        self.events.update(events)
        for name, spent_ms in threads_ms.items():
            self.threads_ms[name] = self.threads_ms.get(name, 0.0) + spent_ms

    def limit(self, *, compressed: bool = False, indexes: int = 0) -> LoadLimit:
        """What binds. ``indexes`` are kept and filled row by row."""
        sessions_ms = {name: self.threads_ms.get(name, 0.0) for name in ("server_ms", "queue_empty_ms", "rate_ms")}
        spent_ms = sum(sessions_ms.values())
        reader = "decompression" if compressed else "reading the file"
        for name, item in (("rate_ms", "the rate that was asked for"), ("queue_empty_ms", reader)):
            if spent_ms and sessions_ms[name] / spent_ms >= STARVED_SHARE:
                return LoadLimit(item, sessions_ms[name] / spent_ms)
        named: Counter[str] = Counter()
        for event, count in self.events.items():
            named[name_of(event)] += count
        if not named:
            return LoadLimit()
        name, count = max(sorted(named.items()), key=lambda item: item[1])
        if name == _EXACT[CPU] and indexes:
            name = f"COPY and {indexes} index{'es' if indexes > 1 else ''} on the server's CPU"
        return LoadLimit(name, count / named.total())


def name_of(event: tuple[str, str]) -> str:
    """In words what a wait event of a session that copies is about; its own name where nothing better is known."""
    kind, name = event
    begins = next((text for of, start, text in _BEGINS if kind == of and name.startswith(start)), None)
    return _EXACT.get(event) or begins or f"{kind}: {name}"


def shares(tallies: Iterable[LoadLimit]) -> dict[str, float]:
    """How large a part of the seconds each limit bound."""
    counted = Counter(limit.name for limit in tallies)
    return {name: count / counted.total() for name, count in counted.most_common()}

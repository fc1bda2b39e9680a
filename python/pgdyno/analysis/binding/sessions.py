"""States of the clients' sessions in each second, by pg_stat_activity: computing, or waiting and for what.

A driver's clients are always there: those of which nothing was seen were idle. The clients of a server that is only watched
are not known; of its idle sessions the watch counts those that did something within the last second (``probe/sql``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ...results import StoredRun
from ..figures import CLIENT_BACKEND

if TYPE_CHECKING:
    import numpy as np

HIDDEN = "Hidden"
"""In place of a kind of wait: of these sessions the role may not see what they do."""
LOOKS_MIN = 3
"""Looks of a second below which nothing is said of it: of ten that are asked for, most were lost."""
_COMMIT_LATCHES = frozenset({"walwrite", "walwritelock"})
"""LWLocks of who waits for another session's flush of WAL, under its name and the one before 13."""

SESSION_LOCKS = frozenset({"Lock", "Buffer", "BufferPin"})
"""Types of waits for what another session holds. BufferPin is Buffer from 19 on, which has the locks of pages too: LWLock before."""
OWN_WORK = frozenset({"checkpointer", "background writer", "walwriter", "io worker", "archiver", "walsummarizer"})
"""Processes that write for all, or read for another session: nothing is late because they wait."""
_CHECKPOINT = frozenset({"checkpointdone", "checkpointstart"})
"""Waits of who asked for a checkpoint: another process writes what it waits for."""


@dataclass(frozen=True)
class SessionStates:
    """Mean number of the clients' sessions in each state; they add up to the clients."""

    cpu: float = 0.0
    """Active and waiting for nothing that PostgreSQL knows of."""
    read: float = 0.0
    """For data to be read, by themselves or by another session."""
    write: float = 0.0
    """For data to be written, by themselves or by a checkpoint, or a file to be extended."""
    commit: float = 0.0
    """For WAL to be written and synced, by themselves or by another session."""
    standby: float = 0.0
    """For a standby to confirm a commit."""
    lock: float = 0.0
    """For a lock, a latch or a pin that another session holds."""
    other: float = 0.0
    client: float = 0.0
    """For the client: idle, or in a transaction and waiting for its next statement."""

    @property
    def all(self) -> float:
        """Every session."""
        return self.at_work + self.lock + self.client

    @property
    def at_work(self) -> float:
        """Neither waiting for the client nor for another session's lock: what these do is what the others wait for."""
        return self.cpu + self.read + self.write + self.commit + self.standby + self.other

    @property
    def at_disk(self) -> float:
        """Waiting for a volume."""
        return self.read + self.write + self.commit


STATES = tuple(field.name for field in fields(SessionStates))


def state_of(kind: str, event: str) -> str:
    """The state that a wait of pg_stat_activity is counted in, by the names of PostgreSQL 14 to 19; ``other`` for a type they lack."""
    name = event.lower()
    if kind == "CPU":
        return "cpu"
    if kind == "Client":
        return "client"
    if kind == "IO":
        return "commit" if name.startswith("wal") else "read" if _reads(name) else "write"
    if kind == "LWLock":
        return "commit" if name in _COMMIT_LATCHES else "read" if name == "bufferio" else "lock"
    if kind == "IPC":
        if name in _CHECKPOINT:
            return "write"
        if name == "syncrep":
            return "standby"
        return "read" if name == "bufferio" else "other"
    return "lock" if kind in SESSION_LOCKS else "other"


def _reads(name: str) -> bool:
    return "read" in name or "prefetch" in name or name.startswith("aio")


def sessions_by_second(run: StoredRun, edges: np.ndarray[Any, Any], clients: int) -> list[SessionStates | None]:
    """The sessions between each two edges (ns); None where too few looks were taken, or sessions were not shown."""
    import numpy as np

    bins = len(edges) - 1
    looks = _looks(run, edges)
    seen, hidden = np.zeros((len(STATES), bins)), np.zeros(bins)
    for bin_, kind, event, backend, count in _rows(run, edges):
        if kind == HIDDEN:
            hidden[bin_] += count
        elif count and backend == CLIENT_BACKEND:
            seen[STATES.index(state_of(kind, event))][bin_] += count
    states: list[SessionStates | None] = []
    for bin_ in range(bins):
        if looks[bin_] < LOOKS_MIN or hidden[bin_]:
            states.append(None)
            continue
        means = dict(zip(STATES, (seen[:, bin_] / looks[bin_]).tolist(), strict=True))
        # Sessions that are idle are not in the table: they are the clients that nothing was seen of.
        means["client"] += max(0.0, clients - sum(means.values()))
        states.append(SessionStates(**means))
    return states


def others_by_second(run: StoredRun, edges: np.ndarray[Any, Any]) -> list[float]:
    """Mean number of other processes that wait for a volume, and whose work is late then: base backups, autovacuum, replay."""
    looks, seen = _looks(run, edges), [0.0] * (len(edges) - 1)
    for bin_, kind, event, backend, count in _rows(run, edges):
        if backend not in (CLIENT_BACKEND, *OWN_WORK) and state_of(kind, event) in ("read", "write", "commit"):
            seen[bin_] += count
    return [waited / count if count else 0.0 for waited, count in zip(seen, looks, strict=True)]


def look_ms_by_second(run: StoredRun, edges: np.ndarray[Any, Any]) -> list[float | None]:
    """What a look at the sessions took, mean of those that began between each two edges (ns); None where there was none."""
    import numpy as np

    bins, table = len(edges) - 1, run.table("probe/wait_events")
    if table.num_rows == 0:
        return [None] * bins
    begin_ns, first = np.unique(table["t_begin_ns"].to_numpy(), return_index=True)
    took_ms = (table["t_end_ns"].to_numpy()[first] - begin_ns) / 1e6
    place = np.searchsorted(edges, begin_ns, side="right") - 1
    inside = (place >= 0) & (place < bins)
    looks = np.bincount(place[inside], minlength=bins)
    sums_ms = np.bincount(place[inside], weights=took_ms[inside], minlength=bins)
    return [total / count if count else None for total, count in zip(sums_ms.tolist(), looks.tolist(), strict=True)]


def _looks(run: StoredRun, edges: np.ndarray[Any, Any]) -> list[int]:
    """How often the sessions were looked at between each two edges."""
    import numpy as np

    bins, table = len(edges) - 1, run.table("probe/wait_events")
    if table.num_rows == 0:
        return [0] * bins
    place = np.searchsorted(edges, np.unique(table["t_begin_ns"].to_numpy()), side="right") - 1
    looks: list[int] = np.bincount(_inside(place, bins), minlength=bins).tolist()
    return looks


def _rows(run: StoredRun, edges: np.ndarray[Any, Any]) -> Iterator[tuple[int, str, str, str, int]]:
    """(place between the edges, kind of wait, event, kind of process, how many) of every row between them."""
    import numpy as np

    bins, table = len(edges) - 1, run.table("probe/wait_events")
    if table.num_rows == 0:
        return
    place = (np.searchsorted(edges, table["t_begin_ns"].to_numpy(), side="right") - 1).tolist()
    columns = [table[name].to_pylist() for name in ("wait_event_type", "wait_event", "backend_type", "count")]
    for bin_, kind, event, backend, count in zip(place, *columns, strict=True):
        if 0 <= bin_ < bins:
            yield bin_, kind or "CPU", event or "", backend or "", count


def _inside(place: np.ndarray[Any, Any], bins: int) -> np.ndarray[Any, Any]:
    return place[(place >= 0) & (place < bins)]

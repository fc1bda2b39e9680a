"""Reads a submit log (crates/volume/src/log.rs): when each request came, and when the model said it is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.base.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

MAGIC = b"pgdyno\x00\x01"
SUBMIT, GRANT = 1, 4
_RECORD = [
    *(("kind", "u1"), ("op", "u1"), ("volume", "<u2"), ("small", "<u4")),
    *(("instant_ns", "<u8"), ("id", "<u8"), ("offset", "<u8"), ("unused", "<u8", (2,))),
]


@dataclass(frozen=True)
class Requests:
    """Requests in the order in which they were submitted, in nanoseconds since the volume was attached."""

    submitted_ns: np.ndarray[Any, Any]
    done_ns: np.ndarray[Any, Any]
    offset: np.ndarray[Any, Any]
    """In bytes."""

    @property
    def latency_ns(self) -> np.ndarray[Any, Any]:
        """How long each took."""
        latency_ns: np.ndarray[Any, Any] = self.done_ns - self.submitted_ns
        return latency_ns


def read(path: Path) -> Requests:
    """The requests of a log that were granted. :class:`InputError` when it is no log, or of another version."""
    import numpy as np

    with path.open("rb") as file:
        head = file.read(16)
    if head[:8] != MAGIC:
        raise InputError(f"{path} is not a submit log of this version", remedy="record it again")
    offset = 16 + int.from_bytes(head[8:], "little")
    count = (path.stat().st_size - offset) // 48
    records = np.fromfile(path, dtype=np.dtype(_RECORD), offset=offset, count=count)
    records = records[np.isin(records["kind"], (SUBMIT, GRANT))]
    # An id is used again once its request is done: sorted by id, in the order of the log, submits and grants alternate.
    order = np.argsort(records["id"], kind="stable")
    kind, ids, instant = (records[name][order] for name in ("kind", "id", "instant_ns"))
    first = np.flatnonzero((kind[:-1] == SUBMIT) & (kind[1:] == GRANT) & (ids[:-1] == ids[1:]))
    submitted, done = instant[first].astype(np.int64), instant[first + 1].astype(np.int64)
    by_time = np.argsort(order[first])
    places = records["offset"][order[first]].astype(np.int64)
    return Requests(submitted[by_time], done[by_time], places[by_time])

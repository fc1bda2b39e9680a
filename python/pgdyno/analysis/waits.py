"""What the sessions of the workload were doing: on a CPU, or waiting for what, as pg_stat_activity said when asked.

A sample sees what is, not what took long: an event seen in a tenth of the samples of one session took about a tenth of
that session's time. Only sessions of clients are counted; background processes wait for their next work by design.
"""

from __future__ import annotations

from typing import NamedTuple

from ..results import StoredRun

CLIENT_BACKEND = "client backend"
"""``backend_type`` of a session that a client connected."""

CLIENT = "Client"
"""Type of wait of a session that has nothing to do: its client has not said what."""


class Wait(NamedTuple):
    """A kind of wait, in PostgreSQL's words; work on a CPU has the type ``CPU``."""

    type: str
    event: str

    @property
    def label(self) -> str:
        """``IO: DataFileRead``; the type alone where there is no event."""
        return f"{self.type}: {self.event}" if self.event and self.event != self.type else self.type


def waits_of(run: StoredRun) -> dict[Wait, float]:
    """Mean number of the clients' sessions in each state over the measure phase, the most frequent first.

    Every sample has a row, also one in which all sessions were idle, so the samples are the distinct instants of the table.
    """
    import numpy as np

    table = run.table("probe/wait_events")
    if table.num_rows == 0:
        return {}
    measure = run.record.measure
    begin_ns = table["t_begin_ns"].to_numpy()
    inside = (begin_ns >= measure.begin_ns) & (begin_ns < measure.end_ns)
    samples = len(np.unique(begin_ns[inside]))
    seen: dict[Wait, float] = {}
    columns = [table[name].to_pylist() for name in ("wait_event_type", "wait_event", "backend_type", "count")]
    for kind, event, backend, count, counted in zip(*columns, inside.tolist(), strict=True):
        if counted and count and backend == CLIENT_BACKEND:
            wait = Wait(kind or "CPU", event or "")
            seen[wait] = seen.get(wait, 0.0) + count / samples
    return dict(sorted(seen.items(), key=lambda item: -item[1]))

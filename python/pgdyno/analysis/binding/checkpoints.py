"""When checkpoints were under way, how much was written because of them, and whether they come too often."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.series import checkpoint_starts

from ...results.record import RunPhase
from ..figures import BLOCK_BYTES, CounterSamples, device_counters, volume_roles
from ..run import RunFigures

if TYPE_CHECKING:
    import numpy as np

_DONE = ("num_done", "sync_time_ms", "write_time_ms")
"""What grows when a checkpoint ends: the count from 18 on; before it the times, which are added at its end."""

INTERVAL_MAX_S = 60.0
"""From one checkpoint's begin to the next. PostgreSQL itself warns below 30 s (checkpoint_warning), and its default is 5
minutes: a page that is changed once a minute goes whole into WAL each time."""
MOVED_MIN = 0.5
"""Share of all bytes moved: without the checkpoints there would be less than half of them."""


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a run's measure phase."""

    inside: tuple[bool, ...]
    """For each second, whether a checkpoint was under way in it."""
    started: int = 0
    """Begun in the phase."""
    requested: int = 0
    """Of these, because max_wal_size was reached, or because one was asked for."""
    seconds: float = 0.0
    """Length of the phase."""
    page_bytes: float | None = None
    """Pages that checkpoints wrote, and whole pages in WAL, which each page needs after a checkpoint. None where either is not known."""
    written_share: float | None = None
    """``page_bytes``, of all bytes that went to the volumes; None where either is not known."""
    moved_share: float | None = None
    """The same, of all bytes that went to the volumes or came from them."""
    outside_ratio: float | None = None
    """Transactions per second outside of checkpoints over those of the whole phase; None where either is not known."""

    @property
    def interval_s(self) -> float | None:
        """Mean time from one begin to the next; None with fewer than two."""
        return self.seconds / self.started if self.started >= 2 else None

    @property
    def too_often(self) -> bool:
        """Whether they follow each other so closely that most of what volumes do is because of them.

        Then the time outside of them does not count as better: a page that is changed there for the first time goes whole into WAL.
        """
        interval_s, share = self.interval_s, self.moved_share
        return interval_s is not None and interval_s <= INTERVAL_MAX_S and share is not None and share >= MOVED_MIN

    def of_volumes(self, written: float | None, read: float | None) -> Checkpoints:
        """The same with the bytes that all volumes wrote and read in the phase; None for what is not known."""
        return replace(
            self,
            written_share=_share(self.page_bytes, written),
            moved_share=_share(self.page_bytes, None if written is None or read is None else written + read),
        )


def checkpoints_of(run: RunFigures, edges: np.ndarray[Any, Any]) -> Checkpoints:
    """From pg_stat_checkpointer (pg_stat_bgwriter before 17), to the resolution of the probe."""
    bins = len(edges) - 1
    table, measure = run.run.table("probe/checkpointer"), run.record.measure
    if table.num_rows < 2:
        return Checkpoints((False,) * bins, seconds=measure.seconds)
    counters = CounterSamples.of_server(table)
    spans = _spans(checkpoint_starts(run.run), _ends(counters), measure.end_ns)
    begin_ns = edges[:-1].tolist()
    inside = tuple(any(begin < right and end > left for begin, end in spans)
                   for left, right in zip(begin_ns, edges[1:].tolist(), strict=True))  # fmt: skip
    timed, requested = (_grown(counters, name, measure) for name in ("num_timed", "num_requested"))
    return Checkpoints(
        inside=inside,
        started=timed + requested,
        requested=requested,
        seconds=measure.seconds,
        page_bytes=_page_bytes(run, counters),
        outside_ratio=_outside_ratio(run, edges, inside),
    ).of_volumes(*_volume_bytes(run))


def _grown(counters: CounterSamples, name: str, measure: RunPhase) -> int:
    """Whole checkpoints by a counter; there can be several between two looks at it."""
    grown = counters.delta(name, measure.begin_ns, measure.end_ns)
    return 0 if grown is None or math.isnan(grown) else round(grown)


def _spans(starts: list[int], ends: list[int], last_ns: int) -> list[tuple[int, int]]:
    """Begin and end of each; one whose end was not seen lasts until the next begins, or the run ends."""
    spans = []
    for place, start in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else last_ns
        end = next((t for t in ends if t >= start), following)
        spans.append((start, max(start, end)))
    return spans


def _ends(counters: CounterSamples) -> list[int]:
    import numpy as np

    for name in _DONE:
        values = counters.columns.get(name)
        if values is not None and not np.isnan(values).all():
            return [int(t) for t in counters.t_ns[1:][np.diff(values) > 0]]
    return []


def _page_bytes(run: RunFigures, checkpointer: CounterSamples) -> float | None:
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    wal = CounterSamples.of_server(run.run.table("probe/wal"))
    pages = [checkpointer.delta("buffers_written", *span), wal.delta("wal_fpi", *span)]
    return None if None in pages else sum(page for page in pages if page is not None) * BLOCK_BYTES


def _volume_bytes(run: RunFigures) -> tuple[float | None, float | None]:
    """What all volumes wrote and read by the host's counters; None where the host does not show them."""
    span = (run.record.measure.begin_ns, run.record.measure.end_ns)
    devices = [device_counters(run.run, role) for role in volume_roles(run.run)]
    written, read = (
        [moved for device in devices if (moved := device.delta(name, *span)) is not None]
        for name in ("write_bytes", "read_bytes")
    )
    return sum(written) if written else None, sum(read) if read else None


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or math.isnan(part) or not whole > 0:
        return None
    return min(1.0, part / whole)


def _outside_ratio(run: RunFigures, edges: np.ndarray[Any, Any], inside: tuple[bool, ...]) -> float | None:
    import numpy as np

    table, bins = run.run.table("workload/throughput"), len(edges) - 1
    if table.num_rows == 0 or all(inside):
        return None
    middle = (table["t_begin_ns"].to_numpy() + table["t_end_ns"].to_numpy()) // 2
    place = np.searchsorted(edges, middle, side="right") - 1
    counted = (place >= 0) & (place < bins)
    done = np.bincount(place[counted], weights=table["transactions"].to_numpy()[counted], minlength=bins)
    mean = float(done.mean())
    return float(done[~np.array(inside)].mean()) / mean if mean > 0 else None

"""The course of one run over time, in bins of equal width from the begin of its measure phase, and the events in it.

For lines on a page only: no verdict comes from the seconds of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..results import StoredRun
from .figures import CLIENT, CLIENT_BACKEND, DATA, CounterSamples, cpu_counters, volume_counters, volume_roles

if TYPE_CHECKING:
    import numpy as np


ENDING = ("kill", "cut")
"""Kinds that end the server; until they are over it takes no connections."""


@dataclass(frozen=True)
class Event:
    """An event of one run."""

    planned_s: float
    """When it was to begin, seconds since measuring began."""
    kind: str
    """``modify``, ``fail``, ``heal``, ``snapshot``, ``kill``, ``cut``."""
    target: str
    words: str
    begin_s: float
    end_s: float
    result: str
    usd_per_month: float | None = None
    """Price of the volume after its modification; None of other events."""

    @property
    def seconds(self) -> float:
        """How long it took: of a server that was ended, until it took connections again."""
        return self.end_s - self.begin_s


def events_of(run: StoredRun) -> tuple[Event, ...]:
    """The events of a run in their order."""
    begin_ns = run.record.measure.begin_ns
    return tuple(
        Event(
            planned_s=row["planned_s"],
            kind=row["kind"],
            target=row["target"],
            words=row["words"],
            begin_s=(row["t_begin_ns"] - begin_ns) / 1e9,
            end_s=(row["t_end_ns"] - begin_ns) / 1e9,
            result=row["result"],
            usd_per_month=row.get("usd_per_month"),
        )
        for row in run.table("world/event").to_pylist()
    )


def down_s(events: Sequence[Event], measure_s: float) -> float:
    """For how much of the measuring the server took no connections, because events had ended it."""
    total, until = 0.0, 0.0
    for event in sorted((event for event in events if event.kind in ENDING), key=lambda event: event.begin_s):
        begin, end = max(event.begin_s, until), min(event.end_s, measure_s)
        total += max(0.0, end - begin)
        until = max(until, end)
    return total


@dataclass(frozen=True)
class EventEffect:
    """An event and the work of its run before and after it, each as far as the next event or the run's end."""

    event: Event
    before_per_s: float | None
    """None where less than a second lies between."""
    after_per_s: float | None


def around(run: StoredRun) -> tuple[EventEffect, ...]:
    """Every event of a run with what was done around it: a mean over both describes neither."""
    events, measure = events_of(run), run.record.measure
    ends = [0.0, *(event.end_s for event in events)]
    begins = [*(event.begin_s for event in events), measure.seconds]
    rates = [_per_s(run, begin, end) for begin, end in zip(ends, begins, strict=True)]
    return tuple(EventEffect(event, rates[place], rates[place + 1]) for place, event in enumerate(events))


def _per_s(run: StoredRun, begin_s: float, end_s: float) -> float | None:
    """Transactions per second in the whole seconds between two instants."""
    table, begin_ns = run.table("workload/throughput"), run.record.measure.begin_ns
    rows = zip(*(table[name].to_pylist() for name in ("t_begin_ns", "t_end_ns", "transactions")), strict=True)
    least, most = begin_ns + begin_s * 1e9, begin_ns + end_s * 1e9
    inside = [(begin, end, count) for begin, end, count in rows if begin >= least and end <= most]
    # Each script has a row of its own for a second.
    seconds = sum(end - begin for begin, end in {(begin, end) for begin, end, _ in inside}) / 1e9
    return sum(count for _, _, count in inside) / seconds if seconds else None


BINS_MAX = 240
"""Points of a line at most: more than a page has room for, and few enough to keep the page small."""
_SECOND_NS = 1_000_000_000
_STARTED = ("num_timed", "num_requested", "checkpoints_timed", "checkpoints_req")
"""Counters that grow when a checkpoint starts: of pg_stat_checkpointer, and of pg_stat_bgwriter before 17."""
_DONE = "num_done"
"""Counter that grows when a checkpoint is complete (pg_stat_checkpointer from 18)."""

_ENDS = ("executed", "failed_as_recorded", "newly_failed", "no_longer_failed")
"""How statements of a replay end."""


@dataclass(frozen=True)
class TimeSeries:
    """Columns over time; a value is None where nothing was recorded."""

    bin_seconds: float
    t_s: tuple[float, ...]
    """Middle of each bin, seconds since the measure phase began."""
    columns: dict[str, tuple[float | None, ...]]
    """``tps``, ``latency_ms_mean``, ``latency_ms_p50``, ``latency_ms_p99``, ``active_sessions``, ``server_cpu_share``,
    ``cpu_share``, and of the data's volume ``iops``, ``mib_per_s``, ``queue_length``, ``read_ms`` and ``write_ms``; of another
    the same with its role before it (``wal.iops``). A replay has ``behind_s``, the latest statement of each bin."""
    checkpoints: tuple[tuple[float, float | None], ...] | None
    """Start and end in the same seconds, to the resolution of the probe; the end is None where it was not seen. None where
    they were not counted."""
    events: tuple[Event, ...] = ()
    """What happened to volumes and server."""


def series_of(run: StoredRun) -> TimeSeries:
    """The lines of one run."""
    import numpy as np

    measure = run.record.measure
    seconds = max(1, round(measure.seconds))
    width = math.ceil(seconds / BINS_MAX)
    count = max(1, seconds // width)
    edges = measure.begin_ns + np.arange(count + 1, dtype=np.int64) * width * _SECOND_NS
    columns = {"tps": _tps(run, edges)}
    for role in volume_roles(run):
        prefix = "" if role == DATA else f"{role}."
        columns |= {prefix + name: values for name, values in _volume(volume_counters(run, role), edges).items()}
    return TimeSeries(
        bin_seconds=float(width),
        t_s=tuple(width * (place + 0.5) for place in range(count)),
        columns={
            **columns,
            **_behind(run, edges),
            **_latency(run, edges),
            **_cpu(run, edges),
            "active_sessions": _active(run, edges),
        },
        checkpoints=_checkpoints(run),
        events=events_of(run),
    )


def _bins(t_begin_ns: np.ndarray[Any, Any], t_end_ns: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> Any:
    """The bin in which the middle of each row lies; -1 and len(edges) - 1 are before and after."""
    import numpy as np

    middle = t_begin_ns + (t_end_ns - t_begin_ns) // 2
    return np.searchsorted(edges, middle, side="right") - 1


def _tps(run: StoredRun, edges: np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    import numpy as np

    table = run.table("workload/throughput")
    bins = len(edges) - 1
    if table.num_rows == 0:
        return (None,) * bins
    place = _bins(table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy(), edges)
    inside = (place >= 0) & (place < bins)
    transactions = np.bincount(place[inside], weights=table["transactions"].to_numpy()[inside], minlength=bins)
    return tuple((transactions / (np.diff(edges) / _SECOND_NS)).tolist())


def _latency(run: StoredRun, edges: np.ndarray[Any, Any]) -> dict[str, tuple[float | None, ...]]:
    """Mean, p50 and p99 of each bin, ms."""
    import numpy as np

    table = run.table("workload/latency")
    bins = len(edges) - 1
    place = _bins(table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy(), edges)
    value, count = table["latency_us"].to_numpy(), table["count"].to_numpy()
    order = np.lexsort((value, place))
    place, value, count = place[order], value[order], count[order]
    document: dict[str, list[float | None]] = {f"latency_ms_{name}": [] for name in ("mean", "p50", "p99")}
    for bin_ in range(bins):
        begin, end = np.searchsorted(place, [bin_, bin_ + 1])
        below = np.cumsum(count[begin:end])
        if len(below) == 0:
            for into in document.values():
                into.append(None)
            continue
        document["latency_ms_mean"].append(float(value[begin:end] @ count[begin:end]) / float(below[-1]) / 1e3)
        for share in (0.50, 0.99):
            rank = max(1, math.ceil(float(below[-1]) * share - 1e-9))
            at = begin + int(np.searchsorted(below, rank))
            document[f"latency_ms_p{share * 100:.0f}"].append(float(value[at]) / 1e3)
    return {name: tuple(values) for name, values in document.items()}


def _behind(run: StoredRun, edges: np.ndarray[Any, Any]) -> dict[str, tuple[float | None, ...]]:
    """How late the latest statement of a replay was sent; nothing of other workloads."""
    if run.record.replay is None:
        return {}
    table = run.table("workload/replay")
    late_s: list[float | None] = [None] * (len(edges) - 1)
    places = _bins(table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy(), edges).tolist()
    sent = [sum(ends) for ends in zip(*(table[name].to_pylist() for name in _ENDS), strict=True)]
    for place, count, late_us in zip(places, sent, table["behind_us_max"].to_pylist(), strict=True):
        if count and 0 <= place < len(late_s):
            late_s[place] = max(late_s[place] or 0.0, late_us / 1e6)
    return {"behind_s": tuple(late_s)}


def _active(run: StoredRun, edges: np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    """Mean number of the clients' sessions that had something to do, of the looks in each bin."""
    import numpy as np

    table = run.table("probe/wait_events")
    begin_ns = table["t_begin_ns"].to_numpy()
    bins = len(edges) - 1
    looks = np.searchsorted(edges, np.unique(begin_ns), side="right") - 1
    busy = [
        backend == CLIENT_BACKEND and kind != CLIENT
        for backend, kind in zip(table["backend_type"].to_pylist(), table["wait_event_type"].to_pylist(), strict=True)
    ]
    place = np.searchsorted(edges, begin_ns, side="right") - 1
    kept = np.array(busy, dtype=bool) & (place >= 0) & (place < bins)
    seen = np.bincount(place[kept], weights=table["count"].to_numpy()[kept], minlength=bins)
    count = np.bincount(looks[(looks >= 0) & (looks < bins)], minlength=bins)
    return tuple(float(seen[at] / count[at]) if count[at] else None for at in range(bins))


def _cpu(run: StoredRun, edges: np.ndarray[Any, Any]) -> dict[str, tuple[float | None, ...]]:
    """Share of the machine's CPU time that the server took, and that was busy at all."""
    cores = max(1, run.record.world.host.cores) * run.record.world.dilation
    counters = cpu_counters(run)
    roles = {"server_cpu_share": "server", "cpu_share": "host_busy"}
    return {
        name: tuple(
            None if rate is None else rate / cores / _SECOND_NS for rate in _rates(counters[role], "cpu_ns", edges)
        )
        for name, role in roles.items()
        if role in counters
    }


def _volume(counters: CounterSamples, edges: np.ndarray[Any, Any]) -> dict[str, tuple[float | None, ...]]:
    """Rates of the volume's counters between the edges, and the mean latency of what was completed there."""
    wanted = {"iops": ("ops", 1.0), "mib_per_s": ("bytes", 2.0**20), "queue_length": ("queue_time_ns", 1e9)}
    columns = {
        name: tuple(None if rate is None else rate / per for rate in _rates(counters, counter, edges))
        for name, (counter, per) in wanted.items()
    }
    for operation in ("read", "write"):
        time_ns, count = (_rates(counters, name, edges) for name in (f"{operation}_time_ns", f"{operation}s"))
        columns[f"{operation}_ms"] = tuple(
            spent / done / 1e6 if spent is not None and done else None
            for spent, done in zip(time_ns, count, strict=True)
        )
    return columns


def _rates(counters: CounterSamples, name: str, edges: np.ndarray[Any, Any]) -> tuple[float | None, ...]:
    """Growth of a counter per second between the edges; None in a bin that no two samples reach."""
    bins = len(edges) - 1
    t_ns = counters.t_ns
    if len(t_ns) < 2 or name not in counters.columns:
        return (None,) * bins
    at = [counters.at(name, int(edge)) for edge in edges]
    return tuple(
        float((at[place + 1] - at[place]) / ((edges[place + 1] - edges[place]) / _SECOND_NS))
        if t_ns[0] <= edges[place] + _SECOND_NS // 2 and t_ns[-1] >= edges[place + 1] - _SECOND_NS // 2
        else None
        for place in range(bins)
    )


def _checkpoints(run: StoredRun) -> tuple[tuple[float, float | None], ...] | None:
    """Starts and ends, as the cumulative counters showed them from one sample to the next."""
    table = run.table("probe/checkpointer")
    if table.num_rows < 2:
        return None
    counters = CounterSamples.of_server(table)
    measure = run.record.measure
    ends = sorted(_growth(counters, _DONE)) if _DONE in counters.columns else []
    spans: list[tuple[float, float | None]] = []
    for start in checkpoint_starts(run):
        end = next((t for t in ends if t >= start), None)
        begins_before_the_end = start < measure.end_ns
        ends_after_the_begin = start >= measure.begin_ns if end is None else end > measure.begin_ns
        if begins_before_the_end and ends_after_the_begin:
            spans.append(
                (
                    max(0.0, (start - measure.begin_ns) / 1e9),
                    None if end is None else min(measure.seconds, (end - measure.begin_ns) / 1e9),
                )
            )
    return tuple(spans)


def checkpoint_starts(run: StoredRun) -> list[int]:
    """Instants at which checkpoints of the whole run had begun, in order, to the resolution of the probe."""
    table = run.table("probe/checkpointer")
    if table.num_rows < 2:
        return []
    counters = CounterSamples.of_server(table)
    return sorted(t for name in _STARTED if name in counters.columns for t in _growth(counters, name))


def _growth(counters: CounterSamples, name: str) -> list[int]:
    """Instants of the samples in which a counter was larger than in the one before."""
    values = counters.columns[name]
    return [int(counters.t_ns[place]) for place in range(1, len(values)) if values[place] > values[place - 1]]

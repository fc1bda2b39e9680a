"""Response times over the time of a run: how many transactions took how long, in which part of it."""

from __future__ import annotations

from dataclasses import dataclass

from ..results import StoredRun

TIMES_MAX = 40
"""Columns of a map at most: what a panel has room for."""
BINS_PER_DECADE = 6
"""Rows of a map in a decade of latency: each is 1.47 times the one below."""
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class MapCell:
    """Transactions of one stretch of time and one range of latency."""

    begin_s: float
    end_s: float
    """Since the measure phase began."""
    low_ms: float
    high_ms: float
    share: float
    """Share of the transactions of that stretch."""


def latency_map(run: StoredRun) -> list[MapCell]:
    """The cells that have any transactions, from the run's histograms of each second; empty without them."""
    import numpy as np

    table = run.table("workload/latency")
    measure = run.record.measure
    seconds = max(1, round(measure.seconds))
    width = -(-seconds // TIMES_MAX)
    columns = -(-seconds // width)
    if table.num_rows == 0:
        return []
    begin, end = table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy()
    inside = (begin >= measure.begin_ns) & (end <= measure.end_ns) & (table["latency_us"].to_numpy() > 0)
    if not inside.any():
        return []
    middle_s = ((begin + (end - begin) // 2)[inside] - measure.begin_ns) / _SECOND_NS
    column = np.clip((middle_s // width).astype(np.int64), 0, columns - 1)
    rows = np.floor(np.log10(table["latency_us"].to_numpy()[inside] / 1e3) * BINS_PER_DECADE).astype(np.int64)
    first = int(rows.min())
    counts = np.zeros((columns, int(rows.max()) - first + 1))
    np.add.at(counts, (column, rows - first), table["count"].to_numpy()[inside])
    totals = counts.sum(axis=1)
    return [
        MapCell(
            begin_s=float(at * width),
            end_s=float(min((at + 1) * width, measure.seconds)),
            low_ms=10 ** ((row + first) / BINS_PER_DECADE),
            high_ms=10 ** ((row + first + 1) / BINS_PER_DECADE),
            share=float(counts[at, row] / totals[at]),
        )
        for at, row in np.argwhere(counts > 0).tolist()
    ]

"""Whole distributions: merged first, a percentile taken last (percentiles cannot be averaged); and response times over a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..results import StoredRun

if TYPE_CHECKING:
    import numpy as np


HDR_FILE = "workload/latency.hdr.json"
"""Latency of the measured transactions as HDR histograms, whole and per script."""
PERCENTILES = (50, 95, 99)
"""Those that tables and documents have."""


class ScriptStatement(NamedTuple):
    """A statement of a workload's scripts."""

    number: int
    """In the order of the scripts; the same text may be there several times."""
    text: str


@dataclass(frozen=True)
class ValueCounts:
    """Counts of values, in order of value; the unit is the caller's."""

    values: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]

    @classmethod
    def of(cls, buckets: Iterable[tuple[float, int]]) -> ValueCounts:
        """From (value, count) in any order; equal values are added up and empty buckets dropped."""
        import numpy as np

        pairs = np.array([(value, count) for value, count in buckets if count > 0], dtype=np.float64).reshape(-1, 2)
        values, where = np.unique(pairs[:, 0], return_inverse=True)
        return cls(values, np.bincount(where, weights=pairs[:, 1], minlength=len(values)))

    @property
    def total(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())

    @property
    def sum(self) -> float:
        """All values added up."""
        return float((self.values * self.counts).sum())

    def percentile(self, percent: float) -> float | None:
        """The smallest value that at least ``percent`` of the values do not exceed; None when there are none."""
        import numpy as np

        if self.total == 0:
            return None
        below = np.cumsum(self.counts)
        # The tolerance keeps 95 % of 20 values at the 19th, though 0.95 * 20 is a little more than 19 in binary.
        rank = max(1.0, np.ceil(below[-1] * percent / 100 - 1e-9))
        return float(self.values[int(np.searchsorted(below, rank))])

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """:meth:`percentile` of each; empty when there are no values."""
        import numpy as np

        if self.total == 0:
            return []
        below = np.cumsum(self.counts)
        ranks = np.maximum(1.0, np.ceil(below[-1] * np.array(percents) / 100 - 1e-9))
        return [float(value) for value in self.values[np.searchsorted(below, ranks)]]

    def scaled(self, factor: float) -> ValueCounts:
        """The same counts in another unit."""
        return ValueCounts(self.values * factor, self.counts)


def merge(parts: Iterable[ValueCounts]) -> ValueCounts:
    """All of them as one; empty when there are none."""
    import numpy as np

    filled = [part for part in parts if len(part.values)]
    if not filled:
        return ValueCounts.of(())
    values, where = np.unique(np.concatenate([part.values for part in filled]), return_inverse=True)
    counts = np.concatenate([part.counts for part in filled])
    return ValueCounts(values, np.bincount(where, weights=counts, minlength=len(values)))


def latency_ms(run: StoredRun, script: str = "all") -> ValueCounts:
    """Latency of the transactions that were measured, in milliseconds, from the run's HDR histogram.

    A run without the histogram is read from its per-second table, which has the same buckets.
    """
    if (run.path / HDR_FILE).is_file():
        histograms = run.document(HDR_FILE)["histograms"]
        if script in histograms:
            return decoded(histograms[script]).scaled(1e-3)
    return _from_seconds(run, script).scaled(1e-3)


def service_ms(run: StoredRun) -> ValueCounts:
    """Service time of the transactions that were measured, in milliseconds; empty in a closed loop, where it is the latency."""
    return _from_seconds(run, "all", "workload/service").scaled(1e-3)


def scripts_ms(run: StoredRun) -> dict[str, ValueCounts]:
    """Latency of the transactions that were measured by script, in milliseconds; empty unless there are several."""
    names = dict.fromkeys(run.table("workload/throughput")["script"].to_pylist())
    return {name: latency_ms(run, name) for name in names} if len(names) > 1 else {}


def statements_ms(run: StoredRun) -> dict[ScriptStatement, ValueCounts]:
    """Service time of each statement in the measure phase, in milliseconds, in the order of the scripts."""
    document: dict[ScriptStatement, list[tuple[float, int]]] = {}
    for row in run.table("workload/statement").to_pylist():
        buckets = document.setdefault(ScriptStatement(row["number"], row["statement"]), [])
        buckets.append((row["latency_us"], row["count"]))
    return {statement: ValueCounts.of(buckets).scaled(1e-3) for statement, buckets in document.items()}


def volume_latency_ms(run: StoredRun, role: str = "data") -> Mapping[str, ValueCounts]:
    """Latency of a volume's operations in the measure phase, in milliseconds, by ``read``, ``write``,
    ``read lateness`` and ``write lateness``.

    The table holds the cumulative histograms at the begin and at the end of the phase; the difference is the phase.
    """
    measure = run.record.measure
    middle_ns = (measure.begin_ns + measure.end_ns) // 2
    import pyarrow.compute as pc

    table = run.table("probe/volume_latency")
    rows = table.filter(pc.equal(table["volume"], role)).to_pydict()
    instants = sorted(set(rows["t_ns"]))
    # An empty histogram has no rows, so the first of the two instants may be absent and counts as nothing.
    first = max(
        (t_ns for t_ns in instants if t_ns <= middle_ns), key=lambda t_ns: -abs(t_ns - measure.begin_ns), default=None
    )
    last = max(
        (t_ns for t_ns in instants if t_ns > middle_ns), key=lambda t_ns: -abs(t_ns - measure.end_ns), default=None
    )
    if last is None:
        return {}
    counts: dict[str, dict[int, int]] = {}
    for t_ns, operation, value, count in zip(rows["t_ns"], rows["op"], rows["latency_ns"], rows["count"], strict=True):
        sign = (t_ns == last) - (t_ns == first)
        of_operation = counts.setdefault(operation, {})
        of_operation[value] = of_operation.get(value, 0) + sign * count
    return {name: ValueCounts.of(buckets.items()).scaled(1e-6) for name, buckets in counts.items()}


def decoded(text: str) -> ValueCounts:
    """An encoded HDR histogram; each bucket has its highest value."""
    import numpy as np
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram.decode(text)
    # The library's own iterator visits every bucket, and nearly all of them are empty. A bucket's place has in its highest bits
    # the exponent, in the others the upper half of the digits (the lower half of the first exponent is there too).
    counts = np.ctypeslib.as_array(histogram.counts)
    filled = np.flatnonzero(counts)
    exponent = (filled >> histogram.sub_bucket_half_count_magnitude) - 1
    digits = filled % histogram.sub_bucket_half_count + np.where(exponent < 0, 0, histogram.sub_bucket_half_count)
    highest = ((digits + 1) << (np.maximum(exponent, 0) + histogram.unit_magnitude)) - 1
    return ValueCounts(highest.astype(np.float64), counts[filled].astype(np.float64))


def _from_seconds(run: StoredRun, script: str, table: str = "workload/latency") -> ValueCounts:
    measure = run.record.measure
    rows = run.table(table).to_pydict()
    return ValueCounts.of(
        (value, count)
        for begin, end, name, value, count in zip(
            rows["t_begin_ns"], rows["t_end_ns"], rows["script"], rows["latency_us"], rows["count"], strict=True
        )
        if begin >= measure.begin_ns and end <= measure.end_ns and script in ("all", name) and name != "all"
    )


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

"""Cumulative counters between two instants: what happened in the phase that counts, and only in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..results import StoredRun

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

EDGE_TOLERANCE_NS = 2_500_000_000
"""How far the first or last sample may lie inside the phase: beyond two missed one-second samples the counter would be
extrapolated too far, and its figure is not given."""


@dataclass(frozen=True)
class CounterSamples:
    """Samples of cumulative counters, in order of time.

    Between two samples a counter is taken to grow evenly, so a difference over a phase of many samples is wrong by at
    most one sample's growth at each end.
    """

    t_ns: np.ndarray[Any, Any]
    columns: dict[str, np.ndarray[Any, Any]]

    @classmethod
    def of(cls, table: pa.Table, time: str = "t_ns") -> CounterSamples:
        """The numeric columns of a table with one row per instant."""
        import numpy as np

        order = np.argsort(table[time].to_numpy(), kind="stable")
        names = [name for name in table.column_names if name not in ("t_ns", "t_begin_ns", "t_end_ns")]
        numeric = {}
        for name in names:
            values = table[name].to_numpy()
            if np.issubdtype(values.dtype, np.number):
                numeric[name] = values[order].astype(np.float64)
        return cls(table[time].to_numpy()[order].astype(np.int64), numeric)

    @classmethod
    def of_server(cls, table: pa.Table) -> CounterSamples:
        """Those of one of the server's own statistics, which begin at 0 again when it recovers from a crash (PostgreSQL manual,
        "The Cumulative Statistics System").
        """
        result = cls.of(table, time="t_end_ns")
        return cls(result.t_ns, {name: continued(values) for name, values in result.columns.items()})

    def covers(self, begin_ns: int, end_ns: int) -> bool:
        """Whether the samples reach both ends of [begin, end), give or take :data:`EDGE_TOLERANCE_NS`."""
        if len(self.t_ns) < 2:
            return False
        return bool(self.t_ns[0] <= begin_ns + EDGE_TOLERANCE_NS and self.t_ns[-1] >= end_ns - EDGE_TOLERANCE_NS)

    def at(self, name: str, t_ns: int) -> float:
        """Value of a counter at an instant: linear between samples, and the nearest sample outside them."""
        import numpy as np

        # Relative to the first sample, because nanoseconds since boot lose their last digits in a double.
        base = self.t_ns[0]
        return float(np.interp(float(t_ns - base), (self.t_ns - base).astype(np.float64), self.columns[name]))

    def delta(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Growth of a counter over [begin, end), or None when it was not sampled there."""
        if name not in self.columns or not self.covers(begin_ns, end_ns):
            return None
        return self.at(name, end_ns) - self.at(name, begin_ns)

    def mean_rate(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Growth per second over the part of [begin, end) that the samples reach, or None."""
        growth = self.delta(name, begin_ns, end_ns)
        if growth is None:
            return None
        seconds = (min(end_ns, int(self.t_ns[-1])) - max(begin_ns, int(self.t_ns[0]))) / 1e9
        return growth / seconds if seconds > 0 else None

    def rates(self, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Growth per second between neighbouring samples: (end of each gap in ns, rate)."""
        import numpy as np

        gaps = np.diff(self.t_ns)
        kept = gaps > 0
        return self.t_ns[1:][kept], np.diff(self.columns[name])[kept] / (gaps[kept] / 1e9)


def continued(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A counter that continues where it began again at 0: what was counted between its last sample and that is not known, and is not in it."""
    import numpy as np

    grown = np.diff(values, prepend=0.0)
    return np.cumsum(np.where(grown < 0, values, grown))


def cpu_counters(run: StoredRun) -> dict[str, CounterSamples]:
    """Cumulative CPU time by role."""
    table = run.table("probe/cpu")
    import pyarrow.compute as pc

    return {
        role: CounterSamples.of(table.filter(pc.equal(table["role"], role)))
        for role in pc.unique(table["role"]).to_pylist()
    }

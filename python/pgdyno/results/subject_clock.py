"""The clock of what was measured: the host's own, unless the world was dilated.

In a dilated world storage, arrivals and PostgreSQL's timers are ``dilation`` times slower, so that this machine looks
faster by this factor relative to them. A record of such a run is in the subject's time: its instants, its durations and
whatever is divided by them. Only CPU time stays the host's, of which there is ``dilation`` times as much in a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_Instant = TypeVar("_Instant", int, "np.ndarray[Any, Any]")
_INSTANTS = ("t_ns", "t_begin_ns", "t_end_ns")
_HOST_DURATION = "_time_ms"
"""What the kernel and PostgreSQL measured in milliseconds, by their own clock. An emulated volume counts in
nanoseconds, and in its own time already."""


@dataclass(frozen=True)
class SubjectClock:
    """CLOCK_MONOTONIC until ``zero_ns``, and ``dilation`` times slower from there on."""

    zero_ns: int = 0
    dilation: int = 1

    def instant_ns(self, host_ns: _Instant) -> _Instant:
        """An instant of CLOCK_MONOTONIC on this clock, or many of them."""
        return self.zero_ns + (host_ns - self.zero_ns) // self.dilation

    def host_s(self, seconds: float) -> float:
        """How long the host takes for these seconds of slowed time."""
        return seconds * self.dilation

    def durations_us(self, host_us: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Durations that the host measured in whole microseconds, to the nearest one of the subject's."""
        return (host_us + self.dilation // 2) // self.dilation

    def table(self, table: pa.Table) -> pa.Table:
        """A table of samples: its instants, and the durations that the host measured."""
        import pyarrow.compute as pc

        if self.dilation == 1:
            return table
        for place, name in enumerate(table.column_names):
            column = table.column(name)
            if name in _INSTANTS:
                since = pc.divide(pc.subtract(column, self.zero_ns), self.dilation)
                table = table.set_column(place, name, pc.add(since, self.zero_ns))
            elif name.endswith(_HOST_DURATION):
                table = table.set_column(place, name, pc.cast(pc.divide(column, self.dilation), column.type))
        return table

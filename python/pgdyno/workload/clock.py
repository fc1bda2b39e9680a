"""CLOCK_MONOTONIC of this process, and its offset from that of a process on another host or in another time namespace.

The other process answers with the instant at which it read the question. If both ways took equally long, that instant is the middle of the round
trip here; at worst one of them took all of it. So the estimate is off by half a round trip at most, and the shortest of many round trips
is the most precise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

SECOND_NS = 1_000_000_000
EXCHANGES = 64
"""For one estimate: enough that some meet no queue on a busy host, and a few milliseconds on one machine."""


def now_ns() -> int:
    """CLOCK_MONOTONIC, in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class Offset:
    """Nanoseconds by which the other clock is ahead."""

    ahead_ns: int
    uncertainty_ns: int
    """It is off by this at most: half of the shortest round trip."""

    @property
    def taken_ns(self) -> int:
        """The offset to apply: 0 if it may be 0, since processes of one machine have one clock."""
        return self.ahead_ns if abs(self.ahead_ns) > self.uncertainty_ns else 0


def estimate(ask: Callable[[], int], now: Callable[[], int] = now_ns, exchanges: int = EXCHANGES) -> Offset:
    """The offset by this number of exchanges; ``ask`` returns what the other clock showed between its call and its return."""
    offset: Offset | None = None
    for _ in range(exchanges):
        asked_ns = now()
        there_ns = ask()
        trip_ns = now() - asked_ns
        # Rounded up, so that the middle and what it is off by hold the true offset to the nanosecond.
        result = Offset(there_ns - asked_ns - trip_ns // 2, -(-trip_ns // 2))
        if offset is None or result.uncertainty_ns < offset.uncertainty_ns:
            offset = result
    assert offset is not None
    return offset

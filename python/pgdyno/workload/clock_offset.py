"""How far the CLOCK_MONOTONIC of another process is ahead of this one's: it may be on another host, or in another time namespace.

A question is asked and answered with the instant at which it was read there. Had both ways taken equally long, that instant would be the middle of
the round trip here; at worst one of them took all of it. So the estimate is off by half a round trip at most, and of many exchanges the one
with the shortest round trip says most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.workload.watch import now_ns

EXCHANGES = 64
"""For one estimate: enough that some meet no queue on a busy host, and a few milliseconds on one machine."""


@dataclass(frozen=True)
class Offset:
    """How far the other clock is ahead, in nanoseconds."""

    ahead_ns: int
    uncertainty_ns: int
    """It is off by this at most: half of the shortest round trip."""

    @property
    def taken_ns(self) -> int:
        """What is used: nothing where it may be none, since processes of one machine have one clock."""
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

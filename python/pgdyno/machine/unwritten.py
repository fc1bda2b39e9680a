"""Pages in memory that wait for a disk, of the whole machine: a limit below them stops every writer.

The kernel counts dirty pages and pages under writeback together (``balance_dirty_pages`` in Linux's
``mm/page-writeback.c``); above ``vm.dirty_bytes`` a writer gets no page until enough of them are written. A backlog of
gigabytes on a slow disk, met by an instance's limit of some MiB, stopped a server's first session for more than two
minutes. So the limit is lowered behind the backlog. It goes below it only for moments, where a writer keeps the backlog up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ..base.errors import HostError
from .memory import meminfo_bytes

PATIENCE_S = 60.0
"""A backlog that has not become smaller for so long does not drain."""
ALONE_S = 3.0
"""A backlog that has not become smaller for so long has a writer beside it, who is then held back."""
ROOM_FREE, ROOM_HELD = 2.0, 1.1
"""The limit on the way stands so far above the backlog. No writer waits below half of background limit plus limit, so at
2.0 none does. At 1.1 a writer without end is held back."""
PAUSE_S = 0.1
PRESS_S, STILL_S = 10.0, 0.5
"""A writer that is held back may still keep the backlog at 0.94 of the limit (measured, two writers on a gp3 volume). Then the
final limit is tried for at most the first time, and no longer than the second without the backlog becoming smaller: who writes
to a disk that hangs waits so long, with every other writer, in each :data:`ALONE_S`."""


def unwritten_bytes() -> int:
    """What waits for a disk now."""
    counts = meminfo_bytes()
    return counts["Dirty"] + counts["Writeback"]


def lower_limit(
    limit_bytes: int, set_limit: Callable[[int], None], *, waits: Callable[[float], None] = time.sleep
) -> None:
    """Set the limit of dirty memory to ``limit_bytes`` as fast as the disks write what is above it.

    ``set_limit`` takes each limit on the way; the background limit is set before, so that writing has begun.
    :class:`HostError` where the backlog does not drain: a disk hangs, or its volume is paused.
    """
    smallest, since_s, room, look_s = math.inf, 0.0, ROOM_FREE, ALONE_S
    while (backlog := unwritten_bytes()) * room > limit_bytes:
        if backlog * room < smallest:
            smallest, since_s, look_s = backlog * room, 0.0, ALONE_S
            set_limit(int(smallest))
        elif since_s >= PATIENCE_S:
            raise HostError(
                f"{backlog / 2**20:,.0f} MiB of written data wait for a disk that does not take them: under this instance's"
                f" limit of {limit_bytes / 2**20:,.0f} MiB every program of the machine would wait with them",
                remedy="wait until `sync` ends; if it does not, `dmesg` names the disk, and a paused volume must be healed",
            )
        elif since_s >= look_s:
            if room == ROOM_HELD:
                set_limit(limit_bytes)
                since_s += _press(backlog, waits)
                if unwritten_bytes() < limit_bytes:
                    return
                set_limit(int(smallest))
            room, look_s = ROOM_HELD, since_s + ALONE_S
            continue
        waits(PAUSE_S)
        since_s += PAUSE_S
    set_limit(limit_bytes)


def _press(backlog: int, waits: Callable[[float], None]) -> float:
    """Wait while the backlog becomes smaller; how long that was, seconds."""
    taken_s = still_s = 0.0
    while taken_s < PRESS_S and still_s < STILL_S:
        waits(PAUSE_S)
        taken_s += PAUSE_S
        still_s = 0.0 if unwritten_bytes() < backlog else still_s + PAUSE_S
        backlog = min(backlog, unwritten_bytes())
    return taken_s

"""Pages in memory that wait for a disk, of the whole machine: a limit below them stops every writer.

The kernel counts dirty pages and pages under writeback together (``balance_dirty_pages`` in Linux's
``mm/page-writeback.c``); above ``vm.dirty_bytes`` a writer gets no page until enough of them are written. A backlog of
gigabytes on a slow disk, met by an instance's limit of some MiB, stopped a server's first session for more than two
minutes. So the limit is lowered behind the backlog, never below it.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from pgdyno.errors import HostError
from pgdyno.host.memory import meminfo_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
"""A backlog that has not become smaller for so long does not drain."""
ALONE_S = 3.0
"""A backlog that has not become smaller for so long has a writer beside it, who is then held back."""
ROOM_FREE, ROOM_HELD = 2.0, 1.1
"""The limit on the way stands so far above the backlog. No writer waits below half of background limit plus limit, so at
2.0 none does. At 1.1 a writer without end is held there: with the background limit at half of the final limit ``W`` the
way ends where L = 1.1 (W / 2 + L) / 2, which is 0.61 W: below ``W``, so that is reached."""
PAUSE_S = 0.1


def unwritten_bytes() -> int:
    """What waits for a disk now."""
    found = meminfo_bytes()
    return found["Dirty"] + found["Writeback"]


def lower_limit(
    limit_bytes: int, set_limit: Callable[[int], None], *, waits: Callable[[float], None] = time.sleep
) -> None:
    """Set the limit of dirty memory to ``limit_bytes`` as fast as the disks write what is above it.

    ``set_limit`` takes each limit on the way; the background limit is set before, so that writing has begun.
    :class:`HostError` where the backlog does not drain: a disk hangs, or its volume is paused.
    """
    smallest, since_s, room = math.inf, 0.0, ROOM_FREE
    while (backlog := unwritten_bytes()) * room > limit_bytes:
        if backlog * room < smallest:
            smallest, since_s = backlog * room, 0.0
            set_limit(int(smallest))
        elif since_s >= PATIENCE_S:
            raise HostError(
                f"{backlog / 2**20:,.0f} MiB of written data wait for a disk that does not take them: under this instance's"
                f" limit of {limit_bytes / 2**20:,.0f} MiB every program of the machine would wait with them",
                remedy="wait until `sync` ends; if it does not, `dmesg` names the disk, and a paused volume must be healed",
            )
        elif since_s >= ALONE_S:
            room = ROOM_HELD
        waits(PAUSE_S)
        since_s += PAUSE_S
    set_limit(limit_bytes)

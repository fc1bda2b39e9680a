"""How fast the server's CPU is while a run lasts: one piece of work that never changes, over and over.

A core of a shared machine gives a tenth more or less from one ten seconds to the next, and no counter of the guest says so: its
neighbours share caches, memory and the other thread of the core. The piece of work takes its turn ahead of everything
else, so its time is the machine's alone, and it meets every driver alike: it takes about one part in fifty of the CPU.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.errors import HostError

EVERY_S = 0.025
"""Four hundred pieces in a run of ten seconds: their mean scatters by less than the machine does."""
_HASHED = 384 * 1024
"""Bytes hashed in a piece: arithmetic, some 250 us."""
_MOVED = 1 << 20
"""Bytes copied in a piece, each time others: caches and memory, some 100 us."""
_STORE = 64 << 20
"""More than a core's share of the last cache."""


@dataclass
class Pace:
    """What was found, once the ``with`` block of :func:`kept` has ended."""

    pieces_per_s: float = 0.0
    """Pieces of work that the CPU would do in a second if it did nothing else."""


@contextlib.contextmanager
def kept(cpu: int) -> Iterator[Pace]:
    """Measure the pace of a CPU for as long as the block lasts. :class:`HostError` if the process cannot go first."""
    found = Pace()
    command = [sys.executable, "-m", "tools.equivalence.pace", str(cpu)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield found
        finally:
            # The end of its input is the order to end.
            said, _ = process.communicate()
    if process.returncode != 0:
        raise HostError("the pace of the CPU could not be measured", remedy="run as root, and read the line above")
    found.pieces_per_s = float(said)


def main() -> None:
    """Work until standard input ends; then print the pace."""
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    # Who is told to stop is the bench, which then ends the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store = memoryview(bytearray(_STORE))
    took_s = [_piece(store, 0)]
    while not select.select([sys.stdin], [], [], EVERY_S)[0]:
        took_s.append(_piece(store, len(took_s)))
    # The first piece finds nothing where it should be.
    print(1 / statistics.fmean(took_s[1:] or took_s))


def _piece(store: memoryview, turn: int) -> float:
    half = _STORE // 2
    at = turn * _MOVED % half
    begin = time.monotonic()
    hashlib.sha256(store[:_HASHED]).digest()
    store[at : at + _MOVED] = store[half + at : half + at + _MOVED]
    return time.monotonic() - begin


if __name__ == "__main__":
    main()

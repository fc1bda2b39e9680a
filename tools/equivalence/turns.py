"""Lets programs work one at a time, in short turns that are drawn, and says how long each was made to wait.

A core of a shared machine does a tenth more in one ten seconds than in the next, and no counter of the guest says so. Programs
that take turns of a fraction of a second meet the same machine; what it does in seconds and minutes falls out of their ratio.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack

from pgdyno.base.errors import PgdynoError

TURN_S = 0.05
"""Shorter than what a core's pace lasts (a tenth of a second), and far longer than what is under way when a driver is stopped."""
FIRST_S = 0.3
"""Of the first turn: a driver connects its sessions in a fraction of it."""


class Taken:
    """A program, and what its turns came to."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.stopped_s = 0.0
        """How long it was made to wait, since its first turn ended."""
        self.after_first_s = 0.0
        """From the end of its first turn to its own."""
        self._first_at: float | None = None
        self._stopped_at: float | None = None
        self._pidfd = os.pidfd_open(process.pid)

    def let(self, seconds: float) -> bool:
        """Let it work so long and stop it; ``False`` when it has ended."""
        if self._stopped_at is not None:
            self.stopped_s += time.monotonic() - self._stopped_at
            self._stopped_at = None
            self.process.send_signal(signal.SIGCONT)
        if select.select([self._pidfd], [], [], seconds)[0]:
            self.process.wait()
            self.after_first_s = 0.0 if self._first_at is None else time.monotonic() - self._first_at
            return False
        self._stopped_at = time.monotonic()
        self._first_at = self._first_at or self._stopped_at
        self.process.send_signal(signal.SIGSTOP)
        return True

    def close(self) -> None:
        """Leave nothing of it behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._pidfd)


def take(programs: Mapping[str, Callable[[], subprocess.Popen[bytes]]], order: random.Random) -> dict[str, Taken]:
    """Start each program, let them take turns until all have ended.

    A program sees the clock go on while it is stopped: one that works for so many seconds works for its share of them. Its own
    measure of how long it worked is too long by :attr:`Taken.stopped_s`. :class:`PgdynoError` when one ends in its
    first turn; whatever happens, none is left behind.
    """
    taken: dict[str, Taken] = {}
    with ExitStack() as stack:
        for name in _shuffled(programs, order):
            result = taken[name] = Taken(programs[name]())
            stack.callback(result.close)
            if not result.let(FIRST_S):
                raise PgdynoError(
                    f"`{name}` ended with {result.process.returncode} before the others had begun",
                    remedy="read what it said, and give it more seconds",
                )
        left = set(taken)
        while left:
            for name in _shuffled(left, order):
                if not taken[name].let(TURN_S):
                    left.remove(name)
    return taken


def _shuffled(names: Iterable[str], order: random.Random) -> list[str]:
    # A set's own order is another one in each process.
    texts = sorted(names)
    order.shuffle(texts)
    return texts

"""Waiting for a condition with a deadline: the only place where the package sleeps to wait for the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], timeout_s: float, *, interval_s: float = 0.05) -> bool:
    """Ask ``condition`` until it holds; ``False`` when ``timeout_s`` passed first.

    The first pauses are 1 ms and double up to ``interval_s``, so that what is nearly done is not waited for.
    """
    deadline = time.monotonic() + timeout_s
    pause = 0.001
    while not condition():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, interval_s)
    return True

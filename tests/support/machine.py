"""What a machine has once: tests that change it wait for each other, those of other groups of `make test` too."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tools.testing.lists import LIMITS


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """The kernel's dirty limits are this test's; it waits until they are. Outside `make test` there are no other groups."""
    place = os.environ.get(LIMITS)
    if place is None:
        yield
        return
    with Path(place).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

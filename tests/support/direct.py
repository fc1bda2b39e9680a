"""Requests to a block device past the page cache."""

from __future__ import annotations

import mmap
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = 8192
"""PostgreSQL's."""


def moved(device: str, offsets: Iterable[int], *, write: bool = False) -> list[float]:
    """Seconds that pages at these places take, read or written one after the other. :class:`OSError` if one fails."""
    took = []
    handle = os.open(device, (os.O_WRONLY if write else os.O_RDONLY) | os.O_DIRECT)
    try:
        with mmap.mmap(-1, PAGE) as page:
            for offset in offsets:
                begin = time.monotonic()
                done = os.pwrite(handle, page, offset) if write else os.preadv(handle, [page], offset)
                took.append(time.monotonic() - begin)
                assert done == PAGE
    finally:
        os.close(handle)
    return took

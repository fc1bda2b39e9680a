"""A place for what is written while measuring."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def scratch_directory(fallback: Path) -> Iterator[Path]:
    """Yield a private directory that is removed afterwards: in memory where the host has it, else below ``fallback``.

    A driver or a probe that writes to a disk while measuring can be stopped by the kernel's throttling of writers:
    the limit on dirty pages is the instance's, and counts every file system but tmpfs.
    """
    parent = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else fallback
    with tempfile.TemporaryDirectory(prefix="pgdyno-", dir=parent) as name:
        yield Path(name)

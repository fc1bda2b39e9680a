"""What a command changes of the machine's own settings, written down outside any state directory until it is put back.

The lock on the record is the kernel's and ends with its owner; the record outlives a killed command, and the next owner of the lock
puts back what it says.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import paths
from .process import boot_id
from .waiting import wait_until


@dataclass(frozen=True)
class MachineRecord:
    """One group of settings that only one command may change at a time."""

    path: Path
    restore: Callable[[dict[str, Any]], list[str]]
    """Puts back what a record says; returns what it changed, a line each. A setting that is as it was is left alone."""
    what: str
    """What a killed command left, in words."""

    def take(self, patience_s: float = 0.0) -> int | None:
        """The lock, as a descriptor that is to be closed; ``None`` where another command holds it for all that time."""
        taken: list[int] = []

        def tried() -> bool:
            if (handle := self._try()) is not None:
                taken.append(handle)
            return bool(taken)

        wait_until(tried, patience_s)
        return taken[0] if taken else None

    def _try(self) -> int | None:
        paths.make_state_dir(self.path.parent)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    def write(self, handle: int, **old: Any) -> None:
        """Write down what is about to be changed."""
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "boot_id": boot_id(), **old}).encode(), 0)
        os.fsync(handle)

    def put_back(self, handle: int) -> list[str]:
        """Put back what the record says, then empty it. Settings of another boot ended with that boot."""
        written = _read(os.pread(handle, 65536, 0))
        if not written:
            return []
        done = self.restore(written) if written["boot_id"] == boot_id() else []
        os.ftruncate(handle, 0)
        os.fsync(handle)
        return done

    def recover(self) -> list[str]:
        """Put back what a killed command changed; returns what was done. A command that lives is left alone."""
        with self._held() as handle:
            return [] if handle is None else self.put_back(handle)

    def abandoned(self) -> bool:
        """Whether a killed command left changed settings behind."""
        if not self.written():
            return False
        with self._held() as handle:
            # Read again: the command that had written it may have ended between the look and the lock.
            return handle is not None and bool(self.written())

    def in_use(self) -> bool:
        """Whether a command that lives holds the lock."""
        with self._held() as handle:
            return handle is None and self.path.exists()

    def written(self) -> dict[str, Any]:
        """What the record says now; empty while nothing is changed."""
        try:
            return _read(self.path.read_bytes())
        except FileNotFoundError:
            return {}

    @contextmanager
    def _held(self) -> Iterator[int | None]:
        """The lock without waiting, if there is a record at all: who only looks makes no file."""
        handle = self.take() if self.path.exists() else None
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)


def _read(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}  # empty, or torn before anything was changed
    return document if isinstance(document, dict) else {}

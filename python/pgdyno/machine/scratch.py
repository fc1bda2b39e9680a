"""A place for what is written while measuring."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import paths
from .process import ProcessIdentity, boot_id, own_identity

_MEMORY = Path("/dev/shm")
_NAME = re.compile(r"pgdyno-scratch-(?P<state>[0-9a-f]+)-(?P<namespace>\d+)-(?P<pid>\d+)-(?P<start_ticks>\d+)-.*")
"""The name says whose it is, so that nothing has to be recorded first, which an ordinary user could not. Containers may
share the memory but not the numbering of processes, hence the namespace; each state directory is cleaned by itself,
hence its key."""


_ROOM_BYTES = 128 << 20
"""A minute of pgbench's log at 20,000 transactions a second is 50 MiB; a container has 64 MiB of shared memory unless it asks
for more, and a full one would end the run."""


@contextlib.contextmanager
def scratch_directory(fallback: Path) -> Iterator[Path]:
    """Yield a private directory that is removed afterwards: in memory where there is room, else below ``fallback``.

    A driver or a probe that writes to a disk while measuring can be stopped by the kernel's throttling of writers:
    the limit on dirty pages is the instance's, and counts every file system but tmpfs.
    """
    parent = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) and _free_bytes(_MEMORY) >= _ROOM_BYTES else fallback
    owner = own_identity()
    key = _state_key(paths.state_dir())
    prefix = f"pgdyno-scratch-{key}-{_process_namespace()}-{owner.pid}-{owner.start_ticks}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        yield Path(name)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def abandoned_scratch(state: Path) -> list[Path]:
    """Directories in memory whose process is dead and used this state directory."""
    return sorted(path for path in _MEMORY.glob(f"pgdyno-scratch-{_state_key(state)}-*") if _is_abandoned(path.name))


def _is_abandoned(name: str) -> bool:
    match = _NAME.fullmatch(name)
    if match is None or int(match["namespace"]) != _process_namespace():
        return False
    # The directory is in memory, so its process is of this boot.
    return not ProcessIdentity(int(match["pid"]), int(match["start_ticks"]), boot_id()).alive()


def _state_key(state: Path) -> str:
    return hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:12]


def _process_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def remove_scratch(state: Path) -> list[str]:
    """Remove what dead processes with this state directory left, and say what that was, a line each."""
    removed = []
    for path in abandoned_scratch(state):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            removed.append(f"removed {path}")
    return removed

"""Where pgdyno keeps what must survive a killed command: one state directory, one directory of images."""

from __future__ import annotations

import os
from pathlib import Path

MACHINE_DIR = Path("/run/pgdyno")
"""What exists once per machine (the kernel's dirty limits) is recorded here, whatever the state directory is."""


def state_dir() -> Path:
    """The state directory: ``$PGDYNO_STATE_DIR``, else ``/run/pgdyno`` (empty after a reboot on most systems)."""
    return Path(os.environ.get("PGDYNO_STATE_DIR") or MACHINE_DIR).resolve()


def image_dir() -> Path:
    """Where images of loaded volumes are kept: ``$PGDYNO_IMAGE_DIR``, else in memory under ``/dev/shm``."""
    return Path(os.environ.get("PGDYNO_IMAGE_DIR") or "/dev/shm/pgdyno/images").resolve()


def make_state_dir(state: Path) -> None:
    """Make the state directory."""
    make_walkable(state)


def make_walkable(folder: Path) -> None:
    """Make a directory with those above it that are missing.

    Everyone can walk through what was made, whatever the umask: PostgreSQL's user must be able to.
    """
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        path.chmod(0o755)


def volumes_dir(state: Path) -> Path:
    """The engine's folder with one directory per volume: its FUSE mount, control socket and facts."""
    return state / "volumes"


def claims_dir(state: Path) -> Path:
    """Our folder with one directory per volume, made before the engine starts: what was asked, the daemon's log."""
    return state / "claims"


def is_below(path: Path | str, folder: Path) -> bool:
    """Whether ``path`` is ``folder`` or lies in it, judged by the names alone: a dead FUSE mount hangs on a look."""
    return Path(path) == folder or folder in Path(path).parents

"""Kept databases: restored once, as images on a disk that only root reads, and used again for the same source.

Each is a directory ``NAME`` with ``database.json`` and an image for each role. A directory whose name begins with a dot is not whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from ..base import installation
from ..base.errors import HostError
from .work_record import Record

RECORD = "database.json"


class KeptDatabase(Record):
    """What ``database.json`` says."""

    schema_version: int = 1
    name: str
    """By which it is listed and removed."""
    source: str
    """The file or directory it was made from; of a connection string service, host, port, database and user."""
    source_digest: str
    digest: str
    """Of everything that decides its content: source, globals, `prepare`, name of the database, role."""
    postgres_major: int
    postgres_version: str
    file_system: str
    database: str
    """Name of the database in the server."""
    size_bytes: int
    """Measured after restoring."""
    volume_bytes: dict[str, int]
    """Role -> size of the volume that it was made on; a clone is at least as large."""
    created_unix_ns: int
    seconds: float
    """Time that restoring took."""

    @property
    def folder(self) -> Path:
        """Its directory."""
        return databases_dir() / self.name

    @property
    def images(self) -> dict[str, Path]:
        """Role -> image."""
        return {role: self.folder / role for role in self.volume_bytes}

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """While a ``with`` block lasts it cannot be removed. :class:`HostError` where it is being removed."""
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context((self.folder / RECORD).open("rb"))
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except (FileNotFoundError, BlockingIOError):
                raise HostError(f"the kept database {self.name} is being removed", remedy="keep it again") from None
            yield


def databases_dir() -> Path:
    """Where databases are kept: ``$PGDYNO_DATABASE_DIR``, else below /var/lib."""
    return Path(os.environ.get("PGDYNO_DATABASE_DIR") or "/var/lib/pgdyno/databases").resolve()


def kept_databases() -> list[KeptDatabase]:
    """All of them by name. :class:`HostError` where this user may not see them."""
    folder = databases_dir()
    if not folder.is_dir():
        return []
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except PermissionError:
        raise HostError(f"only root may read {folder}", remedy=installation.how_to_run_as_root()) from None
    results = []
    for name in names:
        try:
            results.append(KeptDatabase.model_validate_json((folder / name / RECORD).read_bytes()))
        except (OSError, ValidationError):
            continue  # being removed, or of another version
    return results


def find_kept(name: str) -> KeptDatabase | None:
    """The one with this name; None where there is none or this user may not see it."""
    try:
        return next((kept_database for kept_database in kept_databases() if kept_database.name == name), None)
    except HostError:
        return None

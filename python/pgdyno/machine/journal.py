"""The undo journal: every change to the machine is written down, and on the disk, before it is made.

One file per entry, so that commands at the same time do not disturb each other and an entry is either whole or
absent. An entry belongs to the process that wrote it; when that process is dead, ``pgdyno doctor --clean`` undoes it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from . import mounts, paths
from .process import ProcessIdentity, own_identity

Kind = Literal["process", "volume", "cgroup", "directory", "shared_memory", "snapshots"]
"""What can be undone:

- ``process``: ``pid``, ``start_ticks``, ``boot_id``, ``name``, ``folder`` (where its children work) or ``None``
- ``volume``: ``name``
- ``cgroup``: ``path``
- ``directory``: ``path``, removed with what is in it
- ``snapshots``: ``name`` of the volume, or of the first of several, whose snapshots are deleted
- ``shared_memory``: ``pid`` of the PostgreSQL server that made it, ``posix`` (names in /dev/shm)

The kernel's dirty limits are machine-wide and have a record of their own (:mod:`pgdyno.machine.dirty_limits`).
"""

SERVER_NAME = "PostgreSQL"
"""The ``name`` of a server's ``process`` entry; it is ended in PostgreSQL's own way."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class JournalEntry:
    """One change that may have to be undone."""

    entry_id: str
    kind: Kind
    owner: ProcessIdentity
    data: dict[str, Any]

    @property
    def thing(self) -> tuple[str, str]:
        """What the entry is about: two entries with the same thing name one and the same."""
        key = {"process": "pid", "shared_memory": "pid", "volume": "name", "snapshots": "name"}.get(self.kind, "path")
        return self.kind, str(self.data[key])

    @property
    def order(self) -> int:
        """Entries of one process are undone from the highest number down."""
        return int(self.entry_id.rsplit("-", 1)[1])


class HostJournal:
    """The journal of one state directory, written by this process."""

    def __init__(self, state_dir: Path | None = None) -> None:
        self.state_dir = state_dir or paths.state_dir()
        self.folder = self.state_dir / "journal"
        self._owner = own_identity()

    def record(self, kind: Kind, **data: Any) -> str:
        """Write an entry and have it on the disk before returning its id. Call it *before* the change."""
        paths.make_state_dir(self.state_dir)
        self.folder.mkdir(exist_ok=True)
        entry_id = f"{self._owner.pid}-{self._owner.start_ticks}-{next(_numbers)}"
        text = json.dumps({"kind": kind, "owner": self._owner.to_json(), "data": data})
        unfinished = self.folder / f".{entry_id}"
        with unfinished.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self.folder / entry_id)
        self._sync_folder()
        return entry_id

    def done(self, entry_id: str) -> None:
        """The change was undone, or is now the user's: forget the entry. Forgetting twice is allowed."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / entry_id).unlink()
            self._sync_folder()

    @contextlib.contextmanager
    def directory(self, path: Path) -> Iterator[Path]:
        """A directory that exists for the length of a ``with`` block, and not after a killed command is cleaned.

        While something is mounted in it, it stays (with its entry): removing it would remove what is mounted.
        """
        entry = self.record("directory", path=str(path))
        path.mkdir(parents=True, exist_ok=True)
        try:
            yield path
        finally:
            if not mounts.mounts_below(path.resolve()):
                shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                self.done(entry)

    def entries(self) -> list[JournalEntry]:
        """All entries, of every process, the latest of each process first."""
        results = []
        for file in sorted(self.folder.glob("[0-9]*-*-*")) if self.folder.is_dir() else []:
            try:
                document = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # it was just forgotten by its owner
            owner = ProcessIdentity.from_json(document["owner"])
            results.append(JournalEntry(file.name, document["kind"], owner, document["data"]))
        return sorted(results, key=lambda entry: (entry.owner.pid, -entry.order))

    def abandoned(self) -> list[JournalEntry]:
        """Entries whose process is dead, but not of a thing that a living process has made again by the same name."""
        entries = self.entries()
        alive = {id(entry) for entry in entries if entry.owner.alive()}
        held = {entry.thing for entry in entries if id(entry) in alive}
        return [entry for entry in entries if id(entry) not in alive and entry.thing not in held]

    def forget_abandoned(self, kind: Kind, name: str) -> None:
        """Forget dead entries of a name that was free just now, and is therefore ours: nothing of it was left."""
        for entry in self.entries():
            if entry.thing == (kind, name) and not entry.owner.alive():
                self.done(entry.entry_id)

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

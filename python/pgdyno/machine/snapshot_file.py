"""What is known of the snapshots of a state directory: one file, which is written at once or not at all.

So of a set of snapshots either all are known or none. Who changes it holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..base.errors import HostError, InputError
from ..base.quantity import duration_words
from .waiting import wait_until

_FILE = "snapshots.json"
_GIB = 1 << 30
HOURS_PER_MONTH = 730
"""As everywhere in pgdyno's prices."""


@dataclass(frozen=True)
class VolumeSnapshot:
    """A volume's content at one instant."""

    name: str
    set_name: str
    """The same for those that were taken together."""
    volume: str
    volume_id: str
    """Differs for each volume that had this name."""
    image: str
    spec: str
    """Specification of the volume when it was taken."""
    store: str
    size_bytes: int
    """Size of the volume."""
    stored_bytes: int
    """Blocks of 512 KiB that the snapshots before it, in its region and outside the archive, do not hold; of an archived one all."""
    held_bytes: int
    """All blocks that are held: a full copy."""
    taken_unix_ns: int
    pending_s: float
    """Time from the instant until it is completed."""
    region: str = ""
    """Where it was copied to; empty where it was taken."""
    copy_of: str = ""
    """The snapshot that it is a copy of."""
    copied_unix_ns: int = 0
    """When the copy began."""
    archived_unix_ns: int = 0
    """When it was moved to the archive, where it is a full copy; 0 outside of it."""

    schedule: str = ""
    """The schedule of a policy that took it."""
    due_unix_s: float = 0.0
    """When that was due."""
    fast_zones: int = 0
    """Zones in which fast snapshot restore is enabled."""
    fast_unix_ns: int = 0
    """Since when."""
    fast_balance: float = 0.0
    """Volume creation credits that were left when the last one was spent, at ``fast_spent_unix_ns``."""
    fast_spent_unix_ns: int = 0

    def left_s(self, now_unix_s: float) -> float:
        """Seconds until it is completed; 0 from then on."""
        return max(0.0, self.taken_unix_ns / 1e9 + self.pending_s - now_unix_s)

    @property
    def archived(self) -> bool:
        """Whether it is in the archive."""
        return self.archived_unix_ns > 0

    def usd_per_month(self, prices: Mapping[str, float]) -> float:
        """Price of what it stores, and of fast snapshot restore; ``prices`` are the catalogue's."""
        key = "archive_gib_month_usd" if self.archived else "gib_month_usd"
        fast = self.fast_zones * HOURS_PER_MONTH * prices["fast_restore_hour_usd"]
        return self.stored_bytes / _GIB * prices[key] + fast


@dataclass
class SnapshotCatalog:
    """All that the file says."""

    last: int = 0
    """The last number that a name has had."""
    snapshots: list[VolumeSnapshot] = field(default_factory=list)
    """The oldest first."""
    unlisted: list[VolumeSnapshot] = field(default_factory=list)
    """Deleted ones that others may need, and those of a set that was interrupted; of some there is nothing."""
    saved: list[str] = field(default_factory=list)
    """Images that earlier versions saved; now each image's folder has those that stand on it."""

    @property
    def all(self) -> list[VolumeSnapshot]:
        """Listed or not, the oldest first."""
        return sorted([*self.snapshots, *self.unlisted], key=lambda snapshot: int(snapshot.name.removeprefix("snap-")))


PATIENCE_S = 150.0
"""Longer than taking snapshots may take, which is what holds the lock for longest."""
_NOTE_S = 2.0
"""After that a command that waits says for whom."""


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """One command at a time changes what is known; the others wait, and say for whom. :class:`HostError` after :data:`PATIENCE_S`."""
    with held(state / "snapshots.lock", PATIENCE_S, "changes the list of snapshots"):
        yield


@contextmanager
def held(path: Path, patience_s: float, what: str) -> Iterator[None]:
    """The lock of a file, in which its owner writes its process id. ``what`` it does with the lock, for people."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not wait_until(lambda: _try(handle), min(_NOTE_S, patience_s)):
            if patience_s > _NOTE_S:
                print(f"waiting: {_owner(handle)[1]} {what}", file=sys.stderr)
            if not wait_until(lambda: _try(handle), patience_s - _NOTE_S):
                pid, owner = _owner(handle)
                raise HostError(
                    f"{owner} {what}, and did not end within {patience_s:g} s",
                    remedy="wait until it ends, or end it; if it is stopped, `kill -CONT` resumes it",
                    code="snapshot.lock.held",
                    data={"pid": pid, "lock": str(path)},
                )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _owner(handle: int) -> tuple[int | None, str]:
    """Process id of who holds a lock, and how to name it."""
    text = os.pread(handle, 32, 0).strip()
    if not text.isdigit():
        return None, "another process"
    try:
        command = Path(f"/proc/{int(text)}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        command = ""
    name = " ".join(word.rsplit("/", 1)[-1] for word in command.split()[:4])
    return int(text), f"process {int(text)}" + (f" ({name})" if name and name.isprintable() else "")


def read(state: Path) -> SnapshotCatalog:
    """What is known. :class:`HostError` when the file is not one that this program has written."""
    path = state / _FILE
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return SnapshotCatalog()
    try:
        document = json.loads(text)
        lists = {name: [_snapshot(item) for item in document[name]] for name in ("snapshots", "unlisted")}
        saved = [str(item) for item in document.get("saved", ())]
        return SnapshotCatalog(int(document["last"]), lists["snapshots"], lists["unlisted"], saved)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise HostError(
            f"{path}, the list of snapshots, is damaged: {type(error).__name__}: {error}",
            remedy="put back a copy of it, or remove it: the snapshots' folders stay, and can be attached with --image",
            code="snapshot.list.damaged",
            data={"path": str(path)},
        ) from None


_NAME = re.compile(r"snap-[0-9]{1,18}")
_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}


def _snapshot(document: Any) -> VolumeSnapshot:
    snapshot = VolumeSnapshot(**document)
    wrong = [
        field.name
        for field in fields(snapshot)
        if not isinstance(getattr(snapshot, field.name), _TYPES[str(field.type)])
    ]
    if wrong or not _NAME.fullmatch(snapshot.name) or not Path(snapshot.image).is_absolute():
        raise ValueError(f"`{', '.join(wrong) or snapshot.name}` of a snapshot is not as it should be")
    return snapshot


def write(state: Path, known: SnapshotCatalog) -> None:
    """Replace what is known; durable, so that a machine that fails has the one or the other."""
    unfinished = state / f"{_FILE}.new"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(asdict(known), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(state / _FILE)
    folder = os.open(state, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def changed(state: Path, what: Mapping[str, Mapping[str, Any]]) -> list[VolumeSnapshot]:
    """Change facts of snapshots, by name; those that are gone are left out. The changed ones."""
    with locked(state):
        known = read(state)
        known.snapshots = [replace(snapshot, **what.get(snapshot.name, {})) for snapshot in known.snapshots]
        write(state, known)
    return [snapshot for snapshot in known.snapshots if snapshot.name in what]


def base_of(image: Path) -> Path | None:
    """The image that a saved image stands on: that has what is not in it. ``None`` for one that has everything."""
    parent = json.loads((image / "image.json").read_text(encoding="utf-8"))["parent"]
    return None if parent is None else Path(parent)


def require_readable(snapshot: VolumeSnapshot) -> None:
    """:class:`InputError` while it is pending, or in the archive."""
    left_s = snapshot.left_s(time.time())
    if left_s > 0:
        raise InputError(
            f"the snapshot `{snapshot.name}` is pending: its blocks are stored in {duration_words(math.ceil(left_s))}",
            remedy="wait until it is completed (`pgdyno volume snapshots`), or take one with a higher --rate",
        )
    if snapshot.archived:
        raise InputError(
            f"the snapshot `{snapshot.name}` is in the archive",
            remedy=f"take it out with `pgdyno volume snapshot unarchive {snapshot.name}`",
        )

"""What is known of the snapshots of a state directory: one file, which is written at once or not at all.

So of a set of snapshots either all are known or none. Who changes it holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pgdyno.errors import InputError
from pgdyno.quantity import duration_words

_FILE = "snapshots.json"
_GIB = 1 << 30
HOURS_PER_MONTH = 730
"""As everywhere in pgdyno's prices."""


@dataclass(frozen=True)
class Snapshot:
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
class Known:
    """All that the file says."""

    last: int = 0
    """The last number that a name has had."""
    snapshots: list[Snapshot] = field(default_factory=list)
    """The oldest first."""
    unlisted: list[Snapshot] = field(default_factory=list)
    """Deleted ones that others may need, and those of a set that was interrupted; of some there is nothing."""
    saved: list[str] = field(default_factory=list)
    """Images that volumes were saved as and that may stand on a snapshot; some may be gone."""

    @property
    def all(self) -> list[Snapshot]:
        """Listed or not, the oldest first."""
        return sorted([*self.snapshots, *self.unlisted], key=lambda one: int(one.name.removeprefix("snap-")))


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """One command at a time changes what is known; the others wait."""
    with (state / "snapshots.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read(state: Path) -> Known:
    """What is known."""
    try:
        document = json.loads((state / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Known()
    lists = {name: [Snapshot(**one) for one in document[name]] for name in ("snapshots", "unlisted")}
    return Known(document["last"], lists["snapshots"], lists["unlisted"], document["saved"])


def write(state: Path, known: Known) -> None:
    """Replace what is known."""
    unfinished = state / f"{_FILE}.new"
    unfinished.write_text(json.dumps(asdict(known), indent=1), encoding="utf-8")
    unfinished.replace(state / _FILE)


def changed(state: Path, what: Mapping[str, Mapping[str, Any]]) -> list[Snapshot]:
    """Change facts of snapshots, by name; those that are gone are left out. The changed ones."""
    with locked(state):
        known = read(state)
        known.snapshots = [replace(one, **what.get(one.name, {})) for one in known.snapshots]
        write(state, known)
    return [one for one in known.snapshots if one.name in what]


def require_readable(snapshot: Snapshot) -> None:
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


def note_saved(state: Path, image: Path) -> None:
    """Note that a volume is about to be saved as ``image``, which may stand on a snapshot."""
    if (state / _FILE).exists():
        with locked(state):
            known = read(state)
            known.saved.append(str(image))
            write(state, known)

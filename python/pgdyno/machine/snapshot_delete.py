"""Deleting snapshots, and removing the layers that no snapshot, image or volume needs.

A deleted snapshot leaves the list at once. What becomes of its layer is the engine's (``crates/emulate/src/store/collect.rs``): it is removed,
merged with the one layer that needs it, or stays as long as a volume reads it. Nothing of that needs room on the disk, and the list is
free meanwhile.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import engine
from ..base.errors import HostError, PgdynoError
from . import snapshot_file
from .journal import HostJournal
from .snapshot_file import VolumeSnapshot
from .snapshot_sizes import with_sizes

COLLECT_TIMEOUT_S = 3600.0
"""Layers are merged, on a slow disk."""
_PATIENCE_S = 30.0
"""For another command that removes layers; what it leaves the next one removes."""
_USUAL = ("in_use", "shared")
"""Why a layer stays that goes by itself later."""


@dataclass(frozen=True)
class RetainedLayer:
    """An unlisted layer that stays."""

    image: Path
    why: str
    """``in_use``, ``shared``, ``image_missing``, ``damaged``, ``no_room`` or ``failed``."""
    facts: dict[str, Any] = field(default_factory=dict)
    """``images`` that are missing, the damaged image that is meant ``by`` it, or the ``message`` of the machine."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"image": str(self.image), "why": self.why} | self.facts

    def __str__(self) -> str:
        """For people, with what to do."""
        match self.why:
            case "image_missing":
                images = " and ".join(map(str, self.facts["images"]))
                return (
                    f"{self.image} stays: {images} stands on it and is not where it was saved;"
                    " if it is gone for good and not only moved, remove that folder"
                )
            case "damaged":
                return f"{self.image} stays: {self.facts['by']} may stand on it, and is damaged; remove that image or put it back"
            case "no_room":
                return f"{self.image} is not merged yet: less than 64 MiB would be left on its file system; free some space"
            case "failed":
                return f"{self.image} could not be removed: {self.facts['message']}"
        return (
            f"{self.image} stays as long as " + ("volumes" if self.why == "in_use" else "several images") + " need it"
        )


@dataclass(frozen=True)
class LayerCleanup:
    """What became of the layers of deleted snapshots."""

    removed: tuple[Path, ...] = ()
    kept: tuple[RetainedLayer, ...] = ()

    @property
    def notable(self) -> list[RetainedLayer]:
        """Those that may stay until the user does something about it."""
        return [layer for layer in self.kept if layer.why not in _USUAL]


@dataclass(frozen=True)
class SnapshotDeletion(LayerCleanup):
    """The same of a deletion."""

    stored_bytes_less: int = 0
    """What is stored less, and not charged any more."""


def delete(snapshots: Sequence[VolumeSnapshot], state: Path) -> SnapshotDeletion:
    """Delete ``snapshots``: the blocks that no other snapshot needs are not stored any more.

    A layer that a volume or a saved image stands on, or that several snapshots share, stays on this machine until it is not needed; it is
    not charged for blocks that no snapshot needs. When this raises the list of snapshots is as it was.
    """
    names = {snapshot.name for snapshot in snapshots}
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        before = sum(snapshot.stored_bytes for snapshot in known.snapshots)
        known.unlisted += [snapshot for snapshot in known.snapshots if snapshot.name in names]
        known.snapshots = [snapshot for snapshot in known.snapshots if snapshot.name not in names]
        # Where an image cannot be read each of them keeps the size that it had.
        with contextlib.suppress(PgdynoError):
            known.snapshots = with_sizes(known.snapshots)
        snapshot_file.write(state, known)
        less = before - sum(snapshot.stored_bytes for snapshot in known.snapshots)
    done = collect(state)
    return SnapshotDeletion(done.removed, done.kept, less)


def collect(state: Path, *, merge: bool = True, patience_s: float = _PATIENCE_S) -> LayerCleanup:
    """Remove the layers that nothing needs, and with ``merge`` merge those that one other image needs. Never raises for a single layer."""
    if not snapshot_file.read(state).unlisted:
        return LayerCleanup()
    try:
        with snapshot_file.held(state / "snapshots.collect.lock", patience_s, "removes layers of deleted snapshots"):
            return _collect(state, merge=merge)
    except HostError as error:
        if error.code != "snapshot.lock.held":
            raise
        return LayerCleanup()


def useless(state: Path) -> list[Path]:
    """The layers that :func:`collect` would remove now; nothing is changed."""
    return list(_ask(snapshot_file.read(state), merge=False, dry_run=True).removed)


def _collect(state: Path, *, merge: bool) -> LayerCleanup:
    done = _ask(snapshot_file.read(state), merge=merge, dry_run=False)
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        # A copy shares the layer of its original.
        listed = {snapshot.image for snapshot in known.snapshots}
        known.unlisted = [
            snapshot for snapshot in known.unlisted if Path(snapshot.image).is_dir() and snapshot.image not in listed
        ]
        known.saved = [saved for saved in known.saved if Path(saved).is_dir()]
        snapshot_file.write(state, known)
    return done


def _ask(known: snapshot_file.SnapshotCatalog, *, merge: bool, dry_run: bool) -> LayerCleanup:
    unlisted = [item.image for item in known.all if item in known.unlisted]
    if not unlisted:
        return LayerCleanup()
    document = {
        "unlisted": unlisted,
        "needed": [*(snapshot.image for snapshot in known.snapshots), *known.saved],
        "merge": merge,
        "dry_run": dry_run,
    }
    answer = engine.run_json(["volume", "collect"], document, timeout_s=COLLECT_TIMEOUT_S)
    kept = (
        RetainedLayer(
            Path(item["image"]), item["why"], {key: value for key, value in item.items() if key not in ("image", "why")}
        )
        for item in answer["kept"]
    )
    return LayerCleanup(tuple(map(Path, answer["removed"])), tuple(kept))


@contextlib.contextmanager
def temporary(journal: HostJournal, volume: str) -> Iterator[None]:
    """Delete at the end of a ``with`` block, or after a killed command, the snapshots of ``volume`` and of those called after it."""
    entry = journal.record("snapshots", name=volume)
    try:
        yield
    finally:
        delete(of_volume(volume, journal.state_dir), journal.state_dir)
        journal.done(entry)


def of_volume(volume: str, state: Path) -> list[VolumeSnapshot]:
    """The snapshots of ``volume`` and of those called after it, as the others of its server are."""
    listed = snapshot_file.read(state).snapshots
    named = re.compile(re.escape(volume) + r"(-\d+)?")
    return [item for item in listed if named.fullmatch(item.volume)]

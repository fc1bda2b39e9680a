"""Deleting snapshots: what no other needs goes, and the rest is merged into the one that needs it."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno import _engine
from pgdyno.host import snapshot_file
from pgdyno.host.snapshot import volume_id
from pgdyno.host.snapshot_sizes import with_sizes
from pgdyno.host.volume import list_volumes

if TYPE_CHECKING:
    from pgdyno.host.journal import Journal
    from pgdyno.host.snapshot_file import Known, Snapshot

MERGE_TIMEOUT_S = 3600.0
"""A full first snapshot may be copied, to a slow disk."""


def delete(snapshots: Sequence[Snapshot], state: Path) -> int:
    """Delete ``snapshots``. Bytes that are stored less by that: the blocks that no other snapshot needs.

    A layer that a volume stands on, or that several snapshots share, stays on this machine until it is not needed; it is not
    charged for blocks that no snapshot needs.
    """
    names = {one.name for one in snapshots}
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        before = sum(one.stored_bytes for one in known.snapshots)
        known.unlisted += [one for one in known.snapshots if one.name in names]
        known.snapshots = [one for one in known.snapshots if one.name not in names]
        snapshot_file.write(state, known)
        _collect(known, state)
        known.snapshots = with_sizes(known.snapshots)
        snapshot_file.write(state, known)
    return before - sum(one.stored_bytes for one in known.snapshots)


@contextlib.contextmanager
def temporary(journal: Journal, volume: str) -> Iterator[None]:
    """Delete at the end of a ``with`` block, or after a killed command, the snapshots of ``volume`` and of those called after it."""
    entry = journal.record("snapshots", name=volume)
    try:
        yield
    finally:
        delete(of_volume(volume, journal.state_dir), journal.state_dir)
        journal.done(entry)


def of_volume(volume: str, state: Path) -> list[Snapshot]:
    """The snapshots of ``volume`` and of those called after it, as the others of its server are."""
    listed = snapshot_file.read(state).snapshots
    named = re.compile(re.escape(volume) + r"(-\d+)?")
    return [one for one in listed if named.fullmatch(one.volume)]


def _collect(known: Known, state: Path) -> None:
    """Remove the layers that nothing needs, and merge those that one other image needs."""
    # A copy shares the layer of its original.
    used = _below_volumes(known, state) | {one.image for one in known.snapshots}
    before = None
    # What goes may have been the last but one that needed another.
    while before != (before := len(known.unlisted)):
        for one in [one for one in known.all if one in known.unlisted]:
            image = Path(one.image)
            if not image.is_dir() or (one.image not in used and _goes(image, known)):
                known.unlisted.remove(one)
    known.saved = [saved for saved in known.saved if Path(saved).is_dir()]


def _goes(image: Path, known: Known) -> bool:
    """Remove a layer if at most one image stands on it, into which it is merged. Whether it is gone."""
    others = {*(one.image for one in known.all), *known.saved}
    parents = {other: _parent(Path(other)) for other in others if Path(other).is_dir()}
    if _UNFINISHED in parents.values():
        return False  # what it stands on is not known
    above = [other for other, parent in parents.items() if parent == str(image)]
    if len(above) > 1:
        return False
    if above:
        _engine.run_json(["volume", "merge", str(image), above[0]], timeout_s=MERGE_TIMEOUT_S)
    else:
        shutil.rmtree(image)
    return True


_UNFINISHED = "?"


def _parent(image: Path) -> str | None:
    """The image below, as ``image`` says; :data:`_UNFINISHED` of a layer that is not an image yet."""
    try:
        parent = json.loads((image / "image.json").read_text(encoding="utf-8"))["parent"]
    except FileNotFoundError:
        return _UNFINISHED
    return None if parent is None else str(parent)


def _below_volumes(known: Known, state: Path) -> set[str]:
    """The images that attached volumes stand on: the last snapshot of each, or what it began with."""
    used = set()
    for volume in list_volumes(state):
        own = [one.image for one in known.all if one.volume_id == volume_id(volume) and Path(one.image).is_dir()]
        below = own[-1] if own else volume.facts.get("image")
        if below is not None:
            used.add(str(below))
    return used

"""What snapshots store: the rules of who pays for a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..base import engine
from .snapshot_file import VolumeSnapshot


def with_sizes(snapshots: Sequence[VolumeSnapshot]) -> list[VolumeSnapshot]:
    """The same with what each stores and holds now; one whose content is gone stays as it was.

    In each region a block that several snapshots need counts for the first of them. An archived one is a full copy and spares the
    others nothing.
    """
    document = {snapshot.name: snapshot for snapshot in snapshots}
    there = [snapshot for snapshot in snapshots if Path(snapshot.image).is_dir()]
    for region in dict.fromkeys(snapshot.region for snapshot in there):
        chain = [snapshot for snapshot in there if snapshot.region == region and not snapshot.archived]
        if chain:
            sizes = engine.run_json(["volume", "stored", *(item.image for item in chain)])["stored"]
            document |= {item.name: replace(item, **size) for item, size in zip(chain, sizes, strict=True)}
    document |= {
        snapshot.name: replace(snapshot, stored_bytes=snapshot.held_bytes) for snapshot in there if snapshot.archived
    }
    return list(document.values())

"""What snapshots store: the rules of who pays for a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno import _engine
from pgdyno.host.snapshot_file import Snapshot


def with_sizes(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """The same with what each stores and holds now; one whose content is gone stays as it was.

    In each region a block that several snapshots need counts for the first of them. An archived one is a full copy and spares the
    others nothing.
    """
    found = {one.name: one for one in snapshots}
    there = [one for one in snapshots if Path(one.image).is_dir()]
    for region in dict.fromkeys(one.region for one in there):
        chain = [one for one in there if one.region == region and not one.archived]
        if chain:
            sizes = _engine.run_json(["volume", "stored", *(one.image for one in chain)])["stored"]
            found |= {one.name: replace(one, **size) for one, size in zip(chain, sizes, strict=True)}
    found |= {one.name: replace(one, stored_bytes=one.held_bytes) for one in there if one.archived}
    return list(found.values())

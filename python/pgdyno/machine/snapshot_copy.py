"""Copies of snapshots in other regions, and the archive.

A copy shares its layers with its original on this machine, and is charged as one that stands alone in its region. An archived
snapshot is charged as a full copy, and what only it held outside the archive is charged no more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..base.catalog import Catalog
from ..base.errors import InputError
from . import snapshot_file
from .snapshot import find
from .snapshot_file import VolumeSnapshot, require_readable
from .snapshot_sizes import with_sizes

REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]+")
_MIB = 1 << 20


def copy(
    snapshots: Sequence[VolumeSnapshot], region: str, state: Path, *, rate_mib_per_s: float | None = None
) -> list[VolumeSnapshot]:
    """Copy each of ``snapshots`` to ``region``, at a rate (None: the catalogue's). It stores what the copies there do not hold.

    :class:`InputError` when one is pending, in the archive, or in that region already.
    """
    if not REGION.fullmatch(region):
        raise InputError(f"`{region}` is not the name of a region", remedy="write it as eu-west-1")
    with Catalog() as catalog:
        rate = catalog.snapshots()["taking"]["rate_mib_per_s"] if rate_mib_per_s is None else rate_mib_per_s
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        copies = []
        for snapshot in snapshots:
            require_readable(snapshot)
            there = next(
                (other.name for other in known.snapshots if other.region == region and other.image == snapshot.image),
                None,
            )
            if there is not None:
                raise InputError(
                    f"the snapshot `{snapshot.name}` is in {region} already, as `{there}`",
                    remedy="use that one, or delete it",
                )
            known.last += 1
            copies.append(
                replace(
                    snapshot,
                    name=f"snap-{known.last}",
                    # No volume stands on it, and it is none of the pending ones of its volume.
                    volume_id="",
                    region=region,
                    copy_of=snapshot.name,
                    copied_unix_ns=time.time_ns(),
                    schedule="",
                    fast_zones=0,
                )
            )
        sized = {with_size.name: with_size for with_size in with_sizes([*known.snapshots, *copies])}
        made = [_pending(sized[copy.name], float(rate)) for copy in copies]
        known.snapshots += made
        snapshot_file.write(state, known)
    return made


def _pending(snapshot: VolumeSnapshot, rate_mib_per_s: float) -> VolumeSnapshot:
    before_s = (snapshot.copied_unix_ns - snapshot.taken_unix_ns) / 1e9
    return replace(snapshot, pending_s=before_s + snapshot.stored_bytes / _MIB / rate_mib_per_s)


def archive(snapshots: Sequence[VolumeSnapshot], state: Path) -> list[VolumeSnapshot]:
    """Move ``snapshots`` to the archive. :class:`InputError` when one is pending, or there already."""
    for snapshot in snapshots:
        require_readable(snapshot)
    return _moved(snapshots, state, time.time_ns())


def unarchive(snapshots: Sequence[VolumeSnapshot], state: Path) -> list[VolumeSnapshot]:
    """Take ``snapshots`` out of the archive. :class:`InputError` when one is not there."""
    for snapshot in snapshots:
        if not snapshot.archived:
            raise InputError(f"the snapshot `{snapshot.name}` is not in the archive", remedy="leave it out")
    return _moved(snapshots, state, 0)


def _moved(snapshots: Sequence[VolumeSnapshot], state: Path, archived_unix_ns: int) -> list[VolumeSnapshot]:
    names = {snapshot.name for snapshot in snapshots}
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        known.snapshots = with_sizes(
            [
                replace(snapshot, archived_unix_ns=archived_unix_ns) if snapshot.name in names else snapshot
                for snapshot in known.snapshots
            ]
        )
        snapshot_file.write(state, known)
    return [find(snapshot.name, state) for snapshot in snapshots]

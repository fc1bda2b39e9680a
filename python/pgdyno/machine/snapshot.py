"""Snapshots of attached volumes: taken at one instant, listed, restored.

A snapshot is an image (``crates/emulate/src/store``): the layer of the volume that was written up to the instant, on those below it.
It lies beside the volume's content and outlives the volume. The state directory has one file with what is known of all of them, so
that of a set either all are there or none. As of its changed bytes and a rate it is pending and then completed; its content is there
at once, and only a completed one can be restored, as with AWS.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base import engine
from ..base.catalog import Catalog
from ..base.errors import HostError, InputError
from ..base.quantity import duration_words
from ..base.specification import init_of, replaced_init
from . import paths, snapshot_fast, snapshot_file
from .named import find_named
from .snapshot_file import VolumeSnapshot
from .snapshot_sizes import with_sizes
from .volume import WORK_TIMEOUT_S, AttachedVolume, attach

HDD = ("st1", "sc1")
"""Types with fewer pending snapshots, which do their baseline while one is pending."""
_MIB = 1 << 20


@dataclass(frozen=True)
class Taken:
    """A set of snapshots that was just taken."""

    snapshots: tuple[VolumeSnapshot, ...]
    waited_s: float
    """How long a request may have waited for it."""


def take(volumes: Sequence[AttachedVolume], *, rate_mib_per_s: float | None = None) -> Taken:
    """Take a snapshot of each of ``volumes``, all of one instant, while they are used. Either all are taken or none.

    What was answered before the instant is in them; what was submitted later is not. What the kernel's page cache has not
    written is not, either. ``rate_mib_per_s`` is the rate at which changed blocks are stored (None: the catalogue's).
    :class:`InputError` when the volumes are not of one instance, one is lost, or one has as many pending snapshots as it may have.
    """
    _require_one_daemon(volumes)
    state = volumes[0].state_dir
    with Catalog() as catalog:
        taking = catalog.snapshots()["taking"]
    rate = float(taking["rate_mib_per_s"]) if rate_mib_per_s is None else rate_mib_per_s
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        for volume in volumes:
            _require_not_too_many(volume, known.snapshots, taking)
        names = [f"snap-{known.last + number}" for number in range(1, len(volumes) + 1)]
        wanted = [_wanted(volume, name, names[0]) for volume, name in zip(volumes, names, strict=True)]
        # A name is used once, and the layers of a set that is interrupted or fails can be found.
        known.last += len(volumes)
        known.unlisted += wanted
        snapshot_file.write(state, known)
        targets = [f"{snapshot.volume}={snapshot.image}" for snapshot in wanted]
        patience_s = WORK_TIMEOUT_S * max(int(volume.facts.get("dilation") or 1) for volume in volumes)
        command = ["volume", "snapshot", *targets, "--state-dir", str(state)]
        answer = engine.run_json(command, timeout_s=patience_s)
        dilations = [int(volume.facts.get("dilation") or 1) for volume in volumes]
        known.unlisted = [snapshot for snapshot in known.unlisted if snapshot not in wanted]
        taken = _with_stored([_taken(snapshot, answer) for snapshot in wanted], answer, known.snapshots)
        taken = [
            replace(snapshot, pending_s=snapshot.stored_bytes / _MIB / rate * dilation)
            for snapshot, dilation in zip(taken, dilations, strict=True)
        ]
        known.snapshots += taken
        snapshot_file.write(state, known)
        for volume, snapshot, dilation in zip(volumes, taken, dilations, strict=True):
            if volume.spec["type"] in HDD:
                volume.tell_pending(snapshot.pending_s / dilation)
    return Taken(tuple(taken), answer["waited_ns"] / 1e9)


def list_snapshots(state_dir: Path | None = None) -> list[VolumeSnapshot]:
    """All snapshots of the state directory, the oldest first."""
    return snapshot_file.read((state_dir or paths.state_dir()).resolve()).snapshots


def find(name: str, state_dir: Path | None = None) -> VolumeSnapshot:
    """The snapshot called ``name``. :class:`InputError` when there is none."""
    none = "take one with `pgdyno volume snapshot NAME`"
    return find_named(name, list_snapshots(state_dir), "snapshot", "there are", none)


def restore(snapshot: VolumeSnapshot, spec: str | None = None, **options: Any) -> AttachedVolume:
    """Attach a volume with the content of ``snapshot``: one like the volume that it was taken of, or the volume ``spec``.

    ``options`` are those of :func:`pgdyno.machine.volume.attach`. :class:`InputError` while the snapshot is pending or archived. With
    ``init=fsr`` a volume creation credit is spent; where there is none the volume is lazy (:func:`snapshot_fast.why_lazy`).
    """
    snapshot_file.require_readable(snapshot)
    image, state = Path(snapshot.image), paths.state_dir()
    if not image.is_dir():
        raise HostError(
            f"the content of the snapshot `{snapshot.name}` is gone: {image} does not exist",
            remedy=f"delete it with `pgdyno volume snapshot delete {snapshot.name}`",
            code="snapshot.content.missing",
            data={"snapshot": snapshot.name, "image": str(image)},
        )
    text, credit = spec or snapshot.spec, None
    if init_of(text) == "fsr":
        credit = _spend(snapshot, state)
        text = text if credit is not None else replaced_init(text, "lazy")
    try:
        # The engine holds what the volume reads, so the list is free meanwhile.
        return attach(text, image=image, store=snapshot.store, state_dir=state, **options)
    except BaseException:
        if credit is not None:
            snapshot_file.changed(state, {snapshot.name: credit})
        raise


def _spend(snapshot: VolumeSnapshot, state: Path) -> dict[str, Any] | None:
    """Spend a volume creation credit, if there is one: what the snapshot's facts were before."""
    with snapshot_file.locked(state):
        known = snapshot_file.read(state)
        now = next((other for other in known.snapshots if other.name == snapshot.name), snapshot)
        spent = snapshot_fast.spend(now, time.time())
        if spent is None:
            return None
        known.snapshots = [spent if other.name == now.name else other for other in known.snapshots]
        snapshot_file.write(state, known)
    return {"fast_balance": now.fast_balance, "fast_spent_unix_ns": now.fast_spent_unix_ns}


def _require_one_daemon(volumes: Sequence[AttachedVolume]) -> None:
    apart = next((volume for volume in volumes if volume.daemon != volumes[0].daemon), None)
    if apart is not None:
        raise InputError(
            f"`{volumes[0].name}` and `{apart.name}` are volumes of two instances, and snapshots of them cannot be of one instant",
            remedy="attach volumes that belong together with the same --instance, or take their snapshots one by one",
        )


def _require_not_too_many(volume: AttachedVolume, known: Sequence[VolumeSnapshot], taking: dict[str, Any]) -> None:
    type_name = str(volume.spec["type"])
    most = int(taking["pending_max_hdd" if type_name in HDD else "pending_max"])
    left_s = sorted(snapshot.left_s(time.time()) for snapshot in known if snapshot.volume_id == volume_id(volume))
    pending = [seconds for seconds in left_s if seconds > 0]
    if len(pending) >= most:
        soon_s = math.ceil(pending[len(pending) - most])
        raise InputError(
            f"`{volume.name}` has {len(pending)} pending snapshots, and a volume of type {type_name} has at most {most}",
            remedy=f"try again in {duration_words(soon_s)}, or take snapshots with a higher --rate",
        )


def volume_id(volume: AttachedVolume) -> str:
    """Differs for each volume that has had this name."""
    return f"{volume.name}/{volume.daemon.pid}/{volume.daemon.start_ticks}/{volume.facts['started_monotonic_ns']}"


def _folder(volume: AttachedVolume) -> Path:
    """Where its snapshots are: on the file system of its content, whose layer becomes the snapshot's."""
    content = Path(volume.facts["layer"]).parent
    return (content.parent if volume.facts["store"] == "memory" else content) / "snapshots"


def _wanted(volume: AttachedVolume, name: str, set_name: str) -> VolumeSnapshot:
    return VolumeSnapshot(
        name=name,
        set_name=set_name,
        volume=volume.name,
        volume_id=volume_id(volume),
        image=str(_folder(volume) / name),
        spec=str(volume.spec["spec"]),
        store=str(volume.facts["store"]),
        size_bytes=int(volume.spec["size_bytes"]),
        stored_bytes=0,
        held_bytes=0,
        taken_unix_ns=0,
        pending_s=0.0,
    )


def _taken(wanted: VolumeSnapshot, answer: dict[str, Any]) -> VolumeSnapshot:
    snapshot = answer["snapshots"][wanted.volume]
    return replace(
        wanted,
        size_bytes=int(snapshot["size_bytes"]),
        stored_bytes=int(snapshot["changed_bytes"]),
        held_bytes=int(snapshot["held_bytes"]),
        taken_unix_ns=int(answer["taken_unix_ns"]),
    )


def _with_stored(
    taken: list[VolumeSnapshot], answer: dict[str, Any], known: Sequence[VolumeSnapshot]
) -> list[VolumeSnapshot]:
    """With the bytes that they store: what changed, unless a snapshot before is not there, or is in the archive."""
    before = {None, *(snapshot.image for snapshot in known if not (snapshot.region or snapshot.archived))}
    if all(answer["snapshots"][snapshot.volume]["parent"] in before for snapshot in taken):
        return taken
    sized = {with_size.name: with_size for with_size in with_sizes([*known, *taken])}
    return [sized[snapshot.name] for snapshot in taken]

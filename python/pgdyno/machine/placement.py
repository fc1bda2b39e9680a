"""Several volumes of one instance: each attached and mounted by its role, all removed together.

The volumes share the instance's memory, dirty limits and CPUs. Where the instance is of a type with limits to its
volumes they share those too, and one daemon serves them; else each has a daemon and limits of its own.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import HostError, InputError
from ..base.specification import VolumeSpec
from . import paths, program, volume
from .file_system import FileSystem, trim
from .journal import HostJournal
from .volume import AttachedVolume

DATA = "data"
"""The role that every placement has."""
TRIM_S = 10.0
"""How often volumes are trimmed while they are filled: a file system seldom takes the blocks again that removed WAL had. Without it 31 GB of
a database took 61 GB of a disk (2026-11)."""
_FSTRIM_S = 600


@dataclass(frozen=True)
class Placement:
    """Which volume is for what. ``volumes`` maps a role (``data``, ``wal``, ...) to a specification.

    An empty specification means that there is no such volume: what it would hold lies with the data.
    """

    volumes: Mapping[str, str | VolumeSpec]
    file_system: FileSystem = "ext4"
    mount_options: str = ""
    instance_type: str | None = None
    """Whose limits the volumes share; ``None`` where there are none to share."""
    dilation: int = 1
    """How many times slower than real ones the volumes are."""
    store: str = "memory"
    """Where their content is: in memory, or in a directory on a disk."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that have a volume, the data's first."""
        chosen = [role for role, spec in self.volumes.items() if spec]
        if DATA not in chosen:
            raise InputError("there is no volume for the data", remedy="name one for the role `data`")
        return (DATA, *sorted(role for role in chosen if role != DATA))


@dataclass
class AttachedPlacement:
    """The volumes of a placement while they are attached."""

    volumes: dict[str, AttachedVolume] = field(default_factory=dict)
    """By role, the data's first."""

    @property
    def mounts(self) -> dict[str, Path]:
        """Where each role's file system is."""
        return {role: attached.mount for role, attached in self.volumes.items() if attached.mount is not None}

    @contextmanager
    def trimmed(self, *, meanwhile: bool = True) -> Iterator[None]:
        """Give back what removed files took, which would become part of the images: after the ``with`` block, and every :data:`TRIM_S` ``meanwhile``."""
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(TRIM_S):
                for mount in self.mounts.values():
                    with suppress(HostError):
                        program.run("fstrim", mount, timeout_s=_FSTRIM_S)

        thread = threading.Thread(target=work, name="pgdyno-trim", daemon=True)
        if meanwhile:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if meanwhile:
                thread.join(_FSTRIM_S)
        for mount in self.mounts.values():
            with suppress(HostError):
                trim(mount, timeout_s=_FSTRIM_S)

    def detach(self, save_images: Mapping[str, Path] | None = None) -> None:
        """Detach every volume; ``save_images`` keeps the content of the roles it names.

        The first error is raised, after all have been tried. Detaching twice is allowed.
        """
        with ExitStack() as stack:
            while self.volumes:
                role, attached = self.volumes.popitem()
                stack.callback(attached.detach, (save_images or {}).get(role))


@contextmanager
def attach_placement(
    placement: Placement, *, name: str, images: Mapping[str, Path] | None = None, seed: int = 0, journal: HostJournal
) -> Iterator[AttachedPlacement]:
    """Attach and mount every volume of ``placement`` for the length of a ``with`` block.

    The data's volume is called ``name``, the others after it. A role in ``images`` starts as a clone of that image,
    the others empty. ``seed`` is the data volume's; each other role draws from one derived from it, or has its own place
    in the instance's.
    """
    attached = AttachedPlacement()
    paths.make_walkable(journal.state_dir / "mounts")
    shared = placement.instance_type is not None
    with ExitStack() as stack:
        for number, role in enumerate(placement.roles):
            own = name if role == DATA else f"{name}-{number}"
            mount = stack.enter_context(journal.directory(journal.state_dir / "mounts" / own))
            stack.callback(attached.detach)
            attached.volumes[role] = volume.attach(
                placement.volumes[role],
                mount=mount,
                name=own,
                image=(images or {}).get(role),
                store=placement.store,
                # An instance uses the first volume's seed; the others draw from their own place in it.
                seed=None if shared and number else seed_of(seed, role),
                state_dir=journal.state_dir,
                file_system=placement.file_system,
                mount_options=placement.mount_options,
                instance=name if shared else None,
                instance_type=placement.instance_type,
                dilation=placement.dilation,
            )
        yield attached


def seed_of(seed: int, role: str) -> int:
    """The seed of a role's volume: two volumes of one instance must not draw the same service times."""
    if role == DATA:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} {role}".encode()).digest()[:8], "big") >> 2

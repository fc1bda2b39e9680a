"""Names of volumes that are taken and not served: an attach in progress, or an interrupted one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..base.errors import HostError, InputError
from . import mounts, paths
from .journal import HostJournal
from .process import ProcessIdentity, writing_to
from .remove import FACTS_FILE, LOG_FILE, exists, remove_volume


@dataclass(frozen=True)
class UnfinishedVolume:
    """A name without a volume. ``owner`` is the process that attaches it now; ``None``: the attach was interrupted."""

    name: str
    state_dir: Path
    owner: ProcessIdentity | None

    @property
    def state(self) -> str:
        """For the list of volumes."""
        if self.owner is not None:
            return f"being attached (process {self.owner.pid})"
        return f"attach interrupted (pgdyno volume detach {self.name})"

    def detach(self) -> None:
        """Remove what is left of it. :class:`InputError` while a process still attaches it."""
        if self.owner is not None:
            raise InputError(
                f"volume `{self.name}` is being attached by process {self.owner.pid}",
                remedy="wait until it is attached, or interrupt that command",
            )
        remove_volume(self.state_dir, self.name)
        if exists(self.state_dir, self.name):
            folder = paths.volumes_dir(self.state_dir) / self.name
            devices = [loop.device for loop in mounts.loops() if paths.is_below(loop.backing_file, folder)]
            how = mounts.how_to_free(devices) or f"end the programs that use {', '.join(devices) or 'it'}"
            raise HostError(f"what is left of volume `{self.name}` is still in use", remedy=f"{how}, then run it again")
        journal = HostJournal(self.state_dir)
        journal.forget_abandoned("volume", self.name)


def _is_ending(state_dir: Path, name: str) -> bool:
    """Whether it was detached just now: its daemon has removed its directory, and ends."""
    gone = not (paths.volumes_dir(state_dir) / name).exists()
    return gone and bool(writing_to(paths.claims_dir(state_dir) / name / LOG_FILE))


def unfinished(state_dir: Path) -> list[UnfinishedVolume]:
    """Every name that is taken without a volume that is attached."""
    folders = (paths.volumes_dir(state_dir), paths.claims_dir(state_dir))
    names = {entry.name for folder in folders if folder.is_dir() for entry in folder.iterdir()}
    owners = {
        str(entry.data["name"]): entry.owner
        for entry in HostJournal(state_dir).entries()
        if entry.kind == "volume" and entry.owner.alive()
    }
    return [
        UnfinishedVolume(name, state_dir, owners.get(name))
        for name in sorted(names)
        if not (paths.volumes_dir(state_dir) / name / FACTS_FILE).exists()
        and not _is_ending(state_dir, name)
        and exists(state_dir, name)
    ]

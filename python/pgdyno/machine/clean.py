"""Undo what killed commands left: the machine is as it was, and nothing that lives is touched.

Safe to run at any time and any number of times. Every step has a deadline; a step that fails leaves its journal
entry, so that the next clean-up tries again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from ..base.errors import HostError, PgdynoError
from . import cgroup, dirty_limits, mounts, paths, preflight, shared_memory, snapshot_delete
from .journal import SERVER_NAME, HostJournal, JournalEntry
from .machine_record import MachineRecord
from .process import ProcessIdentity, boot_id, end, end_all, identity, working_below
from .remove import FACTS_FILE, exists, orphaned_layers, remove_layers, remove_volume
from .scratch import abandoned_scratch, remove_scratch
from .volume import list_volumes

_SERVER_ENDING = ((signal.SIGQUIT, 6.0), (signal.SIGKILL, 10.0))
"""PostgreSQL's immediate shutdown: its data is thrown away anyway, and it removes its shared memory itself."""
_UNMOUNT_S = 10.0
"""A device in memory is unmounted in milliseconds."""
_OTHER_ENDING = ((signal.SIGTERM, 1.0), (signal.SIGKILL, 10.0))
"""initdb and the like have nothing to lose."""


def clean(state_dir: Path | None = None) -> list[str]:
    """Remove whatever dead commands left behind and say, a line each, what was removed.

    :class:`HostError` when this is not root, when another clean-up runs, or when something could not be removed.
    """
    state = (state_dir or paths.state_dir()).resolve()
    if not leftovers(state):
        return []
    preflight.require_root("cleaning up")
    with _alone(state):
        done = _clean(state)
        kept_settings = _restore_settings(done)
    # A record of the machine that another command left meanwhile is not this clean-up's.
    stuck = left_in(state) + kept_settings
    if stuck:
        hint = mounts.how_to_free(_busy(state)) or "end the programs that use them (a shell in a mounted directory?)"
        if kept_settings:
            hint += (
                "; the kernel's settings can be restored where /proc/sys and /sys are writable, as on the host itself"
            )
        raise HostError("some leftovers could not be removed: " + "; ".join(stuck), remedy=f"{hint}, then run it again")
    return done


def _busy(state: Path) -> list[str]:
    """Devices of dead volumes that are still there."""
    dead = [paths.volumes_dir(state) / name for name in _dead_volumes(state)]
    return [loop.device for loop in mounts.loops() if any(paths.is_below(loop.backing_file, folder) for folder in dead)]


def leftovers(state_dir: Path | None = None) -> list[str]:
    """What a clean-up would remove, a line each; nothing is changed."""
    state = (state_dir or paths.state_dir()).resolve()
    return left_in(state) + [kept.what for kept in _machine_records() if kept.abandoned()]


def left_in(state: Path) -> list[str]:
    """The part of :func:`leftovers` that belongs to this state directory alone, not to the whole machine."""
    texts = [_describe(entry) for entry in HostJournal(state).abandoned()]
    claimed = {entry.data["name"] for entry in HostJournal(state).abandoned() if entry.kind == "volume"}
    texts += [f"volume {name}" for name in _dead_volumes(state) if name not in claimed]
    texts += [f"the content {layer} of a dead volume" for layer in orphaned_layers()]
    # Where the list of snapshots cannot be read, nothing of it is removed either.
    with contextlib.suppress(PgdynoError, OSError):
        texts += [f"the layer {layer} of a deleted snapshot" for layer in snapshot_delete.useless(state)]
    texts += [f"{path}, where a killed run wrote its samples" for path in abandoned_scratch(state)]
    return texts


def _machine_records() -> tuple[MachineRecord, ...]:
    return (dirty_limits.record(),)


def _clean(state: Path) -> list[str]:
    journal = HostJournal(state)
    entries = journal.abandoned()
    by_kind = {kind: [entry for entry in entries if entry.kind == kind] for kind in ("process", "shared_memory")}
    done: list[str] = []
    working = _working(by_kind["process"])
    names = shared_memory.posix_names(working)
    in_use = {other.data.get("folder") for other in journal.entries() if other.owner.alive()}
    for entry in by_kind["process"]:
        done += _end_process(entry, lambda: _abort_volumes_of(state, entries))
        if entry.data.get("folder") not in in_use:
            done += _end_orphans(entry)
    for entry in entries:
        if entry.kind == "cgroup":
            done += _end_members(Path(entry.data["path"]))
    volumes = {str(entry.data["name"]) for entry in entries if entry.kind == "volume"} | set(_dead_volumes(state))
    for name in sorted(volumes):
        done += remove_volume(state, name)
    for name in {str(entry.data["name"]) for entry in entries if entry.kind == "snapshots"}:
        left = snapshot_delete.of_volume(name, state)
        snapshot_delete.delete(left, state)
        done += [f"deleted the snapshot {item.name}" for item in left]
    with contextlib.suppress(PgdynoError):
        done += [f"removed {layer}" for layer in snapshot_delete.collect(state).removed]
    done += remove_layers(set(orphaned_layers()))
    for entry in entries:
        if entry.kind == "cgroup":
            done += _remove_group(Path(entry.data["path"]))
        elif entry.kind == "directory":
            done += _remove_directory(Path(entry.data["path"]))
    for entry in by_kind["shared_memory"] + by_kind["process"]:
        if entry.owner.boot_id == boot_id():
            done += shared_memory.remove(int(entry.data["pid"]), names | set(entry.data.get("posix", ())))
    for process in working:
        if not process.alive():
            done += shared_memory.remove(process.pid, ())
    done += remove_scratch(state)
    for entry in entries:
        if not _still_there(state, entry):
            journal.done(entry.entry_id)
    _forget_torn_entries(journal)
    return done


def _restore_settings(done: list[str]) -> list[str]:
    """Put back what killed commands changed of the machine's settings, and add it to ``done``; returns what could not be put back."""
    stuck = []
    for record in _machine_records():
        try:
            done += record.recover()
        except OSError:  # /proc/sys is read-only: the record stays
            stuck.append(record.what)
    return stuck


def _dead_volumes(state: Path) -> list[str]:
    """Volumes without a living daemon: it is dead, or the attach was interrupted before it and its command is dead."""
    served = {volume.name for volume in list_volumes(state) if volume.alive}
    owned = {str(e.data["name"]) for e in HostJournal(state).entries() if e.kind == "volume" and e.owner.alive()}
    folders = (paths.volumes_dir(state), paths.claims_dir(state))
    names = {entry.name for folder in folders if folder.is_dir() for entry in folder.iterdir()}
    return sorted(name for name in names - served - owned if not _just_ready(state, name))


def _just_ready(state: Path, name: str) -> bool:
    """Whether its daemon came to life between our two looks."""
    if not (paths.volumes_dir(state) / name / FACTS_FILE).exists():
        return False
    return any(volume.alive for volume in list_volumes(state) if volume.name == name)


def _working(programs: list[JournalEntry]) -> list[ProcessIdentity]:
    """Servers and initdbs that still run, with their children: noted before they are ended, for their shared memory."""
    processes = [ProcessIdentity.from_json(entry.data) for entry in programs]
    for entry in programs:
        if entry.data.get("folder"):
            processes += working_below(Path(entry.data["folder"]))
    return [process for process in processes if process.alive()]


def _end_process(entry: JournalEntry, unblock: Callable[[], None]) -> list[str]:
    process = ProcessIdentity.from_json(entry.data)
    done = []
    ending = _SERVER_ENDING if entry.data["name"] == SERVER_NAME else _OTHER_ENDING
    if process.alive() and end(process, ending, between=unblock):
        done.append(f"ended {entry.data['name']} (process {process.pid})")
    return done


def _end_orphans(entry: JournalEntry) -> list[str]:
    """End what a killed server left working in its data directory."""
    if not entry.data.get("folder") or entry.owner.boot_id != boot_id():
        return []
    orphans = working_below(Path(entry.data["folder"]))
    end_all(orphans)
    return [f"ended process {orphan.pid} of {entry.data['name']}" for orphan in orphans if not orphan.alive()]


def _abort_volumes_of(state: Path, entries: list[JournalEntry]) -> None:
    """A process that waits for a disk cannot be killed; a disk whose FUSE connection is cut answers with errors."""
    for entry in entries:
        if entry.kind == "volume":
            for mount in mounts.mounts_below(paths.volumes_dir(state) / str(entry.data["name"])):
                mounts.abort_fuse(mount)


def _end_members(group: Path) -> list[str]:
    """End what is in a control group of a dead run. A group is only ours while its members are of this boot."""
    identities = [process for process in cgroup.members(group) if process.pid != os.getpid()]
    end_all(identities)
    return [f"ended process {process.pid} in {group}" for process in identities if not process.alive()]


def _remove_group(group: Path) -> list[str]:
    if not group.is_dir():
        return []
    return [f"removed {group}"] if cgroup.remove(group) else []


def _remove_directory(path: Path) -> list[str]:
    for mount in mounts.mounts_below(path):
        # The content of a power cut is a file in the directory that it is mounted in.
        if any(loop.device == mount.source and paths.is_below(loop.backing_file, path) for loop in mounts.loops()):
            mounts.unmount(mount, _UNMOUNT_S)
    if not path.exists() or mounts.mounts_below(path):
        return []
    shutil.rmtree(path, ignore_errors=True)
    return [f"removed {path}"] if not path.exists() else []


def _still_there(state: Path, entry: JournalEntry) -> bool:
    if entry.kind == "process":
        return ProcessIdentity.from_json(entry.data).alive()
    if entry.kind == "volume":
        return exists(state, str(entry.data["name"]))
    if entry.kind == "snapshots":
        return bool(snapshot_delete.of_volume(str(entry.data["name"]), state))
    if entry.kind in ("cgroup", "directory"):
        return Path(entry.data["path"]).exists()
    return False


def _describe(entry: JournalEntry) -> str:
    what = entry.data.get("name") or entry.data.get("path") or entry.data.get("pid")
    return f"{entry.kind.replace('_', ' ')} {what} of the dead process {entry.owner.pid}"


def _forget_torn_entries(journal: HostJournal) -> None:
    """Files of entries whose process was killed while it wrote them: the change they announce was never made."""
    for file in journal.folder.glob(".*-*-*"):
        pid = int(file.name[1:].split("-")[0])
        owner = identity(pid)
        if owner is None or str(owner.start_ticks) != file.name.split("-")[1]:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(state: Path) -> Iterator[None]:
    paths.make_state_dir(state)
    handle = os.open(state / "clean.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError("another clean-up is running", remedy="wait until it ends") from None
        yield
    finally:
        os.close(handle)

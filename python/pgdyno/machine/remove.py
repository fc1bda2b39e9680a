"""Remove an emulated volume by force, from what the kernel lists, without ever hanging.

This is the way for volumes whose daemon or whose command was killed. Nothing is saved.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

from ..base import engine
from ..base.errors import PgdynoError
from . import mounts, paths
from .process import ProcessIdentity, boot_id, end, end_all, identity, writing_to
from .waiting import wait_until

LOG_FILE = "daemon.log"
CLAIM_FILE = "claim.json"
FACTS_FILE = "volume.json"
PANIC_FILE = "panic.txt"
_TOOLS = ("mkfs.ext4", "mke2fs", "mkfs.xfs", "resize2fs", "xfs_growfs", "mount", "losetup", "pgdyno-engine")
"""What a daemon starts on its device."""
ORDERLY_S = 10.0
"""What an ordinary unmount gets."""
_DAEMON_ENDING = ((signal.SIGTERM, 8.0), (signal.SIGKILL, 10.0))
"""On SIGTERM the daemon takes everything down by itself, without the modelled delays."""


def write_claim(state_dir: Path, name: str, store: str, made: list[Path]) -> None:
    """Write down, before the volume is made, what only its command knows; it lies in the claim's directory.

    ``made`` are the directories that the attach makes for the mount point, the deepest first.
    """
    claim = {
        "layers": str(paths.image_dir() / "layers" if store == "memory" else Path(store)),
        "made_directories": [str(path) for path in made],
    }
    (paths.claims_dir(state_dir) / name / CLAIM_FILE).write_text(json.dumps(claim), encoding="utf-8")


def exists(state_dir: Path, name: str) -> bool:
    """Whether the name is taken: by a volume, or by what is left of one."""
    return any((folder(state_dir) / name).exists() for folder in (paths.claims_dir, paths.volumes_dir))


def remove_volume(state_dir: Path, name: str) -> list[str]:
    """Remove everything of the volume ``name``; returns what was done. Calling it again does no harm.

    The daemon is asked first. What it leaves is taken in this order: the file system; the device; the FUSE mount,
    while it stands the device can be found by its file; the content; the directories last, and only when nothing
    is mounted in them.
    """
    folder = paths.volumes_dir(state_dir) / name
    claim = _read(paths.claims_dir(state_dir) / name / CLAIM_FILE)
    facts = _read(folder / FACTS_FILE)
    done = _end_daemons(state_dir, name, facts)
    loops = [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, folder)]
    for loop in loops:
        mounted = mounts.mounts_of(loop.device)
        if not loop.attached:
            continue  # the kernel has let it go, and what is mounted may be another file's
        for mount in reversed(mounted):
            done += _unmount_file_system(mount, folder)
        done += end_tools(loop)
        if mounts.detach_loop(loop):
            done.append(f"detached {loop.device}")
    if any(loop.attached for loop in loops):
        return done  # someone still has the device open: the next clean-up finds it by its file
    for mount in mounts.mounts_below(folder):
        if mounts.unmount_at_once(mount):
            done.append(f"unmounted {mount.target}")
    if mounts.mounts_below(folder):
        return done
    done += _remove_layers(name, claim, facts)
    done += _remove_made(claim.get("made_directories", []))
    for rest in (folder, paths.claims_dir(state_dir) / name):
        if rest.exists():
            shutil.rmtree(rest, ignore_errors=True)
            done += [f"removed {rest}"] if not rest.exists() else []
    return done


def orphaned_layers() -> list[Path]:
    """Contents in memory whose daemon is dead and whose volume is gone; a layer's name ends with the daemon's pid."""
    folder = paths.image_dir() / "layers"
    return [layer for layer in sorted(folder.iterdir()) if _owner_is_dead(layer)] if folder.is_dir() else []


def serves_others(state_dir: Path, name: str, daemon: ProcessIdentity) -> bool:
    """Whether ``daemon`` serves volumes of its instance beside ``name``, or after it."""
    files = paths.volumes_dir(state_dir).glob(f"*/{FACTS_FILE}")
    return any(_daemon_of(_read(file)) == daemon for file in files if file.parent.name != name)


def _daemon_of(facts: dict[str, Any]) -> ProcessIdentity | None:
    if "pid_start_ticks" not in facts:
        return None
    return ProcessIdentity(int(facts["pid"]), int(facts["pid_start_ticks"]), boot_id())


def _leave(state_dir: Path, name: str) -> None:
    """Let a daemon that serves others too give this volume up: asked first, then its connection is cut."""
    folder = paths.volumes_dir(state_dir) / name
    with contextlib.suppress(PgdynoError):
        engine.run_json(["volume", "detach", name, "--state-dir", str(state_dir)], timeout_s=ORDERLY_S)
    if folder.exists():
        for fuse in mounts.mounts_below(folder):
            mounts.abort_fuse(fuse)
        wait_until(lambda: not folder.exists(), ORDERLY_S)


def _end_daemons(state_dir: Path, name: str, facts: dict[str, Any]) -> list[str]:
    """End the daemon and its children (mkfs, mount): those of its facts, and those that write to its log.

    A daemon that serves other volumes of the instance only gives this one up, unless it is stuck.
    """
    daemons = writing_to(paths.claims_dir(state_dir) / name / LOG_FILE)
    served_by = _daemon_of(facts)
    if served_by is not None:
        daemons.append(served_by)
        if served_by.alive() and serves_others(state_dir, name, served_by):
            _leave(state_dir, name)
    if not (paths.volumes_dir(state_dir) / name).exists():
        daemons = [daemon for daemon in daemons if not serves_others(state_dir, name, daemon)]
    alive = sorted({daemon for daemon in daemons if daemon.alive()}, key=lambda daemon: daemon.pid)
    for daemon in alive:
        end(daemon, _DAEMON_ENDING)
    end_all(alive)
    return [f"ended the volume's process {daemon.pid}" for daemon in alive if not daemon.alive()]


def _unmount_file_system(mount: mounts.Mount, folder: Path) -> list[str]:
    """Unmount what is on the device of a dead daemon: every request fails at once, so nothing should wait."""
    if mounts.unmount(mount, ORDERLY_S):
        return [f"unmounted {mount.target}"]
    for fuse in mounts.mounts_below(folder):
        mounts.abort_fuse(fuse)
    if mounts.unmount(mount, ORDERLY_S) or mounts.unmount_at_once(mount):
        return [f"unmounted {mount.target} by force"]
    return []


def _remove_layers(name: str, claim: dict[str, Any], facts: dict[str, Any]) -> list[str]:
    layers = {Path(facts["layer"])} if facts.get("layer") else set()
    if claim.get("layers"):
        named = re.compile(re.escape(name) + r"(-next)?-\d+")
        above = Path(claim["layers"])
        paths = above.iterdir() if above.is_dir() else iter(())
        layers |= {layer for layer in paths if named.fullmatch(layer.name) and _owner_is_dead(layer)}
    return remove_layers(layers)


def remove_layers(layers: set[Path]) -> list[str]:
    """Remove the contents of dead volumes; returns what was removed."""
    done = []
    for layer in sorted(layers):
        if layer.is_dir():
            shutil.rmtree(layer, ignore_errors=True)
        elif layer.exists():
            layer.unlink()
        else:
            continue
        if not layer.exists():
            done.append(f"removed {layer}")
    return done


def _owner_is_dead(layer: Path) -> bool:
    match = re.search(r"-(\d+)$", layer.name)
    if match is None or int(match[1]) == os.getpid():
        return False
    process = identity(int(match[1]))
    return process is None or not process.alive()


def _remove_made(directories: list[str]) -> list[str]:
    """Remove the directories that the attach made, the deepest first, up to one that something else is in by now."""
    done: list[str] = []
    for path in directories:
        try:
            if mounts.is_mount_point(Path(path)):
                break
            Path(path).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            break
        done.append(f"removed {path}")
    return done


def end_tools(loop: mounts.Loop) -> list[str]:
    """End our own tools that outlived the daemon of this device and still hold it open. Other programs are left alone, and so is
    everyone once the kernel has given the device to another file.
    """
    tools = [holder for holder in mounts.holders(loop.device, None) if holder.name in _TOOLS]
    if not loop.attached:
        return []
    end_all([holder.process for holder in tools])
    return [f"ended {tool.name} (process {tool.process.pid})" for tool in tools if not tool.process.alive()]


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}

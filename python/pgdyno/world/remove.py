"""Take away an emulated volume by force, from what the kernel says is there, without ever hanging.

This is the way for volumes whose daemon or whose command was killed. Nothing is saved.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from pgdyno.world import mounts, paths
from pgdyno.world.process import ProcessIdentity, end_all, writing_to

ORDERLY_S = 10.0
"""What an ordinary unmount gets: it writes out dirty pages at the speed of the volume."""


def remove_volume(state_dir: Path, name: str) -> list[str]:
    """Remove everything of the volume ``name``; returns what was done. Calling it again does no harm.

    The order matters: the file system first, while its disk still answers; then the daemon, which ends every request
    that waits; then the device; then the FUSE mount; the directory last, and only when nothing is mounted in it.
    """
    folder = paths.volumes_dir(state_dir) / name
    done: list[str] = []
    loops = [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, folder)]
    daemons = writing_to(folder / "daemon.log")
    for loop in loops:
        for mount in reversed(mounts.mounts_of(loop.device)):
            done += _unmount_file_system(mount, daemons, folder)
    done += _end_daemons(daemons)
    for loop in loops:
        if mounts.detach_loop(loop):
            done.append(f"detached {loop.device}")
    if any(loop.attached for loop in loops):
        # Someone still has the device open. While the FUSE mount stands the device can be found again by its file.
        return done
    for mount in mounts.mounts_below(folder):
        if mounts.unmount_at_once(mount):
            done.append(f"unmounted {mount.target}")
    return done + _remove_folder(folder)


def _unmount_file_system(mount: mounts.Mount, daemons: list[ProcessIdentity], folder: Path) -> list[str]:
    if mounts.unmount(mount, ORDERLY_S):
        return [f"unmounted {mount.target}"]
    # Busy, or the disk hangs. Without its daemon every request fails at once, and then nothing waits any more.
    done = _end_daemons(daemons)
    for fuse in mounts.mounts_below(folder):
        mounts.abort_fuse(fuse)
    if mounts.unmount(mount, ORDERLY_S) or mounts.unmount_at_once(mount):
        done.append(f"unmounted {mount.target} by force")
    return done


def _end_daemons(daemons: list[ProcessIdentity]) -> list[str]:
    alive = [daemon for daemon in daemons if daemon.alive()]
    end_all(alive)
    return [f"ended the volume's process {daemon.pid}" for daemon in alive if not daemon.alive()]


def _remove_folder(folder: Path) -> list[str]:
    if not folder.exists() or mounts.mounts_below(folder):
        return []
    done = []
    with contextlib.suppress(OSError):  # no such file, or the user put something into the directory
        made = Path((folder / "made_mount_point").read_text(encoding="utf-8"))
        if not mounts.is_mount_point(made):
            made.rmdir()
            done.append(f"removed {made}")
    shutil.rmtree(folder, ignore_errors=True)
    return [*done, f"removed {folder}"] if not folder.exists() else done

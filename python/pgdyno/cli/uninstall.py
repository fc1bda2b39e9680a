"""Removal of everything that pgdyno keeps outside of its package (``pgdyno doctor --uninstall``).

Removes the files that it knows by name, and directories that are then empty. Anything else in them stays and is named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from pgdyno.loader import undo

from .. import _build
from ..base import owner
from ..base.errors import HostError
from ..machine import cgroup, clean, dirty_limits, paths, preflight
from ..machine.journal import HostJournal
from ..machine.process import matching, read_link
from ..machine.volume import list_volumes
from ..server import publish

_STATE = (
    *("volumes", "claims", "journal", "mounts", "instances", "postgres"),
    *("clean.lock", "failed-attach.log", "dirty_limits.json"),
)
"""What is below a state directory (:mod:`pgdyno.machine`, :mod:`pgdyno.server.cluster`, ``crates/emulate``)."""


def remove() -> tuple[list[str], list[str]]:
    """Clean up, remove everything, and say what was removed and what stays, a line each.

    :class:`HostError` when a volume is attached or pgdyno runs, when root is needed, or when something cannot be removed.
    """
    state = paths.state_dir()
    _refuse_while_in_use(state)
    foreign = [path for path in _things(state) if path.lstat().st_uid != os.geteuid()]
    if foreign:
        preflight.require_root(f"removing {foreign[0]}")
    done = clean.clean(state)
    owner.give_modules(_build.PACKAGE.parent)  # those of killed runs, too
    _refuse_while_servers_run()
    for path in _things(state):
        _remove(path)
        done.append(f"removed {path}")
    for group in _groups():
        with contextlib.suppress(OSError):  # absent, or in use; the kernel removes empty ones only
            group.rmdir()
            done.append(f"removed {group}")
    kept = []
    for folder in _folders(state):
        inside = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if inside:
            kept.append(f"{folder} stays: {', '.join(inside[:3])} in it {_whose(inside)}")
        elif folder.is_dir():
            folder.rmdir()
            done.append(f"removed {folder}")
    return done, kept


def _refuse_while_in_use(state: Path) -> None:
    attached = [volume.name for volume in list_volumes(state) if volume.alive]
    if attached:
        raise HostError(
            f"volumes are attached: {', '.join(attached)}", remedy=f"run `pgdyno volume detach {attached[0]}` first"
        )
    running = sorted({entry.owner.pid for entry in HostJournal(state).entries() if entry.owner.alive()} - {os.getpid()})
    if running or dirty_limits.record().in_use():
        named = f": process {', '.join(map(str, running))}" if running else ""
        raise HostError(f"another pgdyno runs{named}", remedy="wait until it ends, or end it")


def _refuse_while_servers_run() -> None:
    """Refuse while a server runs from a copy of PostgreSQL; those of dead runs have been ended by now."""
    copies = publish.copies(publish.default_root())
    servers = matching(lambda pid: _runs_from(read_link(f"/proc/{pid}/exe"), copies))
    if servers:
        named = ", ".join(str(process.pid) for process in servers)
        raise HostError(f"a PostgreSQL of pgdyno's runs: process {named}", remedy="wait until it ends, or end it")


def _runs_from(program: str, copies: list[Path]) -> bool:
    return any(paths.is_below(program, copy.resolve()) for copy in copies)


def _things(state: Path) -> list[Path]:
    """Everything that is removed as a whole."""
    result = publish.copies(publish.default_root())
    result += [folder / name for folder in dict.fromkeys((state, paths.MACHINE_DIR)) for name in _STATE]
    return [path for path in result if os.path.lexists(path)]


def _folders(state: Path) -> list[Path]:
    """Directories that are removed when they are empty.

    Those of images, too: volumes of another state directory may have theirs there, and the clean-up removed what no process serves.
    """
    loads = [undo.default_folder()]
    caller = owner.caller()
    if caller is not None:
        import pwd

        with contextlib.suppress(KeyError):
            loads.append(Path(pwd.getpwuid(caller[0]).pw_dir) / ".local" / "state" / "pgdyno" / "load")
    results = [
        *loads,
        publish.default_root(),
        paths.image_dir() / "layers",
        paths.image_dir(),
        state,
        paths.MACHINE_DIR,
    ]
    above = [folder.parent for folder in (paths.image_dir(), *loads) if folder.parent.name == "pgdyno"]
    return list(dict.fromkeys([*results, *above]))


def _groups() -> list[Path]:
    """The control groups above those of instances."""
    try:
        hierarchy = cgroup.find_hierarchy()
    except HostError:
        return []
    return [hierarchy.group(item, "x").parent for item in cgroup.CONTROLLERS if hierarchy.offers(item)]


def _whose(names: list[str]) -> str:
    if any(name.startswith("undo-") for name in names):
        return "undoes what a load has changed: run `pgdyno load --restore DSN` for its database"
    return "was not made by pgdyno, or is in use"


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(
            f"{error.filename or path} cannot be removed: {error.strerror}", remedy="end what uses it, and run it again"
        ) from error

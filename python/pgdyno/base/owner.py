"""What is written under sudo belongs to the user who called sudo: files, and the directories that were made for them.

What existed before keeps its owner. Without sudo, and where root called it, nothing is done.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path


def caller() -> tuple[int, int] | None:
    """User and group who called sudo; ``None`` when this process is not root's, or was not started by sudo."""
    user, group = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not (user.isdecimal() and group.isdecimal()) or int(user) == 0:
        return None
    return int(user), int(group)


def make_directories(path: Path) -> None:
    """Make a directory with those above it that are missing; what was made belongs to the caller. :class:`OSError`."""
    missing = [parent for parent in (path, *path.parents) if not parent.exists()]
    path.mkdir(parents=True, exist_ok=True)
    owner = caller()
    if owner is not None:
        for other in missing:
            os.chown(other, *owner, follow_symlinks=False)


def give(path: Path, *, replaces: Path | None = None) -> None:
    """Give a file that this process made, or a directory of them with all below it, to the caller. :class:`OSError`.

    With ``replaces`` the owner of an existing file, whose place it will take. Only what belongs to root is given: a link is
    not followed, and a file of several names is left, as it may be anyone's.
    """
    owner = caller()
    if owner is None:
        return
    if replaces is not None and replaces.exists():
        facts = replaces.stat()
        owner = (facts.st_uid, facts.st_gid)
    above = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _give(path.name, above, owner)
    finally:
        os.close(above)
    for _, folders, files, folder in os.fwalk(path):
        for name in (*folders, *files):
            _give(name, folder, owner)


def give_modules(site: Path | None = None) -> None:
    """Give the directories in which Python kept what it compiled as root to the owner of the directory they lie in.

    uv does not compile what it installs: the first run under sudo does, and its user could not remove the tool. Those of
    the modules that this process has loaded, or all below ``site``.
    """
    if caller() is None:
        return
    if site is None:
        cached = {getattr(module, "__cached__", None) for module in list(sys.modules.values())}
        folders = {Path(path).parent for path in cached if path}
    else:
        folders = {Path(folder) for folder, _, _ in os.walk(site)}
    for folder in sorted(folder for folder in folders if folder.name == "__pycache__"):
        with contextlib.suppress(OSError):
            above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                facts = os.fstat(above)
                if facts.st_uid != 0:
                    _give(folder.name, above, (facts.st_uid, facts.st_gid))
            finally:
                os.close(above)


def _give(name: str, folder: int, owner: tuple[int, int]) -> None:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if facts.st_uid == 0 and (stat.S_ISDIR(facts.st_mode) or facts.st_nlink == 1):
        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)

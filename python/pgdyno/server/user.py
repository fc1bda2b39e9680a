"""The unprivileged user that runs the server when the caller is root."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from ..base.errors import HostError
from ..machine.launch import SystemUser


def server_user() -> SystemUser | None:
    """``$PGDYNO_POSTGRES_USER``, else the system's ``postgres``, else ``nobody``; ``None`` when we are not root.

    The user needs an entry in the system's list of users: initdb asks for its name.
    """
    if os.geteuid() != 0:
        return None
    named = os.environ.get("PGDYNO_POSTGRES_USER")
    for name in [named] if named else ["postgres", "nobody"]:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise HostError(
        f"there is no user {named or 'postgres or nobody'} without privileges to run PostgreSQL as",
        remedy="make one with `useradd --system postgres`, or name one in PGDYNO_POSTGRES_USER",
    )


def require_reachable(path: Path, user: SystemUser | None) -> None:
    """``user`` can walk to the directory ``path``; :class:`HostError` names the directory that bars the way."""
    if user is None:
        return
    for folder in reversed((path, *path.parents)):
        facts = folder.stat()
        shift = 6 if facts.st_uid == user.uid else 3 if facts.st_gid == user.gid else 0
        if not stat.S_ISDIR(facts.st_mode) or not (facts.st_mode >> shift) & 1:
            raise HostError(
                f"the user {user.name}, who runs PostgreSQL, cannot enter {folder}",
                remedy=f"run `chmod a+x {folder}`, or use a directory elsewhere",
            )

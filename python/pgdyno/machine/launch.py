"""Start a program so that it can never be lost: written down, in its control groups, and as its user, in that order.

The child is a small shell that waits for one line. Only when the journal holds its process id does it get the line;
when the parent is killed before, it reads the end of the pipe and ends. So no moment exists at which a program runs
that ``pgdyno doctor --clean`` does not know.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import engine
from .journal import HostJournal
from .process import ProcessIdentity, identity

_GATE = (
    "read -r go || exit 125;"
    ' while [ "$1" != -- ]; do echo $$ > "$1" || exit 126; shift; done; shift;'
    ' exec "$@" < /dev/null'
)


@dataclass(frozen=True)
class SystemUser:
    """An account of the system, by its numbers."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class LaunchedProgram:
    """A started program and its entry in the journal."""

    process: subprocess.Popen[bytes]
    identity: ProcessIdentity
    entry_id: str


def launch(
    argv: Sequence[str | Path],
    *,
    journal: HostJournal,
    name: str,
    log: Path,
    env: Mapping[str, str],
    user: SystemUser | None = None,
    join_files: Sequence[Path] = (),
    folder: Path | None = None,
) -> LaunchedProgram:
    """Start ``argv`` in a session of its own, its output appended to ``log`` (opened by this process's user).

    ``user`` is taken on with no privilege left, ``join_files`` are the ``cgroup.procs`` to be in from the first
    instruction on, ``folder`` is where the program's own children work (for the clean-up of orphans).
    """
    command = [*user_prefix(user), *map(str, argv)]
    with log.open("ab") as log_file:
        process = subprocess.Popen(
            engine.child(
                ["/bin/sh", "-c", _GATE, f"pgdyno-{name}", *map(str, join_files), "--", *command], outlives=True
            ),
            stdin=subprocess.PIPE,
            stdout=log_file,
            stderr=log_file,
            env=dict(env),
            cwd="/",
            start_new_session=True,
        )
    assert process.stdin is not None
    try:
        who = identity(process.pid)
        assert who is not None, "a child that waits for its first line exists"
        entry = journal.record("process", **who.to_json(), name=name, folder=None if folder is None else str(folder))
        process.stdin.write(b"go\n")
        process.stdin.close()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return LaunchedProgram(process, who, entry)


def user_prefix(user: SystemUser | None) -> list[str]:
    """What stands before a command line so that it runs as ``user`` with no privilege left; nothing without root."""
    if user is None or os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "--no-new-privs", "--"]

"""Every error that a user can meet.

::

    PgdynoError            exit 1   a failure without a better name
    |-- InputError         exit 2   the input was refused: a flag, a file, a volume's figures; nothing was changed
    |   |-- ObjectChanged  exit 2   an object of a store is not the one that a load began with
    |   `-- ObjectDamaged  exit 2   what came of an object has not the checksum that its store says
    |-- HostError          exit 3   this machine lacks something: root, /dev/fuse, space, a port, a binary
    |   |-- OutputError    exit 3   standard output, or a file that was asked for, cannot be written
    |   `-- EngineMissing  exit 3   pgdyno-engine is absent, or belongs to other sources than this package
    |-- EngineError        exit 1   the engine failed or said something that is not its protocol
    |-- Interrupted        exit 130 Ctrl-C, SIGTERM or SIGHUP in the middle of something; it says what is kept
    |-- RunInvalid         exit 4   the run ended, but its numbers must not be used
    |-- RowsRejected       exit 5   a load ended, and some rows are in its reject file
    `-- CutFailed          exit 6   a power cut lost an acknowledged commit, or left a damaged database

An error says in one sentence what is wrong, and its ``remedy`` says what to do. Its ``code`` is stable, as the sentence is
not: ``load.header.ambiguous``. One place prints errors: :func:`pgdyno.cli.main.main`. Bugs are assertions and other exceptions; they keep their traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from typing import Any

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_HOST = 3
EXIT_INVALID = 4
EXIT_REJECTED = 5
EXIT_CUT_FAILED = 6
EXIT_INTERRUPTED = 130

EXIT_CODES: dict[int, str] = {
    EXIT_OK: "done",
    EXIT_FAILURE: "failed, or a bug in pgdyno",
    EXIT_USAGE: "the input was refused; nothing was changed",
    EXIT_HOST: "this machine lacks something; the remedy is printed",
    EXIT_INVALID: "the run finished, but its numbers are invalid; the reason is printed",
    EXIT_REJECTED: "loaded except for some rows; they are in the reject file",
    EXIT_CUT_FAILED: "a power cut lost an acknowledged commit, or left a damaged database",
    EXIT_INTERRUPTED: "interrupted by Ctrl-C, SIGTERM or SIGHUP",
}
"""What each exit code of ``pgdyno`` means."""


class PgdynoError(Exception):
    """Something that the user must know, with what to do about it.

    ``message`` and ``remedy`` are sentences; ``remedy`` may be empty when nothing can be done.
    ``exit_code`` overrides the code of the class. ``code`` names the error, from the largest part to the smallest; it is empty
    where the class says all. ``data`` is what a program may want to know of it.
    """

    default_exit_code = EXIT_FAILURE

    def __init__(
        self,
        message: str,
        *,
        remedy: str = "",
        exit_code: int | None = None,
        code: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code
        self.data = dict(data or {})
        self.exit_code = self.default_exit_code if exit_code is None else exit_code


class InputError(PgdynoError):
    """The input was refused. Nothing was changed."""

    default_exit_code = EXIT_USAGE


class ObjectChanged(InputError):
    """An object of a store is not the one that a load began with."""


class ObjectDamaged(InputError):
    """What came of an object has not the checksum that its store says."""


class HostError(PgdynoError):
    """This machine lacks something that the command needs."""

    default_exit_code = EXIT_HOST


class OutputError(HostError):
    """Standard output, or a file that was asked for, cannot be written. What the command did by then stays done."""


class EngineMissing(HostError):
    """pgdyno-engine was not found, or was built from other sources than this package."""


class EngineError(PgdynoError):
    """The engine ended in a way that its protocol does not foresee."""


class Interrupted(PgdynoError):
    """Ctrl-C or SIGTERM in the middle of something: runs, a detach. The message says what is kept, the remedy how to resume."""

    default_exit_code = EXIT_INTERRUPTED


class RunInvalid(PgdynoError):
    """The run ended, but its numbers must not be used; the message says why."""

    default_exit_code = EXIT_INVALID


class RowsRejected(PgdynoError):
    """A load ended, and the rows that the server refused are in the reject file as they were."""

    default_exit_code = EXIT_REJECTED


class CutFailed(PgdynoError):
    """A database did not survive a power cut."""

    default_exit_code = EXIT_CUT_FAILED


_NO_ROOM = "free some space there, or use a path on another disk"
_NO_RIGHT = "use a path that you may access, or run it with sudo"
_MACHINE = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EFBIG: _NO_ROOM,
    errno.EROFS: _NO_RIGHT,
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.ENOTDIR: "use a path in which every part but the last is a directory",
    errno.EISDIR: "name a file, not a directory",
    errno.ENAMETOOLONG: "use a shorter name",
    errno.EIO: "`dmesg` shows the kernel's messages about the disk",
    errno.EMFILE: "raise the limit on open files: `ulimit -n 65536`",
    errno.ENFILE: "raise the system's limit on open files: `sysctl fs.file-max`",
    errno.ENOMEM: "free some memory, or use less at a time",
    errno.EAGAIN: "raise the limit on processes: `ulimit -u`",
}
"""What a machine may refuse at any time, wherever a command is, with the remedy. All other errors of the system are bugs."""


def refused_by_machine(error: Exception) -> HostError | None:
    """The error as the user should read it; ``None`` if it can only be a bug of pgdyno.

    A server may break a session off, or give none, at any time: psycopg's ``OperationalError``.
    """
    if isinstance(error, MemoryError):
        return HostError("there is not enough memory", remedy=_MACHINE[errno.ENOMEM], code="host.enomem")
    psycopg = sys.modules.get("psycopg")
    if psycopg is not None and isinstance(error, psycopg.OperationalError):
        return HostError(
            f"PostgreSQL gave no session, or ended it: {' '.join(str(error).split())}",
            remedy="look at the server's log; if it stood still, at `dmesg` and at what else uses this machine's disks",
            code="server.no_session",
        )
    if not isinstance(error, OSError) or error.errno not in _MACHINE:
        return None
    what = "this machine" if error.filename is None else os.fsdecode(error.filename)
    code = f"host.{errno.errorcode[error.errno].lower()}"
    return HostError(f"{what}: {error.strerror}", remedy=_MACHINE[error.errno], code=code, data={"path": what})

"""Every error that a user can meet.

::

    PgdynoError            exit 1   a failure without a better name
    |-- InputError         exit 2   what was asked is illegal: a flag, a file, a volume's figures
    |   |-- ObjectChanged  exit 2   an object of a store is not the one that a load began with
    |   `-- ObjectDamaged  exit 2   what came of an object has not the checksum that its store says
    |-- HostError          exit 3   this machine lacks something: root, /dev/fuse, space, a port, a binary
    |   `-- EngineMissing  exit 3   pgdyno-engine is absent, or belongs to other sources than this package
    |-- EngineError        exit 1   the engine failed or said something that is not its protocol
    |-- Interrupted        exit 130 Ctrl-C or SIGTERM after some runs had finished; those are kept
    |-- RunInvalid         exit 4   the run ended, but its numbers must not be used
    `-- RowsRejected       exit 5   a load ended, and some rows are in its reject file

An error says in one sentence what is wrong, and its ``remedy`` says what to do. One place prints them:
:func:`pgdyno.cli.main.main`. Bugs are assertions and other exceptions; they keep their traceback.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_HOST = 3
EXIT_INVALID = 4
EXIT_REJECTED = 5
EXIT_INTERRUPTED = 130

EXIT_CODES: dict[int, str] = {
    EXIT_OK: "done",
    EXIT_FAILURE: "failed, or a bug in pgdyno",
    EXIT_USAGE: "what was asked is illegal; nothing was changed",
    EXIT_HOST: "this machine lacks something; the remedy is printed",
    EXIT_INVALID: "the run ended, but its numbers are invalid; the reason is printed",
    EXIT_REJECTED: "loaded, but for some rows; they are in the reject file",
    EXIT_INTERRUPTED: "interrupted (Ctrl-C)",
}
"""What each exit code of ``pgdyno`` means."""


class PgdynoError(Exception):
    """Something that the user must know, with what to do about it.

    ``message`` and ``remedy`` are sentences; ``remedy`` may be empty when nothing can be done.
    ``exit_code`` overrides the code of the class.
    """

    default_exit_code = EXIT_FAILURE

    def __init__(self, message: str, *, remedy: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.exit_code = self.default_exit_code if exit_code is None else exit_code


class InputError(PgdynoError):
    """What was asked is illegal. Nothing was changed."""

    default_exit_code = EXIT_USAGE


class ObjectChanged(InputError):
    """An object of a store is not the one that a load began with."""


class ObjectDamaged(InputError):
    """What came of an object has not the checksum that its store says."""


class HostError(PgdynoError):
    """This machine lacks something that the command needs."""

    default_exit_code = EXIT_HOST


class EngineMissing(HostError):
    """pgdyno-engine was not found, or was built from other sources than this package."""


class EngineError(PgdynoError):
    """The engine ended in a way that its protocol does not foresee."""


class Interrupted(PgdynoError):
    """Ctrl-C or SIGTERM after some runs had finished. Those are kept; the remedy says how to go on."""

    default_exit_code = EXIT_INTERRUPTED


class RunInvalid(PgdynoError):
    """The run ended, but its numbers must not be used; the message says why."""

    default_exit_code = EXIT_INVALID


class RowsRejected(PgdynoError):
    """A load ended, and the rows that the server refused are in the reject file as they were."""

    default_exit_code = EXIT_REJECTED

"""How a load that ended early is explained: the server's errors, Ctrl-C and refused rows, each with how to resume."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.errors import InputError, Interrupted, PgdynoError
from pgdyno.loader import server

if TYPE_CHECKING:
    import psycopg

    from pgdyno.loader.asked import Asked

_CONNECTION, _SHUTDOWN = "08", "57P"
"""What SQLSTATE begins with when a session is over ("Connection Exception", and "Operator Intervention" but for a cancel)."""
RESUME = "run the same command again to resume"
AFTER_BAD_ROW = (
    "committed rows stay in the table; run the same command again to load the rest, also with --reject; after correcting the"
    " file, start over with --abandon --truncate"
)
AFTER_BAD_ROW_STAGED = (
    "no row is merged yet; run the same command again to resume, also with --reject; after correcting the file, start over"
    " with --abandon"
)
AFTER_NO_ROW = "no row was loaded, so that you can run the same command again with a corrected file"
AFTER_PIPE = "a load from a pipe cannot resume: start over with --abandon --truncate"
AFTER_PIPE_STAGED = "a load from a pipe cannot resume: start over with --abandon"
AFTER_BAD_OBJECT = (
    "committed objects stay in the table; run the same command again to load the rest, including the corrected object"
)
AFTER_NO_LEDGER = "without a ledger the load cannot resume: start over with --truncate"


@contextlib.contextmanager
def server_errors() -> Iterator[None]:
    """The server's error for a statement, as a :class:`~pgdyno.errors.PgdynoError`."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise PgdynoError(
            f"{'the server ended the session' if _is_lost(error) else 'the server refused'}: {server.said(error)}",
            remedy=f"look at the server's log; {RESUME}",
        ) from error


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the session is over. A full disk, or a lock that others hold, is an OperationalError too, and ends none."""
    import psycopg

    state = error.sqlstate or _CONNECTION
    return isinstance(error, psycopg.OperationalError) and state.startswith((_CONNECTION, _SHUTDOWN))


@dataclass
class Ending:
    """What a run has done so far, which decides what its user can do after an error."""

    asked: Asked
    has_rows: bool = True
    """Whether there may be rows of this load: one without any ends itself, and nothing has to be said of it."""
    is_piped: bool = False
    """Whether a source can be read only once."""
    rows_seen: int = 0
    """Rows that this run is known to have committed."""
    changed: list[str] = field(default_factory=list)
    """What this run has changed permanently, in sentences: after that an error is more than a refusal."""

    def see(self, event: Mapping[str, Any]) -> None:
        """Take the rows from an event of the transfer: without a ledger it alone says what is in the table."""
        self.rows_seen = int(event.get("rows_loaded", self.rows_seen))

    def after_changes(self, error: InputError) -> PgdynoError:
        """A refusal that came too late: the remedy names what was changed."""
        return PgdynoError(error.message, remedy="; ".join([error.remedy, *self.changed]))

    def of_transfer(self, error: KeyboardInterrupt | InputError, *, has_job: bool, object_failed: bool) -> PgdynoError:
        """The error that ended the transfer.

        ``has_job``: the load has an entry in the ledger. ``object_failed``: the error already says what became of a damaged
        object.
        """
        if isinstance(error, KeyboardInterrupt) and not self.has_rows:
            return Interrupted("interrupted; no row was loaded", remedy="run the same command again")
        if isinstance(error, KeyboardInterrupt):
            return self.interrupted("interrupted; the chunks that were committed are loaded")
        if not has_job:
            return PgdynoError(error.message, remedy=f"{error.remedy}; {self._without_ledger()}")
        if not self.has_rows:
            return PgdynoError(error.message, remedy=f"{error.remedy}; {AFTER_NO_ROW}".removeprefix("; "))
        # The engine's: chunks may have been committed, so it is more than a refusal.
        after = AFTER_BAD_ROW_STAGED if self.asked.upsert else AFTER_BAD_ROW
        after = self._resume(after if self.asked.via is None else AFTER_BAD_OBJECT)
        after = "" if object_failed else f"; {after}"
        return PgdynoError(error.message, remedy=f"{error.remedy}{after}".removeprefix("; "))

    def interrupted(self, what: str) -> Interrupted:
        """After Ctrl-C: without a ledger the same command would load committed rows twice."""
        return Interrupted(what, remedy=self._resume(RESUME) if self.asked.ledger else self._without_ledger())

    def _without_ledger(self) -> str:
        rows = f"{self.rows_seen:,} rows are in the table" if self.rows_seen else "no row is known to be in the table"
        return f"{rows}; {AFTER_NO_LEDGER}"

    def _resume(self, usual: str) -> str:
        """After a pipe the same command would be refused: other rows may come."""
        if not self.is_piped:
            return usual
        return AFTER_PIPE_STAGED if self.asked.upsert else AFTER_PIPE

"""How a load that ended early is explained: the server's errors, Ctrl-C and refused rows, each with how to resume."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pgdyno.loader import ledger, server
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.ready import PreparedLoad

from ..base.errors import InputError, Interrupted, PgdynoError

if TYPE_CHECKING:
    import psycopg

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
START_OVER_STAGED = "no row is merged yet; start over with --abandon"
AFTER_BAD_OBJECT = (
    "committed objects stay in the table; run the same command again to load the rest, including the corrected object"
)
AFTER_NO_LEDGER = "without a ledger the load cannot resume: start over with --truncate"


@contextlib.contextmanager
def server_errors() -> Iterator[None]:
    """The server's error for a statement, as a :class:`~pgdyno.base.errors.PgdynoError`."""
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
class LoadProgress:
    """What a run has done so far, which decides what its user can do after an error."""

    asked: LoadOptions
    has_rows: bool = True
    """Whether there may be rows of this load: one without any ends itself, and nothing has to be said of it."""
    is_piped: bool = False
    """Whether a source can be read only once."""
    rows_seen: int = 0
    """Rows of this load that are known to be committed."""
    rows_rejected: int = 0
    """The same of rejected ones."""
    changed: list[str] = field(default_factory=list)
    """What this run has changed permanently, in sentences: after that an error is more than a refusal."""

    def see(self, event: Mapping[str, Any]) -> None:
        """Take the rows from an event of the transfer: without a ledger it alone says what is in the table."""
        self.rows_seen = int(event.get("rows_loaded", self.rows_seen))

    def after_changes(self, error: InputError) -> PgdynoError:
        """A refusal that came too late: the remedy names what was changed."""
        return PgdynoError(
            error.message, remedy="; ".join([error.remedy, *self.changed]), code=error.code, data=error.data
        )

    def of_transfer(self, error: KeyboardInterrupt | InputError, ready: PreparedLoad, job: int | None) -> PgdynoError:
        """The error that ended the transfer. ``job`` is the load's number in the ledger; None without one."""
        if isinstance(error, KeyboardInterrupt) and not self.has_rows:
            return Interrupted("interrupted; no row was loaded", remedy="run the same command again")
        if isinstance(error, KeyboardInterrupt):
            return self.interrupted("interrupted; the chunks that were committed are loaded")
        remedy = "; ".join(filter(None, [error.remedy, self._after(error, ready, job)]))
        data = error.data
        if error.code in ledger.NOT_TO_BE_RESUMED:
            data = {**data, "job": job, "rows_loaded": self.rows_seen if self.has_rows else 0}
        # The engine's: chunks may have been committed, so it is more than a refusal.
        return PgdynoError(error.message, remedy=remedy, code=error.code, data=data)

    def _after(self, error: InputError, ready: PreparedLoad, job: int | None) -> str:
        """What is in the table after an error of the transfer, and how to continue."""
        if job is None:
            return self._without_ledger()
        if not self.has_rows:
            return "; ".join([AFTER_NO_ROW, *self.changed])
        if ready.failure is not None:
            return ""  # the error already says what became of the object
        if error.code == ledger.CHANGED and not self.asked.is_staged:
            return self._start_over(ready, job)
        if error.code in ledger.NOT_TO_BE_RESUMED:
            return START_OVER_STAGED if self.asked.is_staged else ""
        after = AFTER_BAD_ROW_STAGED if self.asked.is_staged else AFTER_BAD_ROW
        return self._resume(after if self.asked.via is None else AFTER_BAD_OBJECT)

    def _start_over(self, ready: PreparedLoad, job: int) -> str:
        """How to remove the rows of a load that cannot be resumed: each row has the transaction of its chunk."""
        there = f"{self.rows_seen:,} rows are in {ready.target.quoted}; start over with --abandon --truncate"
        if self.rows_rejected:
            return there  # the rows beside rejected ones came in subtransactions, which the ledger does not know
        where = f"xmin IN (SELECT xact::xid FROM {ledger.CHUNKS.replace(chr(34), '')} WHERE job = {job})"
        return (
            f"{there}, or, to keep other rows, run `DELETE FROM {ready.target.quoted} WHERE {where}` and use --abandon"
        )

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
        return AFTER_PIPE_STAGED if self.asked.is_staged else AFTER_PIPE

"""``pgdyno load --restore``: everything that loads have changed in a database and not put back, after a crash."""

from __future__ import annotations

import contextlib

from pgdyno.loader import ledger, server, trust
from pgdyno.loader.ending import server_errors
from pgdyno.loader.put_back import forget_gone, put_back
from pgdyno.loader.transfer import Tell
from pgdyno.loader.undo import UndoEntry, UndoJournal
from pgdyno.loader.waiting import WaitSampler, one_at_a_time

from ..base.errors import PgdynoError
from ..base.session import Connection


def restore(into: str, tell: Tell | None = None) -> list[str]:
    """Restore everything, and say what. Interrupted loads can be resumed afterwards as before.

    :class:`~pgdyno.base.errors.InputError` while a load works on such a table; :class:`~pgdyno.base.errors.PgdynoError` for what
    cannot be put back, after all the rest has been.
    """
    result = one_at_a_time(tell)
    waiting = WaitSampler(into, lambda text: result({"event": "note", "text": text}))
    with contextlib.closing(server.connect(into)) as connection, server_errors(), waiting:
        waiting.watch(connection)
        server.facts(connection)
        trust.require(connection)
        journal = UndoJournal(connection)
        forget_gone(into, connection, journal)
        by_table: dict[int, list[UndoEntry]] = {}
        for entry in journal.entries():
            by_table.setdefault(entry.table_oid, []).append(entry)
        waiting.watch(connection, *by_table)
        done: list[str] = []
        failed: list[PgdynoError] = []
        for oid, entries in by_table.items():
            try:
                done += _restore(into, connection, journal, oid, entries, result)
            except PgdynoError as error:
                failed.append(error)
        if failed and (done or len(failed) > 1):
            # Also of a single refusal: what is done of other tables makes it more than one.
            raise PgdynoError("; ".join(error.message for error in failed), remedy=failed[0].remedy)
        if failed:
            raise failed[0]
    return done


def _restore(
    into: str, connection: Connection, journal: UndoJournal, oid: int, entries: list[UndoEntry], tell: Tell
) -> list[str]:
    """Restore a table, under whatever name it has now, and say what. One that was dropped took its indexes with it."""
    named = server.one(connection, "SELECT (SELECT oid::regclass::text FROM pg_class WHERE oid = %s)", (oid,))[0]
    if named is None:
        put_back(
            into, connection, journal, entries, lambda _share, _text: None
        )  # the staging table of a table that is gone
        return []
    ledger.lock(connection, oid, named)
    try:
        for job in sorted({entry.job for entry in entries}):
            ledger.end_orphans(connection, job)
        put_back(
            into,
            connection,
            journal,
            entries,
            lambda share, text: tell({"event": "step", "share": share, "text": text}),
        )
    finally:
        ledger.unlock(connection, oid)
    return [f"{entry.kind}: {entry.what}" for entry in entries]

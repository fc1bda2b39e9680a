"""``pgdyno load --restore``: everything that loads have changed in a database and not put back, after a crash."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pgdyno.errors import PgdynoError
from pgdyno.loader import ledger, server, staging
from pgdyno.loader.flow import server_errors
from pgdyno.loader.put_back import put_back
from pgdyno.loader.undo import Journal

if TYPE_CHECKING:
    from pgdyno.loader.server import Connection
    from pgdyno.loader.transfer import Tell
    from pgdyno.loader.undo import Entry


def restore(into: str, tell: Tell | None = None) -> list[str]:
    """Put all back, and say what. Loads that were interrupted can go on afterwards as before.

    :class:`~pgdyno.errors.InputError` while a load works on such a table; :class:`~pgdyno.errors.PgdynoError` for what
    cannot be put back, after all the rest has been.
    """
    told = tell or (lambda _event: None)
    with contextlib.closing(server.connect(into)) as connection, server_errors():
        server.facts(connection)
        journal = Journal(connection)
        by_target: dict[str, list[Entry]] = {}
        for entry in journal.entries():
            by_target.setdefault(entry.target, []).append(entry)
        done: list[str] = []
        failed: list[PgdynoError] = []
        for target, entries in by_target.items():
            try:
                done += _restore(into, connection, journal, target, entries, told)
            except PgdynoError as error:
                failed.append(error)
        if len(failed) > 1:
            raise PgdynoError("; ".join(error.message for error in failed), remedy=failed[0].remedy)
        if failed:
            raise failed[0]
    return done


def _restore(
    into: str, connection: Connection, journal: Journal, target: str, entries: list[Entry], told: Tell
) -> list[str]:
    """Put a table back, and say what."""
    oid = server.one(connection, "SELECT to_regclass(%s)::oid", (target,))[0]
    if oid is None:
        _forget(connection, journal, [entry for entry in entries if entry.kind != staging.KIND])
        staged = [entry for entry in entries if entry.kind == staging.KIND]
        put_back(into, connection, journal, staged, lambda _share, _text: None)
        return []
    ledger.lock(connection, oid, target)
    try:
        for job in sorted({entry.job for entry in entries}):
            ledger.end_orphans(connection, job)
        put_back(
            into,
            connection,
            journal,
            entries,
            lambda share, text: told({"event": "step", "share": share, "text": text}),
        )
    finally:
        ledger.unlock(connection, oid)
    return [f"{entry.kind}: {entry.what}" for entry in entries]


def _forget(connection: Connection, journal: Journal, entries: list[Entry]) -> None:
    """The table is gone, and its indexes with it."""
    known = server.one(connection, "SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")[0]
    for entry in entries:
        if known:
            server.run(connection, "DELETE FROM pgdyno_load.undo WHERE token = %s", (entry.token,))
        journal.forget(entry.token)

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

_CALLED = """
SELECT (SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = (plan ->> 'table_oid')::oid)
FROM pgdyno_load.job WHERE job = %s AND plan ->> 'table_oid' IS NOT NULL
"""
"""What the table of a job is called now: NULL when it is gone, and no row where nobody knows which one it was."""


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
        staged = [entry for entry in entries if entry.kind == staging.KIND]
        put_back(into, connection, journal, staged, lambda _share, _text: None)
        _forget(connection, journal, target, [entry for entry in entries if entry.kind != staging.KIND])
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


def _forget(connection: Connection, journal: Journal, target: str, entries: list[Entry]) -> None:
    """Forget what was changed in a table that is gone, and its indexes with it.

    One that has another name now is not gone: what it had is kept, and said. So it is where nothing says which table it was.
    """
    known = server.one(connection, "SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")[0]
    kept: dict[str, Entry] = {}
    for entry in entries:
        called = server.maybe(connection, _CALLED, (entry.job,)) if known else None
        if called is None:
            kept[f"there is no {target}, and nothing says whether it has another name now"] = entry
        elif called[0] is not None:
            kept[f"{target} is called {called[0]} now"] = entry
        else:
            server.run(connection, "DELETE FROM pgdyno_load.undo WHERE token = %s", (entry.token,))
            journal.forget(entry.token)
    if kept:
        quoted = target.replace("'", "''")
        row = f"`DELETE FROM pgdyno_load.undo WHERE target = '{quoted}'`"
        forgetting = row if known else f"remove the files of {target} in {journal.folder}"
        raise PgdynoError(
            f"{'; '.join(kept)}: what was changed in it is kept, as {next(iter(kept.values())).what}",
            remedy=f"let the table be called {target}, and run `pgdyno load --restore DSN` again;"
            f" if that is not wanted any more, {forgetting}",
        )

"""The undo journal of a load: what brings the target back is written to this machine's disk and to the database first.

A change and its row in ``pgdyno_load.undo`` are one transaction, and so are its undoing and the row's removal: whenever
anything is killed, the database says exactly what is changed. The file on this machine, synced before that transaction
begins, is for the case that somebody drops the schema ``pgdyno_load`` meanwhile.

What brings a change back comes in stages, because building indexes can be done side by side and adding constraints
cannot: 0 builds, 1 alters the table, 2 checks foreign keys and sets parameters. A stage that is done is left out of the row.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.errors import HostError
from pgdyno.loader.server import many, maybe, one, run, said

if TYPE_CHECKING:
    from pgdyno.loader.server import Connection

Kind = Literal["index", "foreign key", "autovacuum", "staging"]
STAGES = 3
_EXISTS = {"42P07", "42710", "42P16"}
"""An index, a constraint or a primary key that is there already: only where nothing says whether it was brought back."""

_LOCKED = "SELECT 1 FROM pgdyno_load.undo WHERE token = %s FOR UPDATE"
LOCK_TIMEOUT_S = 10
"""How long a change waits for those who use the table; everybody who comes later waits behind it."""


@dataclass(frozen=True)
class Change:
    """Something to be done to the target, with what undoes it."""

    kind: Kind
    what: str
    """In words."""
    do: tuple[str, ...]
    undo: tuple[tuple[str, ...], ...]
    """Statements by stage."""


@dataclass(frozen=True)
class Entry:
    """A change that was made and is to be undone."""

    token: str
    job: int
    target: str
    """The table, as SQL writes it."""
    kind: str
    what: str
    undo: tuple[tuple[str, ...], ...]
    search_path: str
    """Under which the statements were written, and mean what they say."""

    def left(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Stages that have something to do."""
        return ((number, stage) for number, stage in enumerate(self.undo) if stage)


class Journal:
    """The journal of one database. ``connection`` is the loader's own session, in autocommit."""

    def __init__(self, connection: Connection, folder: Path | None = None) -> None:
        self._connection = connection
        self.folder = folder or default_folder()
        self._where = _identity(connection)

    def make(self, change: Change, job: int, target: str) -> None:
        """Write a change down, here and there, and make it."""
        search_path = str(one(self._connection, "SELECT current_setting('search_path')")[0])
        entry = Entry(secrets.token_hex(8), job, target, change.kind, change.what, change.undo, search_path)
        try:
            self._write(entry)
        except OSError as error:
            for path in (self._unfinished(entry.token), self._file(entry.token)):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise HostError(
                f"what a load changes cannot be written down in {self.folder}: {error.strerror}",
                remedy="let PGDYNO_STATE_DIR name a folder that can be written to, with space left, and run the same command"
                " again to go on",
            ) from error
        try:
            with self._connection.transaction():
                insert(self._connection, entry)
                run(self._connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
                for statement in change.do:
                    run(self._connection, statement)
        except BaseException:
            # Also one whose commit's answer got lost: the row says whether it was made.
            self._forget_if_absent(entry.token)
            raise

    def entries(self, target: str | None = None) -> list[Entry]:
        """What is to be undone, of all tables or of one."""
        found = stored(self._connection, target)
        if found is None:
            return [entry for entry in self._on_disk() if target is None or entry.target == target]
        tokens = {entry.token for entry in (found if target is None else stored(self._connection) or [])}
        for entry in self._on_disk():
            if entry.token not in tokens:
                self.forget(entry.token)
        return found

    def forget(self, token: str) -> None:
        """Remove an entry's file."""
        with contextlib.suppress(FileNotFoundError):
            self._file(token).unlink()

    def _forget_if_absent(self, token: str) -> None:
        import psycopg

        with contextlib.suppress(psycopg.Error):  # a lost connection: whoever restores will look again
            if all(entry.token != token for entry in stored(self._connection) or []):
                self.forget(token)

    def _file(self, token: str) -> Path:
        return self.folder / f"undo-{token}.json"

    def _unfinished(self, token: str) -> Path:
        return self.folder / f".undo-{token}"

    def _write(self, entry: Entry) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = self._unfinished(entry.token)
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump({"where": self._where, **vars(entry)}, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self._file(entry.token))
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _on_disk(self) -> list[Entry]:
        """This machine's entries of this very database."""
        found = []
        for path in sorted(self.folder.glob("undo-*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError):  # one that somebody else removes just now
                document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
                if document.pop("where") == self._where:
                    stages = tuple(tuple(stage) for stage in document.pop("undo"))
                    found.append(Entry(undo=stages, **document))
        return found


def default_folder() -> Path:
    """Where the files are: below ``$PGDYNO_STATE_DIR`` if set, else where a user's programs keep what must survive."""
    named = os.environ.get("PGDYNO_STATE_DIR")
    if named:
        return Path(named) / "load"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "pgdyno" / "load"


def stored(connection: Connection, target: str | None = None) -> list[Entry] | None:
    """The database's entries; None where it has no journal."""
    if not one(connection, "SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")[0]:
        return None
    rows = many(
        connection,
        "SELECT token, job, target, kind, what, stages, search_path FROM pgdyno_load.undo"
        " WHERE %s::text IS NULL OR target = %s ORDER BY entry",
        (target, target),
    )
    return [
        Entry(token, job, name, kind, what, tuple(tuple(stage) for stage in stages), search_path)
        for token, job, name, kind, what, stages, search_path in rows
    ]


def insert(connection: Connection, entry: Entry) -> None:
    """The row of an entry."""
    run(
        connection,
        "INSERT INTO pgdyno_load.undo (token, job, target, kind, what, stages, search_path)"
        " VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s)",
        (entry.token, entry.job, entry.target, entry.kind, entry.what, json.dumps(entry.undo), entry.search_path),
    )


def undo_stage(connection: Connection, entry: Entry, number: int) -> None:
    """Bring one stage of an entry back, and with the last one remove its row: one transaction.

    Without a row, when the schema was dropped, what is there already counts as brought back.
    """
    import psycopg

    last = not any(entry.undo[number + 1 :])
    with connection.transaction():
        known = stored(connection) is not None
        if known and maybe(connection, _LOCKED, (entry.token,)) is None:
            return  # somebody else has
        run(connection, "SELECT set_config('search_path', %s, true)", (entry.search_path,))
        for statement in entry.undo[number]:
            try:
                with connection.transaction():
                    run(connection, statement)
            except psycopg.Error as error:
                if known or error.sqlstate not in _EXISTS:
                    raise
        if known and last:
            run(connection, "DELETE FROM pgdyno_load.undo WHERE token = %s", (entry.token,))
        elif known:
            run(
                connection,
                "UPDATE pgdyno_load.undo SET stages = jsonb_set(stages, ARRAY[%s::text], '[]') WHERE token = %s",
                (str(number), entry.token),
            )


def of_stage(entries: Sequence[Entry], number: int) -> list[Entry]:
    """Entries that have something to do in a stage."""
    return [entry for entry in entries if number < len(entry.undo) and entry.undo[number]]


def _identity(connection: Connection) -> str:
    """What tells this database from all others, also when its server has another address tomorrow."""
    import psycopg

    database = one(connection, "SELECT oid FROM pg_database WHERE datname = current_database()")[0]
    try:
        system = one(connection, "SELECT system_identifier FROM pg_control_system()")[0]
    except psycopg.Error as error:  # a provider may forbid it
        info = connection.info
        system = f"{info.host}:{info.port} ({said(error)[:40]})"
    return f"{system}/{database}"

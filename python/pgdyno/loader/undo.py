"""The undo journal of a load: what restores the target is written to this machine's disk and to the database first.

A change and its row in ``pgdyno_load.undo`` are one transaction, and so are its undoing and the row's removal: whenever
anything is killed, the database says exactly what is changed. The file on this machine, synced before that transaction
begins, is for the case that the schema ``pgdyno_load`` is dropped in the meantime.

An entry holds :mod:`~pgdyno.loader.facts`, from which the statements are composed when they are needed. It is read from a
ledger that :mod:`~pgdyno.loader.trust` has checked, or from a file that this user alone can write.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pgdyno.loader import facts, foreign_code, trust
from pgdyno.loader.facts import Fact, Stage
from pgdyno.loader.server import alone, many, maybe, one, run, said

from ..base.errors import HostError, PgdynoError
from ..base.session import Connection
from ..base.text import parsed_json

Kind = Literal["index", "foreign key", "autovacuum", "staging"]
_THERE_OR_GONE = {"42P07", "42710", "42P16", "42P01", "3F000"}
"""What is to be made is there already, or what is to be removed is gone: accepted only where nothing says what was done."""
_LOCKED = "SELECT stages_done FROM pgdyno_load.undo WHERE token = %s FOR UPDATE"
LOCK_TIMEOUT_S = 10
"""How long a change waits for those who use the table; everybody who comes later waits behind it."""
_NAMED = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s"
_OTHERS_MAY_WRITE = 0o022


@dataclass(frozen=True)
class TargetChange:
    """Something to be done to the target, with the fact that undoes it."""

    kind: Kind
    fact: Fact
    do: tuple[str, ...]


@dataclass(frozen=True)
class UndoEntry:
    """A change that was made and is to be undone."""

    token: str
    job: int
    target: str
    """The table, as SQL writes it, when the change was made."""
    table_oid: int
    kind: str
    fact: Fact
    stages_done: int = 0

    @property
    def what(self) -> str:
        """In words."""
        return self.fact.words()

    def stages(self, connection: Connection) -> Sequence[Stage]:
        """Its statements, for the table as it is called now; those of a table that is gone have nothing to say."""
        schema, name = maybe(connection, _NAMED, (self.table_oid,)) or ("", "")
        return self.fact.stages(schema, name)

    def has(self, number: int) -> bool:
        """Whether a stage is still to be done."""
        return number >= self.stages_done and bool(self.fact.stages("", "")[number])


class UndoJournal:
    """The journal of one database. ``connection`` is the loader's own session, in autocommit."""

    def __init__(self, connection: Connection, folder: Path | None = None) -> None:
        self._connection = connection
        self.folder = folder or default_folder()
        self._where = _identity(connection)

    def make(self, change: TargetChange, job: int, target: str, table_oid: int) -> None:
        """Write a change down, here and there, and make it."""
        entry = UndoEntry(secrets.token_hex(8), job, target, table_oid, change.kind, change.fact)
        try:
            self._write(entry)
        except OSError as error:
            for path in (self._unfinished(entry.token), self._file(entry.token)):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise HostError(
                f"what a load changes cannot be written down in {self.folder}: {error.strerror}",
                remedy="set PGDYNO_STATE_DIR to a writable folder with free space, and run the same command again to resume",
            ) from error
        try:
            with self._connection.transaction():
                insert(self._connection, entry)
                run(self._connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
                for statement in change.do:
                    alone(self._connection, statement)
                trust.seal(self._connection)
        except BaseException:
            # Also one whose commit's answer got lost: the row says whether it was made.
            self._forget_if_absent(entry.token)
            raise

    def entries(self, table_oid: int | None = None) -> list[UndoEntry]:
        """What is to be undone, of all tables or of one."""
        entries = stored(self._connection)
        on_disk = self._on_disk()
        if entries is None:
            entries = on_disk
        else:
            tokens = {entry.token for entry in entries}
            for entry in on_disk:
                if entry.token not in tokens:
                    self.forget(entry.token)
        return [entry for entry in entries if table_oid is None or entry.table_oid == table_oid]

    def drop(self, token: str) -> None:
        """Remove an entry of a table that is gone."""
        if stored(self._connection) is not None:
            run(self._connection, "DELETE FROM pgdyno_load.undo WHERE token = %s", (token,))
        self.forget(token)

    def forget(self, token: str) -> None:
        """Remove an entry's file."""
        with contextlib.suppress(FileNotFoundError):
            self._file(token).unlink()

    def _forget_if_absent(self, token: str) -> None:
        import psycopg

        with contextlib.suppress(psycopg.Error):  # a lost connection: the next --restore looks again
            if all(entry.token != token for entry in stored(self._connection) or []):
                self.forget(token)

    def _file(self, token: str) -> Path:
        return self.folder / f"undo-{token}.json"

    def _unfinished(self, token: str) -> Path:
        return self.folder / f".undo-{token}"

    def _write(self, entry: UndoEntry) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _require_private(self.folder)
        unfinished = self._unfinished(entry.token)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"where": self._where, **vars(entry), "fact": facts.document(entry.fact)}, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self._file(entry.token))
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _on_disk(self) -> list[UndoEntry]:
        """This machine's entries of this very database."""
        if self.folder.is_dir():
            _require_private(self.folder)
        disk = []
        for path in sorted(self.folder.glob("undo-*.json")):
            with contextlib.suppress(FileNotFoundError):  # another process removes it just now
                entry = _read(path, self._where)
                disk += [] if entry is None else [entry]
        return disk


def default_folder() -> Path:
    """Where the files are: below ``$PGDYNO_STATE_DIR`` if set, else where a user's programs keep what must survive."""
    named = os.environ.get("PGDYNO_STATE_DIR")
    if named:
        return Path(named) / "load"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "pgdyno" / "load"


def _require_private(path: Path, descriptor: int | None = None) -> None:
    """That no other user can have written what is read here. :class:`HostError`."""
    status = path.stat() if descriptor is None else os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
        raise HostError(
            f"{path} belongs to another user, or other users may write it: what it says is not trusted",
            remedy=f"check what is in it, then make it yours alone (`chown`, `chmod go-w {path}`), or remove it",
        )


def _read(path: Path, where: str) -> UndoEntry | None:
    """A file's entry, if it is of this database. :class:`HostError` for one that cannot be understood."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        _require_private(path, descriptor)
        try:
            document: dict[str, Any] = parsed_json(file.read())
            if document.pop("where") != where:
                return None
            kind, fact = str(document.pop("kind")), document.pop("fact")
            return UndoEntry(kind=kind, fact=facts.parsed(kind, fact), **document)
        except (ValueError, KeyError, TypeError, PgdynoError):
            raise HostError(
                f"{path} is not an undo file of this version of pgdyno",
                remedy="`pgdyno load --restore DSN` of the version that wrote it uses it; if what it lists is restored, remove it",
            ) from None


def stored(connection: Connection) -> list[UndoEntry] | None:
    """The database's entries; None where it has no journal. The ledger was checked: :func:`~pgdyno.loader.trust.require`."""
    if not one(connection, "SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")[0]:
        return None
    rows = many(
        connection,
        "SELECT token, job, target, table_oid, kind, fact, stages_done FROM pgdyno_load.undo ORDER BY entry",
    )
    return [
        UndoEntry(token, job, target, oid, kind, facts.parsed(kind, fact), done)
        for token, job, target, oid, kind, fact, done in rows
    ]


def insert(connection: Connection, entry: UndoEntry) -> None:
    """The row of an entry."""
    run(
        connection,
        "INSERT INTO pgdyno_load.undo (token, job, target, table_oid, kind, fact) VALUES (%s, %s, %s, %s, %s, %s::jsonb)",
        (entry.token, entry.job, entry.target, entry.table_oid, entry.kind, json.dumps(facts.document(entry.fact))),
    )


def undo_stage(connection: Connection, entry: UndoEntry, number: int) -> None:
    """Restore one stage of an entry, and with the last one remove its row: one transaction.

    Without a row, when the schema was dropped, what is there already counts as restored.
    """
    import psycopg

    strange = foreign_code.found(connection, entry.fact.expressions(), entry.table_oid)
    if strange is not None:
        raise PgdynoError(
            f"it would run {strange}",
            remedy=f"check who wrote the entry; to give it up, `DELETE FROM pgdyno_load.undo WHERE token = '{entry.token}'`",
        )
    stages = entry.stages(connection)
    last = not any(stages[number + 1 :])
    whole = True
    with connection.transaction():
        known = one(connection, "SELECT to_regclass('pgdyno_load.undo') IS NOT NULL")[0]
        if known:
            row = maybe(connection, _LOCKED, (entry.token,))
            if row is None or row[0] > number:
                return  # another process has
        for statement in stages[number]:
            try:
                with connection.transaction():
                    alone(connection, statement)
            except psycopg.Error as error:
                if known or error.sqlstate not in _THERE_OR_GONE:
                    raise
                whole = False
        if whole:
            _compare(connection, entry)
        if known and last:
            run(connection, "DELETE FROM pgdyno_load.undo WHERE token = %s", (entry.token,))
        elif known:
            run(
                connection,
                "UPDATE pgdyno_load.undo SET stages_done = %s WHERE token = %s",
                (number + 1, entry.token),
            )


def _compare(connection: Connection, entry: UndoEntry) -> None:
    """That what is there now is what was there. :class:`PgdynoError`, and nothing of the stage stays.

    Expressions are left out: the server may write one in other words when it has read its own (casts of arrays in ``IN``).
    """
    expected = entry.fact.defined()
    now = one(connection, "SELECT %s::oid::regclass::text", (entry.table_oid,))[0]
    if expected is None or entry.fact.expressions() or now != entry.target:
        return  # a table that was renamed has other definitions
    query, name, before = expected
    results = maybe(connection, query, (entry.table_oid, name))
    if results is not None and results[0] != before:
        raise PgdynoError(
            f"it would be `{results[0]}` now, and was `{before}`",
            remedy=f"run the second statement yourself, then `DELETE FROM pgdyno_load.undo WHERE token = '{entry.token}'`",
        )


def of_stage(entries: Sequence[UndoEntry], number: int) -> list[UndoEntry]:
    """Entries that have something to do in a stage."""
    return [entry for entry in entries if entry.has(number)]


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

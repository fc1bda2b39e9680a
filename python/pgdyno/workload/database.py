"""The table ``[workload.database]``: a user's own database, and the data set that it is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema, field_validator

from pgdyno.workload.database_source import DatabaseSource, is_connection, source_of
from pgdyno.workload.keys import KeyTable, Refusal

from ..base.endpoint import public_dsn, wrong_in
from ..base.errors import InputError

SUPERUSER = "postgres"
DIGEST_SHOWN = 16
"""Digits of a digest in records."""
_NAME = re.compile(r"[^\W\d]\w{0,62}")


class SqlText(KeyTable):
    """SQL with the name of its file."""

    name: str
    """The file, as it was written; empty for SQL in the experiment file."""
    text: str
    """Its content."""


class DatabaseTable(KeyTable):
    """Your own database instead of pgbench's tables: restored once, cloned for each run."""

    from_: Annotated[str, Field(min_length=1)] = Field(alias="from")
    """A dump of pg_dump (custom, directory, tar, or SQL, also `.gz` and `.zst`), a base backup, a stopped data directory, a connection string such as `service=shop`, or a name of `pgdyno data list`. Paths are relative to the experiment file."""
    globals: str | None = None
    """Output of `pg_dumpall --globals-only`: the roles, with their settings. Passwords in it are not used. Default: roles that the dump names are created without rights."""
    name: str | None = None
    """Name of the database. Default: the dump's, or the name of its file; of a cluster, or output of pg_dumpall, with several databases it is required."""
    user: Annotated[str, Field(min_length=1)] = SUPERUSER
    """Role that sends the workload's statements. Default: the superuser `postgres`, to whom no privilege and no row security applies."""
    prepare: Annotated[SqlText | None, WithJsonSchema({"type": ["string", "object"]})] = None
    """SQL that runs after the restore, or a file `NAME.sql` with it: an index, for example. It can be a factor."""
    jobs: Annotated[int, Field(ge=1, le=256)] | None = None
    """Sessions that restore at the same time. Default: the number of this host's cores."""
    allow: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Texts of restore errors that do not stop it, for example `extension "pg_cron"`. All other errors do."""

    @field_validator("from_")
    @classmethod
    def _has_no_secret(cls, text: str) -> str:
        if is_connection(text) and (why := wrong_in(text)) is not None:
            raise ValueError(why)
        return text

    @field_validator("prepare", mode="before")
    @classmethod
    def _is_sql(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": "", "text": value} if value.strip() else None
        return value

    @property
    def source(self) -> DatabaseSource:
        """What ``from`` is. :class:`InputError` when it is nothing."""
        return source_of(self.from_)

    @property
    def public_from(self) -> str:
        """The source as a record may have it."""
        return public_dsn(self.from_) if is_connection(self.from_) else self.from_

    def refusals(self) -> Iterator[Refusal]:
        """What is wrong with its keys, before anything is read."""
        if self.name is not None and self.name in ("template0", "template1"):
            yield Refusal("database.name", f"{self.name} is a template of PostgreSQL; choose another name")
        if self.is_kept:
            for key in ("globals", "name"):
                if getattr(self, key) is not None:
                    yield Refusal(f"database.{key}", "a kept database has its roles and its name already; omit the key")

    @property
    def is_kept(self) -> bool:
        """Whether ``from`` names a kept database. A source that is not found is reported when its data set is asked for."""
        try:
            return not is_connection(self.from_) and self.source.kept is not None
        except InputError:
            return False

    def data_set(self) -> OwnDatabase:
        """Its data set. :class:`InputError` when the source cannot be read."""
        return OwnDatabase(digest=self._digest(), user=self.user, table=self)

    def memory_bytes_for(self, data_to_memory: float) -> int:
        """Memory of an instance, so that the database is this multiple of it. :class:`InputError` where its size is not known."""
        source = self.source
        if not source.measured:
            raise InputError(
                "the size of a database is known only when its dump is restored",
                remedy="keep it first (`pgdyno data add`) and name it, or choose instance.memory instead",
            )
        return round(source.size_bytes / data_to_memory)

    def versions(self) -> dict[str, str]:
        """The content of its source: see :meth:`Workload.versions`."""
        return {f"database {self.public_from}": self.data_set().digest[:DIGEST_SHOWN]}

    def refusal_on_existing(self) -> Refusal:
        """An existing server has its databases."""
        why = "a database is restored on emulated volumes, and an existing server has its own"
        return Refusal("database", why, "omit the table, and name the database in the connection string")

    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``, without SQL and secrets."""
        prepare = None if self.prepare is None else self.prepare.name or self.prepare.text
        document = {"from": self.public_from, "globals": self.globals, "name": self.name, "user": self.user}
        return {key: value for key, value in (document | {"prepare": prepare}).items() if value is not None}

    def _digest(self) -> str:
        """Of everything that decides what is restored."""
        source = self.source
        if source.kept is not None and self.prepare is None:
            return source.kept.digest
        whole = hashlib.sha256(source.digest.encode())
        for part in (self._globals_text(), self.name or "", self.prepare.text if self.prepare else "", *self.allow):
            whole.update(b"\0" + part.encode())
        return whole.hexdigest()

    def _globals_text(self) -> str:
        return "" if self.globals is None else read_text(self.globals, "globals")


def table_of(keys: dict[str, Any]) -> DatabaseTable:
    """The table of keys that a command line gave. :class:`InputError` names the one that is wrong."""
    from pydantic import ValidationError

    try:
        table = DatabaseTable.model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        key, message = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise InputError(f"{key}: {message}", remedy="see `pgdyno data add --help`") from None
    if (refusal := next(table.refusals(), None)) is not None:
        raise InputError(f"{refusal.key}: {refusal.message}", remedy="see `pgdyno data add --help`")
    return table


@dataclass(frozen=True)
class OwnDatabase:
    """A user's database as a data set. What two of them have in common is in the digest."""

    family: ClassVar[str] = "database"
    filling_bytes: ClassVar[int] = 0
    """Memory that restoring takes beside the data."""

    digest: str
    """Of source, globals, name, ``prepare`` and allowed errors."""
    user: str
    """Role that drives: it is created where the dump only names it."""
    table: DatabaseTable = field(compare=False, repr=False)

    @property
    def source(self) -> DatabaseSource:
        """What it is restored from."""
        return self.table.source

    @property
    def size_bytes(self) -> int:
        """What it takes on its volumes: measured, or estimated from a dump."""
        return self.source.size_bytes

    def document(self) -> dict[str, Any]:
        """In ``load.json``."""
        return {"database": self.table.record() | {"digest": self.digest}}

    def __str__(self) -> str:
        """As a title has it."""
        prepare = self.table.prepare
        with_ = "" if prepare is None else f" with {prepare.name or _one_line(prepare.text)}"
        return f"database {self.source.title}{with_}"


def default_name(path: Path) -> str:
    """The name of a database that its dump does not say: that of the file."""
    stem = re.sub(r"\W+", "_", path.name.split(".", 1)[0]).strip("_")
    return stem if _NAME.fullmatch(stem) else "own"


def read_text(path: str, key: str) -> str:
    """A file of SQL. :class:`InputError` names the key when it cannot be read."""
    from pathlib import Path

    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(
            f"{path} cannot be read: {why}", remedy=f"name a file of SQL in workload.database.{key}"
        ) from None


def _one_line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 60 else f"{words[:59]}…"

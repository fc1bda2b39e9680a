"""The table ``[workload.database]``: a user's own database, and the data set that it is."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, WithJsonSchema, field_validator

from pgdyno.workload.keys import KeyTable, Refusal
from pgdyno.workload.tables import BulkTables, Tables

from ..base.endpoint import public_dsn, wrong_in
from ..base.errors import InputError
from ..results.kept_database import KeptDatabase, find_kept

Form = Literal["custom", "directory", "tar", "plain", "data directory", "base backup", "server", "kept"]
PHYSICAL: frozenset[Form] = frozenset({"data directory", "base backup"})
"""Forms that are a cluster's files."""
STORED_PER_COMPRESSED_BYTE = 7.1
"""Bytes of tables and indexes for each byte of a compressed dump, measured with an order database of 1.2 GB (dump of 166 MB). It differs
between databases by some times, so it only refuses volumes that are far too small."""
STORED_PER_PLAIN_BYTE = 3.6
"""The same for a dump that is not compressed: the order shop of ``experiments/shop`` takes 59.5 MB, and its dump 16.3 MB."""
_HEAD_BYTES = 512
_PG_DUMP, _GZIP, _ZSTD, _TAR = b"PGDMP", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"ustar"
_ENCRYPTED = {
    b"Salted__": "openssl",
    b"age-encryption.org": "age",
    b"-----BEGIN PGP": "gpg",
    b"-----BEGIN AGE": "age",
    b"-----BEGIN CMS": "openssl",
    b"\x85\x01": "gpg",
    b"\x85\x02": "gpg",
    b"\x84": "gpg",
    b"\x8c": "gpg",
}
"""First bytes of encrypted files, and the program that reads them."""
_OTHER_SYSTEMS = {
    "MySQL": re.compile(rb"\s*(?:/\*[^\n]*\*/;?\s*)?-- (?:MySQL|MariaDB) dump|-- phpMyAdmin SQL Dump"),
    "SQLite": re.compile(rb"PRAGMA foreign_keys=OFF;"),
    "SQL Server": re.compile(rb"USE \[\w+\]\r?\nGO\b"),
}
"""First bytes of other systems' dumps: mysqldump (8.0), mariadb-dump, phpMyAdmin, sqlite3's `.dump`, SSMS's scripts."""
_PIECE_BYTES = 1 << 20
_REMEDY = (
    "name a dump of pg_dump (custom, directory, tar, or SQL, also .gz and .zst), a base backup, a stopped data directory, a"
    " connection string such as service=shop, or a name of `pgdyno data list`"
)


@dataclass(frozen=True)
class DatabaseSource:
    """A source that was recognised."""

    text: str
    """As it was written."""
    form: Form
    path: Path | None = None
    """None of a server."""
    kept: KeptDatabase | None = None
    """The record of a kept one."""

    @property
    def title(self) -> str:
        """A few words for progress and reports: the file's name, never a connection string."""
        return self.text if self.path is None else self.path.name

    @property
    def measured(self) -> bool:
        """True if the size is known; of a dump it is estimated."""
        return self.form in PHYSICAL or self.form in ("server", "kept")

    @property
    def size_bytes(self) -> int:
        """Estimate: bytes of the restored database on its volumes."""
        if self.kept is not None:
            return self.kept.size_bytes
        if self.form == "server":
            return _server_bytes(self.text)
        assert self.path is not None
        total = sum(file.stat().st_size for file in files_of(self.path))
        if self.form == "data directory":
            return total
        compressed = self.form in ("custom", "directory") or any(_is_compressed(file) for file in files_of(self.path))
        if self.form == "base backup":
            return round(total * (_UNPACKED_RATIO if compressed else 1.0))
        return round(total * (STORED_PER_COMPRESSED_BYTE if compressed else STORED_PER_PLAIN_BYTE))

    @property
    def digest(self) -> str:
        """SHA-256 of its content; of a server, whose content changes, of this moment."""
        if self.kept is not None:
            return self.kept.source_digest
        if self.path is None:
            return _moment_digest(self.text)
        stamps = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files_of(self.path))
        return _digest(self.path, stamps)


_UNPACKED_RATIO = 3.0
"""Bytes of a cluster's files for each byte of their compressed archive, about; it only feeds estimates."""


def source_of(text: str) -> DatabaseSource:
    """Recognise a source. :class:`InputError` says what is there instead."""
    path = Path(text)
    if path.exists():
        return DatabaseSource(text, _form_of(path), path.absolute())
    if is_connection(text):
        return DatabaseSource(text, "server")
    kept = find_kept(text)
    if kept is not None:
        return DatabaseSource(text, "kept", kept=kept)
    raise InputError(f"there is no file, directory or kept database `{text}`", remedy=_REMEDY)


def is_connection(text: str) -> bool:
    """True if it is written as a connection string."""
    return "=" in text or text.startswith(("postgres://", "postgresql://"))


def files_of(path: Path) -> list[Path]:
    """The file, or every file below the directory; links to directories (tablespaces) are followed once."""
    if path.is_file():
        return [path]
    return sorted(_walked(path))


def _walked(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _walked(path)
        elif path.is_file():
            yield path


def opened(path: Path) -> IO[bytes]:
    """A file's content, decompressed."""
    head = _head(path)
    if head.startswith(_GZIP):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if head.startswith(_ZSTD):
        import pyarrow as pa

        stream: Any = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
        return io.BufferedReader(stream, _PIECE_BYTES)
    return path.open("rb")


def _form_of(path: Path) -> Form:
    return _form_of_directory(path) if path.is_dir() else _form_of_file(path)


def _form_of_directory(path: Path) -> Form:
    try:
        names = {file.name for file in path.iterdir()}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy="run as its owner or as root") from None
    if "toc.dat" in names:
        return "directory"
    if "backup_label" in names or any(name.startswith("base.tar") for name in names):
        return "base backup"
    if "PG_VERSION" in names and "global" in names:
        return "data directory"
    raise InputError(f"{path} is neither a dump nor a cluster's directory", remedy=_REMEDY)


def _form_of_file(path: Path) -> Form:
    head = _head(path)
    if head.startswith(_PG_DUMP):
        return "custom"
    if head[257:262] == _TAR:
        _require_whole_tar(path)
        with tarfile.open(path) as archive:
            first = archive.next()
        if first is not None and first.name == "toc.dat":
            return "tar"
        raise InputError(
            f"{path} is a tar archive, and not one of pg_dump",
            remedy="name the directory of a base backup, or unpack the archive",
        )
    if (program := next((by for magic, by in _ENCRYPTED.items() if head.startswith(magic)), None)) is not None:
        raise InputError(f"{path} is encrypted ({program})", remedy="decrypt it first, and name the decrypted file")
    if not head:
        raise InputError(f"{path} is empty", remedy="name a whole dump")
    try:
        with opened(path) as file:
            start = file.read(_HEAD_BYTES)
    except (OSError, EOFError) as error:
        raise InputError(f"{path} is damaged: {error}", remedy="copy the file again") from None
    if start.startswith(_PG_DUMP) or start[257:262] == _TAR:
        raise InputError(
            f"{path} is a compressed archive of pg_dump, which pg_restore cannot read", remedy="decompress it first"
        )
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            f"{path} is UTF-16, as PowerShell's `>` writes it",
            remedy="dump again with `pg_dump --file FILE`, or convert it: `iconv -f UTF-16 -t UTF-8`",
            code="dump.utf16",
        )
    if (system := next((name for name, head in _OTHER_SYSTEMS.items() if head.match(start)), None)) is not None:
        raise InputError(
            f"{path} is a dump of {system}, not of PostgreSQL",
            remedy="load it into PostgreSQL first (pgloader reads it), and dump that",
            code="dump.not_postgresql",
            data={"system": system},
        )
    if b"\0" in start:
        raise InputError(f"{path} is not a dump of pg_dump, or it is encrypted", remedy=_REMEDY)
    return "plain"


def _require_whole_tar(path: Path) -> None:
    """An archive ends with two empty blocks (POSIX, pax); pg_dump writes them, too."""
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, 2 * tarfile.BLOCKSIZE), io.SEEK_END)
        whole = file.read() == bytes(2 * tarfile.BLOCKSIZE)
    if not whole:
        raise InputError(f"{path} is torn: the end of the archive is missing", remedy="copy it again")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy="run as its owner or as root") from None


def _is_compressed(path: Path) -> bool:
    return _head(path).startswith((_GZIP, _ZSTD))


@cache
def _digest(path: Path, stamps: tuple[tuple[str, int, int], ...]) -> str:
    """Of names and contents. ``stamps`` makes a changed file another one."""
    whole = hashlib.sha256()
    for name, size_bytes, _ in stamps:
        whole.update(f"{Path(name).relative_to(path)} {size_bytes}\n".encode())
        with Path(name).open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                whole.update(piece)
    return whole.hexdigest()


@cache
def _moment_digest(text: str) -> str:
    import time

    return hashlib.sha256(f"{text} {time.time_ns()}".encode()).hexdigest()


@cache
def _server_bytes(dsn: str) -> int:
    import psycopg

    try:
        with psycopg.connect(dsn, connect_timeout=30) as connection:
            row = connection.execute(
                "SELECT pg_catalog.pg_database_size(pg_catalog.current_database()::text)"
            ).fetchone()
    except psycopg.Error as error:
        raise InputError(
            f"the server cannot be asked for its size: {' '.join(str(error).split())}",
            remedy="check the connection string, and that its role may connect to the database",
        ) from None
    assert row is not None
    return int(row[0])


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
        """Source that ``from`` names. :class:`InputError` if there is none."""
        return source_of(self.from_)

    @property
    def public_from(self) -> str:
        """The source as a record may have it."""
        return public_dsn(self.from_) if is_connection(self.from_) else self.from_

    def refusals(self) -> Iterator[Refusal]:
        """Refusals of its keys, before anything is read."""
        if self.name is not None and self.name in ("template0", "template1"):
            yield Refusal("database.name", f"{self.name} is a template of PostgreSQL; choose another name")
        if self.is_kept:
            for key in ("globals", "name"):
                if getattr(self, key) is not None:
                    yield Refusal(f"database.{key}", "a kept database has its roles and its name already; omit the key")

    @property
    def is_kept(self) -> bool:
        """True if ``from`` names a kept database. A source that is not found is reported when its data set is asked for."""
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
        """Source of the restored database."""
        return self.table.source

    @property
    def size_bytes(self) -> int:
        """Bytes on its volumes: measured, or estimated from a dump."""
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


DataSet = Tables | BulkTables | OwnDatabase
"""Each has ``family``, ``size_bytes`` and a title."""

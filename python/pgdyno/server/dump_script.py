"""The SQL of a dump as a new cluster can run it: what its own version does not know, and what names another cluster's roles, is taken out.

Only statements that pg_dump and pg_dumpall write in front of a database's content are looked at, each on a line of its own. Rows and
definitions are passed on byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..base.errors import InputError
from .dump import IDENTIFIER, unquoted, with_place

BOOTSTRAP = "postgres"
"""The role that initdb makes here."""
_PIECE_BYTES = 1 << 20
_SETTINGS_SINCE = {b"idle_session_timeout": 14, b"transaction_timeout": 17}
"""Session settings of a newer pg_dump's first lines, and the version that brought them. They end sessions; they change no content."""
_RESTRICT_SINCE = {17: 6, 16: 10, 15: 14, 14: 19}
"""Minor release that brought \\restrict and \\unrestrict; 18 has them from the beginning."""

_NAME = IDENTIFIER.encode()
_CONNECT = re.compile(rb"\\connect (?:-reuse-previous=on )?(?:\"dbname='((?:[^'\\]|\\.)*)'\"|(" + _NAME + rb"))\s*$")
_RESTRICT = re.compile(rb"\\restrict ([A-Za-z0-9]+)\r?\n?$")
_UNRESTRICT = re.compile(rb"\\unrestrict ([A-Za-z0-9]+)\r?\n?$")
_SET = re.compile(rb"SET (\w+) = ")
_CREATE_DATABASE = re.compile(rb"CREATE DATABASE (" + _NAME + rb") WITH ")
_PROVIDER = re.compile(rb" LOCALE_PROVIDER = libc\b")
_LOCALE = re.compile(rb" LOCALE = ('(?:[^']|'')*')")
_DROP = re.compile(rb"DROP |ALTER .* DROP ")
_CONTENT = re.compile(
    rb"CREATE (?!DATABASE |OR REPLACE VIEW )|COPY |INSERT |SET default_(?:tablespace|table_access_method) |ALTER (?!DATABASE |.* DROP )"
)
"""What ends the statements in front of a database's content."""
_NEXT_DATABASE = re.compile(rb'-- Database "(.*)" dump\s*$')
_DATABASE_COMPLETE = b"-- PostgreSQL database dump complete"
_CLUSTER = b"-- PostgreSQL database cluster dump"
CLUSTER_COMPLETE = b"-- PostgreSQL database cluster dump complete"
_CLUSTER_LOOK_LINES = 20

_ROLE = re.compile(r"(?:CREATE ROLE (\S+);|ALTER ROLE (\S+) WITH )")
_PASSWORD = re.compile(r" PASSWORD '(?:[^']|'')*'")
_GRANTOR = re.compile(rf"(GRANT .*) GRANTED BY {IDENTIFIER};$")
_TABLESPACE = re.compile(r"CREATE TABLESPACE |ALTER TABLESPACE |GRANT .* ON TABLESPACE |REVOKE .* ON TABLESPACE ")
_TABLESPACE_NAME = re.compile(rf"CREATE TABLESPACE ({IDENTIFIER}) ")
_OF_ANOTHER_CLUSTER = re.compile(r"DROP (?:DATABASE|ROLE|TABLESPACE) |(?:CREATE|ALTER) DATABASE |.* ON DATABASE ")


def knows_restrict(version: str) -> bool:
    """Whether psql of this version knows the commands that dumps begin and end with since August 2025 (CVE-2025-8714)."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:2]]
    major, minor = numbers[0], numbers[1] if len(numbers) > 1 else 0
    return minor >= _RESTRICT_SINCE.get(major, 0)


def globals_script(lines: Iterable[bytes], own_tablespaces: Iterable[str]) -> Iterator[bytes]:
    """The output of ``pg_dumpall --globals-only`` for a new cluster.

    Without passwords, which are not needed; without the bootstrap role, which is there and must stay a superuser; memberships are
    granted by the new cluster's bootstrap role, because since 16 another grantor needs the ADMIN option (a managed service's
    grantor is its own administrator); tablespaces without a volume of their own lie with the data; nothing is dropped, as
    ``--clean`` asks for.
    """
    made = set(own_tablespaces)
    for raw in lines:
        line = raw.decode(errors="replace")
        if (role := _ROLE.match(line)) is not None and unquoted(role[1] or role[2]) == BOOTSTRAP:
            continue
        if _OF_ANOTHER_CLUSTER.match(line):
            continue
        if (name := _TABLESPACE_NAME.match(line)) is not None and unquoted(name[1]) not in made:
            yield in_place(name[1])
            made.add(unquoted(name[1]))
        if not _TABLESPACE.match(line):
            yield _GRANTOR.sub(r"\1;", _PASSWORD.sub("", line)).encode()


def in_place(name: str) -> bytes:
    """A tablespace, named as SQL writes it, in the data directory itself (PostgreSQL, ``allow_in_place_tablespaces``)."""
    return f"SET allow_in_place_tablespaces = on; CREATE TABLESPACE {name} LOCATION ''; RESET allow_in_place_tablespaces;\n".encode()


@dataclass
class DatabaseScript:
    """The script of one database for a server of this version, in pieces.

    A newer pg_dump writes settings and options that an older server does not know. A dump made with ``--clean`` first drops what a
    new database does not have.
    """

    version: str
    """The version of the server and its psql: ``15.18``."""
    _in_content: bool = field(default=False, init=False)
    _in_view: bool = field(default=False, init=False)
    """In a view that `--clean` replaces by an empty one before it drops it, because other objects are in its definition."""
    _keys: set[bytes] = field(default_factory=set, init=False)

    def pieces(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines that are left, about a megabyte at a time."""
        kept: list[bytes] = []
        size = 0
        for line, is_outside in with_place(lines):
            kept.append(self._changed(line) if is_outside else line)
            size += len(line)
            if size >= _PIECE_BYTES:
                yield b"".join(kept)
                kept, size = [], 0
        yield b"".join(kept)

    def _changed(self, line: bytes) -> bytes:
        """A line outside of rows and literals: itself, another one, or nothing."""
        if line.startswith(b"\\"):
            return self._command(line)
        self._in_content = self._in_content or _CONTENT.match(line) is not None
        if self._in_content:
            return line
        if (setting := _SET.match(line)) is not None and self._major < _SETTINGS_SINCE.get(setting[1], 0):
            return b""
        self._in_view = self._in_view or line.startswith(b"CREATE OR REPLACE VIEW ")
        if self._in_view or _DROP.match(line):
            self._in_view = self._in_view and not line.rstrip().endswith(b";")
            return b""
        return self._database(line) if _CREATE_DATABASE.match(line) else line

    def _command(self, line: bytes) -> bytes:
        """A command of psql. Everything after \\connect is in front of content again."""
        knows = knows_restrict(self.version)
        if not self._in_content and (begin := _RESTRICT.match(line)) is not None:
            self._keys.add(begin[1])
            return line if knows else b""
        if (end := _UNRESTRICT.match(line)) is not None and end[1] in self._keys:
            return line if knows else b""
        if _CONNECT.match(line):
            self._in_content = False
        return line

    def _database(self, line: bytes) -> bytes:
        """CREATE DATABASE with the options of this version: LOCALE came with 13, LOCALE_PROVIDER with 15."""
        if self._major < 15:
            line = _PROVIDER.sub(b"", line)
        return _LOCALE.sub(rb" LC_COLLATE = \1 LC_CTYPE = \1", line) if self._major < 13 else line

    @property
    def _major(self) -> int:
        match = re.match(r"\d+", self.version)
        return int(match[0]) if match else 0


def is_of_cluster(lines: Iterable[bytes]) -> bool:
    """Whether a script is the output of pg_dumpall with databases, or of roles alone, by its first lines."""
    return any(line.startswith(_CLUSTER) for _, line in zip(range(_CLUSTER_LOOK_LINES), lines, strict=False))


def sections(lines: Iterable[bytes]) -> Iterator[tuple[str | None, bytes]]:
    """Each line of pg_dumpall's output with the database that it belongs to; None in front of the first, where roles are.

    A database begins behind the end of the one before, with a comment that names it (since 12), ``\\connect`` or CREATE DATABASE.
    """
    name: str | None = None
    is_named = True
    waiting: list[bytes] = []
    for line, is_outside in with_place(lines):
        if is_outside and is_named and line.startswith(_DATABASE_COMPLETE):
            yield name, line
            is_named = False
            continue
        if (
            is_outside
            and (name is None or not is_named)
            and (next_name := _named(line, begun=not is_named)) is not None
        ):
            name, is_named = next_name, True
            yield from ((name, earlier) for earlier in waiting)
            waiting = []
        if is_named:
            yield name, line
        else:
            waiting.append(line)
    yield from ((name, line) for line in waiting)


def roles(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The part of pg_dumpall's output that makes roles; of roles alone it is all."""
    for name, line in sections(lines):
        if name is not None:
            return
        yield line


def _named(line: bytes, *, begun: bool) -> str | None:
    """The database that this line names. CREATE DATABASE stands among the roles, too, in output of 10 and earlier."""
    if (comment := _NEXT_DATABASE.match(line)) is not None:
        return comment[1].decode(errors="replace")
    if (connect := _CONNECT.match(line)) is not None:
        plain = connect[1].replace(b"\\", b"") if connect[1] is not None else None
        return plain.decode() if plain is not None else unquoted(connect[2].decode(errors="replace"))
    if begun and (create := _CREATE_DATABASE.match(line)) is not None:
        return unquoted(create[1].decode(errors="replace"))
    return None


def chosen_database(names: Iterable[str], wanted: str | None, source: str) -> str:
    """The database of a cluster's dump that is meant: the one that is named, or the only one beside PostgreSQL's own.

    :class:`InputError` (``database.several``, ``database.unknown``) names those that are there.
    """
    there = [name for name in dict.fromkeys(names) if name != "template1"]
    if not there:
        raise InputError(
            f"{source} has roles alone, and no database",
            remedy="name a dump of the database, and this file with --globals",
            code="database.roles_alone",
        )
    own = [name for name in there if name != BOOTSTRAP] or there
    if wanted is None and len(own) == 1:
        return own[0]
    if wanted is not None and wanted in there:
        return wanted
    code = "database.several" if wanted is None else "database.unknown"
    why = "has several databases" if wanted is None else f"has no database `{wanted}`"
    raise InputError(
        f"{source} {why}: {', '.join(there)}",
        remedy=f"name one with --database {own[0]}, or `name` in [workload.database]",
        code=code,
        data={"databases": there},
    )

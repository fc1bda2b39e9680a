"""What a dump of pg_dump says about itself: version, database, and what it needs of a server.

An archive is read as the SQL that pg_restore makes of its schema; a plain dump from beginning to end, without its rows. Names are
recognised by the forms in which pg_dump writes them, a statement on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

IDENTIFIER = r'(?:"(?:[^"]|"")+"|[^\s";,()]+)'
"""An identifier as pg_dump writes it, as a regular expression."""
_LITERAL = r"'((?:[^']|'')*)'"
_FROM_VERSION = re.compile(r"^-- Dumped from database version (\S+)")
_COPY = re.compile(rb"COPY .* FROM stdin;\r?\n")
_END_OF_ROWS = (b"\\.\n", b"\\.\r\n", b"\\.")
_QUOTE = re.compile(rb"""['"]|\$(?:[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)?\$|--""")
_DATABASE = re.compile(rf"^CREATE DATABASE ({IDENTIFIER}) WITH (.*);$")
_CONNECT = re.compile(rf"^\\connect (?:-reuse-previous=on )?({IDENTIFIER})")
_EXTENSION = re.compile(rf"^CREATE EXTENSION IF NOT EXISTS ({IDENTIFIER})")
_COLLATION = re.compile(r"^CREATE COLLATION .* \((.*)\);$")
_NAMED_COLLATION = re.compile(r'COLLATE (?:pg_catalog\.)?"([^"]+)"')
_OPTION = re.compile(rf"(\w+) = (?:{_LITERAL}|(\w+))")
_TABLESPACE = re.compile(
    rf"^SET default_tablespace = (?:'({IDENTIFIER})'|({IDENTIFIER}));$|TABLESPACE = ({IDENTIFIER})"
)
_PRELOAD = re.compile(r"SET \"?(?:session|local)_preload_libraries\"? TO (.*);$")
_OWNER = re.compile(rf" OWNER TO ({IDENTIFIER});$")
_GRANT = re.compile(
    rf"^(?:GRANT|REVOKE) .* (?:TO|FROM) ({IDENTIFIER})(?: WITH GRANT OPTION)?(?: GRANTED BY ({IDENTIFIER}))?;$"
)
_DEFAULTS = re.compile(
    rf"^ALTER DEFAULT PRIVILEGES FOR ROLE ({IDENTIFIER}).* (?:TO|FROM) ({IDENTIFIER})(?: WITH GRANT OPTION)?;$"
)
_POLICY = re.compile(rf"^CREATE POLICY .* TO ({IDENTIFIER}(?:, {IDENTIFIER})*)(?: USING| WITH CHECK|;)")
_ROLE_SETTING = re.compile(rf"^ALTER ROLE ({IDENTIFIER}) IN DATABASE ")
_SESSION = re.compile(rf"^SET SESSION AUTHORIZATION '({IDENTIFIER})';$")
_MAPPING = re.compile(rf"^CREATE USER MAPPING FOR ({IDENTIFIER}) SERVER ")
_COMPLETE = ("-- PostgreSQL database dump complete", "-- PostgreSQL database cluster dump complete")
_STATISTICS = ("SELECT * FROM pg_catalog.pg_restore_relation_stats(", "SELECT pg_catalog.pg_restore_relation_stats(")
_BEGINS = ("CREATE ", "ALTER ", "GRANT ", "REVOKE ", "SET ", "-- ", "COPY ", "\\connect", "SELECT ", "    ")
_PSEUDO_ROLES = frozenset({"PUBLIC", "public", "CURRENT_USER", "SESSION_USER", "CURRENT_ROLE"})
_OWN_TABLESPACES = frozenset({"''", "pg_default", "pg_global"})
_BUILT_IN = frozenset({"default", "C", "POSIX", "ucs_basic", "unicode", "pg_c_utf8", "pg_unicode_fast"})
"""Collations that every PostgreSQL has, and needs neither glibc's locales nor ICU for (``unicode`` is checked as ICU's)."""


@dataclass
class DumpFacts:
    """What was found in a dump."""

    version: str | None = None
    """Version of the server that it was made from: ``15.18``."""
    database: str | None = None
    """The name of the database; None where the dump does not create it."""
    creates: bool = False
    """Whether it has CREATE DATABASE as pg_dump writes it."""
    of_cluster: bool = False
    """Whether it is one of the databases of pg_dumpall's output."""
    encoding: str | None = None
    extensions: set[str] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)
    tablespaces: set[str] = field(default_factory=set)
    locales: set[str] = field(default_factory=set)
    """Locales of the C library."""
    icu: bool = False
    """Whether a collation of ICU is used."""
    preloaded: set[str] = field(default_factory=set)
    """Libraries that sessions load by a setting of database or role."""
    statistics: bool = False
    """Whether the planner's statistics come with it."""
    complete: bool = False
    """Whether its last line is there: a torn plain dump has none."""

    @property
    def major(self) -> int | None:
        """Major version: 15 of 15.18."""
        match = re.match(r"\d+", self.version or "")
        return int(match[0]) if match else None

    def hear(self, line: str) -> None:
        """One line of SQL, without its end."""
        for pattern, item in _TAKEN:
            if match := pattern.search(line):
                item(self, match)
        self.complete = self.complete or line.startswith(_COMPLETE)
        self.statistics = self.statistics or line.startswith(_STATISTICS)

    def role(self, *names: str | None) -> None:
        """Roles that are named, as SQL writes them."""
        self.roles |= {unquoted(name) for name in names if name and name not in _PSEUDO_ROLES}

    def created(self, name: str, options: str) -> None:
        """CREATE DATABASE."""
        self.database, self.creates = unquoted(name), True
        document = _options(options)
        self.encoding = document.get("ENCODING", self.encoding)
        provider = document.get("LOCALE_PROVIDER", "libc")
        self.icu = self.icu or provider == "icu"
        self.locales |= {document[key] for key in ("LOCALE", "LC_COLLATE", "LC_CTYPE") if key in document}
        self.tablespace(document.get("TABLESPACE"))

    def connected(self, name: str) -> None:
        """The database in which a script continues: the one that it created, unless that is written as a connection string."""
        if self.database is None and "dbname=" not in name:
            self.database = unquoted(name)

    def collation(self, options: str) -> None:
        """CREATE COLLATION."""
        document = _options(options)
        if document.get("provider", "libc") == "icu":
            self.icu = True
        elif document.get("provider", "libc") == "libc":
            self.locales |= {document[key] for key in ("locale", "lc_collate", "lc_ctype") if key in document}

    def named_collation(self, name: str) -> None:
        """A column or an index with a collation that initdb made."""
        if name.endswith("-x-icu") or name == "unicode":
            self.icu = True
        elif name not in _BUILT_IN and re.fullmatch(r"[a-z]{2,3}_[A-Z]{2}(\.\S+)?", name):
            self.locales.add(name)

    def tablespace(self, name: str | None) -> None:
        """One that something lies in."""
        if name is not None and unquoted(name) not in _OWN_TABLESPACES:
            self.tablespaces.add(unquoted(name))

    def preload(self, libraries: str) -> None:
        """session_preload_libraries of a database or a role."""
        self.preloaded |= {name.strip(" '\"") for name in libraries.split(",")} - {""}


_TAKEN: tuple[tuple[re.Pattern[str], Callable[[DumpFacts, re.Match[str]], None]], ...] = (
    (_FROM_VERSION, lambda facts, item: setattr(facts, "version", item[1])),
    (_DATABASE, lambda facts, item: facts.created(item[1], item[2])),
    (_CONNECT, lambda facts, item: facts.connected(item[1])),
    (_EXTENSION, lambda facts, item: facts.extensions.add(unquoted(item[1]))),
    (_COLLATION, lambda facts, item: facts.collation(item[1])),
    (_NAMED_COLLATION, lambda facts, item: facts.named_collation(item[1])),
    (_TABLESPACE, lambda facts, item: facts.tablespace(item[1] or item[2] or item[3])),
    (_PRELOAD, lambda facts, item: facts.preload(item[1])),
    (_OWNER, lambda facts, item: facts.role(item[1])),
    (_GRANT, lambda facts, item: facts.role(item[1], item[2])),
    (_DEFAULTS, lambda facts, item: facts.role(item[1], item[2])),
    (_POLICY, lambda facts, item: facts.role(*re.findall(IDENTIFIER, item[1]))),
    (_ROLE_SETTING, lambda facts, item: facts.role(item[1])),
    (_SESSION, lambda facts, item: facts.role(item[1])),
    (_MAPPING, lambda facts, item: facts.role(item[1])),
)


def facts_of(lines: Iterable[bytes]) -> DumpFacts:
    """Read the SQL of a dump; rows and literals are passed over."""
    facts = DumpFacts()
    begins = tuple(begin.encode() for begin in _BEGINS)
    for line, is_outside in with_place(lines):
        if is_outside and line.startswith(begins):
            facts.hear(line.decode(errors="replace").rstrip("\r\n"))
    return facts


def with_place(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each line of a dump, and whether it begins outside of the rows of COPY and of literals: a value may look like anything."""
    in_rows = False
    quote: bytes | None = None
    for line in lines:
        yield line, not in_rows and quote is None
        if in_rows:
            in_rows = line not in _END_OF_ROWS
        elif quote is not None:
            quote = _open_quote(line, quote)
        elif line.startswith(b"COPY "):
            in_rows = _COPY.match(line) is not None
        elif b"'" in line or b"$" in line:
            quote = _open_quote(line)


def _open_quote(line: bytes, quote: bytes | None = None) -> bytes | None:
    """The quote that is open at the end of a line; at its begin it is ``quote``. A doubled quote closes a literal and opens one."""
    at = 0
    while True:
        if quote is not None:
            end = line.find(quote, at)
            if end < 0:
                return quote
            at, quote = end + len(quote), None
        begin = _QUOTE.search(line, at)
        if begin is None or begin[0] == b"--":
            return None
        at, quote = begin.end(), begin[0]


def unquoted(name: str) -> str:
    """An identifier as it stands in the catalogue."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _options(text: str) -> dict[str, str]:
    return {
        match[1]: match[2].replace("''", "'") if match[2] is not None else match[3] for match in _OPTION.finditer(text)
    }

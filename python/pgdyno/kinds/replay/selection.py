"""Selection from a capture: its sessions by role, database and time, their pace and destinations, and the keys that the databases give."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.workload.server import Server

from ...base import engine
from ...base.errors import InputError
from ...results.work_record import ReadingRecord
from .capture import Counts, copies_made, copy_texts

if TYPE_CHECKING:
    import psycopg


# pg_get_serial_sequence would ask for the right to use every schema.
_COLUMNS = """
SELECT space.nspname, class.relname, attribute.attname, pg_catalog.format_type(attribute.atttypid, NULL),
       coalesce(pg_catalog.pg_get_expr(def.adbin, def.adrelid), ''),
       coalesce((
           SELECT pg_catalog.format('%I.%I', own.nspname, sequence.relname) FROM pg_catalog.pg_depend AS link
           JOIN pg_catalog.pg_class AS sequence ON sequence.oid = link.objid AND sequence.relkind = 'S'
           JOIN pg_catalog.pg_namespace AS own ON own.oid = sequence.relnamespace
           WHERE link.classid = link.refclassid AND link.refclassid = class.tableoid AND link.refobjid = class.oid
             AND link.refobjsubid = attribute.attnum AND link.deptype IN ('a', 'i') LIMIT 1), '')
FROM pg_catalog.pg_attribute AS attribute
JOIN pg_catalog.pg_class AS class ON class.oid = attribute.attrelid AND class.relkind IN ('r', 'p')
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
LEFT JOIN pg_catalog.pg_attrdef AS def ON def.adrelid = attribute.attrelid AND def.adnum = attribute.attnum
WHERE attribute.attnum > 0 AND NOT attribute.attisdropped AND space.nspname NOT IN ('pg_catalog', 'information_schema')
  AND (attribute.attidentity <> '' OR def.oid IS NOT NULL)
"""
# The right to read one is asked for by its number: by its name it would need the right to use the schema.
_SEQUENCES = """
SELECT pg_catalog.format('%I.%I', schemaname, sequencename), sequencename, last_value, start_value - 1,
       CASE WHEN last_value IS NULL THEN 0 ELSE cache_size - 1 END, cache_size = 1,
       pg_catalog.has_schema_privilege(space.oid, 'USAGE') AND pg_catalog.has_sequence_privilege(class.oid, 'SELECT')
FROM pg_catalog.pg_sequences
JOIN pg_catalog.pg_namespace AS space ON space.nspname = schemaname
JOIN pg_catalog.pg_class AS class ON class.relnamespace = space.oid AND class.relname = sequencename
WHERE increment_by > 0
"""
_FUNCTIONS = """
SELECT DISTINCT proname, provolatile = 'v' AND prokind IN ('f', 'p')
FROM pg_catalog.pg_proc AS function JOIN pg_catalog.pg_namespace AS space ON space.oid = pronamespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema')
"""
# The type of a domain, and of an array's elements. A decimal number with a scale is a fraction.
_TABLES = """
WITH RECURSIVE kind (oid, base) AS (
    SELECT oid, CASE WHEN typtype = 'd' THEN typbasetype WHEN typcategory = 'A' THEN typelem ELSE oid END FROM pg_catalog.pg_type
), base (oid, base, depth) AS (
    SELECT oid, base, 0 FROM kind UNION ALL
    SELECT base.oid, kind.base, depth + 1 FROM base JOIN kind ON kind.oid = base.base WHERE kind.base <> kind.oid AND depth < 8
), typed (oid, base) AS (SELECT DISTINCT ON (oid) oid, base FROM base ORDER BY oid, depth DESC)
SELECT space.nspname, class.relname, CASE WHEN class.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(class.oid) ELSE '' END,
       pg_catalog.array_agg(attribute.attname::pg_catalog.text ORDER BY attribute.attnum),
       pg_catalog.array_agg(CASE
           WHEN typed.base IN (20, 21, 23) THEN 'number'
           WHEN typed.base = 1700 AND (attribute.atttypmod < 4 OR (attribute.atttypmod - 4) & 2047 = 0) THEN 'number'
           WHEN typed.base IN (25, 1042, 1043) THEN 'text'
           WHEN typed.base = 2950 THEN 'uuid'
           WHEN typed.base IN (114, 3802) THEN 'json'
           ELSE 'other' END ORDER BY attribute.attnum)
FROM pg_catalog.pg_class AS class
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_catalog.pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum > 0 AND NOT attribute.attisdropped
JOIN typed ON typed.oid = attribute.atttypid
WHERE class.relkind IN ('r', 'p', 'v', 'm', 'f') AND space.nspname NOT IN ('pg_catalog', 'information_schema') AND space.nspname NOT LIKE 'pg\\_t%'
GROUP BY space.nspname, class.relname, class.oid, class.relkind
"""
# By foreign keys, and of partitions and other children by the names of their columns.
_SAME = """
SELECT own_space.nspname, own.relname, own_column.attname, its_space.nspname, its.relname, its_column.attname, true
FROM pg_catalog.pg_constraint AS link
CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(link.conkey), pg_catalog.unnest(link.confkey)) AS pair (own_number, its_number)
JOIN pg_catalog.pg_class AS own ON own.oid = link.conrelid
JOIN pg_catalog.pg_namespace AS own_space ON own_space.oid = own.relnamespace
JOIN pg_catalog.pg_attribute AS own_column ON own_column.attrelid = own.oid AND own_column.attnum = pair.own_number
JOIN pg_catalog.pg_class AS its ON its.oid = link.confrelid
JOIN pg_catalog.pg_namespace AS its_space ON its_space.oid = its.relnamespace
JOIN pg_catalog.pg_attribute AS its_column ON its_column.attrelid = its.oid AND its_column.attnum = pair.its_number
WHERE link.contype = 'f'
UNION ALL
SELECT own_space.nspname, own.relname, own_column.attname, its_space.nspname, its.relname, its_column.attname, false
FROM pg_catalog.pg_inherits AS link
JOIN pg_catalog.pg_class AS own ON own.oid = link.inhrelid AND own.relkind IN ('r', 'p', 'f')
JOIN pg_catalog.pg_namespace AS own_space ON own_space.oid = own.relnamespace
JOIN pg_catalog.pg_class AS its ON its.oid = link.inhparent
JOIN pg_catalog.pg_namespace AS its_space ON its_space.oid = its.relnamespace
JOIN pg_catalog.pg_attribute AS its_column ON its_column.attrelid = its.oid AND its_column.attnum > 0 AND NOT its_column.attisdropped
JOIN pg_catalog.pg_attribute AS own_column ON own_column.attrelid = own.oid AND own_column.attname = its_column.attname
"""
_PRIMARY = """
SELECT space.nspname, class.relname, attribute.attname
FROM pg_catalog.pg_index AS index
JOIN pg_catalog.pg_class AS class ON class.oid = index.indrelid
JOIN pg_catalog.pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_catalog.pg_attribute AS attribute ON attribute.attrelid = class.oid AND attribute.attnum = index.indkey[0]
WHERE index.indisprimary AND index.indnatts = 1 AND space.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_BATCH = 200
"""Sequences that are read by one statement."""
_NEXTVAL = re.compile(r"nextval\('([^']+)'::regclass\)")


def catalogue(connection: psycopg.Connection[Any], sessions: int) -> dict[str, Any]:
    """Keys of one database, as the engine takes them. A sequence that the role may not read counts as unused.

    Where a sequence has a cache, each of ``sessions`` may still have had values below its last one, and values are not given in their
    order.
    """
    result = connection.execute(_SEQUENCES).fetchall()
    next_values = _next_values(connection, [str(row[0]) for row in result if row[2] is None and row[-1]])
    sequences = [
        {
            "qualified": name,
            "name": bare,
            "after": max(0, int(next_values.get(name, start) if last is None else last)),
            "cached": int(cached) * sessions,
            "in_order": in_order,
        }
        for name, bare, last, start, cached, in_order, _ in result
    ]
    whole = {
        name: str(sequence["qualified"])
        for sequence in reversed(sequences)
        for name in (sequence["name"], sequence["qualified"])
    }
    columns = []
    for schema, table, column, kind, default, owned in connection.execute(_COLUMNS).fetchall():
        named_in = _NEXTVAL.search(default)
        sequence = owned or (named_in[1] if named_in else "")
        named = {"schema": schema, "table": table, "column": column}
        if sequence:
            known = whole.get(sequence) or whole.get(sequence.rpartition(".")[2].strip('"'), "")
            columns.append(named | {"kind": "number", "sequence": known})
        elif kind == "uuid":
            columns.append(named | {"kind": "uuid"})
    functions = connection.execute(_FUNCTIONS).fetchall()
    return {
        "name": connection.info.dbname,
        "tables": [
            {
                "schema": schema,
                "name": name,
                "definition": definition or "",
                "columns": list(zip(names, kinds, strict=True)),
            }
            for schema, name, definition, names, kinds in connection.execute(_TABLES.encode()).fetchall()
        ],
        "columns": columns,
        "sequences": sequences,
        "same": [[row[:3], row[3:6], row[6]] for row in connection.execute(_SAME).fetchall()],
        "primary": [list(row) for row in connection.execute(_PRIMARY).fetchall()],
        "functions": sorted({name for name, writes in functions if writes}),
        "own_functions": sorted({name for name, _ in functions}),
    }


def _next_values(connection: psycopg.Connection[Any], unused: list[str]) -> dict[str, int]:
    """The value before the first one of sequences that have given none: ``RESTART WITH 20`` is in no view of the system."""
    next_values = {}
    for begin in range(0, len(unused), _BATCH):
        parts = (f"SELECT last_value - 1 FROM {name}" for name in unused[begin : begin + _BATCH])
        rows = connection.execute(" UNION ALL ".join(parts).encode()).fetchall()
        next_values.update({name: int(row[0]) for name, row in zip(unused[begin:], rows, strict=False)})
    return next_values


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The catalogues of several databases as one."""
    return {"databases": parts}


Keys = Literal["learned", "captured"]
"""Treatment of keys that the server gave in production: replaced by this run's, or sent as captured."""
Clock = Literal["capture", "now"]
"""Clock of the server: production's time, from the begin of the captured part on, or the host's."""
Pace = Literal["due", "gaps"]
"""A statement is sent at its time, or so long after the answer before it as the application waited."""
LIMIT_TIMES = 10.0
"""A replay may take this multiple of its time, and :data:`LIMIT_BESIDE_S`; then it is ended: a server that is ten times too slow
has given its answer."""
LIMIT_BESIDE_S = 60.0
WAIT_MAX_S = 10.0
"""How long a statement waits for the transaction that makes its key (issue 21, point 8)."""
NEWER = {"share": 0.01, "ahead": 32}
"""Keys of the capture that a database may have already, as the verdict on a replay allows (:mod:`pgdyno.analysis.replay`)."""
_DIGEST_SHOWN = 16


@dataclass(frozen=True)
class Place:
    """Sessions of a role in a database."""

    user: str
    database: str
    calls: int


@dataclass(frozen=True)
class ReplayPlan:
    """Plan of a replay, from the index of its capture."""

    captured_s: float
    """Time of the whole capture."""
    part_s: float
    """Time of the part that is asked for."""
    begin_unix_us: int
    """When that part began in production, microseconds since 1970."""
    sessions: int
    lanes: int
    """The most sessions that are open at a time."""
    places: tuple[Place, ...]
    reading: ReadingRecord
    """Parts of the source that the capture lacks."""
    recorded_at: str
    """Address of the server that a recording is of; empty of a log, which does not say it."""


@dataclass(frozen=True)
class ReplaySelection:
    """A part of a capture, and how it is sent. Its names are ``NAME``, or ``NAME=HERE`` for another one in its place."""

    capture: str
    speed: float = 1.0
    pace: Pace = "due"
    users: tuple[str, ...] = ()
    """Empty: all."""
    databases: tuple[str, ...] = ()
    from_s: float | None = None
    until_s: float | None = None
    keys: Keys = "learned"
    wait_max_s: float = WAIT_MAX_S
    """How long a statement waits for the transaction of another session that makes its key; 0: not at all."""
    made: Mapping[str, Counts] | None = None
    """Production's counts of each statement, where rows of COPY that are not in the capture are made; None: such a COPY is left out."""
    accept_losses: bool = False
    """True if what the capture lacks is no reason against its replay."""

    def planned(self) -> ReplayPlan:
        """Plan of the replay. :class:`InputError` when the capture cannot be read, or nothing in it is asked for."""
        every = _planned(self.capture, file_stamp(self.capture), None, None, None)
        users, databases = names_of(self.users), names_of(self.databases)
        require_known(users, {place.user for place in every.places}, "user")
        require_known(databases, {place.database for place in every.places}, "database")
        chosen = tuple(
            (place.user, place.database)
            for place in every.places
            if (not users or place.user in users) and (not databases or place.database in databases)
        )
        plan = _planned(self.capture, file_stamp(self.capture), chosen, self.from_s, self.until_s)
        if not plan.places:
            raise InputError(
                f"{self.capture}: no session matches the selection",
                remedy="choose other users, databases or another time; `pgdyno capture show` lists them",
            )
        return plan

    @property
    def reading(self) -> ReadingRecord:
        """Parts of the source that the capture lacks, with the user's acceptance."""
        return self.planned().reading.model_copy(update={"accepted": self.accept_losses})

    @property
    def due_s(self) -> float:
        """Seconds that it takes if nothing is late."""
        return self.planned().part_s / self.speed

    @property
    def limit_s(self) -> float:
        """Seconds after which it is ended."""
        return self.due_s * LIMIT_TIMES + LIMIT_BESIDE_S

    def endpoints(self, server: Server) -> list[dict[str, Any]]:
        """Endpoints of each role's sessions."""
        own = server.endpoint
        return [
            {
                "user": place.user,
                "database": place.database,
                "server": own.of(user, database).order("pgdyno replay"),
            }
            for place, user, database in self.destinations(own.document["user"], own.document["dbname"])
        ]

    def destinations(self, user: str, database: str) -> list[tuple[Place, str, str]]:
        """Each place with its role and database here.

        A role that the log does not name is ``user``. The only database of a capture is ``database``, unless another is named.
        """
        users, databases = names_of(self.users), names_of(self.databases)
        places = self.planned().places
        alone = len({place.database for place in places}) == 1
        return [
            (
                place,
                users.get(place.user) or place.user or user,
                databases.get(place.database) or (database if alone else place.database) or database,
            )
            for place in places
        ]

    def digest(self) -> str:
        """Digest of the capture's content."""
        return _digest(self.capture, file_stamp(self.capture))[:_DIGEST_SHOWN]

    def document(self) -> dict[str, Any]:
        """The part of the engine's input that does not depend on a server."""
        return {"capture": self.capture, "pace": self.pace, "from_s": self.from_s, "until_s": self.until_s}

    def keys_on(self, server: Server, dilation: int = 1) -> dict[str, Any] | None:
        """Keys of the databases of ``server``, read by the role of its connection string."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        order = server.endpoint.order("pgdyno replay")
        names = {name for _, _, name in self.destinations(order["user"], order["dbname"])}
        with contextlib.ExitStack() as ending:
            return self.keys_document(
                (
                    ending.enter_context(
                        psycopg.connect(make_conninfo(server.dsn, dbname=name, password=order["password"] or ""))
                    )
                    for name in sorted(names)
                ),
                dilation,
            )

    def copies_on(self, server: Server) -> list[dict[str, Any]]:
        """Of which COPYs rows are made, and of what: by the tables of the databases of ``server``."""
        import psycopg
        from psycopg.conninfo import make_conninfo

        order = server.endpoint.order("pgdyno replay")
        names = {name for _, _, name in self.destinations(order["user"], order["dbname"])}
        with contextlib.ExitStack() as ending:
            return self.copies_document(
                ending.enter_context(
                    psycopg.connect(make_conninfo(server.dsn, dbname=name, password=order["password"] or ""))
                )
                for name in sorted(names)
            )

    def copies_document(self, connections: Iterable[psycopg.Connection[Any]]) -> list[dict[str, Any]]:
        """The same, by these connections. A COPY is of the first database that has its table."""
        if self.made is None:
            return []
        left = copy_texts(self.capture, file_stamp(self.capture))
        copies_document: list[dict[str, Any]] = []
        for connection in connections:
            copies_document += copies_made(connection, left, self.made)
            left = {
                shape: text
                for shape, text in left.items()
                if shape not in {document["shape"] for document in copies_document}
            }
        return copies_document

    def keys_document(self, connections: Iterable[psycopg.Connection[Any]], dilation: int = 1) -> dict[str, Any] | None:
        """The part about keys, by what the databases say; None where they are sent as captured."""
        if self.keys == "captured":
            return None
        sessions = self.planned().lanes
        result = joined([catalogue(connection, sessions) for connection in connections])
        return {"catalogue": result, "wait_max_ms": round(self.wait_max_s * 1000 * dilation)}


def names_of(written: Sequence[str]) -> dict[str, str]:
    """``NAME`` or ``NAME=HERE`` -> the name here; empty for the same."""
    return {name: here for name, _, here in (text.partition("=") for text in written)}


def require_known(named: Mapping[str, str], there: set[str], what: str) -> None:
    """Refuse a name that the capture has no statement of."""
    for name in named:
        if name not in there:
            raise InputError(
                f"the capture has no statement of the {what} {name}",
                remedy=f"it has statements of {', '.join(sorted(text or '(not logged)' for text in there)) or 'none'}",
            )


def file_stamp(path: str) -> tuple[int, int]:
    """Stamp that changes with the file. A file that is not there is reported by who reads it."""
    try:
        stat = Path(path).stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=64)
def _planned(
    path: str,
    stamp: tuple[int, int],
    places: tuple[tuple[str, str], ...] | None,
    from_s: float | None,
    until_s: float | None,
) -> ReplayPlan:
    del stamp
    json = engine.run_json(
        ["capture", "replay", "--check"],
        {"capture": path, "places": places, "from_s": from_s, "until_s": until_s},
    )
    return ReplayPlan(
        captured_s=json["captured_s"],
        part_s=json["part_s"],
        begin_unix_us=json["begin_unix_us"],
        sessions=json["sessions"],
        lanes=json["lanes"],
        places=tuple(Place(**place) for place in json["places"]),
        reading=ReadingRecord(**json["reading"]),
        recorded_at=json["recorded_at"],
    )


@functools.lru_cache(maxsize=16)
def _digest(path: str, stamp: tuple[int, int]) -> str:
    del stamp
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

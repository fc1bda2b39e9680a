"""The ledger's schema: what it consists of, and proof that no other role can have planted anything in it.

A load runs with the rights of the role that loads, often a superuser's. A trigger, a rule, a default or a row that another
role put into the ledger would act with those rights. So before anything in the schema is read or written,
:func:`require` checks that:

- the schema and every object in it belong to the current role, or to a superuser, who could do everything anyway;
- no other role holds a privilege on them beyond USAGE and SELECT;
- the tables are exactly those of :data:`TABLES`, without triggers, rules, policies, children or foreign keys from elsewhere.

The check takes a lock that waits for DDL still in progress. After it, only the owner, a superuser or the current role
could change the schema, so that the result holds for the rest of the load and for all of its sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.loader.server import many, maybe, one, run, said
from pgdyno.loader.sql import quoted

from ..base.errors import InputError
from ..base.session import Connection

SCHEMA = "pgdyno_load"
LOCK_TIMEOUT_S = 10
_TRIES = 3
"""Two loads that create the ledger at once: the second one fails once, and then finds it."""
STAGING = re.compile(r"staging_[0-9]+(_row)?")
"""Tables of upserts and their sequences."""


@dataclass(frozen=True)
class _Column:
    """A column, in the words of ``format_type`` and ``pg_get_expr``."""

    name: str
    type: str
    default: str | None = None
    identity: bool = False
    nullable: bool = False
    generated: bool = False
    """pgdyno's own objects have none."""

    def __str__(self) -> str:
        identity = " GENERATED ALWAYS AS IDENTITY" if self.identity else ""
        default = f" DEFAULT {self.default}" if self.default else ""
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}{identity}{default}"


_TIME = "timestamp with time zone"
_MADE = _Column("made", _TIME, "now()")
_XACT = _Column("xact", "xid8", "pg_current_xact_id()")
TABLES: dict[str, tuple[tuple[_Column, ...], tuple[str, ...]]] = {
    "job": (
        (
            _Column("job", "bigint", identity=True),
            _Column("target", "text"),
            _Column("table_oid", "oid"),
            _Column("plan", "jsonb"),
            _Column("found", "jsonb"),
            _Column("begun", _TIME, "now()"),
            _Column("ended", _TIME, nullable=True),
        ),
        ("PRIMARY KEY (job)",),
    ),
    "chunk": (
        (
            _Column("job", "bigint"),
            _Column("source", "integer"),
            _Column("chunk", "bigint"),
            _Column("first_byte", "bigint"),
            _Column("end_byte", "bigint"),
            _Column("rows_loaded", "bigint"),
            _Column("rows_rejected", "bigint"),
            _XACT,
        ),
        ("PRIMARY KEY (job, source, chunk)",),
    ),
    "undo": (
        (
            _Column("entry", "bigint", identity=True),
            _Column("token", "text"),
            _Column("job", "bigint"),
            _Column("target", "text"),
            _Column("table_oid", "oid"),
            _Column("kind", "text"),
            _Column("fact", "jsonb"),
            _Column("stages_done", "integer", "0"),
            _MADE,
        ),
        ("PRIMARY KEY (entry)", "UNIQUE (token)"),
    ),
    "merge": (
        (
            _Column("job", "bigint"),
            _Column("rows_merged", "bigint"),
            _Column("rows_replaced", "bigint", nullable=True),
            _XACT,
            _MADE,
        ),
        (
            "PRIMARY KEY (job)",
            "FOREIGN KEY (job) REFERENCES pgdyno_load.job(job) ON DELETE CASCADE",
        ),
    ),
}
"""Table -> columns and constraints. A chunk's ``xact``, and a merge's, is the transaction that brought the rows."""

_TRUSTED = "(r.oid = (SELECT oid FROM pg_roles WHERE rolname = current_user) OR r.rolsuper)"
_SCHEMA = f"""
SELECT n.oid, r.rolname, {_TRUSTED}, has_schema_privilege(n.oid, 'CREATE')
FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner WHERE n.nspname = '{SCHEMA}'
"""
_STRANGE_OBJECTS = """
SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = %s AND d.classid <> 'pg_class'::regclass ORDER BY 1
"""
_RELATIONS = f"""
SELECT c.oid, c.relname, c.relkind::text, r.rolname, {_TRUSTED}, c.relrowsecurity, c.relpersistence = 'p'
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relnamespace = %s AND c.relkind <> 'i' ORDER BY c.relname
"""
_GRANTS = f"""
WITH granted AS (
    SELECT 'schema {SCHEMA}' AS what, nspowner AS owner, a.* FROM pg_namespace, aclexplode(nspacl) a
    WHERE nspname = '{SCHEMA}'
    UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || format('%I.%I', '{SCHEMA}', relname),
           relowner, a.* FROM pg_class, aclexplode(relacl) a WHERE relnamespace = '{SCHEMA}'::regnamespace
    UNION ALL SELECT 'table ' || format('%I.%I', '{SCHEMA}', relname), relowner, a.*
    FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
    WHERE relnamespace = '{SCHEMA}'::regnamespace
)
SELECT g.what, coalesce(r.rolname, 'PUBLIC'), string_agg(DISTINCT g.privilege_type, ', '), g.grantee
FROM granted g LEFT JOIN pg_roles r ON r.oid = g.grantee
WHERE g.grantee <> g.owner AND g.privilege_type <> 'SELECT'
      AND (g.what NOT LIKE 'schema %' OR g.privilege_type <> 'USAGE') AND NOT coalesce({_TRUSTED}, false)
GROUP BY 1, 2, 4 ORDER BY 1, 2
"""
_ATTACHED = """
WITH ours AS (SELECT unnest(%s::oid[]) AS oid)
SELECT 'trigger ' || quote_ident(tgname) || ' on ' || tgrelid::regclass FROM pg_trigger
WHERE tgrelid IN (SELECT oid FROM ours) AND NOT tgisinternal
UNION ALL SELECT 'rule ' || quote_ident(rulename) || ' on ' || ev_class::regclass FROM pg_rewrite WHERE ev_class IN (SELECT oid FROM ours)
UNION ALL SELECT 'policy ' || quote_ident(polname) || ' on ' || polrelid::regclass FROM pg_policy WHERE polrelid IN (SELECT oid FROM ours)
UNION ALL SELECT 'inheritance of ' || inhrelid::regclass || ' from ' || inhparent::regclass FROM pg_inherits
WHERE inhrelid IN (SELECT oid FROM ours) OR inhparent IN (SELECT oid FROM ours)
UNION ALL SELECT 'foreign key ' || quote_ident(conname) || ' of ' || conrelid::regclass FROM pg_constraint
WHERE contype = 'f' AND confrelid IN (SELECT oid FROM ours) AND conrelid NOT IN (SELECT oid FROM ours)
UNION ALL SELECT 'index ' || indexrelid::regclass FROM pg_index i
WHERE indrelid IN (SELECT oid FROM ours) AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
ORDER BY 1
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attidentity = 'a',
       NOT a.attnotnull, a.attgenerated <> '' OR a.attidentity = 'd'
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s AND contype <> 'n'"
"""From PostgreSQL 18 on NOT NULL is a constraint too; the columns say it."""


def require(connection: Connection) -> bool:
    """Whether there is a ledger, which then can be trusted. :class:`InputError` for one that cannot be."""
    import psycopg

    try:
        with connection.transaction():
            require = _look(connection)
            if require:
                run(connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'")
                run(connection, f"LOCK TABLE {', '.join(f'{SCHEMA}.{name}' for name in TABLES)} IN ROW EXCLUSIVE MODE")
                require = _look(connection)  # with what others had not committed when the lock was asked for
            return require
    except psycopg.errors.LockNotAvailable:
        raise InputError(
            f"another session holds a lock on the ledger (schema {SCHEMA})",
            remedy="find the session in pg_locks, and run the same command again when it has ended",
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise _forbidden(connection, f"{said(error)}, which another role made") from None


def require_may_create(connection: Connection) -> None:
    """That this role may create the ledger, which does not exist. :class:`InputError` if not."""
    may = "SELECT has_database_privilege(current_database(), 'CREATE')"
    if _schema(connection) is None and not one(connection, may)[0]:
        raise _forbidden(connection, "this role may not create a schema in this database")


def ensure(connection: Connection) -> None:
    """Create the ledger, once in a database. :class:`InputError` when this role may not, or must not trust what is there."""
    import psycopg

    for left in reversed(range(_TRIES)):
        try:
            if not require(connection):
                with connection.transaction():
                    _create(connection)
            for name in TABLES:
                one(connection, f"SELECT count(*) FROM {SCHEMA}.{name} WHERE false")
            return
        except (psycopg.errors.DuplicateSchema, psycopg.errors.DuplicateTable, psycopg.errors.UniqueViolation):
            if not left:
                raise
        except psycopg.errors.InsufficientPrivilege as error:
            raise _forbidden(connection, said(error)) from None


def seal(connection: Connection) -> None:
    """Take back what ALTER DEFAULT PRIVILEGES has granted to other roles on objects that were made just now."""
    for what, role, _, grantee in many(connection, _GRANTS):
        run(connection, f"REVOKE ALL ON {what} FROM {'PUBLIC' if grantee == 0 else quoted(role)}")


def _schema(connection: Connection) -> tuple[int, str, bool, bool] | None:
    row = maybe(connection, _SCHEMA)
    return None if row is None else (int(row[0]), str(row[1]), bool(row[2]), bool(row[3]))


def _create(connection: Connection) -> None:
    if _schema(connection) is None:
        run(connection, f"CREATE SCHEMA {SCHEMA}")
        run(
            connection,
            f"COMMENT ON SCHEMA {SCHEMA} IS 'What pgdyno load has loaded and must restore; see pgdyno load --help'",
        )
    for name, (columns, constraints) in TABLES.items():
        run(connection, f"CREATE TABLE {SCHEMA}.{name} ({', '.join([*map(str, columns), *constraints])})")
    seal(connection)
    _look(connection)


def _look(connection: Connection) -> bool:
    """Whether the ledger's tables are there. :class:`InputError` with the first thing that cannot be trusted."""
    schema = _schema(connection)
    if schema is None:
        return False
    oid, owner, trusted, may_create = schema
    if not trusted:
        raise _untrusted(f"the schema {SCHEMA} belongs to the role {owner}", owner)
    relations = many(connection, _RELATIONS, (oid,))
    strange = next(_strange(connection, oid, relations), None)
    if strange is not None:
        raise _untrusted(strange, owner)
    names = {row[1]: int(row[0]) for row in relations}
    if not names and may_create:
        return False  # a schema that was made for this role and is empty yet
    if not names:
        raise _forbidden(connection, f"the schema {SCHEMA} belongs to {owner}")
    if "stages" in {row[0] for row in many(connection, _COLUMNS, (names.get("undo", 0),))}:
        raise _older()
    for name in TABLES:
        different = f"the table {SCHEMA}.{name} is missing" if name not in names else None
        different = different or _difference(connection, name, names[name])
        if different is not None:
            raise _untrusted(different, owner)
    return True


def _strange(connection: Connection, schema: int, relations: list[tuple[object, ...]]) -> Iterator[str]:
    """What is in the schema, on it or attached to it, and is not the loader's."""
    for (what,) in many(connection, _STRANGE_OBJECTS, (schema,)):
        yield f"{what} is not a part of the ledger"
    for _, name, kind, owner, trusted, secured, permanent in relations:
        if not trusted:
            yield f"{SCHEMA}.{name} belongs to the role {owner}"
        ours = name in TABLES or STAGING.fullmatch(str(name)) or (kind == "S" and _is_identity(str(name)))
        if not ours or kind not in ("r", "S") or not permanent:
            yield f"{SCHEMA}.{name} is not a part of the ledger"
        if secured:
            yield f"{SCHEMA}.{name} has row-level security"
    for what, role, rights, _ in many(connection, _GRANTS):
        yield f"the role {role} has {rights} on the {what}"
    for (what,) in many(connection, _ATTACHED, ([row[0] for row in relations],)):
        yield f"the {what} is not a part of the ledger"
    for oid, name, kind, *_ in relations:
        if kind == "r" and STAGING.fullmatch(str(name)):
            expected = (None, "pg_current_xact_id()", f"nextval('{SCHEMA}.{name}_row'::regclass)")
            if any(column[2] not in expected for column in many(connection, _COLUMNS, (oid,))):
                yield f"{SCHEMA}.{name} has a default that is not the loader's"


def _is_identity(name: str) -> bool:
    return any(
        name == f"{table}_{column.name}_seq"
        for table, (columns, _) in TABLES.items()
        for column in columns
        if column.identity
    )


def _difference(connection: Connection, name: str, oid: int) -> str | None:
    columns, constraints = TABLES[name]
    results = [_Column(*row) for row in many(connection, _COLUMNS, (oid,))]
    if tuple(results) != columns:
        different = next((one for one in [*results, *columns] if one not in columns or one not in results), results[0])
        return f"the column {different.name} of {SCHEMA}.{name} is not as pgdyno makes it"
    texts = sorted(row[0] for row in many(connection, _CONSTRAINTS, (oid,)))
    return None if texts == sorted(constraints) else f"the constraints of {SCHEMA}.{name} are not as pgdyno makes them"


def _untrusted(what: str, owner: str) -> InputError:
    return InputError(
        f"the ledger cannot be trusted: {what}, and what another role put there would run with your rights",
        remedy=f"load as {owner} if that role keeps the ledger, or load with --no-ledger; to begin with a new ledger, run"
        f" `pgdyno load --restore DSN` as {owner}, and then `ALTER SCHEMA {SCHEMA} RENAME TO {SCHEMA}_old`",
    )


def _older() -> InputError:
    return InputError(
        f"the ledger (schema {SCHEMA}) was written by an earlier version of pgdyno, which kept statements in it",
        remedy=f"finish or --restore open loads with that version (`SELECT what, stages FROM {SCHEMA}.undo` lists what they"
        f" still have to restore); then run `ALTER SCHEMA {SCHEMA} RENAME TO {SCHEMA}_old`, which loses nothing",
    )


def _forbidden(connection: Connection, why: str) -> InputError:
    schema = _schema(connection)
    role = one(connection, "SELECT quote_ident(current_user)")[0]
    if schema is None:
        remedy = f"run as the database's owner or a superuser `CREATE SCHEMA {SCHEMA} AUTHORIZATION {role}`"
    else:
        remedy = f"load as {schema[1]}, the role that keeps this database's ledger"
    return InputError(
        f"the ledger cannot be kept: {why}",
        remedy=f"{remedy}; or load with --no-ledger, which cannot be resumed",
    )

"""Ways out of a database: other servers, files and programs of the server's host that the statements of a capture could reach.

No list of words can say that of a statement: a trigger, a view or text that a DO block puts together names nothing. So the database is asked, before
the first statement, what its foreign tables, its functions and the roles of the sessions would let any statement do. What is
found is refused unless the user names it. In a database that pgdyno restored itself it is switched off first (:func:`disarm`).

Rules of what needs which right: PostgreSQL's documentation, "Predefined Roles", "GRANT", "CREATE FUNCTION", "CREATE FOREIGN DATA WRAPPER".
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.workload.server import Server

from ...base.errors import InputError
from ...base.session import Connection
from .production import require_other
from .selection import ReplaySelection, names_of

if TYPE_CHECKING:
    import psycopg


KINDS = ("role", "definer", "function", "extension", "server", "wrapper", "subscription", "slot")
"""First parts of the names by which a user allows something, as in ``server:legacy``."""
SHOWN = 8
"""Names that a message has; the error's data has all."""
_ROLES = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_create_subscription",
    "pg_signal_backend",
    # Of managed services, which keep the superuser for themselves.
    "rds_superuser",
    "azure_pg_admin",
    "cloudsqlsuperuser",
    "alloydbsuperuser",
)
"""Roles whose members leave the server, make what leaves it, or end other sessions."""
_INSIDE = [
    "address_standardizer",
    "amcheck",
    "autoinc",
    "bloom",
    "btree_gin",
    "btree_gist",
    "citext",
    "cube",
    "dict_int",
    "dict_xsyn",
    "earthdistance",
    "file_fdw",
    "fuzzystrmatch",
    "hstore",
    "hypopg",
    "insert_username",
    "intagg",
    "intarray",
    "isn",
    "lo",
    "ltree",
    "moddatetime",
    "pageinspect",
    "pg_buffercache",
    "pg_freespacemap",
    "pg_hint_plan",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_surgery",
    "pg_trgm",
    "pg_visibility",
    "pg_walinspect",
    "pgcrypto",
    "pgrowlocks",
    "pgstattuple",
    "plperl",
    "plpgsql",
    "postgis",
    "postgis_topology",
    "postgres_fdw",
    "refint",
    "seg",
    "sslinfo",
    "tablefunc",
    "tcn",
    "tsm_system_rows",
    "tsm_system_time",
    "unaccent",
    "uuid-ossp",
    "vector",
    "xml2",
]
"""Extensions whose functions in C stay in the server: PostgreSQL's own but adminpack and dblink, and a few that most databases have. Foreign data
wrappers reach out by servers, which are looked at apart. Any other extension with functions in C counts as one that may reach out."""
_LEAVING = [
    "adminpack",
    "aws_commons",
    "aws_lambda",
    "aws_s3",
    "dblink",
    "http",
    "pg_background",
    "pg_cron",
    "pg_net",
    "plsh",
]
"""Extensions that are known to leave the server: a restored database loses the right to call them."""
_FILES = [
    "pg_read_file",
    "pg_read_binary_file",
    "pg_ls_dir",
    "pg_stat_file",
    "lo_import",
    "lo_export",
    "pg_promote",
    "pg_reload_conf",
    "pg_switch_wal",
]
"""Functions of the server itself that only superusers may call, unless they were granted."""
_NO_PUBLIC_SEARCH = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)"
_BASE = """
SELECT oid::int8, rolname, rolsuper, rolcreaterole AND current_setting('server_version_num')::int < 160000
FROM pg_roles WHERE pg_has_role(%(user)s, oid, 'MEMBER') OR rolname = %(user)s
"""
_SERVERS = """
SELECT server.srvname, wrapper.fdwname, space.nspname || '.' || class.relname
FROM pg_foreign_server AS server
JOIN pg_foreign_data_wrapper AS wrapper ON wrapper.oid = server.srvfdw AND wrapper.fdwhandler <> 0
LEFT JOIN pg_foreign_table AS foreign_table ON foreign_table.ftserver = server.oid
LEFT JOIN pg_class AS class ON class.oid = foreign_table.ftrelid
LEFT JOIN pg_namespace AS space ON space.oid = class.relnamespace
WHERE class.oid IS NOT NULL
   OR EXISTS (SELECT FROM unnest(%(roles)s::oid[]) AS role WHERE has_server_privilege(role, server.oid, 'USAGE'))
ORDER BY 1, 3
"""
_WRAPPERS = """
SELECT fdwname FROM pg_foreign_data_wrapper AS wrapper
WHERE fdwhandler <> 0
  AND EXISTS (SELECT FROM unnest(%(roles)s::oid[]) AS role WHERE has_foreign_data_wrapper_privilege(role, wrapper.oid, 'USAGE'))
ORDER BY 1
"""
_REACHABLE = """
(EXISTS (SELECT FROM pg_trigger WHERE tgfoid = function.oid AND tgenabled <> 'D')
 OR EXISTS (SELECT FROM pg_event_trigger WHERE evtfoid = function.oid AND evtenabled <> 'D')
 OR EXISTS (
    SELECT FROM unnest(%(roles)s::oid[]) AS role
    WHERE has_function_privilege(role, function.oid, 'EXECUTE')
      AND (has_schema_privilege(role, function.pronamespace, 'USAGE')
           OR EXISTS (SELECT FROM pg_depend AS used WHERE used.refclassid = 'pg_proc'::regclass AND used.refobjid = function.oid
                        AND used.classid IN ('pg_attrdef'::regclass, 'pg_rewrite'::regclass, 'pg_constraint'::regclass,
                                             'pg_policy'::regclass, 'pg_class'::regclass, 'pg_proc'::regclass)))))
"""
"""Triggers run their functions without a right to them. Defaults, views and policies do, and need no right on its schema."""
_FUNCTION = """
SELECT function.oid::int8, space.nspname || '.' || function.proname || '(' || oidvectortypes(function.proargtypes) || ')',
       extension.extname, owner.oid::int8, owner.rolname, owner.rolsuper
FROM pg_proc AS function
JOIN pg_namespace AS space ON space.oid = function.pronamespace
JOIN pg_language AS language ON language.oid = function.prolang
JOIN pg_roles AS owner ON owner.oid = function.proowner
LEFT JOIN pg_depend AS member ON member.classid = 'pg_proc'::regclass AND member.objid = function.oid
     AND member.refclassid = 'pg_extension'::regclass AND member.deptype = 'e'
LEFT JOIN pg_extension AS extension ON extension.oid = member.refobjid
"""
_DEFINERS = f"{_FUNCTION} WHERE function.prosecdef AND coalesce(extension.extname <> ALL (%(inside)s), true) AND {_REACHABLE} ORDER BY 2"
_FUNCTIONS = f"""{_FUNCTION}
WHERE (language.lanname = 'c' AND function.oid >= 16384 OR NOT language.lanpltrusted AND language.lanname NOT IN ('c', 'internal'))
  AND coalesce(extension.extname <> ALL (%(inside)s), true)
  AND function.prorettype NOT IN ('language_handler'::regtype, 'fdw_handler'::regtype, 'index_am_handler'::regtype,
                                  'table_am_handler'::regtype, 'tsm_handler'::regtype)
  AND NOT EXISTS (SELECT FROM pg_language AS by WHERE function.oid IN (by.lanplcallfoid, by.laninline, by.lanvalidator))
  AND NOT EXISTS (SELECT FROM pg_foreign_data_wrapper AS by WHERE function.oid IN (by.fdwhandler, by.fdwvalidator))
  AND {_REACHABLE}
ORDER BY 2
"""
_GRANTED = (
    f"{_FUNCTION} WHERE space.nspname = 'pg_catalog' AND function.proname = ANY (%(files)s) AND {_REACHABLE} ORDER BY 2"
)
_SUBSCRIPTIONS = """
SELECT subname FROM pg_subscription JOIN pg_database AS base ON base.oid = subdbid
WHERE subenabled AND base.datname = current_database() ORDER BY 1
"""
_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'logical' AND database = current_database() ORDER BY 1"


@dataclass(frozen=True)
class Exit:
    """A way out of the database."""

    name: str
    """Name by which the user allows it: ``extension:dblink``."""
    why: str
    """Description in a few words."""
    objects: tuple[str, ...] = ()
    """Tables, or functions, that lead there."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "why": self.why, "objects": list(self.objects)}


NAMES = f"write KIND:NAME, as extension:dblink; kinds are {', '.join(KINDS)}"


def wrong_name(allowed: Iterable[str]) -> str | None:
    """The first that cannot be the name of a way out."""
    for name in allowed:
        kind, _, rest = name.partition(":")
        if kind not in KINDS or not rest:
            return name
    return None


def require_names(allowed: Iterable[str], key: str) -> None:
    """Refuse what cannot be the name of a way out. :class:`InputError` names the option."""
    if (wrong := wrong_name(allowed)) is not None:
        raise InputError(
            f"{key}: {wrong} names nothing that a replay could reach",
            remedy=NAMES,
            code="replay.outside.name",
            data={"name": wrong, "kinds": list(KINDS)},
        )


def require_inside(result: Iterable[tuple[str, Connection]], allowed: Collection[str]) -> None:
    """Refuse to send statements that could leave their databases by a way that is not ``allowed``.

    ``asked`` are roles, each with a session of its database.
    :class:`InputError` with code ``replay.outside`` lists every way; nothing has been sent then.
    """
    ways: dict[str, dict[str, Any]] = {}
    for role, connection in result:
        for way in ways_out(connection, role):
            if way.name not in allowed:
                place = {"role": role, "database": connection.info.dbname}
                ways.setdefault(way.name, way.document() | {"of": []})["of"].append(place)
    if not ways:
        return
    names = list(ways)
    shown = "; ".join(_words(way) for way in list(ways.values())[:SHOWN])
    more = f"; and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    options = " ".join(f"--allow-outside {shlex.quote(name)}" for name in names[:SHOWN])
    raise InputError(
        f"statements of the capture could leave the database: {shown}{more}. Nothing was sent",
        remedy="remove these from the copy, or send as roles without a right to them; what may be reached, name it:"
        f" {options} (in a file: workload.allow_outside)",
        code="replay.outside",
        data={"ways": list(ways.values()), "names": names},
    )


def ways_out(connection: Connection, role: str) -> list[Exit]:
    """Every way that the statements of ``role`` could take out of the database of ``connection``, a session of any role.

    What the statements are does not matter. Views and definitions that only a superuser reads are not needed.
    """
    connection.execute(_NO_PUBLIC_SEARCH)
    base = connection.execute(_BASE, {"user": role}).fetchall()
    exits = [*_of_role(role, base)]
    is_superuser = any(is_super for _, _, is_super, _ in base)  # or may become one
    roles = [oid for oid, *_ in base]
    if not is_superuser:
        definers, roles = _definers(connection, roles)
        exits += definers
    document = {"roles": roles, "inside": list(_INSIDE), "files": list(_FILES)}
    exits += _servers(connection, document, with_wrappers=not is_superuser)
    rows = connection.execute(_FUNCTIONS.encode(), document).fetchall()
    if not is_superuser:
        rows += connection.execute(_GRANTED.encode(), document).fetchall()
    exits += _functions(rows)
    for name in _names(connection, _SUBSCRIPTIONS):
        exits.append(Exit(f"subscription:{name}", "an enabled subscription to another server"))
    for name in _names(connection, _SLOTS):
        exits.append(Exit(f"slot:{name}", "a logical replication slot, whose reader gets every change"))
    return exits


def disarm(connection: Connection, allowed: Collection[str]) -> list[str]:
    """Switch off what leaves a database that pgdyno restored; ``connection`` is a superuser's session in it.

    Foreign data wrappers lose their handler, so that no role can read or write a foreign table; the functions of extensions that are known
    to leave the server can be called by superusers alone; subscriptions end. Returns the names of it. Other ways are left to
    :func:`require_inside`, as the application may need them.
    """
    from psycopg import sql

    connection.execute(_NO_PUBLIC_SEARCH)
    done = []
    query = (
        "SELECT wrapper.fdwname, array_remove(array_agg(server.srvname), NULL) FROM pg_foreign_data_wrapper AS wrapper"
    )
    query += " LEFT JOIN pg_foreign_server AS server ON server.srvfdw = wrapper.oid WHERE fdwhandler <> 0 GROUP BY 1 ORDER BY 1"
    for wrapper, servers in connection.execute(query.encode()).fetchall():
        if f"wrapper:{wrapper}" in allowed or any(f"server:{server}" in allowed for server in servers):
            continue
        connection.execute(sql.SQL("ALTER FOREIGN DATA WRAPPER {} NO HANDLER").format(sql.Identifier(wrapper)))
        done.append(f"wrapper:{wrapper}")
    for subscription in _names(connection, _SUBSCRIPTIONS):
        if f"subscription:{subscription}" not in allowed:
            connection.execute(sql.SQL("ALTER SUBSCRIPTION {} DISABLE").format(sql.Identifier(subscription)))
            done.append(f"subscription:{subscription}")
    leaving = [name for name in _LEAVING if f"extension:{name}" not in allowed]
    rows = connection.execute(_OF_EXTENSIONS, {"names": leaving}).fetchall()
    for extension, routine, grantees in rows:
        connection.execute(f"ALTER ROUTINE {routine} OWNER TO CURRENT_USER".encode())
        connection.execute(f"REVOKE ALL ON ROUTINE {routine} FROM {', '.join(['PUBLIC', *grantees])}".encode())
        if f"extension:{extension}" not in done:
            done.append(f"extension:{extension}")
    return done


_OF_EXTENSIONS = """
SELECT extension.extname, function.oid::regprocedure::text,
       ARRAY(SELECT DISTINCT quote_ident(role.rolname) FROM aclexplode(function.proacl) AS given
             JOIN pg_roles AS role ON role.oid = given.grantee WHERE NOT role.rolsuper)
FROM pg_extension AS extension
JOIN pg_depend AS member ON member.refclassid = 'pg_extension'::regclass AND member.refobjid = extension.oid
     AND member.classid = 'pg_proc'::regclass AND member.deptype = 'e'
JOIN pg_proc AS function ON function.oid = member.objid AND function.prokind IN ('f', 'p')
JOIN pg_roles AS owner ON owner.oid = function.proowner
WHERE extension.extname = ANY (%(names)s)
  AND (function.proacl IS NULL OR NOT owner.rolsuper
       OR EXISTS (SELECT FROM aclexplode(function.proacl) AS given LEFT JOIN pg_roles AS role ON role.oid = given.grantee
                  WHERE NOT coalesce(role.rolsuper, false)))
ORDER BY 1, 2
"""


def _words(way: dict[str, Any]) -> str:
    objects = way["objects"]
    more = f" and {len(objects) - 3} more" if len(objects) > 3 else ""
    by = f" ({', '.join(objects[:3])}{more})" if objects else ""
    return f"{way['name']}, {way['why']}{by}"


def _of_role(role: str, base: Sequence[tuple[Any, ...]]) -> Iterator[Exit]:
    """Rights of the role itself, and of roles that it may become."""
    supers = [name for _, name, is_super, _ in base if is_super]
    others = [name for _, name, _, makes_roles in base if name in _ROLES or makes_roles]
    if role in supers:
        yield Exit(f"role:{role}", "a superuser")
    elif supers:
        yield Exit(f"role:{role}", "who may become a superuser", tuple(supers))
    elif others:
        yield Exit(f"role:{role}", "who leaves the server, or may become a role that does", tuple(others))


def _definers(connection: Connection, roles: list[int]) -> tuple[list[Exit], list[int]]:
    """Functions that run with the rights of more powerful owners, and the roles with those that statements reach by functions of others."""
    while True:
        document = {"roles": roles, "inside": list(_INSIDE)}
        rows = connection.execute(_DEFINERS.encode(), document).fetchall()
        further = {oid for *_, oid, _, is_super in rows if not is_super} - set(roles)
        if not further:
            break
        roles = [*roles, *further]
    powerful = {str(row[0]) for row in connection.execute(_POWERFUL, {"roles": list(_ROLES)}).fetchall()}
    of_owner: defaultdict[str, list[str]] = defaultdict(list)
    for _, name, _, _, owner, is_super in rows:
        if is_super or owner in powerful:
            of_owner[owner].append(name)
    return [
        Exit(f"definer:{owner}", f"functions that run with the rights of {owner}", tuple(names))
        for owner, names in sorted(of_owner.items())
    ], roles


_POWERFUL = """
SELECT DISTINCT role.rolname FROM pg_roles AS role
JOIN pg_roles AS other ON (other.rolname = ANY (%(roles)s) OR other.rolsuper) AND pg_has_role(role.oid, other.oid, 'MEMBER')
"""


def _servers(connection: Connection, document: dict[str, Any], *, with_wrappers: bool) -> Iterator[Exit]:
    tables: dict[tuple[str, str], list[str]] = {}
    for server, wrapper, table in connection.execute(_SERVERS.encode(), document).fetchall():
        tables.setdefault((server, wrapper), []).extend([] if table is None else [table])
    for (server, wrapper), names in tables.items():
        yield Exit(f"server:{server}", f"a foreign server of {wrapper}", tuple(names))
    if with_wrappers:  # a superuser may use each, and is reported for that
        for wrapper in _names(connection, _WRAPPERS, document):
            yield Exit(f"wrapper:{wrapper}", "a foreign data wrapper with which servers can be made")


def _functions(rows: Iterable[tuple[Any, ...]]) -> Iterator[Exit]:
    of_extension: defaultdict[str, list[str]] = defaultdict(list)
    for _, name, extension, *_ in rows:
        if extension is None:
            yield Exit(f"function:{name}", "a function that can do what the server's process can")
        else:
            of_extension[extension].append(name)
    for extension, names in sorted(of_extension.items()):
        yield Exit(f"extension:{extension}", "an extension that may leave the server", tuple(names))


def _names(connection: Connection, query: str, document: dict[str, Any] | None = None) -> list[str]:
    return [str(row[0]) for row in connection.execute(query.encode(), document).fetchall()]


def rehearse(selection: ReplaySelection, server: Server, allowed: Collection[str] = ()) -> None:
    """Open a session of every role in its database. :class:`InputError` lists those that the server refuses, or what their statements could reach."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    own = conninfo_to_dict(server.dsn)
    wrong = {}
    recorded_at = selection.planned().recorded_at
    elsewhere = {name: here for name, here in names_of(selection.databases).items() if here}

    def sessions() -> Iterator[tuple[str, psycopg.Connection[Any]]]:
        """One after the other: a capture may have more roles than the server takes sessions."""
        for place, user, database in selection.destinations(str(own["user"]), str(own["dbname"])):
            try:
                opened = psycopg.connect(make_conninfo(server.dsn, user=user, dbname=database), autocommit=True)
            except psycopg.Error as error:
                wrong[user, database] = str(error).strip().rpartition("FATAL:")[2].strip().partition("\n")[0]
                continue
            with opened:
                require_other(opened, place, recorded_at, elsewhere, None)
                yield user, opened

    outside = None
    try:
        require_inside(sessions(), allowed)
    except InputError as error:
        if error.code == "replay.server.captured":
            raise
        outside = error
    if wrong:
        named = "; ".join(f"{user} in {database}: {why}" for (user, database), why in wrong.items())
        raise InputError(
            f"the database refuses sessions of the capture: {named}",
            remedy="restore it with its roles (workload.database.globals, --globals), or name others in workload.users and"
            " workload.databases",
        )
    if outside is not None:
        raise outside

"""Plan of a capture: settings that make a server log its statements, their exact undo, the cost of logging, and the time zone of the log.

The server is asked and not changed. What counts is the server's own setting: the session that asks may have another one, of its role or its database.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from ..base import session
from ..base.errors import InputError
from ..server import remote

if TYPE_CHECKING:
    import psycopg


Service = Literal["server", "rds"]
"""Place of the settings: in the server by ALTER SYSTEM, or in a parameter group of RDS or Aurora."""
STDERR_PREFIX = "%m|%p|%u|%d|%a|%h|%c|%l|%v|%e|"
"""For a server without a logging collector, which has stderr alone: all that a csvlog has and a capture uses."""
BYTES_PER_STATEMENT = 770
"""Bytes of a csvlog with log_statement = all and log_duration = on, text and values included. Measured on an order shop: 107 MB for 138,262
statements in 416,083 records (PostgreSQL 15, one minute). One trial by hand, which no command here repeats: an estimate."""
CPU_US_PER_STATEMENT = (11, 18)
"""CPU of all server processes that logging adds to a statement, in microseconds. Measured in the same trial: 20 µs without, 31 to 38 µs
with logs in stderr, CSV and JSON, for a key lookup."""
STATEMENTS_PER_TRANSACTION = 2.9
"""Seen in the same trial; used where pg_stat_statements does not tell."""
_ASKED = (
    "log_destination",
    "logging_collector",
    "log_line_prefix",
    "log_statement",
    "log_duration",
    "log_min_duration_statement",
    "log_transaction_sample_rate",
    "log_connections",
    "log_disconnections",
    "log_parameter_max_length",
    "log_parameter_max_length_on_error",
    "log_min_error_statement",
    "log_min_messages",
    "log_error_verbosity",
    "lc_messages",
    "log_timezone",
)
_SETTINGS = """
SELECT name, setting, coalesce(sourcefile, '') LIKE '%%postgresql.auto.conf', sourcefile IS NOT NULL, source, boot_val, vartype
FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) ANY (%s)
"""
_IN_FILES = """
SELECT DISTINCT ON (pg_catalog.lower(name)) pg_catalog.lower(name), setting, sourcefile LIKE '%%postgresql.auto.conf'
FROM pg_catalog.pg_file_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (%s) AND error IS NULL
ORDER BY pg_catalog.lower(name), seqno DESC
"""
"""The last line about a setting in the server's files is the one that holds. Superusers may read it, and who was granted to."""
_OF_SERVER = ("default", "configuration file", "command line", "environment variable", "override")
"""Sources of settings that every session has. The others are of a role, a database, or a session."""
_FIXED = ("command line", "environment variable")
"""Settings that ALTER SYSTEM cannot change."""
_UTC = (
    "utc",
    "gmt",
    "etc/utc",
    "etc/gmt",
    "uct",
    "etc/uct",
    "zulu",
    "etc/zulu",
    "universal",
    "etc/universal",
    "greenwich",
    "etc/greenwich",
)
_OWN = """
SELECT coalesce(role.rolname, ''), coalesce(base.datname, ''), setting
FROM pg_catalog.pg_db_role_setting AS own
LEFT JOIN pg_catalog.pg_roles AS role ON role.oid = own.setrole
LEFT JOIN pg_catalog.pg_database AS base ON base.oid = own.setdatabase
CROSS JOIN pg_catalog.unnest(own.setconfig) AS setting
WHERE pg_catalog.split_part(setting, '=', 1) OPERATOR(pg_catalog.=) ANY (%s)
ORDER BY 1, 2, 3
"""
_RATE = """
SELECT pg_catalog.sum(xact_commit + xact_rollback)::pg_catalog.float8
     / nullif(extract(epoch FROM pg_catalog.now() - pg_catalog.min(coalesce(stats_reset, pg_catalog.pg_postmaster_start_time()))), 0)
FROM pg_catalog.pg_stat_database WHERE datname IS NOT NULL
"""
_EXTENSION = """
SELECT pg_catalog.quote_ident(space.nspname)
FROM pg_catalog.pg_extension AS extension JOIN pg_catalog.pg_namespace AS space ON space.oid = extension.extnamespace
WHERE extension.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
"""
_CALLS = """
SELECT pg_catalog.sum(seen.calls) FILTER (WHERE seen.toplevel)::pg_catalog.float8
     / nullif(extract(epoch FROM pg_catalog.now() - (SELECT stats_reset FROM {schema}.pg_stat_statements_info())), 0)
FROM {schema}.pg_stat_statements(false) AS seen
"""
"""Statements that clients sent, a second; PostgreSQL 14 and later say when their counting began. BEGIN and COMMIT are among them."""
_ERRORS = ("debug5", "debug4", "debug3", "debug2", "debug1", "info", "notice", "warning", "error")
"""Values of log_min_error_statement with which the statement of an error is logged."""


@dataclass(frozen=True)
class ServerSetting:
    """A setting as the server has it."""

    value: str
    """The session's value where the server's own cannot be seen."""
    by_alter_system: bool
    """Whether ALTER SYSTEM set it."""
    fixed: str = ""
    """Place that overrides ALTER SYSTEM; empty if none."""
    hidden: str = ""
    """Reason why this session does not see the server's own value; empty if it does."""


@dataclass(frozen=True)
class SettingChange:
    """A setting to change, and what undoes it."""

    name: str
    wanted: str
    before: ServerSetting

    @property
    def apply(self) -> str:
        """The statement that changes it."""
        return f"ALTER SYSTEM SET {self.name} = {_literal(self.wanted)};"

    @property
    def undo(self) -> str:
        """The statement after which it is as before; a comment where that cannot be known."""
        if self.before.hidden:
            return f"-- {self.name}: set back what the server had of its own, which this session does not see ({self.before.hidden})"
        if self.before.by_alter_system:
            return f"ALTER SYSTEM SET {self.name} = {_literal(self.before.value)};"
        return f"ALTER SYSTEM RESET {self.name};"


@dataclass(frozen=True)
class CapturePlan:
    """Changes to make for a capture."""

    service: Service
    changes: tuple[SettingChange, ...]
    prefix: str | None
    """log_line_prefix that `capture read` is given; None for a csvlog."""
    statements_per_s: float | None
    """By pg_stat_statements since it was reset, else by the number of transactions; None if neither says it."""
    share: float
    """Of transactions, those that are logged."""
    notes: tuple[str, ...]

    @property
    def log_bytes_per_s(self) -> float | None:
        """Estimate: what the log grows by."""
        return None if self.statements_per_s is None else self.statements_per_s * self.share * BYTES_PER_STATEMENT

    @property
    def cpus(self) -> tuple[float, float] | None:
        """Estimate: cores that logging takes, from and to."""
        if self.statements_per_s is None:
            return None
        least, most = (us * 1e-6 * self.statements_per_s * self.share for us in CPU_US_PER_STATEMENT)
        return least, most

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "service": self.service,
            "apply": [change.apply for change in self.changes],
            "undo": [change.undo for change in self.changes],
            "settings": [
                {"name": change.name, "before": change.before.value, "wanted": change.wanted} for change in self.changes
            ],
            "prefix": self.prefix,
            "statements_per_s": self.statements_per_s,
            "log_bytes_per_s": self.log_bytes_per_s,
            "cpus": self.cpus,
            "notes": list(self.notes),
        }


def plan(dsn: str, service: Service = "server", share: float = 1.0) -> CapturePlan:
    """Ask a server what a capture needs there. ``share`` of transactions is logged.

    :class:`InputError` or :class:`~pgdyno.base.errors.HostError` when it cannot be asked.
    """
    with remote.connect(dsn) as connection:
        connection.execute("BEGIN READ ONLY")
        connection.execute(session.SERVER_NAMES_LOCAL)
        rows = connection.execute(_SETTINGS, (list(_ASKED),)).fetchall()
        in_files = _in_files(connection)
        own = connection.execute(_OWN, (list(_ASKED),)).fetchall()
        rate = _rate(connection)
        connection.execute("ROLLBACK")
    there = {str(row[0]): _setting(row, in_files) for row in rows}
    hidden = in_files is None and not any(row[3] for row in rows)
    if share < 1 and "log_transaction_sample_rate" not in there:
        raise InputError(
            "this server cannot sample transactions", remedy="omit --sample, or use PostgreSQL 12 or later"
        )
    prefix = _prefix(there, service)
    changes = tuple(
        SettingChange(name, wanted, there[name])
        for name, wanted in _wanted(there, service, share, prefix).items()
        if name in there and (there[name].value != wanted or there[name].hidden)
    )
    notes = [*_unseen(changes), *_notes(own, service, share, hidden=hidden)]
    return CapturePlan(service, changes, prefix, rate, share, tuple(notes))


def _in_files(connection: psycopg.Connection[tuple[Any, ...]]) -> dict[str, tuple[str, bool]] | None:
    """Name -> value in the server's files, and whether ALTER SYSTEM wrote it; None where they may not be read."""
    import psycopg

    with contextlib.suppress(psycopg.Error), connection.transaction():
        rows = connection.execute(_IN_FILES, (list(_ASKED),)).fetchall()
        return {str(name): (str(value), bool(by_alter_system)) for name, value, by_alter_system in rows}
    return None


def _setting(row: tuple[Any, ...], in_files: Mapping[str, tuple[str, bool]] | None) -> ServerSetting:
    """The server's own setting, whatever the session has."""
    name, value, by_alter_system, _, source, boot_value, kind = row
    fixed = f"the server's {source}" if source in _FIXED else ""
    if in_files is not None and not fixed:
        written, by_alter_system = in_files.get(name, (str(boot_value), False))
        # As the session has it where that is the server's: `on` and not `yes`.
        return ServerSetting(
            str(value) if source in _OF_SERVER and not by_alter_system else _plain(written, kind), by_alter_system
        )
    if source in _OF_SERVER:
        return ServerSetting(str(value), bool(by_alter_system), fixed)
    return ServerSetting(str(value), by_alter_system=False, hidden=f"it has {value} by its {source}")


def _plain(value: str, kind: str) -> str:
    """A value as pg_settings prints it, where that is simple."""
    if kind == "bool":
        return "on" if value.lower() in ("on", "true", "yes", "1", "t", "y") else "off"
    return value.lower() if kind == "enum" else value


def _rate(connection: psycopg.Connection[tuple[Any, ...]]) -> float | None:
    """Statements a second by pg_stat_statements, or by the number of transactions where it cannot be read."""
    import psycopg

    extension = connection.execute(_EXTENSION).fetchone()
    if extension is not None:
        with contextlib.suppress(psycopg.Error), connection.transaction():
            row = connection.execute(_CALLS.format(schema=extension[0]).encode()).fetchone()
            if row is not None and row[0] is not None:
                return float(row[0])
    row = connection.execute(_RATE).fetchone()
    return None if row is None or row[0] is None else float(row[0]) * STATEMENTS_PER_TRANSACTION


def _prefix(there: Mapping[str, ServerSetting], service: Service) -> str | None:
    """The prefix for a server that writes no csvlog: that would need a start of the logging collector."""
    return None if service == "rds" or there["logging_collector"].value == "on" else STDERR_PREFIX


def _wanted(there: Mapping[str, ServerSetting], service: Service, share: float, prefix: str | None) -> dict[str, str]:
    sampled = share < 1
    wanted = {
        "log_statement": "none" if sampled else "all",
        "log_duration": "off" if sampled else "on",
        "log_connections": "on",
        "log_disconnections": "on",
        "log_parameter_max_length": "-1",
        "log_parameter_max_length_on_error": "-1",
    }
    if sampled:
        # Every statement of such a transaction has a line with its duration and its text.
        wanted |= {"log_transaction_sample_rate": f"{share:g}", "log_min_duration_statement": "-1"}
    if there["log_min_messages"].value in ("fatal", "panic"):
        # Statements are logged as LOG, which is below these.
        wanted["log_min_messages"] = "warning"
    if there["log_error_verbosity"].value != "default":
        # terse leaves out the values of parameters, verbose puts SQLSTATEs before messages.
        wanted["log_error_verbosity"] = "default"
    if not _is_english(there["lc_messages"].value):
        wanted["lc_messages"] = "C"
    if there["log_timezone"].value.lower() not in _UTC:
        # Its hours come once, and its name has one meaning.
        wanted["log_timezone"] = "UTC"
    if there["log_min_error_statement"].value not in _ERRORS:
        wanted["log_min_error_statement"] = "error"
    if there["log_connections"].value not in ("on", "off"):
        # A list of PostgreSQL 18.
        wanted["log_connections"] = "all"
    if prefix is not None:
        wanted["log_line_prefix"] = prefix
    elif "csvlog" not in there["log_destination"].value:
        kept = [part.strip() for part in there["log_destination"].value.split(",") if part.strip()]
        wanted["log_destination"] = "csvlog" if service == "rds" else ",".join([*kept, "csvlog"])
    return wanted


def _unseen(changes: Sequence[SettingChange]) -> Iterator[str]:
    """Warnings about settings that ALTER SYSTEM cannot change, or that this role cannot see."""
    for change in changes:
        if change.before.fixed:
            yield f"{change.name} = {change.before.value} is set by {change.before.fixed}, which takes precedence: change it there"
        if change.before.hidden:
            yield (
                f"the server's own {change.name} is not seen by this session, as {change.before.hidden}: connect as a superuser, or as another"
                " role, to know what undoes it"
            )


def _notes(own: Sequence[Sequence[Any]], service: Service, share: float, *, hidden: bool) -> Iterator[str]:
    for role, base, setting in own:
        whose = " ".join(word for word in (f"role {role}" if role else "", f"database {base}" if base else "") if word)
        yield f"{whose} has its own {setting}, which stays in effect for its sessions"
    if hidden and service == "server":
        yield "this role cannot see where settings come from (pg_read_all_settings): RESET may undo an older ALTER SYSTEM"
    if share < 1:
        yield "a sampled capture is incomplete: it shows the mixture of transactions and cannot be compared with the database"


def _is_english(messages: str) -> bool:
    """Whether lc_messages makes messages in English."""
    return messages.split(".")[0] in ("", "C", "POSIX") or messages.lower().startswith(("en_", "en-", "en.", "english"))


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


_FIRST_YEAR = 1996
_LAST_YEAR = 2038


def offsets(name: str) -> dict[str, int]:
    """Seconds ahead of UTC by the names that a zone has in its seasons, the latest of each; ``name`` is as in ``log_timezone``."""
    import zoneinfo

    try:
        zone = zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"--log-timezone: there is no zone {name}",
            remedy="write it as `SHOW log_timezone` prints it, for example Asia/Kolkata",
            code="capture.zone.unknown",
            data={"zone": name},
        ) from None
    offsets: dict[str, int] = {}
    at = datetime(_FIRST_YEAR, 1, 15, tzinfo=UTC)
    while at.year < _LAST_YEAR:
        there = at.astimezone(zone)
        offset, letters = there.utcoffset(), there.tzname()
        if offset is not None and letters is not None and letters[:1].isalpha():
            offsets[letters] = int(offset.total_seconds())
        at += timedelta(days=30)
    return offsets

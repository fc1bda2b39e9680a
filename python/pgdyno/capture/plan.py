"""Which settings let a server log what a capture needs, how they are undone exactly, and what logging will cost.

The server is asked and not changed.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pgdyno import session
from pgdyno.errors import InputError
from pgdyno.postgres import remote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import psycopg

Service = Literal["server", "rds"]
"""Where settings are made: in the server by ALTER SYSTEM, or in a parameter group of RDS or Aurora."""
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
    "lc_messages",
)
_SETTINGS = """
SELECT name, setting, coalesce(sourcefile, '') LIKE '%%postgresql.auto.conf', sourcefile IS NOT NULL
FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) ANY (%s)
"""
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
class Setting:
    """A setting as the server has it."""

    value: str
    by_alter_system: bool
    """Whether ALTER SYSTEM set it."""


@dataclass(frozen=True)
class Change:
    """A setting to change, and what undoes it."""

    name: str
    wanted: str
    before: Setting

    @property
    def apply(self) -> str:
        """The statement that changes it."""
        return f"ALTER SYSTEM SET {self.name} = {_literal(self.wanted)};"

    @property
    def undo(self) -> str:
        """The statement after which it is as before."""
        if self.before.by_alter_system:
            return f"ALTER SYSTEM SET {self.name} = {_literal(self.before.value)};"
        return f"ALTER SYSTEM RESET {self.name};"


@dataclass(frozen=True)
class Plan:
    """What to do for a capture."""

    service: Service
    changes: tuple[Change, ...]
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
            "apply": [one.apply for one in self.changes],
            "undo": [one.undo for one in self.changes],
            "settings": [{"name": one.name, "before": one.before.value, "wanted": one.wanted} for one in self.changes],
            "prefix": self.prefix,
            "statements_per_s": self.statements_per_s,
            "log_bytes_per_s": self.log_bytes_per_s,
            "cpus": self.cpus,
            "notes": list(self.notes),
        }


def plan(dsn: str, service: Service = "server", share: float = 1.0) -> Plan:
    """Ask a server what a capture needs there. ``share`` of transactions is logged.

    :class:`InputError` or :class:`~pgdyno.errors.HostError` when it cannot be asked.
    """
    with remote.connect(dsn) as connection:
        connection.execute("BEGIN READ ONLY")
        connection.execute(session.SERVER_NAMES_LOCAL)
        rows = connection.execute(_SETTINGS, (list(_ASKED),)).fetchall()
        own = connection.execute(_OWN, (list(_ASKED),)).fetchall()
        rate = _rate(connection)
        connection.execute("ROLLBACK")
    there = {str(row[0]): Setting(str(row[1]), bool(row[2])) for row in rows}
    hidden = not any(row[3] for row in rows)
    if share < 1 and "log_transaction_sample_rate" not in there:
        raise InputError(
            "this server cannot sample transactions", remedy="omit --sample, or use PostgreSQL 12 or later"
        )
    prefix = _prefix(there, service)
    changes = tuple(
        Change(name, wanted, there[name])
        for name, wanted in _wanted(there, service, share, prefix).items()
        if name in there and there[name].value != wanted
    )
    return Plan(service, changes, prefix, rate, share, tuple(_notes(there, own, service, share, hidden=hidden)))


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


def _prefix(there: Mapping[str, Setting], service: Service) -> str | None:
    """The prefix for a server that writes no csvlog: that would need a start of the logging collector."""
    return None if service == "rds" or there["logging_collector"].value == "on" else STDERR_PREFIX


def _wanted(there: Mapping[str, Setting], service: Service, share: float, prefix: str | None) -> dict[str, str]:
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
    if there["log_min_error_statement"].value not in _ERRORS:
        wanted["log_min_error_statement"] = "error"
    if there["log_connections"].value not in ("on", "off"):
        # A list of PostgreSQL 18.
        wanted["log_connections"] = "all"
    if prefix is not None:
        wanted["log_line_prefix"] = prefix
    elif "csvlog" not in there["log_destination"].value:
        kept = [one.strip() for one in there["log_destination"].value.split(",") if one.strip()]
        wanted["log_destination"] = "csvlog" if service == "rds" else ",".join([*kept, "csvlog"])
    return wanted


def _notes(
    there: Mapping[str, Setting], own: Sequence[Sequence[Any]], service: Service, share: float, *, hidden: bool
) -> Iterator[str]:
    for role, base, setting in own:
        whose = " ".join(word for word in (f"role {role}" if role else "", f"database {base}" if base else "") if word)
        yield f"{whose} has {setting} of its own, which stays: its sessions log by it"
    messages = there["lc_messages"].value
    if messages.split(".")[0] not in ("", "C", "POSIX") and not messages.startswith("en"):
        yield f"lc_messages = {messages}: a capture needs messages in English; ask for lc_messages = 'C' as well"
    if hidden and service == "server":
        yield "this role does not see where settings come from (pg_read_all_settings): RESET may undo an older ALTER SYSTEM"
    if share < 1:
        yield "a sampled capture is not whole: it shows the mixture of transactions and cannot be compared with the database"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"

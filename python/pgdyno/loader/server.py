"""The server that is loaded into: asking it, and what a load needs to know of it."""

from __future__ import annotations

import contextlib
from concurrent.futures import wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.errors import HostError, InputError, PgdynoError
from pgdyno.loader.format import UNSPLITTABLE
from pgdyno.postgres import remote
from pgdyno.postgres.binaries import VERSION_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

APPLICATION_NAME = "pgdyno load"
"""How the sessions of a load are known to the server; those that copy have the job's number behind it."""
_CHECKPOINTER_FROM = 150000
"""The role pg_checkpoint is from this version on; before, superusers alone may order a checkpoint."""
_CANCEL_AGAIN_S = 1.0
"""An order to cancel that comes between two statements is lost."""
_FACTS = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
       current_setting('is_superuser') = 'on', current_database(), current_setting('synchronous_commit'),
       current_user
"""


@dataclass(frozen=True)
class Facts:
    """A server and the role that loads."""

    version_number: int
    """As 180001."""
    version: str
    read_only: bool
    superuser: bool
    database: str
    synchronous_commit: str
    role: str
    may_checkpoint: bool


def connect(dsn: str) -> Connection:
    """A session of the loader, autocommit. :class:`InputError` for a password in the string, :class:`HostError`."""
    import psycopg

    refuse_secrets(dsn)
    connection = remote.connect(dsn, application_name=APPLICATION_NAME)
    # Statements here take as long as building an index does, and this session is idle as long as others copy.
    connection.execute(
        # The last one is there from PostgreSQL 17 on.
        "SELECT set_config(name, '0', false) FROM pg_settings"
        " WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')"
    )
    # So that what a killed command has begun ends soon. Servers on systems that cannot see it refuse the setting.
    with contextlib.suppress(psycopg.Error):
        connection.execute("SET client_connection_check_interval = '1s'")
    return connection


def refuse_secrets(dsn: str) -> None:
    """A command line is public to everybody on the machine: no passwords in it, by the rule of experiment files."""
    from pydantic_core import PydanticCustomError

    from pgdyno.experiment import tables

    try:
        tables.refuse_secrets(dsn)
    except PydanticCustomError as error:
        raise InputError(f"--into: {error.message()}", remedy="see `pgdyno load --help`") from None


def keywords(dsn: str, job: int | None) -> dict[str, str]:
    """The connection as the engine takes it. It fills in the rest from libpq's own places, as psycopg does."""
    from psycopg.conninfo import conninfo_to_dict

    given = {keyword: str(value) for keyword, value in conninfo_to_dict(dsn).items() if value is not None}
    return given | {"application_name": session_name(job)}


def session_name(job: int | None) -> str:
    """The ``application_name`` of the sessions that copy for a job."""
    return APPLICATION_NAME if job is None else f"{APPLICATION_NAME} {job}"


def facts(connection: Connection) -> Facts:
    """What there is. Refuses a server that takes no rows."""
    number, version, read_only, superuser, database, commit, role = one(connection, _FACTS)
    if number // 10000 < VERSION_MIN:
        raise HostError(
            f"the server has PostgreSQL {version}, which is not supported",
            remedy=f"use a server of version {VERSION_MIN} or later",
        )
    if read_only:
        raise InputError(
            "this server takes no writes (it is a standby, or read-only)", remedy="name its primary in --into"
        )
    may = superuser
    if not may and number >= _CHECKPOINTER_FROM:
        may = bool(one(connection, "SELECT pg_has_role('pg_checkpoint', 'USAGE')")[0])
    return Facts(number, str(version).split()[0], read_only, superuser, database, commit, role, may)


def check_encoding(connection: Connection, name: str) -> str:
    """PostgreSQL's name of an encoding that files may have. :class:`InputError`."""
    known = one(connection, "SELECT pg_encoding_to_char(pg_char_to_encoding(%s))", (name,))[0]
    if not known:
        raise InputError(
            f"--encoding: PostgreSQL has no encoding {name}", remedy="give one of its names, as UTF8 or LATIN1"
        )
    if known in UNSPLITTABLE:
        raise InputError(
            f"--encoding: no byte of {known} says where a row ends",
            remedy=f"convert the file first: `iconv -f {known} -t UTF-8`",
        )
    return str(known)


def many(connection: Connection, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of an answer."""
    return connection.execute(query.encode(), values or None).fetchall()


def one(connection: Connection, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...]:
    """The first row of an answer that has one."""
    row = connection.execute(query.encode(), values or None).fetchone()
    if row is None:
        raise PgdynoError("the server gave no answer", remedy="check its log")
    return row


def maybe(connection: Connection, query: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
    """The first row, if there is one."""
    return connection.execute(query.encode(), values or None).fetchone()


def run(connection: Connection, statement: str, values: Sequence[Any] = ()) -> None:
    """A statement without an answer."""
    connection.execute(statement.encode(), values or None)


def cancel(sessions: Iterable[Connection], futures: Iterable[Future[Any]]) -> None:
    """End the statements of sessions, and wait for the threads that run them; those that have not begun never do."""
    import psycopg

    left = {future for future in futures if not future.cancel()}
    while left:
        for session in sessions:
            with contextlib.suppress(psycopg.Error):
                session.cancel()
        left = wait(left, timeout=_CANCEL_AGAIN_S).not_done


def said(error: Exception) -> str:
    """What a server says, on one line."""
    return " ".join(str(error).split())

"""The server that is loaded into: asking it, and what a load needs to know of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.loader.format import UNSPLITTABLE

from ..base import endpoint, session
from ..base.endpoint import Endpoint
from ..base.errors import HostError, InputError, PgdynoError
from ..base.session import Connection
from ..base.text import cpus_of
from ..server import remote
from ..server.binaries import VERSION_MIN

if TYPE_CHECKING:
    pass


APPLICATION_NAME = "pgdyno load"
"""How the sessions of a load are known to the server; those that copy have the job's number behind it."""
_CHECKPOINTER_FROM = 150000
"""The role pg_checkpoint is from this version on; before, superusers alone may order a checkpoint."""
_ENCODING = "SELECT pg_encoding_to_char(pg_char_to_encoding(%s))"
_CANCEL_AGAIN_S = 1.0
"""An order to cancel that comes between two statements is lost."""
VCPUS_USUAL = 4
"""Where nothing is known of a server: those of an xlarge, the smallest size of many instance classes."""
_PROCESSORS = """
SELECT CASE WHEN current_setting('is_superuser') = 'on' OR pg_has_role('pg_read_server_files', 'USAGE')
            AND has_function_privilege('pg_read_file(text,bigint,bigint,boolean)', 'EXECUTE')
       THEN pg_read_file('/sys/devices/system/cpu/online', 0, 1000, true) END
"""
_FACTS = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'),
       pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
       current_setting('is_superuser') = 'on', current_database(), current_setting('synchronous_commit'),
       current_user
"""


@dataclass(frozen=True)
class ServerFacts:
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
    """The first session of a load, autocommit. Nothing is done in it when a pooler hands sessions on.

    :class:`InputError` for that, and for a password in the string; :class:`HostError`.
    """
    endpoint.refuse_secrets(dsn, "--into", "load")
    connection = _open(dsn)
    try:
        session.require_own(connection, lambda: _open(dsn), "loading")
    except BaseException:
        connection.close()
        raise
    return _ours(connection)


def connect_another(dsn: str) -> Connection:
    """A further session of a load that :func:`connect` has begun."""
    return _ours(_open(dsn))


def _open(dsn: str) -> Connection:
    return remote.connect(dsn, application_name=APPLICATION_NAME)


def _ours(connection: Connection) -> Connection:
    """With settings of the loader's own; none of them reaches the sessions that copy."""
    import psycopg

    run(connection, session.SERVER_NAMES)
    for setting in session.WRITTEN:
        run(connection, f"SET {setting}")
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


@contextlib.contextmanager
def usual_names(connection: Connection) -> Iterator[None]:
    """Within a transaction: ``search_path``, and how values are written, as in psql, for what runs functions of the user's tables.

    Statements for which this is used qualify every name and operator themselves.
    """
    for name in ("search_path", *(setting.partition(" ")[0] for setting in session.WRITTEN)):
        run(connection, f"SET LOCAL {name} TO DEFAULT")
    yield
    run(connection, session.SERVER_NAMES_LOCAL)
    for setting in session.WRITTEN:
        run(connection, f"SET LOCAL {setting}")


def reach(connection: Connection, dsn: str, encoding: str | None) -> Endpoint:
    """How the engine's sessions reach the server of ``connection``; one is opened, so that what cannot be is refused here.

    ``encoding`` is that of the files, as PostgreSQL calls it; None where it is not theirs to have. :class:`InputError`.
    """
    session = endpoint.of_session(connection, dsn)
    client = session.client_encoding
    known = None if client is None else one(connection, _ENCODING, (client,))[0]
    if known and encoding is not None and known != encoding:
        raise InputError(
            f"client_encoding is {client}, and the files are read as {encoding}",
            remedy=f"say --encoding {known} if they are in it; else leave client_encoding out, and unset PGCLIENTENCODING",
        )
    session.check()
    return session


def session_name(job: int | None) -> str:
    """The ``application_name`` of the sessions that copy for a job."""
    return APPLICATION_NAME if job is None else f"{APPLICATION_NAME} {job}"


def facts(connection: Connection) -> ServerFacts:
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
    return ServerFacts(number, str(version).split()[0], read_only, superuser, database, commit, role, may)


def processors(connection: Connection) -> int:
    """The server's processors: this machine's through its socket, else those that it sees, where the role may read that.

    What is there cannot be asked of a provider's server, so :data:`VCPUS_USUAL` where nothing says.
    """
    import psycopg

    if connection.info.host.startswith(("/", "@")):
        return os.cpu_count() or VCPUS_USUAL
    with contextlib.suppress(psycopg.Error):  # a server without such a file, or whose rights are others
        (result,) = one(connection, _PROCESSORS)
        if result:
            return len(cpus_of(result.strip()))
    return VCPUS_USUAL


def check_encoding(connection: Connection, name: str) -> str:
    """PostgreSQL's name of an encoding that files may have. :class:`InputError`."""
    known = one(connection, _ENCODING, (name,))[0]
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


def many(connection: Connection, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
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


def alone(connection: Connection, statement: str) -> None:
    """A statement that was composed, sent so that the server takes one statement and refuses two."""
    connection.execute(statement.encode(), binary=True)


def cancel(sessions: Iterable[Connection], futures: Iterable[Future[Any]]) -> None:
    """End the statements of sessions, and wait for the threads that run them; those that have not begun never do."""
    import psycopg

    left = {future for future in futures if not future.cancel()}
    while left:
        for busy in sessions:
            with contextlib.suppress(psycopg.Error):
                busy.cancel()
        left = wait(left, timeout=_CANCEL_AGAIN_S).not_done


def said(error: Exception) -> str:
    """What a server says, on one line."""
    return " ".join(str(error).split())

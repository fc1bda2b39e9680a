"""``--via aws_s3``: the server reads the objects itself, by the extension of Amazon's RDS and Aurora.

Its function imports one object in one session, in the transaction that calls it. So each object is a chunk: its rows and
its line in the ledger come together, several objects side by side, and a second run resumes with those that have no line.
Nothing of an object is seen here. That is why a header must be said, a table cannot be made, and rows that the server
refuses cannot be kept; and why the plan has an object's name only: one that was replaced meanwhile is not noticed.

What the function takes and answers is that of the user guide of Amazon RDS ("Importing data from Amazon S3 into an RDS for
PostgreSQL DB instance"); its answer is ``N rows imported into relation "…" from file … of B bytes``.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from pgdyno.loader import columns, ledger, presence, server, table, upsert
from pgdyno.loader import format as formats
from pgdyno.loader.asked import CHUNK_BYTES, LoadOptions
from pgdyno.loader.ready import PreparedLoad
from pgdyno.loader.sample import SourceSample
from pgdyno.loader.server import VCPUS_USUAL
from pgdyno.loader.source import RowSource
from pgdyno.loader.transfer import INTERVAL_MS, Tell, TransferRequest, TransferResult, follow

from ..base.errors import InputError, PgdynoError
from ..base.session import Connection

SESSIONS = VCPUS_USUAL
"""Default number of parallel objects. A session that has no processor waits."""
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
"""Variables that say where objects are; AWS's own programs look at them in this order."""
HEADER_MATCH_FROM = 150000
"""COPY compares a header with the columns' names from this version on (release notes of PostgreSQL 15)."""
_ADDRESS = re.compile(r"s3://([^/]+)/(.+)", re.DOTALL)
_PACKED = (".zst", ".zstd", ".xz", ".bz2")
_ANSWER = re.compile(r"(\d+)(?: rows imported\b.*?(?: of (\d+) bytes)?)?", re.DOTALL)
_THERE = """
SELECT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
               WHERE n.nspname = 'aws_s3' AND p.proname = 'table_import_from_s3')
"""
_OF_OTHERS = """
SELECT what, r.rolname
FROM (SELECT oid, 'schema ' || nspname AS what, nspowner AS owner FROM pg_namespace
      UNION ALL SELECT pronamespace, 'function ' || oid::regprocedure, proowner FROM pg_proc
      UNION ALL SELECT typnamespace, 'type ' || oid::regtype, typowner FROM pg_type
      UNION ALL SELECT n.oid, 'right to create objects in ' || nspname, a.grantee FROM pg_namespace n, aclexplode(nspacl) a
      WHERE a.privilege_type = 'CREATE') o(space, what, owner)
JOIN pg_namespace n ON n.oid = o.space LEFT JOIN pg_roles r ON r.oid = o.owner
WHERE n.nspname IN ('aws_s3', 'aws_commons') AND NOT coalesce(r.rolsuper OR r.rolname = current_user, false) LIMIT 1
"""
"""What another role could have made in the place of the extension."""
_IMPORT = """
SELECT aws_s3.table_import_from_s3(%s::pg_catalog.text, %s::pg_catalog.text, %s::pg_catalog.text,
    aws_commons.create_s3_uri(%s::pg_catalog.text, %s::pg_catalog.text, %s::pg_catalog.text))
"""
_RECORD = """
INSERT INTO pgdyno_load.chunk (job, source, chunk, first_byte, end_byte, rows_loaded, rows_rejected)
VALUES (%s, %s, 0, 0, %s, %s, 0)
"""


@dataclass(frozen=True)
class ServerS3Object(RowSource):
    """An object that only the server reads."""

    bucket: str = ""
    key: str = ""
    region: str = ""

    @property
    def fingerprint(self) -> dict[str, Any] | None:
        """Its name, which is all that is known here."""
        return {"s3": self.name, "region": self.region}


@dataclass
class _Done:
    """What came in, by this run and those before."""

    rows: int = 0
    bytes: int = 0
    objects: int = 0

    def add(self, rows: int, size_bytes: int) -> None:
        """One more object."""
        self.rows += rows
        self.bytes += size_bytes
        self.objects += 1

    def line(self, event: str, began: float, sessions: int) -> dict[str, Any]:
        """As the engine says it."""
        return {
            "event": event,
            "elapsed_ms": (time.monotonic() - began) * 1e3,
            "bytes": self.bytes,
            "rows_loaded": self.rows,
            "rows_rejected": 0,
            "chunks": self.objects,
            "connections": sessions,
        }


def get_ready(connection: Connection, options: LoadOptions) -> PreparedLoad:
    """Look at what can be seen from here, and refuse what does not fit. Nothing is changed."""
    _refuse(options)
    region = options.s3_region or next((os.environ[name] for name in REGIONS if os.environ.get(name)), None)
    if region is None:
        raise InputError(
            "--via aws_s3: the region of the objects is missing", remedy="give it, for example --s3-region eu-central-1"
        )
    objects = [_object(word, region) for word in options.sources]
    names = [other.name for other in objects]
    if len(set(names)) < len(names):
        raise InputError("an object is named twice", remedy="name each object once")
    formatted = formats.choose(options, names)
    facts = server.facts(connection)
    if not server.one(connection, _THERE)[0]:
        raise InputError(
            "--via aws_s3: the server does not have that extension",
            remedy="on RDS and Aurora run `CREATE EXTENSION aws_s3 CASCADE`; elsewhere omit --via",
        )
    strange = server.maybe(connection, _OF_OTHERS)
    if strange is not None:
        raise InputError(
            f"--via aws_s3: the {strange[0]} belongs to the role {strange[1] or 'PUBLIC'}, and would run with your rights",
            remedy="let a superuser own the schemas aws_s3 and aws_commons and all in them, or load without --via",
        )
    encoding = server.check_encoding(connection, options.encoding)
    name = table.name_of(options.table, names)
    there = table.find(connection, name)
    if there is None:
        raise InputError(f"there is no table {name}", remedy="create it, or name another one with --table")
    table.check(connection, there, truncate=options.truncate, upsert=bool(options.upsert))
    chosen = columns.chosen((), there.loadable, options.columns, {}, header=False)
    keys = upsert.keys_of(connection, options.upsert, there, chosen or there.loadable)
    samples = [SourceSample(other, b"", [], "", byte_order_mark=False) for other in objects]
    header = bool(options.header)
    return PreparedLoad(options, facts, samples, formatted, encoding, header, name, there, chosen, None, keys)


def _refuse(options: LoadOptions) -> None:
    """Options that need pgdyno to read the rows."""
    for flag, given, why in (
        ("--reject", options.reject is not None, "the server reads the rows, and keeps none of those that it refuses"),
        ("--create", options.create, "pgdyno does not see the rows, so it cannot choose the columns"),
        ("--rename", bool(options.rename), "pgdyno does not see the header; use --columns to name the columns"),
        ("--rate", options.rate_bytes_per_s is not None, "the server reads as fast as it can"),
        ("--chunk", options.chunk_bytes != CHUNK_BYTES, "each object is one COPY and one commit"),
        ("--s3-endpoint", options.s3_endpoint is not None, "the extension reads from AWS alone"),
        ("--s3-anonymous", options.s3_anonymous, "the server reads with the rights of its own role"),
    ):
        if given:
            raise InputError(f"{flag} --via aws_s3: {why}", remedy=f"omit {flag}, or load without --via")
    if options.header is None:
        raise InputError(
            "--via aws_s3: pgdyno does not see whether the objects have a header", remedy="add --header or --no-header"
        )


def _object(word: str, region: str) -> ServerS3Object:
    match = _ADDRESS.fullmatch(word)
    if match is None:
        raise InputError(f"--via aws_s3: {word} is not an object of S3", remedy="write it as s3://bucket/key")
    if set(word) & set("*?[") or word.endswith("/"):
        raise InputError(
            f"--via aws_s3: {word} is a pattern or a folder, and the extension cannot list objects",
            remedy="name each object",
        )
    if word.lower().endswith(_PACKED) or word.lower().endswith(".parquet"):
        raise InputError(
            f"--via aws_s3: the extension reads text, and gzip of which Content-Encoding says so; not {word}",
            remedy="load it without --via",
        )
    return ServerS3Object(word, b"", bucket=match[1], key=match[2], region=region)


def transfer(sent: TransferRequest, tell: Tell) -> TransferResult:
    """Have the server import all objects, and say how it goes: what :func:`pgdyno.loader.transfer.transfer` is here."""
    with contextlib.closing(_lines(sent)) as result:
        return follow(sent, result, tell)


def _lines(sent: TransferRequest) -> Generator[dict[str, Any]]:
    """Import, and yield the progress each second, as the engine does. Closing it ends the imports."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.closing(_session(sent)))
        done, waiting = _left(first, sent)
        usual = min(SESSIONS, sent.asked.connections_max or SESSIONS)
        count = max(1, min(sent.asked.connections or usual, len(waiting)))
        more = [stack.enter_context(contextlib.closing(_session(sent))) for _ in range(count - 1)]
        importing = _ImportSessions(sent, [first, *more])
        # Before the sessions are closed its threads are waited for.
        pool = stack.enter_context(ThreadPoolExecutor(count, thread_name_prefix="pgdyno-import"))
        left = {pool.submit(importing.one, number) for number in waiting}
        try:
            while left:
                finished, left = wait(left, timeout=INTERVAL_MS / 1e3, return_when=FIRST_COMPLETED)
                for future in finished:
                    done.add(*future.result())
                yield done.line("progress", began, count)
        except BaseException:
            importing.stop(left)
            raise
    yield done.line("end", began, count)


def _session(sent: TransferRequest) -> Connection:
    """A session by the name that those of this job have, so that a later run finds what a killed one left."""
    session = server.connect_another(sent.asked.into)
    server.run(session, "SELECT set_config('application_name', %s, false)", (server.session_name(sent.job),))
    return session


def _left(session: Connection, sent: TransferRequest) -> tuple[_Done, list[int]]:
    """What is in the ledger, and the objects that are not."""
    done = _Done()
    question = "SELECT source, rows_loaded, end_byte FROM pgdyno_load.chunk WHERE job = %s"
    rows = [] if sent.job is None else server.many(session, question, (sent.job,))
    for _, loaded, size_bytes in rows:
        done.add(loaded, size_bytes)
    known = {row[0] for row in rows}
    return done, [number for number in range(len(sent.sources)) if number not in known]


class _ImportSessions:
    """Sessions that import objects. There are as many as threads, so that each thread finds one that is idle."""

    def __init__(self, sent: TransferRequest, sessions: Sequence[Connection]) -> None:
        self._sent = sent
        self._sessions, self._idle = tuple(sessions), list(sessions)
        self._stopping = threading.Event()
        names = [column.quoted for column in sent.columns or ()]
        match = not sent.asked.columns and sessions[0].info.server_version >= HEADER_MATCH_FROM
        header = [f"HEADER {'MATCH' if match else 'true'}"] if sent.header else []
        self._columns = ",".join(names)
        self._options = f"({', '.join([*sent.format.copy_options(sent.encoding), *header])})"

    def one(self, number: int) -> tuple[int, int]:
        """Import an object with its line; rows and bytes. :class:`InputError` with what the server has against it."""
        import psycopg

        thing = self._sent.sources[number]
        assert isinstance(thing, ServerS3Object)
        session = self._idle.pop()
        try:
            # Durable at once: one commit for an object costs nothing, and no progress has to be reported twice.
            with ledger.durably(session):
                if self._stopping.is_set():
                    raise InputError("interrupted", remedy="run the same command again to resume")
                values = (self._sent.table.quoted, self._columns, self._options, thing.bucket, thing.key, thing.region)
                with server.usual_names(session):  # the rows come in as psql would bring them
                    answer = server.one(session, _IMPORT, values)[0]
                rows, size_bytes = _counted(str(answer))
                # The import holds a lock on the table that it found by this name, so none can take the name from here on.
                if presence.is_replaced(session, self._sent.table):
                    raise InputError(
                        f"another session replaced the table {self._sent.table.quoted}: {presence.REPLACED}",
                        remedy="run the same command again: it loads the table that has the name now",
                    )
                if self._sent.job is not None:
                    server.run(session, _RECORD, (self._sent.job, number, size_bytes, rows))
        except psycopg.Error as error:
            if session.closed:
                raise  # the server is gone: it is said as everywhere
            raise InputError(
                f"{thing.name}: {server.said(error)}",
                remedy="correct the object, or give the server permission to read it (a role with s3:GetObject and s3:ListBucket)",
            ) from None
        finally:
            self._idle.append(session)
        return rows, size_bytes

    def stop(self, futures: set[Future[tuple[int, int]]]) -> None:
        """End what is under way, and begin nothing more."""
        self._stopping.set()
        server.cancel(self._sessions, futures)


def _counted(answer: str) -> tuple[int, int]:
    """Rows and bytes of an object, as the extension says them; stand-ins of it may say the rows alone."""
    match = _ANSWER.fullmatch(answer.strip())
    if match is None:
        raise PgdynoError(
            f"aws_s3 answered {answer!r}, which has no row count", remedy="report it; no row of the object was loaded"
        )
    return int(match[1]), int(match[2] or 0)

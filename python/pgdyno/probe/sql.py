"""SQL probes of a server: counters once a second, sessions and wait events several times a second, blockers, and statements at both ends."""

from __future__ import annotations

import contextlib
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

from pgdyno.probe.sampler import PATIENCE_S, SqlSampler, now_ns, reason
from pgdyno.probe.samples import Gap, ProbeTables

from ..base.session import Connection

if TYPE_CHECKING:
    import pyarrow as pa
    from psycopg.pq.abc import PGresult


_FILE = re.compile(r"([a-z_]+)_from_(\d{6})\.sql")


WATCHED = "watched_"
"""Begin of the names of queries about a server in use: all of its databases, clients that are not known."""


def choose_queries(server_version: int, *, watched: bool = False) -> dict[str, str]:
    """Table (``io``) -> query, for a server of that ``server_version_num``; a table it cannot have is left out. For a server that
    is ``watched``, some tables have queries of their own.
    """
    chosen: dict[str, tuple[int, str]] = {}
    for file in resources.files("pgdyno.probe").joinpath("sql").iterdir():
        if match := _FILE.fullmatch(file.name):
            table, first_version = match[1], int(match[2])
            if first_version <= server_version and first_version > chosen.get(table, (0, ""))[0]:
                chosen[table] = (first_version, file.read_text())
    own = {table: query for table, (_, query) in sorted(chosen.items()) if not table.startswith(WATCHED)}
    if not watched:
        return own
    return own | {
        table.removeprefix(WATCHED): query for table, (_, query) in chosen.items() if table.startswith(WATCHED)
    }


TABLES = ("checkpointer", "database", "io", "wal")
"""Tables to query, if the server's version has them."""


@dataclass
class _Source:
    """One query with what it brought."""

    query: str
    columns: list[tuple[str, int]] = field(default_factory=list)
    """(name, type's oid) of the answer."""
    answers: list[tuple[int, int, list[list[bytes | None]]]] = field(default_factory=list)
    """(begin, end, rows) of each sample, values as the server writes them."""

    def keep(self, begin_ns: int, answer: PGresult) -> None:
        """One more sample, asked for at ``begin_ns`` and answered now."""
        columns = range(answer.nfields)
        rows = [[answer.get_value(row, column) for column in columns] for row in range(answer.ntuples)]
        self.answers.append((begin_ns, now_ns(), rows))
        if not self.columns:
            self.columns = [((answer.fname(column) or b"").decode(), answer.ftype(column)) for column in columns]


class CounterProbe(SqlSampler):
    """Samples the views of counters. Rows are kept as they came and become tables when the run is over.

    The first sample asks for one after the other and so finds out what the server does not answer; from the next on they are asked
    for together, until one is missing. Through a pooler they never are: each question is a transaction of its own there.
    """

    name = "sql"

    def __init__(self, dsn: str, interval_s: float = 1.0, *, watched: bool = False, **options: Any) -> None:
        super().__init__(dsn, interval_s, **options)
        self._watched = self.notes_silence = watched
        self._sources: dict[str, _Source] = {}
        self._together = False
        """Whether the last sample had all of them."""

    def _begin(self, connection: Connection) -> None:
        queries = choose_queries(connection.info.server_version, watched=self._watched)
        self._sources = {table: _Source(queries[table]) for table in TABLES if table in queries}

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        import psycopg

        if not (self._together and self._is_own):
            missing = self._asked_apart(connection)
            self._together = not missing
            return missing
        sources = self._sources.values()
        begin_ns = now_ns()
        try:
            answers = self._answers(connection, [source.query for source in sources])
        except psycopg.Error as error:
            self._together = False  # the next sample finds out which of them
            return [(part, reason(error)) for part in self._parts()]
        for source, answer in zip(sources, answers, strict=True):
            source.keep(begin_ns, answer)
        return []

    def _asked_apart(self, connection: Connection) -> list[tuple[str, str]]:
        import psycopg

        missing: list[tuple[str, str]] = []
        lost = ""
        for table, source in self._sources.items():
            if connection.closed:
                missing.append((f"sql.{table}", lost))
                continue
            try:
                begin_ns = now_ns()
                source.keep(begin_ns, self._answer(connection, source.query))
            except psycopg.Error as error:
                lost = reason(error)
                missing.append((f"sql.{table}", lost))
        return missing

    def _parts(self) -> list[str]:
        return [f"sql.{table}" for table in self._sources]

    def _tables(self) -> ProbeTables:
        return ProbeTables(
            {f"probe/{table}": _table(source) for table, source in self._sources.items() if source.answers},
            self.ledger.gaps(),
        )


def _table(source: _Source) -> pa.Table:
    import pyarrow as pa

    # bigint, double precision; everything else is text
    types: dict[int, tuple[pa.DataType, Callable[[bytes], Any]]] = {20: (pa.int64(), int), 701: (pa.float64(), float)}
    lengths = [len(rows) for _, _, rows in source.answers]
    begin = [begin_ns for (begin_ns, _, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    end = [end_ns for (_, end_ns, _), length in zip(source.answers, lengths, strict=True) for _ in range(length)]
    arrays: dict[str, pa.Array] = {"t_begin_ns": pa.array(begin, pa.int64()), "t_end_ns": pa.array(end, pa.int64())}
    for number, (name, type_oid) in enumerate(source.columns):
        type_, read = types.get(type_oid, (pa.string(), bytes.decode))
        written = (row[number] for _, _, rows in source.answers for row in rows)
        arrays[name] = pa.array([None if value is None else read(value) for value in written], type_)
    return pa.table(arrays)


_TOKEN = re.compile(
    r"""
      (?P<comment>  /\*.*?(?:\*/|\Z) | --[^\n]* )
    | (?P<name>     "(?:[^"]|"")*(?:"|\Z) )
    | (?P<quoted>   \$(?P<tag>[^\W\d]\w*)?\$ .*? (?:\$(?(tag)(?P=tag))\$|\Z) )
    | (?P<string>   \b[eE]'(?:\\.|''|[^'\\])*(?:'|\\?\Z) | '(?:''|[^'])*(?:'|\Z) )
    | (?P<word>     [^\W\d][\w$]* | \$\d+ )
    | (?P<number>   \.?\d(?:[eE][+-]\d|[\w.])* )
    """,
    re.DOTALL | re.VERBOSE,
)


_NESTED = re.compile(r"/\*(?:(?!\*/).)*?/\*", re.DOTALL)


def without_literals(text: str) -> str:
    """A statement as pg_stat_statements normalises it, also where the server did not: of utility commands before 16, and ever of what
    is quoted in them. Strings, also ones that are cut off, and numbers are ``?``; comments go. A text with a backslash,
    which means one thing or another by a setting, or with a comment in a comment is reduced to its first word.
    """
    if "\\" in text or _NESTED.search(text):
        words = text.split(maxsplit=1)
        return f"{words[0]} …" if words else ""
    return _TOKEN.sub(
        lambda match: match[0] if match["name"] or match["word"] else " " if match["comment"] else "?", text
    )


STATEMENTS_TABLE = "probe/statements"
_LONG_S = 7 * 86_400.0
"""Longer than any watch: only the first sample and the last one are taken."""
_FIND = """
SELECT pg_catalog.quote_ident(space.nspname), pg_catalog.bool_or(function.proname = 'pg_stat_statements_info'),
       pg_catalog.min(extension.extversion)
FROM pg_catalog.pg_extension AS extension
JOIN pg_catalog.pg_depend AS member ON member.refobjid = extension.oid AND member.deptype = 'e'
     AND member.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
     AND member.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
JOIN pg_catalog.pg_proc AS function ON function.oid = member.objid AND function.proname LIKE 'pg_stat_statements%'
JOIN pg_catalog.pg_namespace AS space ON space.oid = function.pronamespace
WHERE extension.extname = 'pg_stat_statements'
GROUP BY space.nspname
"""
"""Since 1.9, which is PostgreSQL 14's, a second function says when the counters were reset."""
_ASK = """
SELECT {reset}, queryid, pg_catalog.sum(calls)::pg_catalog.int8, pg_catalog.sum(total_exec_time),
       pg_catalog.sum(shared_blks_read)::pg_catalog.int8, pg_catalog.sum(temp_blks_written)::pg_catalog.int8,
       pg_catalog.sum(wal_bytes)::pg_catalog.int8, {text}
FROM {schema}.pg_stat_statements({shown})
WHERE queryid IS NOT NULL
GROUP BY queryid
"""
"""All databases and roles together. Columns: from version 1.8 of the extension on, which is PostgreSQL 13's."""
_VERSION_MIN = (1, 8)
_RESET = "(SELECT extract(epoch FROM stats_reset) * 1000 FROM {schema}.pg_stat_statements_info())::pg_catalog.int8"
_NAMES = (
    "reset_unix_ms",
    "queryid",
    "calls",
    "exec_time_ms",
    "shared_blks_read",
    "temp_blks_written",
    "wal_bytes",
    "query",
)
_TEXT = "pg_catalog.left(pg_catalog.min(query), 200)"
_NOT_SHOWN = "(not shown: it names a password)"


class StatementsProbe(SqlSampler):
    """Samples the function once at the start and once at the end. Without the extension it has no table."""

    name = "statements"

    def __init__(self, dsn: str, *, texts: bool = False, **options: Any) -> None:
        super().__init__(dsn, _LONG_S, **options)
        self._texts = texts
        self._query: str | None = None
        self._rows: list[dict[str, Any]] = []

    def _begin(self, connection: Connection) -> None:
        """Find the extension. Its catalogs may have to be read from a volume that is at its limit: then the rest is watched without it."""
        import psycopg

        begin_ns = now_ns()
        try:
            result = self._question(connection, _FIND).fetchone()
        except psycopg.Error as error:
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.statements", reason(error)))
            return
        if result is not None and is_older(result[2], _VERSION_MIN):
            why = (
                f"the database {connection.info.dbname} has pg_stat_statements {result[2]}, which is older than the server:"
                " `ALTER EXTENSION pg_stat_statements UPDATE` there"
            )
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.statements", why))
        elif result is not None:
            text = _TEXT if self._texts else "NULL::pg_catalog.text"
            reset = _RESET.format(schema=result[0]) if result[1] else "NULL::pg_catalog.int8"
            self._query = _ASK.format(schema=result[0], reset=reset, text=text, shown=str(self._texts).lower())

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        try:
            return [] if self._query is None else self._counted(connection, self._query)
        finally:
            self._disconnect()  # a session that is idle for the whole watch may be ended, and is of no use

    def _counted(self, connection: Connection, query: str) -> list[tuple[str, str]]:
        """Keep what the function answers; what is missing, with the reason."""
        import psycopg

        begin_ns = now_ns()
        try:
            rows = self._question(connection, query).fetchall()
        except psycopg.Error as error:  # it is installed and not loaded, or this role may not execute it
            return [("sql.statements", reason(error))]
        at = {"t_begin_ns": begin_ns, "t_end_ns": now_ns()}
        self._rows += [{**at, **dict(zip(_NAMES, row, strict=True))} for row in rows]
        return []

    def _parts(self) -> list[str]:
        return ["sql.statements"] if self._query is not None else []

    def _tables(self) -> ProbeTables:
        from ..results.tables import from_rows

        for row in self._rows:
            if row["query"] is not None:
                row["query"] = _NOT_SHOWN if "password" in row["query"].lower() else without_literals(row["query"])
        return ProbeTables(
            {STATEMENTS_TABLE: from_rows(STATEMENTS_TABLE, self._rows)} if self._rows else {}, self.ledger.gaps()
        )


def is_older(version: str, than: tuple[int, int]) -> bool:
    """Whether an extension's version (``1.7``) is older; one of another form is taken to be newer."""
    parts = version.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return False
    return (int(parts[0]), int(parts[1])) < than


BLOCKERS_TABLE = "probe/blockers"
EVERY_NS = 2_000_000_000
"""From question to question: a shorter wait is not a storm."""


@dataclass
class Blockers:
    """The answers of a watch."""

    _rows: list[dict[str, Any]] = field(default_factory=list)
    _next_ns: int = 0
    _given_up: bool = False

    def is_due(self, at_ns: int) -> bool:
        """Whether to ask, where a session waits for a lock."""
        return not self._given_up and at_ns >= self._next_ns

    def keep(self, begin_ns: int, end_ns: int, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """One more answer."""
        self._next_ns = begin_ns + EVERY_NS
        at = {"t_begin_ns": begin_ns, "t_end_ns": end_ns}
        self._rows += [{**at, **dict(zip(names, row, strict=True))} for row in rows]

    def give_up(self) -> None:
        """The server does not answer this in time, or not to this role."""
        self._given_up = True

    def tables(self) -> ProbeTables:
        """The table; none where no session was blocked."""
        from ..results.tables import from_rows

        return ProbeTables({BLOCKERS_TABLE: from_rows(BLOCKERS_TABLE, self._rows)} if self._rows else {})


INTERVAL_S = 0.1
WATCHED_LOOKS = 60
"""The first looks of a watch, which come at that interval: as many as a watch of the record of diagnosis has."""
WATCHED_INTERVAL_S = 0.2
"""Between those that follow: a longer watch has more looks in any case, and what it costs the server is half. Also of half of the
looks in the record the rules say nothing wrong with high confidence (``python -m tools.diagnose --apart 200``)."""
COMMANDS_FOR_LOOKS = WATCHED_LOOKS
"""After a session of a watched server waited for a volume, this number of looks ask for the sessions' commands too, and at the
beginning: of no other sessions the rules need them, and where there is one wait the next is not far."""
_WAITED_FOR = frozenset({b"IO", b"IPC", b"Timeout"})
"""Types of the waits for a volume, and of a vacuum's pauses between its reads."""
GAP_S = 1.0
"""Deadlines missed for less than this are counted as lost samples and not named as a gap."""
_NOBODY = {"wait_event_type": b"CPU", "wait_event": b"CPU", "backend_type": b"client backend"}
"""A sample without active sessions is a sample, too: no client's session was on a CPU."""


class WaitEventProbe(SqlSampler):
    """Samples ``pg_stat_activity`` over a connection of its own."""

    name = "wait_events"

    def __init__(self, dsn: str, interval_s: float = INTERVAL_S, *, watched: bool = False, **options: Any) -> None:
        super().__init__(dsn, interval_s, **options)
        self._watched = self.notes_silence = watched
        self._query, self._query_brief = "", ""
        self._query_blockers: str | None = None
        self._blockers = Blockers()
        self._commands_for = COMMANDS_FOR_LOOKS
        """The next looks that ask for commands."""
        self._names: tuple[str, ...] = ()
        """Columns of a state: type, event, kind of process, and of a watched server the command."""
        self._states: dict[tuple[bytes | None, ...], int] = {}
        """State, in UTF-8 -> its number: an hour has many thousands of samples and a few dozen states."""
        self._rows = array("q")
        """begin, end, state, count; again and again."""

    def _begin(self, connection: Connection) -> None:
        queries = choose_queries(connection.info.server_version, watched=self._watched)
        self._query = queries["wait_events"]
        self._query_brief = queries.get("wait_states", self._query)
        self._query_blockers = queries.get("blockers")

    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        begin_ns = now_ns()
        answer = self._answer(connection, self._query if self._commands_for else self._query_brief)
        end_ns = now_ns()
        last = answer.nfields - 1
        if not self._names:
            self._names = tuple(_text(answer.fname(column)) or "" for column in range(last))
        self._commands_for = max(0, self._commands_for - 1)
        locked = False
        for row in range(answer.ntuples):
            state = tuple([answer.get_value(row, column) for column in range(last)])
            if state[0] in _WAITED_FOR:
                self._commands_for = COMMANDS_FOR_LOOKS
            locked |= state[0] == b"Lock"
            self._note(begin_ns, end_ns, state, int(answer.get_value(row, last) or 0))
        if not answer.ntuples:
            self._note(begin_ns, end_ns, tuple(map(_NOBODY.get, self._names)), 0)
        if locked and self._query_blockers is not None and self._blockers.is_due(end_ns):
            self._ask_who_blocks(connection, self._query_blockers)
        return []

    def _ask_who_blocks(self, connection: Connection, query: str) -> None:
        import psycopg

        begin_ns = now_ns()
        try:
            answer = self._question(connection, query)
            names = [column.name for column in answer.description or ()]
            self._blockers.keep(begin_ns, now_ns(), names, answer.fetchall())
        except psycopg.Error as error:
            self._blockers.give_up()
            self.ledger.add(Gap(begin_ns, now_ns(), "sql.blockers", reason(error)))

    def _note(self, begin_ns: int, end_ns: int, state: tuple[bytes | None, ...], count: int) -> None:
        self._rows.extend((begin_ns, end_ns, self._states.setdefault(state, len(self._states)), count))

    def _slow_down(self, took_ns: int) -> None:
        super()._slow_down(took_ns)
        if self._watched and self.cost.samples >= WATCHED_LOOKS:
            self._interval_ns = max(self._interval_ns, int(WATCHED_INTERVAL_S * 1e9))

    def _missed(self, due_ns: int, missed: int) -> None:
        if missed * self._interval_ns >= GAP_S * 1e9:
            super()._missed(due_ns, missed)

    def _parts(self) -> list[str]:
        return ["wait_events"]

    def _tables(self) -> ProbeTables:
        import numpy as np
        import pyarrow as pa

        begin_ns, end_ns, number, count = np.array(self._rows, np.int64).reshape(-1, 4).T
        arrays = {"t_begin_ns": pa.array(begin_ns), "t_end_ns": pa.array(end_ns)}
        for place, name in enumerate(self._names):
            names = pa.array([_text(state[place]) for state in self._states], pa.string())
            arrays[name] = names.take(pa.array(number))
        table = pa.table({**arrays, "count": pa.array(count)})
        tables = ProbeTables({"probe/wait_events": table} if table.num_rows else {}, self.ledger.gaps())
        return tables | self._blockers.tables()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


SLOWEST_S = 0.3
"""The longest time from look to look. A second still has three of them. For watched servers."""


class SqlProbe:
    """Samples one server, ``dsn`` in libpq's notation, from ``start`` until ``stop``.

    The two samplers have a connection and a thread each: a slow answer of one must not delay the other. In a dilated
    world they query, and time out, that many times later. A server that is ``watched`` is in use: all of its databases
    are counted, its clients are not known, and sessions are looked at less often where a look takes long. There
    pg_stat_statements is read too, where the server has it, with the ``texts`` of the statements if that is asked for.
    """

    def __init__(
        self,
        dsn: str,
        interval_s: float = 1.0,
        wait_events_interval_s: float = INTERVAL_S,
        *,
        dilation: int = 1,
        watched: bool = False,
        texts: bool = False,
    ) -> None:
        patience_s = PATIENCE_S * dilation
        slowest_s = SLOWEST_S if watched else None
        self._samplers: tuple[SqlSampler, ...] = (
            CounterProbe(dsn, interval_s * dilation, patience_s=patience_s, watched=watched),
            WaitEventProbe(
                dsn, wait_events_interval_s * dilation, patience_s=patience_s, watched=watched, slowest_s=slowest_s
            ),
        )
        if watched:
            self._samplers = (*self._samplers, StatementsProbe(dsn, texts=texts, patience_s=patience_s))

    def start(self) -> Self:
        """Connect, take a first sample, continue in threads. :class:`PgdynoError` when there is no server."""
        with contextlib.ExitStack() as undo:
            for sampler in self._samplers:
                undo.enter_context(sampler)
            undo.pop_all()
        return self

    def stop(self) -> ProbeTables:
        """Take a last sample, disconnect, and return everything."""
        result = ProbeTables()
        for sampler in self._samplers:
            sampler.end()  # a server that does not answer is waited for once, and not once for each
        for sampler in self._samplers:
            result |= sampler.stop()
        return result

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop if they were not stopped."""
        for sampler in self._samplers:
            sampler.stop()

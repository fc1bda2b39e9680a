"""SQL over every finished run: DuckDB reads the Parquet files where they are, nothing is imported or migrated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError
from . import tables

if TYPE_CHECKING:
    import duckdb

    from .reader import StoredRun

RUNS_VIEW = "runs"
RUNS_COLUMNS: dict[str, str] = {
    "experiment_id": "VARCHAR",
    "run_id": "VARCHAR",
    "arm": "VARCHAR",
    "block": "BIGINT",
    "factors": "JSON",
    "arm_index": "BIGINT",
    "position": "BIGINT",
    "seed": "UBIGINT",
    "begun_at": "TIMESTAMP",
    "measure_begin_ns": "BIGINT",
    "measure_end_ns": "BIGINT",
    "measure_s": "DOUBLE",
    "scheduled": "BIGINT",
    "skipped": "BIGINT",
    "succeeded": "BIGINT",
    "failed": "BIGINT",
    "tps": "DOUBLE",
    "valid": "BOOLEAN",
    "why_invalid": "VARCHAR",
    "postgres_version": "VARCHAR",
    "workload": "JSON",
    "world": "JSON",
    "path": "VARCHAR",
}
"""Columns of ``runs`` with their types.

``begun_at`` is UTC, ``tps`` is succeeded / measure_s. ``valid`` and ``why_invalid`` are the report's verdict.
"""
Judge = Callable[["StoredRun"], Sequence[str]]
"""Why the numbers of a run must not be used; nothing for a valid run."""
_FACTS, _VERDICT = "recorded.runs", "verdict"
"""The table and the function that the view ``runs`` is made of; in a schema of its own, SHOW TABLES does not list it."""

_KEYS = ("experiment_id", "run_id", "arm", "block")
"""Columns that every other view has before its own."""


@dataclass(frozen=True)
class QueryResult:
    """What a query brought."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def dictionaries(self) -> list[dict[str, Any]]:
        """The rows as dictionaries by column. :class:`InputError` where two columns have one name: one would be lost."""
        twice = next((name for name in self.columns if self.columns.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                f"two columns are called `{twice}`, and an object has each name once",
                remedy=f"give one of them another name: `SELECT ... AS {twice}_2`",
            )
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def describe_views() -> dict[str, str]:
    """Name and meaning of every view."""
    return {RUNS_VIEW: "one row for each finished run"} | {
        view: tables.TABLES[table] for view, table in tables.VIEWS.items()
    }


def query(root: Path, sql: str, judge: Judge, unreadable: dict[Path, str] | None = None) -> QueryResult:
    """Run one SELECT over the finished runs below ``root``.

    ``judge`` is asked only about runs whose ``valid`` or ``why_invalid`` the query uses: a verdict needs all tables of its
    run. What cannot be read, and a copy of a run, is left out and put into ``unreadable`` with the reason. Raises :class:`InputError` for bad SQL, for
    anything but one SELECT, and when there are no runs.
    """
    import duckdb

    from .reader import list_experiments, without_copies

    left_out: dict[Path, str] = {} if unreadable is None else unreadable
    experiments = list_experiments(root, left_out)
    for experiment in experiments:
        left_out.update(experiment.unreadable)
    runs, copies = without_copies([run for experiment in experiments for run in experiment.runs])
    left_out.update(copies)
    if not runs:
        raise InputError(
            f"there are no finished runs in {root}",
            remedy="run `pgdyno compare`, or name another folder with --results",
        )
    judge = _lenient(judge, left_out)
    try:
        try:
            return _answer(root, sql, judge, runs, {})
        except duckdb.Error as error:
            # Each file is looked at only here: whole, because what is damaged may be anywhere in it.
            of_the_text = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
            damaged = {} if isinstance(error, of_the_text) else _damaged(_views_used(sql), runs)
            if not damaged:
                raise
            left_out.update(damaged)
            return _answer(root, sql, judge, runs, damaged)
    except duckdb.Error as error:
        raise InputError(
            f"the query failed: {str(error).strip()}",
            remedy="`pgdyno query --help` lists the views, `pgdyno query 'DESCRIBE latency'` a view's columns",
            code="query.failed",
        ) from error


def _answer(root: Path, sql: str, judge: Judge, runs: list[StoredRun], damaged: Mapping[Path, str]) -> QueryResult:
    """The rows of a query over runs, without files that are damaged."""
    import duckdb

    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        _refuse_all_but_one_select(connection, sql)
        _create_runs(connection, runs, judge)
        for view in _views_used(sql):
            _create_view(connection, view, runs, damaged)
        _fence(connection, root)
        cursor = connection.execute(sql)
        columns = tuple(column[0] for column in cursor.description or ())
        return QueryResult(columns, tuple(cursor.fetchall()))


def _damaged(views: Sequence[str], runs: Sequence[StoredRun]) -> dict[Path, str]:
    """Files of these views that cannot be read, and why."""
    document = {}
    for run in runs:
        for table in (tables.VIEWS[view] for view in views):
            if run.has(table) and (why := run.damaged(table)) is not None:
                document[_file_of(run, table)] = why
    return document


def _file_of(run: StoredRun, table: str) -> Path:
    return run.path / f"{table}.parquet"


def _lenient(judge: Judge, left_out: dict[Path, str]) -> Judge:
    """A judge to whom a run with a damaged file is invalid for that reason."""

    def judged(run: StoredRun) -> Sequence[str]:
        try:
            return judge(run)
        except InputError as error:
            left_out[run.path] = error.message
            return (error.message,)

    return judged


def _refuse_all_but_one_select(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(
            "the results are read-only: a query is one SELECT (or DESCRIBE, SUMMARIZE, SHOW TABLES)",
            remedy="write the output to a file with `pgdyno query ... --csv > FILE`",
        )


def _fence(connection: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Let the query read the results and nothing else: no other file, no address, none of this program's variables."""
    allowed = ", ".join(_quoted(f"{folder}/") for folder in dict.fromkeys((root, root.resolve())))
    connection.execute(f"SET allowed_directories = [{allowed}]")
    for setting in ("enable_external_access", "python_enable_replacements"):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")


def _views_used(sql: str) -> list[str]:
    """Views that the text names, or all when it names none (``SHOW TABLES``): opening thousands of files takes time."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [view for view in tables.VIEWS if view in words] or list(tables.VIEWS)


def _create_runs(connection: duckdb.DuckDBPyConnection, runs: list[StoredRun], judge: Judge) -> None:
    from duckdb import sqltypes

    facts = [name for name in RUNS_COLUMNS if name not in ("valid", "why_invalid")]
    connection.execute(f"CREATE SCHEMA {_FACTS.partition('.')[0]}")
    connection.execute(f"CREATE TABLE {_FACTS} ({', '.join(f'{name} {RUNS_COLUMNS[name]}' for name in facts)})")
    insert = f"INSERT INTO {_FACTS} VALUES ({', '.join('?' * len(facts))})"
    connection.executemany(insert, [[row[name] for name in facts] for row in map(_facts, runs)])
    by_path = {str(run.path): run for run in runs}
    verdict = cache(lambda path: "; ".join(judge(by_path[path])))
    connection.create_function(_VERDICT, verdict, [sqltypes.VARCHAR], sqltypes.VARCHAR)
    columns = {name: name for name in RUNS_COLUMNS} | {
        "valid": f"{_VERDICT}(path) = '' AS valid",
        "why_invalid": f"nullif({_VERDICT}(path), '') AS why_invalid",
    }
    connection.execute(f"CREATE VIEW {RUNS_VIEW} AS SELECT {', '.join(columns.values())} FROM {_FACTS}")


def _facts(run: StoredRun) -> dict[str, Any]:
    """The row of a run, without its verdict."""
    import datetime as dt

    record = run.record
    measure, account = record.measure, record.account
    begun_at = dt.datetime.fromtimestamp(record.anchor.unix_ns / 1e9, dt.UTC).replace(tzinfo=None)
    return {
        **record.model_dump(include={"experiment_id", "run_id", "arm", "block", "arm_index", "position", "seed"}),
        **account.model_dump(),
        "begun_at": begun_at,
        "measure_begin_ns": measure.begin_ns,
        "measure_end_ns": measure.end_ns,
        "measure_s": measure.seconds,
        "tps": account.succeeded / measure.seconds if measure.seconds else None,
        "postgres_version": record.postgres.version,
        "factors": json.dumps(record.factors),
        "workload": json.dumps(record.workload),
        "world": record.world.model_dump_json(),
        "path": str(run.path),
    }


def _create_view(
    connection: duckdb.DuckDBPyConnection, view: str, runs: list[StoredRun], damaged: Mapping[Path, str]
) -> None:
    table = tables.VIEWS[view]
    having = [run for run in runs if run.has(table) and _file_of(run, table) not in damaged]
    keys = ", ".join(f"r.{key}" for key in _KEYS)
    if not having:
        connection.register("nothing", tables.empty(table))
        create = f"CREATE TABLE {view} AS SELECT {keys}, t.* FROM {RUNS_VIEW} r, nothing t"
        connection.execute(create)
        connection.unregister("nothing")
        return
    files = [str(_file_of(run, table)) for run in having]
    listed = ", ".join(_quoted(file) for file in files)
    text = f"SELECT * FROM read_parquet([{listed}], union_by_name = true, filename = true, hive_partitioning = false)"
    connection.execute(
        f"CREATE VIEW {view} AS SELECT {keys}, t.* EXCLUDE (filename)"
        f" FROM ({text}) t JOIN {RUNS_VIEW} r ON t.filename = r.path || '/{table}.parquet'"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

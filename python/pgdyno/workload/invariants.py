"""Proofs that the server did what the driver counted.

pgbench's cheap ones read the small tables only (branches, tellers, this run's history, in cache when the run ends): row
counts, sums of balances, and that history grew by exactly the number of transactions that succeeded. ``full`` adds
the accounts, by one scan of the largest table: 16 s for each 2 GB on a gp3 volume of 125 MiB/s, so it is asked
for, on one run of an arm, and not made by default.

Of sysbench's tables, and of files that were loaded, the rows are counted, which is a scan of all of them: without ``full`` only while they are few.

What a script of the user's does is not known, and idle clients do nothing: of these nothing is checked here.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.errors import HostError, InputError
from pgdyno.store.record import BulkLoadRecord, Check
from pgdyno.workload.spec import ROWS_PER_SCALE, Server, WorkloadAsked, WorkloadSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from pgdyno.workload.outcome import Outcome

SYSBENCH_ROWS_COUNTED_MAX = 2_000_000
"""Rows of all tables that are counted unasked: about 0.5 GB of sysbench's, so some seconds on the slowest of the usual volumes."""

_SMALL = """
SELECT (SELECT count(*) FROM pgbench_branches), (SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches),
       (SELECT count(*) FROM pgbench_tellers), (SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers),
       (SELECT count(*) FROM pgbench_history), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
"""
_ACCOUNTS = "SELECT count(*), coalesce(sum(abalance), 0) FROM pgbench_accounts"


@dataclass(frozen=True)
class Baseline:
    """State of the tables before a run. The default is that of tables just loaded (or of a clone of them)."""

    branches_balance: int = 0
    tellers_balance: int = 0
    history_rows: int = 0
    history_delta: int = 0
    accounts_balance: int = 0
    sysbench_rows: int | None = None
    """Rows of all of sysbench's tables; None: as many as were loaded."""


@dataclass(frozen=True)
class _Small:
    branches: int
    branches_balance: int
    tellers: int
    tellers_balance: int
    history_rows: int
    history_delta: int


def read_baseline(server: Server, asked: WorkloadAsked | None = None, *, full: bool = False) -> Baseline:
    """Read the state before a run on tables that were used before; ``full`` for a later ``full`` check.

    Which tables these are is what the workload asks for; pgbench's unless it is said.
    """
    if asked is not None and asked.kind == "sysbench":
        counted = full or asked.tables * asked.rows <= SYSBENCH_ROWS_COUNTED_MAX
        return Baseline(sysbench_rows=_sysbench_rows(server, asked.tables) if counted else None)
    if asked is not None and asked.kind != "pgbench":
        return Baseline()
    small, accounts = _read(server, full=full)
    return Baseline(
        branches_balance=small.branches_balance,
        tellers_balance=small.tellers_balance,
        history_rows=small.history_rows,
        history_delta=small.history_delta,
        accounts_balance=accounts[1] if accounts else 0,
    )


def check(
    server: Server, outcome: Outcome, *, baseline: Baseline | None = None, full: bool = False
) -> tuple[Check, ...]:
    """Compare the tables to what the driver counted. Call it when it has ended and nobody else writes.

    Clients that were lost may have committed a transaction they never counted: then history may have up to one row
    more for each of them.
    """
    before = baseline or Baseline()
    if outcome.bulk_load is not None:
        return tuple(_bulk_load(server, outcome.bulk_load, full=full))
    if outcome.spec.kind == "sysbench":
        return _sysbench(server, outcome, before, full=full)
    return _pgbench(server, outcome, before, full=full) if outcome.spec.kind == "pgbench" else ()


def _pgbench(server: Server, outcome: Outcome, before: Baseline, *, full: bool) -> tuple[Check, ...]:
    spec = outcome.spec
    small, accounts = _read(server, full=full)
    delta = small.history_delta - before.history_delta
    checks = [
        _rows("pgbench_branches", small.branches, spec),
        _rows("pgbench_tellers", small.tellers, spec),
        _history(small.history_rows - before.history_rows, outcome),
        _balances(
            spec,
            small.branches_balance - before.branches_balance,
            small.tellers_balance - before.tellers_balance,
            delta,
        ),
    ]
    if accounts is not None:
        balance = accounts[1] - before.accounts_balance
        checks += [
            _rows("pgbench_accounts", accounts[0], spec),
            Check(
                name="accounts_balance",
                ok=balance == delta,
                detail=f"accounts changed by {balance:,}, history says {delta:,}",
            ),
        ]
    return tuple(checks)


@contextlib.contextmanager
def _counting(server: Server) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A session that counts, which may take longer than the role's statement_timeout; errors say what the server said."""
    import psycopg

    try:
        with psycopg.connect(server.dsn) as connection:
            connection.execute("SET LOCAL statement_timeout = 0")  # not for the session, which a pooler may hand on
            yield connection
    except psycopg.Error as error:
        told = f"the workload's tables cannot be counted: {' '.join(str(error).split())}"
        if isinstance(error, psycopg.ProgrammingError):  # no such table, no right to read it
            raise InputError(told, remedy="make the tables first, and let the role read them") from error
        raise HostError(told, remedy="look at the server's log") from error


def _read(server: Server, *, full: bool) -> tuple[_Small, tuple[int, int] | None]:
    with _counting(server) as connection:
        row = connection.execute(_SMALL).fetchone()
        assert row is not None
        accounts = connection.execute(_ACCOUNTS).fetchone() if full else None
    return _Small(*(int(value) for value in row)), (int(accounts[0]), int(accounts[1])) if accounts else None


def _rows(table: str, found: int, spec: WorkloadSpec) -> Check:
    wanted = ROWS_PER_SCALE[table] * spec.scale
    return Check(name=f"{table}_rows", ok=found == wanted, detail=f"{found:,} rows, {wanted:,} were loaded")


def _history(grown: int, outcome: Outcome) -> Check:
    return Check(
        name="history_rows",
        ok=outcome.writes_total <= grown <= outcome.writes_total + outcome.uncounted_max,
        detail=f"history grew by {grown:,} rows, {outcome.writes_total:,} writing transactions succeeded",
    )


def _balances(spec: WorkloadSpec, branches: int, tellers: int, delta: int) -> Check:
    """tpcb-like changes branches and tellers by what it writes to history; the other scripts leave them alone."""
    names = {name for name, _ in spec.scripts}
    detail = f"branches changed by {branches:,}, tellers by {tellers:,}, history says {delta:,}"
    if "tpcb-like" not in names:
        ok = branches == tellers == 0
        detail += "; this workload leaves branches and tellers alone"
    elif "simple-update" in names:
        ok = branches == tellers
        detail += "; simple-update writes to history alone"
    else:
        ok = branches == tellers == delta
    return Check(name="balances", ok=ok, detail=detail)


def _sysbench(server: Server, outcome: Outcome, before: Baseline, *, full: bool) -> tuple[Check, ...]:
    """Every test but two leaves as many rows as there were: what it deletes it inserts again."""
    spec, succeeded = outcome.spec, outcome.account_total.succeeded
    loaded = spec.tables * spec.rows
    if not full and loaded > SYSBENCH_ROWS_COUNTED_MAX:
        return ()
    were = loaded if before.sysbench_rows is None else before.sysbench_rows
    grown = _sysbench_rows(server, spec.tables) - were
    if spec.test == "oltp_insert":
        ok = succeeded <= grown <= succeeded + outcome.uncounted_max
        expected = f"{succeeded:,} transactions inserted one each"
    elif spec.test == "oltp_delete":
        # A row that is gone already is deleted without an effect, and without an error.
        ok = -(succeeded + outcome.uncounted_max) <= grown <= 0
        expected = f"{succeeded:,} transactions deleted at most one each"
    else:
        ok, expected = grown == 0, "this test leaves as many as there were"
    detail = f"{were:,} rows in {spec.tables} tables changed by {grown:+,}; {expected}"
    return (Check(name="sysbench_rows", ok=ok, detail=detail),)


def _bulk_load(server: Server, loaded: BulkLoadRecord, *, full: bool) -> Iterator[Check]:
    """Every table has the rows that the loader says came in."""
    from psycopg import sql

    told = {one.table: one.rows for one in loaded.tables}
    if not full and sum(told.values()) > SYSBENCH_ROWS_COUNTED_MAX:
        return
    counted = {}
    with _counting(server) as connection:
        for table in told:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
            counted[table] = 0 if row is None else int(row[0])
    wrong = [
        f"{table} has {counted[table]:,} rows, {rows:,} came in"
        for table, rows in told.items()
        if counted[table] != rows
    ]
    detail = ", ".join(wrong) or f"{len(told)} tables have the {sum(told.values()):,} rows that came in"
    yield Check(name="table_rows", ok=not wrong, detail=detail)


def _sysbench_rows(server: Server, tables: int) -> int:
    with _counting(server) as connection:
        return sum(_count(connection, number) for number in range(1, tables + 1))


def _count(connection: psycopg.Connection[tuple[Any, ...]], number: int) -> int:
    from psycopg import sql

    query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(f"sbtest{number}"))
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])

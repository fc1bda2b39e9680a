"""Proofs that the server did what pgbench counted.

The cheap ones read the small tables only (branches, tellers, this run's history, in cache when the run ends): row
counts, sums of balances, and that history grew by exactly the number of transactions that succeeded. ``full`` adds
the accounts, by one scan of the largest table: 16 s for each 2 GB on a gp3 volume of 125 MiB/s, so it is asked
for, on one run of an arm, and not made by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.store.record import Check
from pgdyno.workload.spec import ROWS_PER_SCALE, PgbenchSpec, Server

if TYPE_CHECKING:
    from pgdyno.workload.pgbench import PgbenchOutcome

_SMALL = """
SELECT (SELECT count(*) FROM pgbench_branches), (SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches),
       (SELECT count(*) FROM pgbench_tellers), (SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers),
       (SELECT count(*) FROM pgbench_history), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
"""
_ACCOUNTS = "SELECT count(*), coalesce(sum(abalance), 0) FROM pgbench_accounts"


@dataclass(frozen=True)
class Baseline:
    """State of the small tables before a run. The default is that of tables just loaded (or of a clone of them)."""

    branches_balance: int = 0
    tellers_balance: int = 0
    history_rows: int = 0
    history_delta: int = 0
    accounts_balance: int = 0


@dataclass(frozen=True)
class _Small:
    branches: int
    branches_balance: int
    tellers: int
    tellers_balance: int
    history_rows: int
    history_delta: int


def read_baseline(server: Server, *, full: bool = False) -> Baseline:
    """Read the state before a run on tables that were used before; ``full`` for a later ``full`` check."""
    small, accounts = _read(server, full=full)
    return Baseline(
        branches_balance=small.branches_balance,
        tellers_balance=small.tellers_balance,
        history_rows=small.history_rows,
        history_delta=small.history_delta,
        accounts_balance=accounts[1] if accounts else 0,
    )


def check(
    server: Server, outcome: PgbenchOutcome, *, baseline: Baseline | None = None, full: bool = False
) -> tuple[Check, ...]:
    """Compare the tables to what pgbench counted. Call it when pgbench has ended and nobody else writes.

    Clients that were lost may have committed a transaction they never counted: then history may have up to one row
    more for each client.
    """
    before = baseline or Baseline()
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


def _read(server: Server, *, full: bool) -> tuple[_Small, tuple[int, int] | None]:
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as connection:
        row = connection.execute(_SMALL).fetchone()
        assert row is not None
        accounts = connection.execute(_ACCOUNTS).fetchone() if full else None
    return _Small(*(int(value) for value in row)), (int(accounts[0]), int(accounts[1])) if accounts else None


def _rows(table: str, found: int, spec: PgbenchSpec) -> Check:
    wanted = ROWS_PER_SCALE[table] * spec.scale
    return Check(name=f"{table}_rows", ok=found == wanted, detail=f"{found:,} rows, {wanted:,} were loaded")


def _history(grown: int, outcome: PgbenchOutcome) -> Check:
    uncounted = outcome.spec.clients if outcome.exit_code else 0
    return Check(
        name="history_rows",
        ok=outcome.writes_total <= grown <= outcome.writes_total + uncounted,
        detail=f"history grew by {grown:,} rows, {outcome.writes_total:,} writing transactions succeeded",
    )


def _balances(spec: PgbenchSpec, branches: int, tellers: int, delta: int) -> Check:
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

"""Whether both drivers ask the server for the same: statements, commits, and bytes of WAL, for each transaction."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from pydantic import BaseModel

from pgdyno.machine.waiting import wait_until
from tools.equivalence import drivers
from tools.equivalence.workloads import WAREHOUSES, Length

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.equivalence.bench import Bench
    from tools.equivalence.drivers import Side
    from tools.equivalence.workloads import Workload

LOGGED = Length(clients=1, transactions=200)
"""Statements are counted in the server's log; few, since it is slow."""
WEIGHED = Length(clients=1, transactions=10_000)
"""Enough that the pages which are logged whole, by chance more or fewer, are the same to a part of 1 %."""
LOGGED_MIXED = Length(clients=WAREHOUSES, transactions=500)
WEIGHED_MIXED = Length(clients=WAREHOUSES, transactions=20_000)
"""Where types are drawn, a client for each warehouse: a single one would have both by one driver, and write twice as many pages whole."""
OWN_SHARE, OWN_SHARE_MIXED = 0.5, 0.005
"""A statement in fewer transactions is a driver's own; the rarest of a deck of 23 is in one of 23."""
STANDARD_ERRORS = 4.0
"""By which drivers may differ where types of transaction are drawn. A transaction's WAL varies about as much as its mean: a
New-Order writes it, a Stock-Level none."""
WAL_ERROR = 0.01
"""Values are drawn by different generators: which pages are changed, and how often twice, differs by chance."""
WAL_BYTES_FEW = 2.0
"""A transaction that only reads writes none; what is left is the server's own, spread over all of them."""
COMMITS_MORE = 0.005
"""Of a driver's own before it begins: sysbench prepares each statement of each table, forty of them, in a transaction apart."""
_LOGGED = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")
_STATS_S = 30.0
_COMMITS = "SELECT xact_commit FROM pg_stat_database WHERE datname = %s"
_WAL = "SELECT pg_current_wal_insert_lsn()::text"
_WAL_SINCE = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)::float8"


class Asked(BaseModel, frozen=True):
    """What one driver asks the server for, a transaction."""

    statements: dict[str, float]
    """Statement with its values taken out -> how often."""
    commits: float
    wal_bytes: float
    drawn: int = 0
    """Transactions whose types were drawn, so that two drivers differ by chance; 0 where all send the same."""
    weighed: int = 0
    """The same of those whose WAL was weighed."""


def asked(bench: Bench, workload: Workload, side: Side) -> Asked:
    """Have a driver work twice on a fresh clone: logged, and weighed."""
    bench.restore(workload)
    _log(bench, "all")
    begin = len(bench.cluster.log_path.read_bytes())
    logged, weighed = (LOGGED_MIXED, WEIGHED_MIXED) if workload.mixed else (LOGGED, WEIGHED)
    run = drivers.run(bench, workload, side, 1, logged)
    _log(bench, "none")
    decode = bench.cluster.log_path.read_bytes()[begin:].decode(errors="replace")
    drawn = run.transactions if workload.mixed else 0
    counted = statements(decode.splitlines(), run.transactions, OWN_SHARE_MIXED if workload.mixed else OWN_SHARE)
    bench.restore(workload)
    committed, written = int(bench.ask(_COMMITS, bench.database) or 0), str(bench.ask(_WAL))
    run = drivers.run(bench, workload, side, 2, weighed)
    wal_bytes = float(bench.ask(_WAL_SINCE, written))

    def commits() -> int:
        return int(bench.ask(_COMMITS, bench.database)) - committed

    # A session hands in its counts when it ends, which the driver does not wait for.
    wait_until(lambda: commits() >= run.transactions, _STATS_S)
    return Asked(
        statements=counted,
        commits=commits() / run.transactions,
        wal_bytes=wal_bytes / run.transactions,
        drawn=drawn,
        weighed=run.transactions if workload.mixed else 0,
    )


def statements(lines: Iterable[str], transactions: int, own_share: float = OWN_SHARE) -> dict[str, float]:
    """How often each statement was executed in a transaction, from the server's log.

    What was asked for in a smaller share of transactions than ``own_share`` is the driver's own, before it begins: the scripts
    here have no such statement.
    """
    counter = Counter(plain(match[1]) for line in lines if (match := _LOGGED.search(line)) is not None)
    return {text: count / transactions for text, count in sorted(counter.items()) if count >= transactions * own_share}


def plain(statement: str) -> str:
    """A statement without its values, so that a parameter, a literal and the number of a table look alike."""
    text = re.sub(r"'(?:[^']|'')*'", "?", statement)
    text = re.sub(r"\$?-?\d+", "?", text)
    return " ".join(text.split()).rstrip("; ")


def differences(original: Asked, native: Asked) -> list[str]:
    """What is not the same, in words; empty where all is."""
    differences = [
        f"`{text}`: {original.statements.get(text, 0.0):g} and {native.statements.get(text, 0.0):g} times"
        for text in sorted(original.statements.keys() | native.statements.keys())
        if _apart(original, native, text)
    ]
    for name, item in (("original", original), ("native", native)):
        if not 1 <= item.commits <= 1 + COMMITS_MORE:
            differences.append(f"{item.commits:.4f} commits a transaction ({name})")
    apart = abs(native.wal_bytes - original.wal_bytes)
    by_chance = STANDARD_ERRORS * math.sqrt(2 / original.weighed) if original.weighed else WAL_ERROR
    if apart > max(WAL_BYTES_FEW, by_chance * original.wal_bytes):
        differences.append(f"{original.wal_bytes:,.1f} and {native.wal_bytes:,.1f} bytes of WAL")
    return differences


def _apart(original: Asked, native: Asked, text: str) -> bool:
    """Whether a statement was executed more often by one driver than by chance."""
    value, other = original.statements.get(text, 0.0), native.statements.get(text, 0.0)
    if not original.drawn or not value or not other:
        return value != other
    return abs(value - other) > STANDARD_ERRORS * math.sqrt(2 * value * (1 - value) / original.drawn)


def _log(bench: Bench, what: str) -> None:
    """Set what the server logs, for sessions that begin from now on."""
    with bench.cluster.connect() as connection:
        connection.execute(f"ALTER DATABASE {bench.database} SET log_statement = '{what}'".encode())

"""The reference's page on the workloads derived from TPC-C and TPC-H, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.measured import claims_table
from tools.reference import markdown as md
from tools.tpc.before import COMMIT
from tools.tpc.installed import WAREHOUSES
from tools.tpc.nopm import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.equivalence.record import Record as Equivalence
    from tools.fidelity.claim import Claim
    from tools.tpc.record import Beside, Record

_HEAD = f"""# What the workloads derived from TPC-C and TPC-H cost

`make bench ONLY=tpc` measures again all that has no option of its own below, and writes this page; the record stays as JSON in `results/tpc/`.

- **Loads**: `pgdyno-engine fill` with two sessions, and two sessions that COPY the same rows from files on the server's own disk, with the
  same vacuum, keys, indexes and references. One after the other in an order that is drawn for each pair, on a volume in memory.
- **CPU of the driver**: user and system time of the whole process for each transaction, beside pgbench with the same five statements,
  weights 10/10/1/1/1, four clients on one thread.
- **Memory over time**: `python -m tools.tpc --memory 30`, one run of so many minutes at 1,000 transactions a second; its claim is there once it was made.
- **Streams**: the process that asks ten streams of queries, from the first query to the last. What a query and its rows cost it does not depend on
  how long the query takes, so the share is smaller with more data: the scale factor belongs to it.
- **Loads against an older engine**: `python -m tools.tpc --before COMMIT_OR_BINARY`, loads of pgbench's and sysbench's tables by that engine and
  by today's, in turns; the claims are there once it was measured. At commit `{COMMIT}` the loader wrote a table row by row.
- **Beside HammerDB**: `python -m tools.tpc --hammerdb` where `HAMMERDB_HOME` names an installed one: it builds its schema of {WAREHOUSES} warehouses, pgdyno fills its own,
  as HammerDB loads it (how full pages are decides how many updates stay on their page), and both routines of a type are called with the same values, without pages that are
  logged whole. NOPM are those of {CLIENTS} clients, each with a warehouse of its own, for a minute after a minute of warm-up: once with commits of 30 ms (bound by commits),
  once on a server that has one CPU to itself and does not wait for commits (bound by CPU). With commits of 5 ms and one client HammerDB's NOPM were 5 to 7 % lower than
  pgdyno's, because its own process takes 0.3 ms more for a transaction.
- **TPC-C beside pgbench**: as in [the record of equivalence](equivalence.md), profile `hammerdb`.
"""


def render(record: Record, judged: Sequence[Claim], compared: Equivalence | None = None) -> str:
    """The page. ``compared`` may be of another engine, which is said."""
    where = (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, on {record.cores} cores, Linux {record.kernel}, PostgreSQL {record.postgres};"
        f" engine {record.build_hash[:12]}."
    )
    if compared is not None and compared.build_hash != record.build_hash:
        where += f" Beside pgbench: engine {compared.build_hash[:12]}."
    parts = [
        f"- {part}: {item.begin:%Y-%m-%d %H:%M} UTC, engine {item.build_hash[:12]}."
        for part, item in sorted(record.apart.items())
    ]
    apart = ["Measured alone, later than the rest or with another engine:\n", *parts, ""] if parts else []
    head = [_HEAD, f"{where}\n", *apart, "## Claims\n", claims_table(judged), "\n## Loads\n", _loads(record)]
    beside = (
        []
        if record.hammerdb is None
        else [f"\n## Beside HammerDB {record.hammerdb.version}\n", _beside(record.hammerdb)]
    )
    return "\n".join([*head, *beside, ""])


def _beside(one: Beside) -> str:
    """A row for each type and what it changes; the last ones are of the runs."""
    rows = [
        [kind.type, what, *(f"{each:,.2f}" for each in (theirs, ours)), f"{kind.apart()[what]:+.2%}"]
        for kind in one.types
        for what, theirs, ours in kind.both()
    ]
    runs = [
        [
            "New-Orders per minute",
            f"bound by {pair.bound}",
            f"{pair.theirs:,.0f}",
            f"{pair.ours:,.0f}",
            f"{pair.ours / pair.theirs - 1:+.2%}",
        ]
        for pair in one.nopm
    ]
    return md.table(["type", "of a call", "HammerDB", "pgdyno", "apart"], [*rows, *runs])


def _loads(record: Record) -> str:
    rows = [
        [
            name,
            f"{pair.native_s:.1f}",
            f"{pair.copy_s:.1f}",
            f"{pair.native_s / pair.copy_s:.3f}",
            f"{pair.peak_kib / 1024:.0f}",
        ]
        for name, load in record.loads.items()
        for pair in load.pairs
    ]
    return md.table(["tables", "pgdyno, s", "COPY, s", "ratio", "peak memory, MiB"], rows)

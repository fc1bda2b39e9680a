"""The reference's page on the workloads derived from TPC-C and TPC-H, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.measured import claims_table
from tools.reference import markdown as md
from tools.tpc.before import COMMIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.equivalence.record import Record as Equivalence
    from tools.fidelity.claim import Claim
    from tools.tpc.record import Record

_HEAD = f"""# What the workloads derived from TPC-C and TPC-H cost

`make bench ONLY=tpc` measures all of it again and writes this page; the record stays as JSON in `results/tpc/`.

- **Loads**: `pgdyno-engine fill` with two sessions, and two sessions that COPY the same rows from files on the server's own disk, with the
  same vacuum, keys, indexes and references. One after the other in an order that is drawn for each pair, on a volume in memory.
- **CPU of the driver**: user and system time of the whole process for each transaction, beside pgbench with the same five statements,
  weights 10/10/1/1/1, four clients on one thread.
- **Memory over time**: `python -m tools.tpc --memory 30`, one run of so many minutes at 1,000 transactions a second; its claim is there once it was made.
- **Streams**: the process that asks ten streams of queries, from the first query to the last. What a query and its rows cost it does not depend on
  how long the query takes, so the share is smaller with more data: the scale factor belongs to it.
- **Loads against an older engine**: `python -m tools.tpc --before COMMIT_OR_BINARY`, loads of pgbench's and sysbench's tables by that engine and
  by today's, in turns; the claims are there once it was measured. At commit `{COMMIT}` the loader wrote a table row by row.
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
    return "\n".join([_HEAD, f"{where}\n", "## Claims\n", claims_table(judged), "\n## Loads\n", _loads(record), ""])


def _loads(record: Record) -> str:
    rows = [
        [
            name,
            f"{pair.native_s:.1f}",
            f"{pair.copy_s:.1f}",
            f"{pair.native_s / pair.copy_s:.3f}",
            f"{pair.peak_kib / 1024:.0f}",
        ]
        for name, one in record.loads.items()
        for pair in one.pairs
    ]
    return md.table(["tables", "pgdyno, s", "COPY, s", "ratio", "peak memory, MiB"], rows)

"""The reference's page on the workloads derived from TPC-C and TPC-H, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim
    from tools.tpc.record import Record

_HEAD = """# What the workloads derived from TPC-C and TPC-H cost

`make bench ONLY=tpc` measures all of it again and writes this page; the record stays as JSON in `results/tpc/`.

- **Loads**: `pgdyno-engine fill` with two sessions, and two sessions that COPY the same rows from files on the server's own disk, with the
  same vacuum, keys, indexes and references. One after the other in an order that is drawn for each pair, on a volume in memory.
- **CPU of the driver**: user and system time of the whole process for each transaction, beside pgbench with the same five statements,
  weights 10/10/1/1/1, four clients on one thread.
- **Memory over time**: `python -m tools.tpc --memory 30`, one run of so many minutes at 1,000 transactions a second; its claim is there once it was made.
- **Streams**: the process that asks ten streams of queries, from its start to its end. It takes about 0.3 s of CPU for 220 queries, most
  of it before the first; so the share is one of streams that last a minute and more.
- **TPC-C beside pgbench**: as in [the record of equivalence](equivalence.md), profile `hammerdb`.
"""


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The page."""
    where = (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, on {record.cores} cores, Linux {record.kernel}, PostgreSQL {record.postgres};"
        f" engine {record.build_hash[:12]}.\n"
    )
    return "\n".join([_HEAD, where, "## Claims\n", claims_table(judged), "\n## Loads\n", _loads(record), ""])


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

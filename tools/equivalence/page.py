"""The reference's page on equivalence, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.equivalence import claims, ratio, record
from tools.equivalence.workloads import CLIENTS, ROWS, SCALE, TABLES
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.equivalence.record import Record, Result
    from tools.fidelity.claim import Claim

_HEAD = f"""# Equivalence

pgdyno's driver beside the programs that define the workloads, on one server. `make bench ONLY=equivalence` measures all of it again and
writes this page; every run stays in `results/equivalence/`.

- Driver and server have a CPU each. The server's files are in memory, so the driver and the server's CPU are all there is to wait for.
- Every run starts on a fresh clone of the database, all of it in shared buffers, after a checkpoint.
- Runs come in blocks of three, in an order that is drawn: the original, the original again, pgdyno's driver, with {CLIENTS} clients in a
  closed loop. Blocks are added (at least {ratio.PAIRS_MIN}) until both intervals are within ± {record.HALF_WIDTH_MAX:.1%}.
- **itself** is the original's second run against its first: what this bench can tell apart, and it has to pass first. **native** is pgdyno's
  driver against the mean of the two. Ratios of transactions a second, paired by block, with their 95 % intervals.
- The server's CPU does more in one ten seconds than in the next. How much is measured meanwhile by a piece of work that never changes,
  and the ratios are those of runs of equal pace ([ratio.py](../../tools/equivalence/ratio.py)).
- pgbench's tables are of scale {SCALE}, sysbench's {TABLES} of {ROWS:,} rows.
"""
_SAME = """What one client made the server do, with the values taken out: statements from its log, commits by its own count, WAL by its
position. Values come from different generators, so which pages are logged whole differs by chance.
"""


def render(found: Record, judged: Sequence[Claim]) -> str:
    """The page."""
    parts = [_HEAD, _where(found), "## Transactions a second\n", _speed(found.results)]
    if found.missing:
        parts.append("\n".join(f"Not measured: `{name}`: {why}." for name, why in found.missing.items()) + "\n")
    parts += ["## What the server is asked\n", _SAME, _asked(found.results), "## Claims\n", _claims(judged)]
    return "\n".join(parts)


def _where(found: Record) -> str:
    programs = [f"PostgreSQL {found.postgres} and its pgbench", *([found.sysbench] if found.sysbench else [])]
    return (
        f"Measured on {found.begin:%d %B %Y}: {found.processor}, Linux {found.kernel}; {', '.join(programs)};"
        f" {found.seconds} s a run; engine `{found.build_hash}`.\n"
    )


def _speed(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        tps = [sum(values) / len(result.blocks) for values in _columns(result)]
        rows.append(
            [
                f"{md.code(result.workload)}, {result.protocol}",
                result.original,
                f"{(tps[0] + tps[1]) / 2:,.0f}",
                f"{tps[2]:,.0f}",
                claims.words(result.itself()),
                claims.words(result.native()),
            ]
        )
    return md.table(["workload", "original", "its TPS", "native TPS", "itself", "native"], rows) + "\n"


def _columns(result: Result) -> list[list[float]]:
    return [[getattr(block, turn).tps for block in result.blocks] for turn in record.TURNS]


def _asked(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        for name, asked in ((result.original, result.asked_original), ("native", result.asked_native)):
            rows.append(
                [
                    md.code(result.workload) if name != "native" else "",
                    name,
                    f"{sum(asked.statements.values()):g}",
                    str(len(asked.statements)),
                    f"{asked.commits:.4f}",
                    f"{asked.wal_bytes:,.1f}",
                ]
            )
    return md.table(["workload", "driver", "statements", "different ones", "commits", "WAL bytes"], rows) + "\n"


def _claims(judged: Sequence[Claim]) -> str:
    rows = [[one.name, one.bar, one.found, "yes" if one.holds else "**no**"] for one in judged]
    return md.table(["claim", "bar", "found", "holds"], rows) + "\n"

"""The reference's page on equivalence, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.equivalence import claims, record, turns
from tools.equivalence.workloads import CLIENTS, ROWS, SCALE, TABLES
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.equivalence.record import Record, Result
    from tools.fidelity.claim import Claim

_HEAD = f"""# Equivalence

pgdyno's driver beside the programs that define the workloads, on one server. `make bench ONLY=equivalence` measures all of it again and
writes this page; every run stays in `results/equivalence/`.

- Driver and server have a CPU each. The server's files are in memory, so the driver and the server's CPU are all there is to wait for.
- Every run has a fresh clone of the database to itself, all of it in shared buffers, after a checkpoint.
- Runs come in blocks of three: the original, the original again, pgdyno's driver, with {CLIENTS} clients each in a closed loop. They take turns
  of {turns.TURN_S * 1000:g} ms, in an order that is drawn for each round, stopped (SIGSTOP) while another works; a run's transactions a
  second are those of its own turns ([turns.py](../../tools/equivalence/turns.py)): this machine's pace changes by a fifth within a
  second, and so it does for all three. Each block is done three times over, so that each run has had each clone: where a clone lies in
  memory makes some per cent.
- Blocks are added (from {record.PAIRS_MIN} to {record.PAIRS_MAX}) until both intervals are within ± {record.HALF_WIDTH_MAX:.1%}, and each is wholly inside the bar's band or
  wholly outside. Both are looked at after each block, so one that ends close to an edge is less certain than its 95 %.
- **itself** is the original's second run against its first: what this bench can tell apart, and it has to pass first. **native** is pgdyno's
  driver against the mean of the two. Ratios of transactions a second, paired by block, with their 95 % intervals.
- Debian's sysbench has no script of the transaction before 1.0 (`legacy`): unless one is installed, the original is sysbench's machine with
  [our words](../../tools/equivalence/legacy.lua) of it.
- pgbench's tables are of scale {SCALE}, sysbench's {TABLES} of {ROWS:,} rows.
"""
_SAME = """What one client made the server do, with the values taken out: statements from its log, commits by its own count, WAL by its
position. Values come from different generators, so which pages are logged whole differs by chance.
"""


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The page."""
    parts = [_HEAD, _where(record), "## Transactions a second\n", _speed(record.results)]
    if record.missing:
        parts.append("\n".join(f"Not measured: `{name}`: {why}." for name, why in record.missing.items()) + "\n")
    texts = ["## What the server is asked\n", _SAME, _asked(record.results)]
    parts += [*texts, "## Claims\n", claims_table(judged) + "\n"]
    return "\n".join(parts)


def _where(record: Record) -> str:
    idle = "idle CPUs poll" if record.awake else "idle CPUs sleep"
    programs = [f"PostgreSQL {record.postgres} and its pgbench", *([record.sysbench] if record.sysbench else [])]
    return (
        f"Measured on {record.begin:%d %B %Y}: {record.processor}, Linux {record.kernel}; {', '.join(programs)};"
        f" {record.seconds} s of work a run; {idle}; engine `{record.build_hash}`.\n"
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
    return [[getattr(block, turn) for block in result.blocks] for turn in record.TURNS]


def _asked(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        for name, item in ((result.original, result.asked_original), ("native", result.asked_native)):
            rows.append(
                [
                    md.code(result.workload) if name != "native" else "",
                    name,
                    f"{sum(item.statements.values()):g}",
                    str(len(item.statements)),
                    f"{item.commits:.4f}",
                    f"{item.wal_bytes:,.1f}",
                ]
            )
    return md.table(["workload", "driver", "statements", "different ones", "commits", "WAL bytes"], rows) + "\n"

"""The reference's page on what captures and replays cost, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.base.text import UNKNOWN
from tools.captured.measure import IDLE_SPEED, LANES_PER_S, MEMORY_PER_S, REPLAYED
from tools.driver.load import CLIENTS, SCALE
from tools.driver.record import compare
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.captured.record import Beside, Record
    from tools.driver.record import Pair
    from tools.fidelity.claim import Claim

_HEAD = """# What captures and replays cost

`make bench ONLY=captured` measures all of it again and writes this page (`PGDYNO_BENCH_MINUTES=30` watches memory for so long); the record stays as JSON in
`results/captured/`. What it is about: [captures](../concept/capture.md), [replays](../concept/replay.md).

- **Reading**: a csvlog of texts, values and durations of 60 sessions, by `pgdyno capture read`; CPU and peak of the engine, as the child of a small process.
- **CPU a statement**: user and system time of the whole engine by its statements. A relay records what the driver sends: once statement after statement, and once at a rate of Poisson
  arrivals. The first is replayed as fast as it can, the second at its times, each beside the driver with the same script, in an order that is drawn for each pair. A replay learns keys, exchanges them,
  and compares each answer with what was recorded. What a replay takes to begin (it reads its capture and logs in) is a part of its figures.
- **Lateness**: how late a statement is sent for which its session had nothing to wait for but the time.
"""


def render(record: Record, claims: list[Claim]) -> str:
    """The page."""
    return "\n".join(
        [
            _HEAD,
            _where(record),
            "## Claims\n",
            claims_table(claims) + "\n",
            "## CPU\n",
            _cpu(record) + "\n",
            "## Replays\n",
            _replays(record) + "\n",
            "## Recording\n",
            _recording(record),
            "## Beside pgreplay\n",
            _beside(record.beside) + "\n",
        ]
    )


def _where(record: Record) -> str:
    text = (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, on {record.cores} cores, Linux {record.kernel}; {'; '.join(record.versions)}; engine"
        f" {record.build_hash[:12]}. Runs of {record.seconds} s, {CLIENTS} clients, pgbench's tables at scale {SCALE}, over a Unix socket.\n"
    )
    if record.quiet:
        return text
    return (
        text
        + f"\n**Other processes took {record.other_cores:.1f} of {record.cores} cores**: lateness and CPU are worse than on a quiet machine.\n"
    )


def _cpu(record: Record) -> str:
    return (
        "CPU a statement, half of the runs at most, with nothing to wait for but answers:\n\n"
        + _compared(record.pairs)
        + "\n\nAt recorded times, where a statement that waits for its time has a timer and a turn of the CPU of its own, while the driver's statements within a"
        " transaction follow an answer:\n\n" + _compared(record.timed)
    )


def _compared(pairs: Sequence[Pair]) -> str:
    rows = []
    for load in REPLAYED:
        result = compare([pair for pair in pairs if pair.load == load.name])
        cost = [f"{result.native_us:.1f}", f"{result.original_us:.1f}", f"{result.ratio:.2f}"]
        rows.append([f"`{load.name}`", *cost, f"{result.low:.2f} to {result.high:.2f}", str(result.pairs)])
    return md.table(["statements of", "replay, µs", "driver, µs", "ratio", "95 %", "pairs"], rows)


def _replays(record: Record) -> str:
    named = {
        "as fast as it can": record.fastest,
        f"at {IDLE_SPEED:g} of its speed": record.idle,
        f"{record.many.lanes:,} sessions, {LANES_PER_S:,.0f} statements a second": record.many,
    }
    rows = [
        [
            name,
            f"{item.lanes:,}",
            f"{item.statements:,}",
            f"{item.took_s:.1f}",
            f"{item.cpu_s / item.took_s:.2f}",
            f"{item.per_core_s:,.0f}",
            f"{item.late_us_p99:,.0f}",
            f"{item.peak_kib / 1024:,.0f}" if item.peak_kib else UNKNOWN,
        ]
        for name, item in named.items()
    ]
    header = [
        "replay",
        "lanes",
        "statements",
        "took, s",
        "cores",
        "for each core, 1/s",
        "lateness p99, µs",
        "memory, MiB",
    ]
    held = record.memory.resident_kib
    return (
        md.table(header, rows)
        + f"\n\nMemory of a replay of {MEMORY_PER_S:,.0f} statements a second, {len(held)} seconds: {min(held) / 1024:.1f} to"
        f" {max(held) / 1024:.1f} MiB; from the first quarter, after it had settled, to the last its maximum changed by"
        f" {record.memory.growth_kib:+,} KiB."
    )


def _recording(record: Record) -> str:
    rows = [[f"`{relayed.load}`", f"{relayed.statements:,}", f"{relayed.cpu_us:.1f}"] for relayed in record.relayed]
    more = 1e3 * (record.relayed_ms - record.direct_ms)
    return (
        md.table(["statements of", "recorded", "CPU of the relay a statement, µs"], rows)
        + f"\n\nA lookup that one client sends after the other takes {1e3 * record.direct_ms:.0f} µs over the server's socket, and"
        f" {1e3 * record.relayed_ms:.0f} µs through a relay that records (TCP to the relay, the socket behind it): {more:.0f} µs more.\n"
    )


def _beside(result: Beside | None) -> str:
    """Another tool on the same log."""
    if result is None:
        return "Not measured: pgreplay is not installed here. Where it is, `make bench ONLY=captured` sends one log by both."
    rows = [
        [
            tool.name,
            f"{tool.statements:,}" if tool.statements else f"none: {tool.said}",
            f"{tool.errors:,}" if tool.statements else UNKNOWN,
            f"{tool.orders_missing:,}",
            f"{1e6 * tool.cpu_s / tool.statements:.0f}" if tool.statements else UNKNOWN,
            f"{tool.took_s:.1f}",
            f"{tool.late_s_max:.2f}" if tool.statements else UNKNOWN,
        ]
        for tool in result.tools
    ]
    header = ["tool", "statements", "errors", "orders missing", "CPU a statement, µs", "took, s", "latest, s"]
    return (
        f"One log of an order shop ([experiments/shop](../../experiments/shop)) that gives its orders keys: {result.statements:,} statements of"
        f" {result.transactions:,} transactions in {result.seconds:.0f} s, of which {result.failed:,} failed in production. Each tool sends it to a new copy of the"
        " database. pgreplay 1.2 is given the log without DEALLOCATE, which ends it, and with parameters as PostgreSQL wrote them before version 16.\n\n"
        + md.table(header, rows)
    )

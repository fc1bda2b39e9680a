"""The reference's page on the driver's own cost, from a record."""

from __future__ import annotations

from tools.driver.load import CLIENTS, LOADS, ROWS, SCALE, TABLES
from tools.driver.record import Record, compare
from tools.fidelity.claim import Claim
from tools.reference import markdown as md

_HEAD = """# What the driver costs

CPU that `pgdyno-engine drive` takes of the machine that it drives from, beside the tools that its workloads come from.
`make bench ONLY=drive` measures all of it again and writes this page (`PGDYNO_BENCH_MINUTES=30` watches memory for so long); the
record stays as JSON in `results/driver/`.

- **CPU a transaction**: user and system time of the whole process, from its first instruction to its last, by the number of
  transactions that it says it did. Both tools run one after the other, in an order that is drawn for each pair.
- **ratio**: of the driver's to the original's, the geometric mean over the pairs with its 95 % interval.
- All at an equal rate of Poisson arrivals, prepared statements, over a Unix socket, on one thread where the tool can choose. The
  driver meanwhile keeps whole distributions of every statement; pgbench keeps sums, sysbench one histogram.
"""


def render(record: Record, claims: list[Claim]) -> str:
    """The page."""
    parts = [_HEAD, _where(record), "## Claims\n", _claims(claims), "## CPU\n", _cpu(record)]
    return "\n".join([*parts, "## The driver alone\n", _idle(record), "## Memory\n", _memory(record)])


def _where(record: Record) -> str:
    text = (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, on {record.cores} cores, Linux {record.kernel}; {'; '.join(record.versions)};"
        f" engine {record.build_hash[:12]}. Runs of {record.seconds} s, {CLIENTS} clients; pgbench's tables at scale {SCALE},"
        f" {TABLES} of sysbench's with {ROWS:,} rows.\n"
    )
    return text + "".join(f"Left out: {why}.\n" for why in record.left_out)


def _claims(claims: list[Claim]) -> str:
    rows = [[claim.name, claim.bar, claim.found, "yes" if claim.holds else "**no**"] for claim in claims]
    return md.table_of_figures(["claim", "bar", "found", "holds"], rows, figures=0)


def _cpu(record: Record) -> str:
    rows = []
    for load in LOADS:
        if pairs := record.of(load):
            result = compare(pairs)
            interval = f"{result.low:.2f} to {result.high:.2f}"
            cost = [f"{result.native_us:.1f}", f"{result.original_us:.1f}", f"{result.ratio:.2f}", interval]
            rows.append([f"`{load.name}`", load.original, f"{load.rate_per_s:,}", *cost, str(result.pairs)])
    header = ["workload", "original", "rate, 1/s", "driver, µs", "original, µs", "ratio", "95 %", "pairs"]
    return "CPU a transaction, half of the runs at most:\n\n" + md.table_of_figures(header, rows, figures=6)


def _idle(record: Record) -> str:
    text = "The workload `idle` sends nothing: what it costs is the driver's own, on one thread.\n\n"
    rows = [
        [
            f"{item.rate_per_s:,}",
            f"{item.succeeded / item.duration_s:,.0f}",
            f"{item.cpu_s / item.duration_s:.2f}",
            f"{item.per_core_s:,.0f}",
            f"{item.lag_us_p99:,.0f}",
        ]
        for item in record.idle
    ]
    header = ["scheduled, 1/s", "done, 1/s", "cores", "done for each core, 1/s", "lag p99, µs"]
    return text + md.table_of_figures(header, rows, figures=len(header))


def _memory(record: Record) -> str:
    held = record.memory.resident_kib
    return (
        f"`tpcb-like` as above, {len(held)} seconds: resident memory {min(held) / 1024:.1f} to {max(held) / 1024:.1f} MiB; from the"
        f" first quarter, after it had settled, to the last its maximum changed by {record.memory.growth_kib:+,} KiB.\n"
    )

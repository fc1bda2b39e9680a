"""What is claimed of the driver, judged on a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.equivalence import record, same
from tools.fidelity.claim import Claim

if TYPE_CHECKING:
    from pgdyno.analysis.statistics import Estimate
    from tools.equivalence.record import Record, Result


def judge(record: Record) -> list[Claim]:
    """Every claim, in the order of the workloads."""
    return [claim for result in record.results for claim in _of(result)]


def words(estimate: Estimate) -> str:
    """A ratio with its interval."""
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:.4f} (one pair)"
    return f"{estimate.mean:.4f} ({estimate.low:.4f} to {estimate.high:.4f}, {estimate.n} pairs)"


def _of(result: Result) -> list[Claim]:
    different = same.differences(result.asked_original, result.asked_native)
    count = sum(result.asked_original.statements.values())
    return [
        _ratio(f"{result.workload}: {result.original} against itself", result.itself()),
        _ratio(f"{result.workload}: native against {result.original}", result.native()),
        Claim(
            f"{result.workload}: the same for the server",
            "statements, commits, WAL",
            "; ".join(different) or f"{count:g} statements, {result.asked_native.wal_bytes:,.0f} bytes of WAL",
            not different,
            tuple(different),
        ),
    ]


def _ratio(name: str, estimate: Estimate) -> Claim:
    low, high = record.BAND
    faults = []
    if not record.inside(estimate):
        faults.append(f"the interval is not inside {low:g} to {high:g}")
    if record.half_width(estimate) > record.HALF_WIDTH_MAX:
        faults.append(f"the interval is wider than ± {record.HALF_WIDTH_MAX:.1%}")
    bar = f"inside {low:g} to {high:g}, ± {record.HALF_WIDTH_MAX:.1%}"
    return Claim(name, bar, words(estimate), not faults, tuple(faults))

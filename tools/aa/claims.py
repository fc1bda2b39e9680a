"""What must hold of live experiments."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tools.aa.trials import CHANGE, EQUAL
from tools.fidelity.claim import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.aa.record import Record, Result

ALARMS_MAX = 0.10
"""Twice what the intervals promise. Of so few experiments a bar at 5 % would be broken by chance in one bench of four."""


def judge(record: Record) -> list[Claim]:
    """Enough experiments, few false alarms, and no true difference that is passed over in silence."""
    equal, alarms = record.equal, [item for item in record.equal if item.alarm]
    share = len(alarms) / len(equal) if equal else 0.0
    return [
        Claim("experiments of one volume twice", f"at least {EQUAL}", f"{len(equal)}", len(equal) >= EQUAL,
              tuple(f"{result.key}: {result.broke}" for result in record.results if result.broke is not None)),
        Claim("called different", f"at most {ALARMS_MAX:.0%}", f"{len(alarms)} of {len(equal)} ({share:.0%})",
              bool(equal) and share <= ALARMS_MAX, tuple(said(alarm) for alarm in alarms)),
        _difference(record.different),
    ]  # fmt: skip


def said(result: Result) -> str:
    """An experiment in words."""
    if result.ratio is None or result.low is None or result.high is None:
        return f"{result.key}: no ratio; {result.volumes[1]} against {result.volumes[0]}"
    return f"{result.key}: {result.ratio:.4f} ({result.low:.4f} to {result.high:.4f}); {result.volumes[1]} against {result.volumes[0]}"


def _difference(results: Sequence[Result]) -> Claim:
    counted = Counter(result.outcome for result in results)
    judged = len(results) - counted["no verdict"]
    faults = tuple(f"{said(result)}: {result.outcome}" for result in results if result.outcome in ("missed", "wrong"))
    return Claim(
        f"a true difference of {CHANGE:.0%}",
        "found, or called too small for the budget",
        ", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())) or "none was measured",
        judged > 0 and not faults,
        faults,
    )

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


def judge(found: Record) -> list[Claim]:
    """Enough experiments, few false alarms, and no true difference that is passed over in silence."""
    equal, alarms = found.equal, [one for one in found.equal if one.alarm]
    share = len(alarms) / len(equal) if equal else 0.0
    return [
        Claim("experiments of one volume twice", f"at least {EQUAL}", f"{len(equal)}", len(equal) >= EQUAL,
              tuple(f"{one.key}: {one.broke}" for one in found.results if one.broke is not None)),
        Claim("called different", f"at most {ALARMS_MAX:.0%}", f"{len(alarms)} of {len(equal)} ({share:.0%})",
              bool(equal) and share <= ALARMS_MAX, tuple(said(one) for one in alarms)),
        _difference(found.different),
    ]  # fmt: skip


def said(one: Result) -> str:
    """An experiment in words."""
    if one.ratio is None or one.low is None or one.high is None:
        return f"{one.key}: no ratio; {one.volumes[1]} against {one.volumes[0]}"
    return f"{one.key}: {one.ratio:.4f} ({one.low:.4f} to {one.high:.4f}); {one.volumes[1]} against {one.volumes[0]}"


def _difference(results: Sequence[Result]) -> Claim:
    counted = Counter(one.outcome for one in results)
    judged = len(results) - counted["no verdict"]
    faults = tuple(f"{said(one)}: {one.outcome}" for one in results if one.outcome in ("missed", "wrong"))
    return Claim(
        f"a true difference of {CHANGE:.0%}",
        "found, or called too small for the budget",
        ", ".join(f"{count} {outcome}" for outcome, count in sorted(counted.items())) or "none was measured",
        judged > 0 and not faults,
        faults,
    )

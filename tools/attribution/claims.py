"""What must hold of a draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.binding.rules import OF_RUNS
from tools.fidelity.claim import Claim

if TYPE_CHECKING:
    from tools.attribution.record import Record, Result

JUDGED_MIN = 60
RIGHT_MIN = 0.95
OF_A_LIMIT_MIN = 3
"""Runs of each limit: a limit that hardly occurs is not attributed by saying another one."""


def judge(record: Record) -> list[Claim]:
    """Enough labelled runs of each limit, nearly all right, none wrong with confidence."""
    judged = record.judged
    right = sum(result.right for result in judged)
    share = right / len(judged) if judged else 0.0
    wrong = [result for result in judged if result.confidently_wrong]
    counted = {limit: sum(result.truth == limit for result in judged) for limit in OF_RUNS}
    fewest = min(counted.values())
    return [
        Claim("labelled runs", f"at least {JUDGED_MIN}", f"{len(judged)}", len(judged) >= JUDGED_MIN),
        Claim("runs of each limit", f"at least {OF_A_LIMIT_MIN}", f"{fewest}", fewest >= OF_A_LIMIT_MIN,
              tuple(f"{limit}: {count}" for limit, count in counted.items() if count < OF_A_LIMIT_MIN)),
        Claim("right", f"at least {RIGHT_MIN:.0%}", f"{right} of {len(judged)} ({share:.1%})", share >= RIGHT_MIN,
              tuple(_said(result) for result in judged if not result.right)),
        Claim("wrong with high confidence", "none", f"{len(wrong)}", not wrong, tuple(map(_said, wrong))),
    ]  # fmt: skip


def _said(result: Result) -> str:
    return f"{result.key}: {result.limit or 'unknown'} ({result.confidence}); {result.volume}; {result.workload}"

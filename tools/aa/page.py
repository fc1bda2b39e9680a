"""The reference's page on live experiments of equal volumes."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from tools.aa import record
from tools.aa.claims import ALARMS_MAX, said
from tools.aa.trials import CHANGE, DURATION, KINDS, REPLICATES
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.aa.record import Record, Result
    from tools.fidelity.claim import Claim

COMMAND = "make bench ONLY=aa"
INTRODUCTION = """
Whether live experiments tell equal volumes apart. Each has two arms and {replicates} replicates, runs of {duration}, on real PostgreSQL on
emulated volumes; everything is measured and judged as in any other experiment ([inference](../concept/inference.md)). Measured on
{cores} cores, Linux {kernel}, with seed {seed} and engine `{build_hash}`. Experiments with an invalid run are counted too, though a report
gives no verdict on them.
"""
CHANCE = """
Were the intervals exact, more than {most} of {count} would be called different in {chance:.1%} of such benches.
"""


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The text of the page."""
    introduction = INTRODUCTION.strip().format(
        replicates=REPLICATES, duration=DURATION, cores=record.cores, kernel=record.kernel, seed=record.seed,
        build_hash=record.build_hash[:12],
    )  # fmt: skip
    equal = record.equal
    parts = [
        f"# Live A/A\n\n<!-- Written by `{COMMAND}` from tools/aa. -->",
        introduction,
        claims_table(judged),
        "## One volume twice",
        _chance(len(equal)),
        _kinds(equal),
        *_invalid(record.whole),
        f"## A volume that is {CHANGE:.0%} faster",
        _different(record.different),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _chance(count: int) -> str:
    """How often chance alone breaks the bar: what one bench can say."""
    if not count:
        return ""
    from scipy.stats import binom

    most = int(ALARMS_MAX * count)
    return CHANCE.strip().format(most=most, count=count, chance=float(binom.sf(most, count, 0.05)))


def _kinds(results: Sequence[Result]) -> str:
    rows = []
    for kind in KINDS:
        members = [result for result in results if result.kind == kind.name]
        if not members:
            continue
        detectable = [member.detectable for member in members if member.detectable is not None]
        rows.append(
            [
                kind.name,
                md.code(kind.volume),
                members[0].workload,
                str(len(members)),
                "; ".join(said(member) for member in members if member.alarm) or "none",
                _percent(record.pooled(members)),
                _percent(median(detectable) if detectable else None),
            ]
        )
    heads = ["bound by", "volume", "workload", "experiments", "called different", "scatter of a ratio", "would find"]
    return md.table(heads, rows)


def _invalid(results: Sequence[Result]) -> list[str]:
    rows = [[result.key, result.invalid] for result in results if result.invalid is not None]
    return ["Experiments with an invalid run:", md.table(["experiment", "first reason"], rows)] if rows else []


def _different(results: Sequence[Result]) -> str:
    rows = [
        [
            said(result),
            result.outcome,
            _percent(result.detectable),
            "–" if result.replicates_needed is None else str(result.replicates_needed),
            "yes" if result.holds_truth else "no",
        ]
        for result in results
    ]
    heads = ["experiment", "outcome", "would find", f"replicates for {CHANGE:.0%}", f"interval holds {1 + CHANGE:g}"]
    return md.table(heads, rows)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.2f} %"

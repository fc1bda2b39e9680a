"""The reference's page on attribution: the confusion matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.binding.rules import OF_RUNS, TITLES
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.attribution.record import Record, Result
    from tools.fidelity.claim import Claim

COMMAND = "make bench ONLY=attribution"
# What an earlier draw taught must not be counted as if it had been foreseen.
INTRODUCTION = """
How often the [limit that binds](../concept/binding.md) is named. Each run is drawn from seed {seed}, with one limit made to bind; the emulator's
own account, which the verdict does not see, confirms that it did. Rules and thresholds were frozen before the draw: their digest is
`{rules}`, the engine's `{build_hash}`.

Two earlier draws are not counted here, since the rules were changed after them. Seed 20261122 (rules `be30fccc7bb3`): 74 of 77 right; checkpoints every two
seconds were called volume IOPS three times, with high confidence. Seed 20261123 (rules `58f29b846fef`): 76 of 76 right.
"""


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The text of the page."""
    return "\n\n".join([
        f"# Attribution\n\n<!-- Written by `{COMMAND}` from tools/attribution. -->",
        INTRODUCTION.strip().format(seed=record.seed, rules=record.rules, build_hash=record.build_hash[:12]),
        claims_table(judged),
        "## Confusion matrix\n\nRows: the limit that bound. Columns: the limit that was named; in brackets those of them with high confidence.",
        _matrix(record.judged),
        *_list("Wrong", [result for result in record.judged if not result.right]),
        *_list("Not judged", [result for result in record.results if result.refuted is not None]),
    ]) + "\n"  # fmt: skip


def _matrix(results: Sequence[Result]) -> str:
    named = [*OF_RUNS, None]
    rows = []
    for truth in OF_RUNS:
        cells = [
            _cell([result for result in results if (result.truth, result.limit) == (truth, limit)]) for limit in named
        ]
        rows.append([TITLES[truth], *cells])
    return md.table(["bound", *(TITLES[limit] if limit else "unknown" for limit in named)], rows)


def _cell(results: Sequence[Result]) -> str:
    high = sum(result.confidence == "high" for result in results)
    return f"{len(results)} ({high})" if results else ""


def _list(title: str, results: Sequence[Result]) -> list[str]:
    if not results:
        return []
    rows = [
        [result.key, result.limit or "unknown", result.confidence, result.volume, result.workload, result.refuted or ""]
        for result in results
    ]
    return [f"## {title}", md.table(["run", "named", "confidence", "volumes", "workload", "why"], rows)]

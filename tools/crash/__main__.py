"""Measures power cuts and writes their pages: ``python -m tools.crash crash`` and ``python -m tools.crash torn``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.durability.crash.campaign import WORKERS
from pgdyno.durability.crash.recovery import CUTS_1_IN
from tools.crash import page, torn_page
from tools.crash.cells import planted, recovering, sound, torn
from tools.crash.measure import collect
from tools.crash.record import Record
from tools.measured import code, ended, published

if TYPE_CHECKING:
    from tools.crash.cells import Bench
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference"
RESULTS = ROOT / "results"
SEED = 20_261_124
MUTANT_CUTS = 1_000


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash", description=__doc__)
    parser.add_argument("bench", choices=["crash", "torn"])
    parser.add_argument("--seed", type=int, default=SEED, help="of the cuts [%(default)s]")
    parser.add_argument("--cuts", type=int, help="of a sound server in all, or of each torn cell [10000, 2000]")
    parser.add_argument(
        "--mutant-cuts", type=int, default=MUTANT_CUTS, help="of each planted bug at most [%(default)s]"
    )
    parser.add_argument("--minutes", type=float, help="end after this time; a later call continues")
    parser.add_argument("--workers", type=int, default=WORKERS, help="cuts that are examined at a time [%(default)s]")
    parser.add_argument("--planted", action="store_true", help="of crash: the planted bugs alone, and their score")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.page:
        return code(write(namespace.bench, Record.require(record_of(namespace.bench), namespace.bench)))
    record = measured(
        namespace.bench,
        namespace.cuts,
        namespace.mutant_cuts,
        namespace.minutes,
        namespace.seed,
        planted_alone=namespace.planted,
        workers=namespace.workers,
    )
    judged = write(namespace.bench, record)
    return code(judged[-1:] if namespace.planted else judged)


def measured(
    bench: str,
    cuts: int | None = None,
    mutant_cuts: int = MUTANT_CUTS,
    minutes: float | None = None,
    seed: int = SEED,
    *,
    planted_alone: bool = False,
    workers: int = WORKERS,
) -> Record:
    """Measure what the record of a bench lacks."""
    is_crash = bench == "crash"
    all_cuts = cuts or (page.CUTS if is_crash else torn_page.CUTS)
    in_recovery = -(-all_cuts // CUTS_1_IN)
    by_bench: dict[Bench, int] = {
        "sound": -(-(all_cuts - in_recovery) // len(sound())),
        "recovery": -(-in_recovery // len(recovering())),
        "mutant": mutant_cuts,
        "torn": all_cuts,
    }
    crash = planted() if planted_alone else [*sound(), *recovering(), *planted()]
    return collect(crash if is_crash else torn(), record_of(bench), seed, by_bench, minutes, workers)


def record_of(bench: str) -> Path:
    """The record of a bench, with which an interrupted one resumes."""
    return RESULTS / bench / "record.json"


def write(bench: str, record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    if bench == "crash":
        judged = page.judge_crash(record)
        return published(PAGES / "power-cuts.md", page.render_crash(record, judged), judged)
    judged = torn_page.judge(record)
    return published(PAGES / "torn-pages.md", torn_page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

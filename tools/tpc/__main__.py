"""Measures the record and writes its page: ``python -m tools.tpc``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.equivalence import __main__ as equivalence
from tools.equivalence.record import Record as Equivalence
from tools.measured import code, ended, published
from tools.tpc import before, claim, measure, memory, nopm, page
from tools.tpc.record import Record

if TYPE_CHECKING:
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "tpc" / "record.json"
COMPARED = RESULTS.with_name("equivalence.json")
PAGE = ROOT / "docs" / "reference" / "tpc.md"
PAIRS = 5
MINUTES = 20.0
"""No further block beside pgbench is begun after these."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.tpc", description=__doc__)
    parser.add_argument(
        "--pairs",
        type=int,
        help=f"pairs of each load and of driver runs [{PAIRS}; {before.PAIRS} beside an older engine]",
    )
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="minutes beside pgbench, 0 keeps that record [%(default)g]"
    )
    parser.add_argument(
        "--memory",
        type=float,
        nargs="?",
        const=memory.MINUTES,
        metavar="MINUTES",
        help=f"measure the driver's memory alone, in one run of so many minutes [{memory.MINUTES:g}]; four at least are judged",
    )
    parser.add_argument(
        "--before",
        nargs="?",
        const=before.COMMIT,
        metavar="COMMIT_OR_BINARY",
        help="compare loads of pgbench's and sysbench's tables with those of an older engine alone;"
        f" a commit is built [{before.COMMIT}]",
    )
    parser.add_argument(
        "--hammerdb",
        action="store_true",
        help="compare what calls change with an installed HammerDB alone; --pairs adds so many pairs of runs of four minutes, and their NOPM [0]",
    )
    parser.add_argument(
        "--bound", choices=nopm.BOUNDS, help="with --hammerdb: pairs that are bound by this alone [each]"
    )
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.memory is not None:
        return code(write(measure.over_time(RESULTS, namespace.memory), Equivalence.load(COMPARED)))
    if namespace.before is not None:
        pairs = before.PAIRS if namespace.pairs is None else namespace.pairs
        return code(write(measure.against_older(RESULTS, namespace.before, pairs), Equivalence.load(COMPARED)))
    if namespace.hammerdb:
        bounds = [*nopm.BOUNDS] if namespace.bound is None else [namespace.bound]
        return code(write(measure.beside_hammerdb(RESULTS, namespace.pairs or 0, bounds), Equivalence.load(COMPARED)))
    if namespace.page:
        return code(write(Record.require(RESULTS, "tpc"), Equivalence.load(COMPARED)))
    return code(collect(PAIRS if namespace.pairs is None else namespace.pairs, namespace.minutes))


def collect(pairs: int = PAIRS, minutes: float = MINUTES) -> list[Claim]:
    """Measure what is missing, judge it and write the page."""
    record = measure.measure(RESULTS, pairs)
    if minutes <= 0:
        return write(record, Equivalence.load(COMPARED))
    return write(record, equivalence.collect([measure.TPCC], COMPARED, equivalence.SECONDS, minutes))


def write(record: Record, compared: Equivalence | None) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claim.judge(record, compared)
    return published(PAGE, page.render(record, judged, compared), judged)


if __name__ == "__main__":
    import sys

    sys.exit(main())

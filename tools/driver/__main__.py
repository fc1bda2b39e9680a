"""Measures what the driver costs and writes its page: ``python -m tools.driver``."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from tools.driver import claim, measure, page
from tools.driver.record import Record
from tools.fidelity.claim import Claim
from tools.measured import code, ended, none_yet, published

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "driver"
PAGE = ROOT / "docs" / "reference" / "driver.md"
MINUTES_VARIABLE = "PGDYNO_BENCH_MINUTES"
MINUTES = 2.0
SECONDS = 5
PAIRS = 5


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.driver", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of each run (default {SECONDS})")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs for each load (default {PAIRS})")
    parser.add_argument("--minutes", type=float, help=f"how long memory is watched (default {MINUTES:g})")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if not namespace.page:
        return code(write(measure.measure(namespace.seconds, namespace.pairs, namespace.minutes or minutes())))
    record = Record.latest(RESULTS)
    if record is None:
        raise none_yet("drive")
    return code(write(record))


def minutes() -> float:
    """How long memory is watched unless the command says it."""
    return float(os.environ.get(MINUTES_VARIABLE, MINUTES))


def write(record: Record) -> list[Claim]:
    """Judge a record, keep it, write its page, print the claims."""
    judged = claim.judge(record)
    record.save(RESULTS)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

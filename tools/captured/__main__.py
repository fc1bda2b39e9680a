"""Measures what captures and replays cost and writes their page: ``python -m tools.captured``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.captured import claim, measure, page
from tools.captured.record import Record
from tools.driver.__main__ import minutes
from tools.measured import code, ended, published

if TYPE_CHECKING:
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "results" / "captured" / "record.json"
PAGE = ROOT / "docs" / "reference" / "replay.md"
SECONDS = 8
PAIRS = 8


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.captured", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of each run (default {SECONDS})")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs for each load (default {PAIRS})")
    parser.add_argument("--minutes", type=float, help="how long memory is watched")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.page:
        return code(write(Record.require(KEPT, "captured")))
    return code(write(measure.measure(namespace.seconds, namespace.pairs, namespace.minutes or minutes())))


def write(record: Record) -> list[Claim]:
    """Judge a record, keep it, write its page, print the claims."""
    judged = claim.judge(record)
    record.save(KEPT)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

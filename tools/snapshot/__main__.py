"""Measures snapshots under load and writes their page: ``python -m tools.snapshot``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.measured import code, ended, published
from tools.snapshot import page
from tools.snapshot.measure import collect
from tools.snapshot.record import Record

if TYPE_CHECKING:
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "snapshots.md"
RESULTS = ROOT / "results" / "snapshot" / "record.json"


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.snapshot", description=__doc__)
    parser.add_argument("--sets", type=int, default=page.SETS, help="of two volumes [%(default)s]")
    parser.add_argument("--restores", type=int, default=page.RESTORES, help="for fio and fsck [%(default)s]")
    parser.add_argument(
        "--windows",
        type=int,
        default=page.WINDOWS,
        help="with a set, for the waits; 0 leaves them to a quiet machine [%(default)s]",
    )
    parser.add_argument("--minutes", type=float, help="begin no further server after this time; a later call resumes")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.page:
        return code(write(Record.require(RESULTS, "snapshot")))
    return code(write(measured(namespace.sets, namespace.restores, namespace.windows, namespace.minutes)))


def measured(
    sets: int = page.SETS, restores: int = page.RESTORES, windows: int = page.WINDOWS, minutes: float | None = None
) -> Record:
    """Measure what the record lacks."""
    return collect(RESULTS, sets, restores, windows, minutes)


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = page.judge(record)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

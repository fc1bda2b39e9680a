"""Measures the record and writes its page: ``python -m tools.equivalence``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.errors import PgdynoError
from pgdyno.postgres.binaries import find_binaries
from tools.equivalence import claims, page, record
from tools.equivalence.bench import bench
from tools.equivalence.record import Record
from tools.equivalence.workloads import WORKLOADS, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "equivalence" / "record.json"
PAGE = ROOT / "docs" / "reference" / "equivalence.md"
SECONDS = 10
"""Of a run: thousands of transactions, and short enough that what a machine does in minutes meets all three turns."""
MINUTES = 75.0
"""No block is begun after this: five workloads of 6 to 20 blocks of three runs."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.equivalence", description=__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--only", choices=names, action="append", help="a trial of this workload: writes no page")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="length of a run [%(default)s]")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no block is begun after these [%(default)g]")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    asked = parser.parse_args()
    # A terminated bench takes its server down, as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if asked.page:
            found = Record.load(RESULTS)
            if found is None:
                raise PgdynoError("no record was measured yet", remedy="run `make bench ONLY=equivalence`")
            return _code(write(found))
        chosen = [workload for workload in WORKLOADS if workload.name in (asked.only or names)]
        if asked.only:
            trial = RESULTS.with_name("trial.json")
            trial.unlink(missing_ok=True)
            judged = claims.judge(collect(chosen, trial, asked.seconds, asked.minutes))
            print("\n".join(map(str, judged)))
            return _code(judged)
        return _code(write(collect(chosen, RESULTS, asked.seconds, asked.minutes)))
    except PgdynoError as error:
        print(f"{error.message}\n{error.remedy}", file=sys.stderr)
        return error.exit_code


def collect(wanted: Sequence[Workload], path: Path, seconds: int = SECONDS, minutes: float = MINUTES) -> Record:
    """Measure what the record at ``path`` lacks of ``wanted``; what this machine has no original for is left out."""
    begin = time.monotonic()
    found = Record.here(find_binaries().version, seconds)
    kept = Record.load(path)
    if kept is not None and kept.goes_on(found):
        found = kept
    found.missing = {one.name: why for one in wanted if (why := one.missing()) is not None}
    there = {result.workload for result in found.results}
    left = [one for one in wanted if one.name not in there and one.name not in found.missing]
    if not left:
        return found
    with bench(left) as server:
        for workload in left:
            found.results.append(
                record.measure(
                    server,
                    workload,
                    seconds,
                    over=lambda: time.monotonic() - begin > 60 * minutes,
                    tell=lambda text: print(text, file=sys.stderr, flush=True),
                )
            )
            found.save(path)
    return found


def write(found: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claims.judge(found)
    PAGE.write_text(page.render(found, judged), encoding="utf-8")
    print("\n".join(map(str, judged)))
    return judged


def _code(judged: Sequence[Claim]) -> int:
    return 0 if all(claim.holds for claim in judged) else 1


if __name__ == "__main__":
    sys.exit(main())

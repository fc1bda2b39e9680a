"""Measures what the driver costs and writes its page: ``python -m tools.driver``."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from pgdyno.errors import PgdynoError
from tools.driver import claim, measure, page
from tools.driver.claim import Claim
from tools.driver.record import Record, latest, save

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
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if asked.page:
            record = latest(RESULTS)
            if record is None:
                raise PgdynoError("no record was measured yet", remedy="run `make bench ONLY=drive`")
        else:
            record = measure.measure(asked.seconds, asked.pairs, asked.minutes or minutes())
        return 0 if all(one.holds for one in write(record)) else 1
    except PgdynoError as error:
        print(f"{error.message}\n{error.remedy}", file=sys.stderr)
        return error.exit_code


def minutes() -> float:
    """How long memory is watched unless the command says it."""
    return float(os.environ.get(MINUTES_VARIABLE, MINUTES))


def write(record: Record) -> list[Claim]:
    """Judge a record, keep it, write its page, print the claims."""
    judged = claim.judge(record)
    save(record, RESULTS)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page.render(record, judged), encoding="utf-8")
    print("\n".join(map(str, judged)))
    return judged


if __name__ == "__main__":
    sys.exit(main())

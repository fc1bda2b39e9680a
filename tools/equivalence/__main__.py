"""Measures the record and writes its page: ``python -m tools.equivalence``."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.machine import awake
from pgdyno.server.binaries import find_binaries
from tools.equivalence import claims, page, record
from tools.equivalence.bench import bench
from tools.equivalence.record import Record
from tools.equivalence.workloads import WORKLOADS, Workload
from tools.measured import code, ended, published, tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "equivalence" / "record.json"
PAGE = ROOT / "docs" / "reference" / "equivalence.md"
SECONDS = 10
"""That a run works in a block: thousands of transactions in hundreds of turns."""
MINUTES = 75.0
"""No block is begun after this: five workloads of 6 to 20 blocks of three runs."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.equivalence", description=__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--only", choices=names, action="append", help="a trial of this workload: writes no page")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="seconds that a run works [%(default)s]")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no block is begun after these [%(default)g]")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.page:
        return code(write(Record.require(RESULTS, "equivalence")))
    chosen = [workload for workload in WORKLOADS if namespace.only is None or workload.name in namespace.only]
    if namespace.only:
        return tried(RESULTS, lambda path: claims.judge(collect(chosen, path, namespace.seconds, namespace.minutes)))
    return code(write(collect(chosen, RESULTS, namespace.seconds, namespace.minutes)))


def collect(wanted: Sequence[Workload], path: Path, seconds: int = SECONDS, minutes: float = MINUTES) -> Record:
    """Measure what the record at ``path`` lacks of ``wanted``; what this machine has no original for is left out."""
    begin = time.monotonic()
    answer = Record.here(find_binaries().version, seconds, awake=awake.possible())
    kept = Record.load(path)
    if kept is not None and kept.goes_on(answer):
        answer = kept
    answer.missing = {workload.name: why for workload in wanted if (why := workload.missing()) is not None}
    there = {result.workload: result for result in answer.results}
    whole = {name for name, result in there.items() if record.enough(result.blocks)}
    left = [workload for workload in wanted if workload.name not in whole and workload.name not in answer.missing]
    if not left:
        return answer
    with awake.kept_awake(wanted=answer.awake), bench(left) as server:
        for workload in left:
            answer.put(
                record.measure(
                    server,
                    workload,
                    seconds,
                    over=lambda: time.monotonic() - begin > 60 * minutes,
                    tell=lambda text: print(text, file=sys.stderr, flush=True),
                    kept=there.get(workload.name),
                )
            )
            answer.save(path)
    return answer


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claims.judge(record)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

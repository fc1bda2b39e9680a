"""Measures a draw and writes its page: ``python -m tools.attribution``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import HostError
from pgdyno.machine import preflight
from tools.attribution import claims, page
from tools.attribution.measure import measure
from tools.attribution.record import Record
from tools.attribution.scenarios import Scenario, draw
from tools.measured import code, ended, published, tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "attribution" / "record.json"
PAGE = ROOT / "docs" / "reference" / "attribution.md"
SEED = 20_261_127
"""Of a draw that no rule has seen; another one whenever a draw has taught the rules something."""
COUNT = 77
"""Seven of each limit: some turn out not to be what was meant, and sixty must be left."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.attribution", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw [%(default)s]")
    parser.add_argument("--count", type=int, default=COUNT, help="runs [%(default)s]")
    parser.add_argument("--only", metavar="LIMIT", action="append", help="a trial of this limit: writes no page")
    parser.add_argument("--list", action="store_true", help="print the draw")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    wanted = [
        item for item in draw(namespace.seed, namespace.count) if namespace.only is None or item.truth in namespace.only
    ]
    if namespace.list:
        print(
            "\n".join(f"{item.key}: {item.document['world']} {item.document['workload']['clients']}" for item in wanted)
        )
        return 0
    if namespace.page:
        return code(write(Record.require(RESULTS, "attribution")))
    if namespace.only:
        return tried(RESULTS, lambda path: claims.judge(collect(wanted, path, namespace.seed))[-1:])
    return code(write(collect(wanted, RESULTS, namespace.seed)))


def collect(wanted: Sequence[Scenario], path: Path, seed: int) -> Record:
    """Measure what the record at ``path`` lacks of ``wanted``."""
    preflight.require_root("the attribution record")
    preflight.require_fuse()
    if len(os.sched_getaffinity(0)) < 2:
        raise HostError("server and driver need a CPU each, and there is one", remedy="use a machine with two")
    answer = Record.here(seed)
    kept = Record.load(path)
    if kept is not None and kept.goes_on(answer):
        answer = kept
    there = {result.key for result in answer.results}
    left = [scenario for scenario in wanted if scenario.key not in there]
    with tempfile.TemporaryDirectory(prefix="pgdyno-attribution-") as root:
        for number, scenario in enumerate(left, 1):
            begin = time.monotonic()
            result = measure(scenario, Path(root))
            answer.results.append(result)
            answer.save(path)
            state = result.refuted or ("right" if result.right else "WRONG")
            took = f"{time.monotonic() - begin:.0f} s"
            print(
                f"{number}/{len(left)} {result.key}: {result.limit} ({result.confidence}): {state} ({took})",
                file=sys.stderr,
                flush=True,
            )
    return answer


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claims.judge(record)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

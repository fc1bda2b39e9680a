"""Measures live experiments of equal volumes and writes their page: ``python -m tools.aa``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.machine import preflight
from tools.aa import claims, page
from tools.aa.measure import measure
from tools.aa.record import Record
from tools.aa.trials import trials
from tools.measured import code, ended, published, tried

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.aa.trials import Trial
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "aa" / "record.json"
PAGE = ROOT / "docs" / "reference" / "aa.md"
SEED = 20_261_122


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.aa", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="of the experiments [%(default)s]")
    parser.add_argument("--trial", type=int, metavar="N", help="a trial of the first so many: writes no page")
    parser.add_argument("--list", action="store_true", help="print the experiments")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    wanted = trials(namespace.seed)
    if namespace.list:
        print("\n".join(f"{trial.key}: {' and '.join(trial.volumes)} {trial.document['workload']}" for trial in wanted))
        return 0
    if namespace.page:
        return code(write(Record.require(RESULTS, "aa")))
    if namespace.trial is not None:
        return tried(RESULTS, lambda path: claims.judge(collect(wanted[: namespace.trial], path, namespace.seed)))
    return code(write(collect(wanted, RESULTS, namespace.seed)))


def collect(wanted: Sequence[Trial], path: Path, seed: int) -> Record:
    """Make the experiments that the record at ``path`` lacks of ``wanted``; one that broke is made again."""
    preflight.require_root("the record of live experiments")
    preflight.require_fuse()
    answer = Record.here(seed)
    kept = Record.load(path)
    if kept is not None and kept.goes_on(answer):
        answer = kept.model_copy(update={"results": kept.whole})
    there = {result.key for result in answer.results}
    left = [trial for trial in wanted if trial.key not in there]
    with tempfile.TemporaryDirectory(prefix="pgdyno-aa-") as root:
        for number, trial in enumerate(left, 1):
            begin = time.monotonic()
            result = measure(trial, Path(root))
            answer.results.append(result)
            answer.save(path)
            state = result.broke or (result.outcome if trial.change else "ALARM" if result.alarm else "no alarm")
            took = f"{time.monotonic() - begin:.0f} s"
            print(f"{number}/{len(left)} {claims.said(result)}: {state} ({took})", file=sys.stderr, flush=True)
    return answer


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claims.judge(record)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

"""Measures how fast loading is and writes its page: ``python -m tools.loader``.

``--peer OTHER/.venv/bin/pgdyno`` measures how many times as long this checkout takes as another one, in pairs of turns; no page.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from tools.fidelity.claim import Claim
from tools.loader import arm, claim, measure, page
from tools.loader.record import Record
from tools.measured import code, ended, none_yet, published

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "loader"
PAGE = ROOT / "docs" / "reference" / "loader.md"
MEGABYTES_VARIABLE, ROUNDS_VARIABLE = "PGDYNO_LOAD_MEGABYTES", "PGDYNO_LOAD_ROUNDS"
MEGABYTES = 300
"""Two to three seconds of COPY by two sessions: the start of a process is a small part of it."""
ROUNDS = 12
"""A disk that is slow once costs a CHECKPOINT half a second: among five rounds that decided, with an interval of a fifth."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.loader", description=__doc__)
    parser.add_argument("--megabytes", type=int, help=f"length of the file (default {MEGABYTES})")
    parser.add_argument("--rounds", type=int, help=f"how often each arm runs (default {ROUNDS})")
    parser.add_argument("--peer", type=Path, help="only compare with this program: `pgdyno` of another checkout")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    amount = (namespace.megabytes or megabytes(), namespace.rounds or rounds())
    if namespace.peer is not None:
        judged = claim.beside_peer(measure.measure(*amount, arm.beside_peer(namespace.peer)))
        print(judged)
        return code([judged])
    if not namespace.page:
        return code(write(measure.measure(*amount)))
    record = Record.latest(RESULTS)
    if record is None:
        raise none_yet("load")
    return code(write(record))


def megabytes() -> int:
    """Length of the file unless the command says it."""
    return int(os.environ.get(MEGABYTES_VARIABLE, MEGABYTES))


def rounds() -> int:
    """How often each arm runs unless the command says it."""
    return int(os.environ.get(ROUNDS_VARIABLE, ROUNDS))


def write(record: Record) -> list[Claim]:
    """Judge a record, keep it, write its page, print the claims."""
    judged = claim.judge(record)
    record.save(RESULTS)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

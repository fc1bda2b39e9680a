"""Makes the parts of the record on installing, and writes its page: ``python -m tools.install``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING

from pgdyno.machine import preflight
from tools.install import RESULTS, ROOT, claims, measure, page
from tools.install.record import Record
from tools.machine.image import has_the_code
from tools.measured import code, ended, published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim

FILE = RESULTS / "record.json"
PAGE = ROOT / "docs" / "reference" / "install.md"


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.install", description=__doc__)
    parser.add_argument(
        "--only", metavar="PART", action="append", help="make this part again and no other: " + ", ".join(measure.PARTS)
    )
    parser.add_argument("--page", action="store_true", help="make nothing: write the page from the record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    if namespace.page:
        return code(write(Record.require(FILE, "install")))
    return code(write(collect(namespace.only)))


def collect(only: Sequence[str] | None = None) -> Record:
    """Make what the record lacks, or the parts that are named again."""
    preflight.require_root("installing in roots of its own")
    result = Record.here()
    kept = Record.load(FILE)
    # Another wheel is another record. What else is asked for by name is of the wheel that is there.
    if kept is not None and "wheel" not in (only or ()) and (only or _resumes(kept, result)):
        result = kept
    for part in only or [item for item in measure.PARTS if not result.has(item)]:
        print(f"{part} …", file=sys.stderr, flush=True)
        measure.make(part, result)
        result.save(FILE)
    return result


def _resumes(kept: Record, now: Record) -> bool:
    """Whether parts that are made now belong to a record: on the same kernel, of the same engine and the same package."""
    return kept.goes_on(now) and (kept.wheel is None or has_the_code(measure.the_wheel(kept), ROOT))


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = claims.judge(record)
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())

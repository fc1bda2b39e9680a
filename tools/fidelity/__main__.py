"""Measures the record and writes its page: ``python -m tools.fidelity``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from pgdyno.machine import awake, paths, preflight
from tools.fidelity import claims, device, fio, matrix, measure, page
from tools.fidelity.cell import Cell
from tools.fidelity.claim import Claim
from tools.fidelity.point import Machine, Point, Record
from tools.measured import code, ended, none_yet, published

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "fidelity"
PAGE = ROOT / "docs" / "reference" / "fidelity.md"


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.fidelity", description=__doc__)
    parser.add_argument("--part", choices=matrix.parts(), help="measure this part alone")
    parser.add_argument(
        "--short", type=int, metavar="SECONDS", help="a trial: jobs of at most so long, nothing is judged"
    )
    parser.add_argument(
        "--again",
        choices=matrix.parts(),
        help="measure this part of the latest record anew, all of it, and write the page, which says so",
    )
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from the latest record")
    parser.add_argument("--list", action="store_true", help="print the cells and how long they take")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    wanted = [cell for cell in matrix.cells() if namespace.part in (None, cell.part)]
    wanted = matrix.shortened(wanted, namespace.short) if namespace.short else wanted
    if namespace.list:
        print("\n".join(cell.key for cell in wanted) + f"\n{_length(wanted)}")
        return 0
    if namespace.page:
        return code(rewrite())
    if namespace.again:
        again(namespace.again, RESULTS)
        return code(rewrite())
    if namespace.short or namespace.part:
        # A part or a trial is no record: it must not be taken for one that was interrupted.
        record = collect(wanted, RESULTS.with_name("fidelity-trial"))
        judged = [] if namespace.short else claims.judge_part(namespace.part, record.points())
        print("\n".join([page.part(namespace.part, record.points()), *map(str, judged)]) if namespace.part else "")
        return code(judged)
    collect(wanted, RESULTS)
    return code(rewrite())


def collect(wanted: list[Cell], root: Path) -> Record:
    """Measure what the latest record below ``root`` lacks of ``wanted``; what this machine cannot do is left out."""
    preflight.require_root("the fidelity record")
    preflight.require_fuse()
    fio.require()
    for world in sorted({cell.world for cell in wanted}):
        if reason := device.missing(world):
            print(f"without {world}: {reason}", file=sys.stderr)
            wanted = [cell for cell in wanted if cell.world != world]
    record = Record.resumed(root, wanted)
    left = [cell for cell in wanted if not record.has(cell)]
    _measure(record, left, len(wanted))
    return record


def again(part: str, root: Path) -> Record:
    """Measure a part of the latest record anew. :class:`PgdynoError` when that is of another build or machine."""
    preflight.require_root("the fidelity record")
    record = Record.latest(root)
    if record is None:
        raise none_yet("fidelity")
    if record.machine != Machine.here():
        raise PgdynoError(f"{record.folder} is of another build or machine", remedy="run `make bench ONLY=fidelity`")
    left = [cell for cell in matrix.cells() if cell.part == part]
    record.repeats(part)
    _measure(record, left, len(left))
    return record


def _measure(record: Record, left: list[Cell], of: int) -> None:
    print(
        f"{record.folder}: {of - len(left)} of {of} points are there, {_length(left)}",
        file=sys.stderr,
    )
    with device.bench(paths.state_dir()) as bench:
        for number, cell in enumerate(left, 1):
            begin = time.monotonic()
            with awake.kept_awake(wanted=cell.awake and awake.possible()):
                point = measure.measure(cell, bench, os.cpu_count() or 1)
            record.add(point)
            print(
                f"{number}/{len(left)} {_said(point)} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True
            )


def rewrite() -> list[Claim]:
    """Judge the latest records, write their page, print the claims."""
    record = Record.latest(RESULTS)
    if record is None:
        raise none_yet("fidelity")
    points = record.points()
    judged = claims.judge(points)
    text = page.render(record.machine, points, judged, record.repeated())
    return published(PAGE, text, judged)


def _said(point: Point) -> str:
    cell, modelled = point.cell, point.modelled
    against = f" of {modelled.iops:,.0f} ({point.measured.iops / modelled.iops - 1:+.2%})" if modelled else ""
    return f"{cell.part} {cell.world} {cell.volume} {cell.job}: {point.measured.iops:,.0f} IOPS{against}"


def _length(cells: list[Cell]) -> str:
    return f"{len(cells)} to measure in about {sum(cell.takes_s for cell in cells) / 60:.0f} min"


if __name__ == "__main__":
    sys.exit(main())

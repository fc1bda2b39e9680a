"""Measures the cells of a bench: each recording is made once and cut in all of its readings."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.crash.campaign import make_cuts
from pgdyno.crash.recording import MAKERS, record
from pgdyno.host import preflight
from pgdyno.postgres.binaries import find_binaries
from tools.crash.record import Found, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.crash.recording import Asked, Recording
    from tools.crash.cells import Bench, Cell

FAILURES_MAX: dict[Bench, int] = {"sound": 20, "mutant": 20, "torn": 1}
"""Enough to see which checks catch a planted bug; one torn page is a verdict."""


def collect(cells: Sequence[Cell], path: Path, seed: int, cuts: dict[Bench, int], minutes: float | None) -> Record:
    """Measure the cells that the record at ``path`` lacks, until ``minutes`` have passed."""
    preflight.require_root("the record of power cuts")
    preflight.require_fuse()
    found = Record.here(seed, find_binaries().version)
    kept = Record.load(path)
    if kept is not None and kept.goes_on(found):
        found = kept
    until = None if minutes is None else time.monotonic() + 60 * minutes
    recording: Recording | None = None
    with tempfile.TemporaryDirectory(prefix="pgdyno-crash-") as root:
        made: tuple[str, int] | None = None
        for cell in sorted(cells, key=lambda cell: cell.recording):
            wanted = cuts[cell.bench]
            if any(one.name == cell.name and one.wanted >= wanted for one in found.found):
                continue
            if (lacking := _lacking(cell.asked)) is not None:
                found.skipped[cell.name] = f"this machine has no {lacking}"
                continue
            if until is not None and time.monotonic() >= until:
                break
            if recording is None or made != cell.recording:
                shutil.rmtree(Path(root) / "recording", ignore_errors=True)
                recording, made = record(cell.asked, Path(root) / "recording"), cell.recording
            result = make_cuts(recording, cell.reading, seed, wanted, failures_max=FAILURES_MAX[cell.bench])
            one = Found.of(cell, wanted, result)
            found.found = [other for other in found.found if other.name != cell.name] + [one]
            found.skipped.pop(cell.name, None)
            found.save(path)
            said = f"{cell.name}: {one.failed} of {one.cuts} failed, {one.cuts_per_minute:.0f} a minute"
            print(said, file=sys.stderr, flush=True)
    found.save(path)
    return found


def _lacking(asked: Asked) -> str | None:
    """What this machine would need for a recording and does not have."""
    maker = MAKERS[asked.file_system][0]
    if shutil.which(maker) is None:
        return maker
    if asked.pg_bin is not None and not Path(asked.pg_bin, "postgres").is_file():
        return f"{asked.pg_bin}/postgres"
    return None

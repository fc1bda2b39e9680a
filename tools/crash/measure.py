"""Measures the cells of a bench: each recording is made once and cut in all of its readings."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.durability.crash.campaign import WORKERS, make_cuts
from pgdyno.durability.crash.recording import MAKERS, record
from pgdyno.durability.crash.recovery import cut_recoveries
from pgdyno.machine import preflight
from pgdyno.server.binaries import find_binaries
from tools.crash.record import Found, Record
from tools.measured import state_of_its_own

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.durability.crash.recording import Recording, RecordingOptions
    from tools.crash.cells import Bench, Cell

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "libpgdyno_unsynced.so"
FAILURES_MAX: dict[Bench, int] = {"sound": 20, "recovery": 20, "mutant": 10, "torn": 1}
"""Enough to see which checks catch a planted bug; one torn page is a verdict."""


def collect(
    cells: Sequence[Cell], path: Path, seed: int, cuts: dict[Bench, int], minutes: float | None, workers: int = WORKERS
) -> Record:
    """Measure what the record at ``path`` lacks, until ``minutes`` have passed: a cell that they end goes on with the next call."""
    preflight.require_root("the record of power cuts")
    preflight.require_fuse()
    record = Record.here(find_binaries().version, seed=seed).resumed(path)
    until = math.inf if minutes is None else time.monotonic() + 60 * minutes
    recording: Recording | None = None
    with state_of_its_own(), tempfile.TemporaryDirectory(prefix="pgdyno-crash-") as root:
        Path(root).chmod(0o755)  # a server has a planted bug from there
        made: tuple[str, int] | None = None
        # A first recording of each kind before a second one of any: a record that is partial has seen all of them.
        for cell in sorted(cells, key=lambda cell: (cell.take, *cell.recording)):
            have = next((item for item in record.found if item.name == cell.name), None)
            wanted, failures_max = cuts[cell.bench], FAILURES_MAX[cell.bench]
            if have is not None:
                wanted, failures_max = wanted - have.wanted, failures_max - have.failed
            if wanted <= 0 or failures_max <= 0:
                continue
            if (lacking := _lacking(cell.asked)) is not None:
                record.skipped[cell.name] = f"this machine has no {lacking}"
                continue
            if time.monotonic() >= until:
                break
            if recording is None or made != cell.recording:
                shutil.rmtree(Path(root) / "recording", ignore_errors=True)
                recording, made = recorded(cell.asked, Path(root) / "recording"), cell.recording
            recordings = (recording, cell.reading, seed, wanted)
            if cell.bench == "recovery":
                result = cut_recoveries(*recordings, workers=workers, failures_max=failures_max, until=until)
            else:
                result = make_cuts(*recordings, workers=workers, failures_max=failures_max, until=until)
            if not result.tried and time.monotonic() >= until:
                break
            one = Found.of(cell, result.tried if time.monotonic() >= until else wanted, result, workers)
            one = one if have is None else have.joined(one)
            record.found = [other for other in record.found if other.name != cell.name] + [one]
            record.skipped.pop(cell.name, None)
            record.save(path)
            text = f"{cell.name}: {one.failed} of {one.cuts} failed, {one.cuts_per_minute:.0f} a minute"
            print(text, file=sys.stderr, flush=True)
    record.save(path)
    return record


def recorded(options: RecordingOptions, folder: Path) -> Recording:
    """A recording, with its planted bug loaded into the server."""
    if not options.planted:
        return record(options, folder)
    library = _library(folder.parent)
    return record(replace(options, planted=options.planted | {"LD_PRELOAD": str(library)}), folder)


def _library(folder: Path) -> Path:
    """The library of planted bugs in a folder where the server's user can read it."""
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", "-p", "pgdyno-unsynced"], cwd=ROOT, check=True
    )
    copy = folder / LIBRARY
    shutil.copyfile(ROOT / "target" / "release" / LIBRARY, copy)
    copy.chmod(0o755)
    return copy


def _lacking(options: RecordingOptions) -> str | None:
    """What this machine would need for a recording and does not have."""
    maker = MAKERS[options.file_system][0]
    if shutil.which(maker) is None:
        return maker
    if options.pg_bin is not None and not Path(options.pg_bin, "postgres").is_file():
        return f"{options.pg_bin}/postgres"
    if options.planted and shutil.which("cargo") is None:
        return "cargo"
    return None

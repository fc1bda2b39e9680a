"""``pgdyno volume fit``: an emulated volume fitted to a disk that exists."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import is_live

from ..base.text import printable

if TYPE_CHECKING:
    from ..advise.twin.fit import Twin
    from ..advise.twin.measure import Tell


@click.command(name="fit")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="The twin's file; it must end in .toml."
)
@click.option("--region", default="1GiB", show_default=True, metavar="SIZE", help="Amount of the disk that is used.")
@click.option(
    "--quick", is_flag=True, help="A third of the time: less exact, and does not detect buckets of more than a second."
)
@click.option("--overwrite-device", is_flag=True, help="PATH is a block device; its content may be lost.")
@click.option("--json", "as_json", is_flag=True, help="Print the twin as one JSON document.")
def fit(path: Path, output: Path, region: str, quick: bool, overwrite_device: bool, as_json: bool) -> None:
    """Measure the disk that holds PATH, and write a twin: a volume that behaves like it.

    PATH is a directory on the disk, or a file that does not exist yet. fio measures for about two and a half minutes in a
    temporary file there; no other process should use the disk during that time. The twin can be used like any other volume.

    \b
    Example:
      sudo pgdyno volume fit /var/lib/postgresql -o mine.toml
      sudo pgdyno compare mine.toml gp3
    """
    from .. import __version__
    from ..advise.twin import file
    from ..advise.twin.fio import require_fio
    from ..advise.twin.fit import fit as fit_to
    from ..advise.twin.measure import MIB, JobSchedule, measure, opened
    from ..base import catalog
    from ..machine import paths, preflight

    region_bytes = _region(region)
    file.require_writable(output)
    version = require_fio()
    preflight.require_root("attaching the volume without delay that the disk is compared with")
    preflight.require_fuse()
    preflight.require_mounts()
    preflight.require_loop()
    schedule, began = JobSchedule.quick() if quick else JobSchedule(), time.monotonic()
    with opened(path, region_bytes, overwrite=overwrite_device) as target:
        minutes = schedule.takes_s(region_bytes // MIB) / 60
        most_mib = schedule.most_written_mib(region_bytes // MIB)
        where = (
            target.shown if target.file_system is None else f"a file of {region_bytes // MIB:,} MiB in {target.shown}"
        )
        _say(
            f"measuring {target.device} for about {minutes:.1f} minutes: writes {where} repeatedly,"
            f" at most {most_mib:,} MiB in total" + ("" if target.file_system is None else "; the file is removed")
        )
        with _progress() as tell:
            result = measure(target, schedule, state_dir=paths.state_dir(), tell=tell)
        twin = fit_to(result)
        file.write(output, twin, target, result, fio=version, pgdyno=__version__)
    resolved = dict(catalog.resolve(f"twin:{output}").document)
    if as_json:
        _print_json(
            {
                "twin": str(output.absolute()),
                "notes": list(twin.notes),
                "written_bytes": result.written_bytes,
                "seconds": round(time.monotonic() - began, 1),
                "spec": resolved,
            }
        )
        return
    _print(output, resolved, twin, result.written_bytes // MIB)


def _region(text: str) -> int:
    from ..advise.twin.measure import LEAST_REGION_MIB, MIB
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes

    region_bytes = parse_bytes(text, "--region") // MIB * MIB
    if region_bytes < LEAST_REGION_MIB * MIB:
        raise InputError(
            f"--region: {text} is too small to measure", remedy=f"use at least {LEAST_REGION_MIB}MiB, preferably 1GiB"
        )
    return region_bytes


def _print(output: Path, resolved: dict[str, Any], twin: Twin, written_mib: int) -> None:
    middle = twin.probability_ppm.index(500_000)
    page = twin.size_kib.index(8)
    unit = f"{twin.unit_kib} KiB, sequential ones {'merged' if twin.merge_sequential else 'not merged'}"
    facts = [
        ("volume", resolved["title"]),
        ("bucket", f"{twin.iops_bucket_ms} ms of its IOPS, {twin.bytes_bucket_ms} ms of its throughput"),
        ("I/O unit", unit),
        ("order", {"fifo": "in turn", "gamma": "drawn"}[twin.order]),
        (
            "8 KiB",
            f"read {twin.read_ns[page][middle] / 1000:,.0f} us, write {twin.write_ns[page][middle] / 1000:,.0f} us",
        ),
        ("written", f"{written_mib:,} MiB"),
        *(("note", note) for note in twin.notes),
        ("use it", f"pgdyno compare {shlex.quote(str(output))} gp3"),
    ]
    for name, words in facts:
        click.echo(f"{name:<10}{words}")


@contextmanager
def _progress() -> Iterator[Tell]:
    """A bar with what is left on a terminal; elsewhere a line for each step."""
    began = time.monotonic()
    if not is_live(sys.stderr):
        yield lambda done_s, total_s, text: _say(
            f"[{time.monotonic() - began:5.0f} s] {text} (about {max(0.0, total_s - done_s):.0f} s left)"
        )
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=drawn(sys.stderr)), transient=True) as bar:
        task = bar.add_task("fill", total=None)
        yield lambda done_s, total_s, text: bar.update(
            task, completed=done_s, total=total_s, description=printable(text)
        )


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _print_json(document: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(document, indent=1))

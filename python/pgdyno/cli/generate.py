"""``pgdyno generate``: generates data sets as files, to be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADER = ["FILE", "ROWS", "MB", "MB ON DISK"]

_out = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the files; created if missing.",
)
_gzip = click.option("--gzip", is_flag=True, help="Compress the files.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(short_help="Generate data sets as files.")
def command() -> None:
    """Generate data sets as files, to be loaded.

    \b
    Example:
      pgdyno generate imdb --scale 0.001 --out imdb
    """


@command.command()
@click.option("--scale", type=shared.Number(), required=True, help="Size: 1 is 204 million rows, 9.5 GB.")
@_out
@click.option(
    "--file", "files", multiple=True, help="Only this file, for example title.principals; repeatable [all seven]."
)
@_gzip
@click.option("--seed", type=shared.Integer(0, 2**64 - 1), default=1, show_default=True, help="Seed of all values.")
@click.option("--threads", type=shared.Integer(1), help="Files generated in parallel [number of cores].")
@_json
def imdb(
    scale: float, out: Path, files: tuple[str, ...], gzip: bool, seed: int, threads: int | None, as_json: bool
) -> None:
    """Generate seven files in the shape of IMDb's public data sets.

    Names, columns, NULLs, ratios of rows and skew are those of the public files; the text is invented. The files are
    tab-separated, with a header and `\\N` for NULL, as in COPY's text format. The same seed gives the same bytes on every
    machine. Existing files with these names in the folder are replaced.

    \b
    Example:
      pgdyno generate imdb --scale 0.001 --out imdb
      pgdyno generate imdb --scale 0.001 --out imdb --gzip --file title.principals --json
    """
    from ..workload.generated import IMDB

    _require_room(out, IMDB.input_bytes(IMDB.tables_of(files), scale), gzip=gzip)
    texts = [*IMDB.arguments(scale, out, files, seed=seed, gzip=gzip), *_threads(threads)]
    _make(IMDB.name, texts, out, as_json=as_json)


@command.command()
@click.option(
    "--scale",
    type=shared.Number(0.001, 1000),
    required=True,
    help="Scale factor in thousandths: 1 is 8.7 million rows, 1.1 GB.",
)
@_out
@click.option("--file", "files", multiple=True, help="Only this file, for example lineitem; repeatable [all eight].")
@click.option(
    "--answers", is_flag=True, help="Instead of the data, dbgen's answers to the 22 queries; they are of scale 1."
)
@click.option(
    "--updates",
    type=shared.Integer(1, 1000),
    metavar="SETS",
    help="Instead of the data, what the refresh functions of this number of sets insert and delete, as `dbgen -U` writes it.",
)
@click.option(
    "--for-copy", is_flag=True, help="Omit the separator at the end of each line, which COPY refuses and dbgen writes."
)
@_gzip
@click.option("--overwrite", is_flag=True, help="Replace existing files [an existing file is an error].")
@click.option("--threads", type=shared.Integer(1), help="Threads that generate the files [number of cores].")
@_json
def tpch(
    scale: float,
    out: Path,
    files: tuple[str, ...],
    answers: bool,
    updates: int | None,
    for_copy: bool,
    gzip: bool,
    overwrite: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Generate the eight files of TPC-H.

    Without --for-copy they are equal to those of dbgen, byte for byte. dbgen's seeds are fixed, so there is no other data
    set of the same scale. Generating takes 310 MiB of memory at any scale.

    \b
    Example:
      pgdyno generate tpch --scale 0.01 --out tpch
      pgdyno generate tpch --scale 1 --answers --out answers
      pgdyno generate tpch --scale 1 --updates 2 --out updates
      pgdyno generate tpch --scale 0.01 --out tpch-copy --for-copy --file lineitem --file orders --json
    """
    from ..base.errors import InputError
    from ..machine import preflight
    from ..workload.generated import TPCH

    if answers and updates is not None:
        raise InputError("--answers and --updates are different files", remedy="give one of them")
    if not answers:
        if updates is None:
            _require_room(out, TPCH.input_bytes(TPCH.tables_of(files), scale), gzip=gzip)
        preflight.require_memory(TPCH.memory_bytes, "generating TPC-H's text")
    texts = [*TPCH.arguments(scale, out, files, gzip=gzip), *_threads(threads)]
    texts += [] if updates is None else [f"--updates={updates}"]
    texts += [
        flag for flag, given in (("--for-copy", for_copy), ("--answers", answers), ("--overwrite", overwrite)) if given
    ]
    _make(TPCH.name, texts, out, as_json=as_json)


def _threads(threads: int | None) -> list[str]:
    return [] if threads is None else [f"--threads={threads}"]


def _make(name: str, texts: list[str], out: Path, *, as_json: bool) -> None:
    """Have the engine make the files, and print what was made."""
    import contextlib

    from pgdyno.cli.output import print_json, print_rows
    from pgdyno.cli.progress import Bar

    from ..base import engine

    summary: dict[str, Any] = {}
    with Bar() as bar, contextlib.closing(engine.lines(["generate", name, *texts], {})) as lines:
        for line in lines:
            if "progress" in line:
                progress = line["progress"]
                bar.show(progress["share"], f"generate: {progress['rows']:,} rows, {progress['bytes'] / 2**30:.2f} GiB")
            summary = line.get("summary", summary)
    if as_json:
        print_json(summary)
        return
    print_rows(_HEADER, _rows(summary["files"]), right=_HEADER[1:])
    speed = summary["bytes"] / 1e6 / max(summary["seconds"], 1e-9)
    click.echo(f"{summary['rows']:,} rows in {summary['seconds']:.1f} s ({speed:,.0f} MB/s) below {out}", err=True)


def _rows(files: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            Path(file["path"]).name,
            f"{file['rows']:,}",
            f"{file['bytes'] / 1e6:,.1f}",
            f"{file['stored_bytes'] / 1e6:,.1f}",
        ]
        for file in files
    ]


def _require_room(out: Path, input_bytes: float, *, gzip: bool) -> None:
    """Refuse to fill a disk. ``input_bytes`` is before any compression."""
    import shutil

    from pgdyno.workload.generated import GZIP_SHARE

    from ..base.errors import HostError

    needed_bytes = input_bytes * (GZIP_SHARE if gzip else 1.0)
    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    free_bytes = shutil.disk_usage(there).free
    if needed_bytes > free_bytes:
        raise HostError(
            f"{there} has {free_bytes / 2**30:.1f} GiB left, and the files take about {needed_bytes / 2**30:.1f} GiB",
            remedy="use a smaller --scale, or another folder",
        )

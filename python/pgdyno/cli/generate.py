"""``pgdyno generate``: generates data sets as files, to be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

_BYTES = 9_500_000_000
"""Bytes of all seven files at scale 1: about as many as the public files have."""
_PACKED_SHARE = 0.45
"""What gzip leaves of them at most; measured at scale 0.01: see the reference."""

_HEADER = ["FILE", "ROWS", "MB", "MB ON DISK"]


@click.group(short_help="Generate data sets as files.")
def command() -> None:
    """Generate data sets as files, to be loaded.

    \b
    Example:
      pgdyno generate imdb --scale 0.001 --out imdb
    """


@command.command()
@click.option("--scale", type=shared.Number(), required=True, help="Size: 1 is 204 million rows, 9.5 GB.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the files; created if missing.",
)
@click.option(
    "--file", "files", multiple=True, help="Only this file, for example title.principals; repeatable [all seven]."
)
@click.option("--gzip", is_flag=True, help="Compress the files.")
@click.option("--seed", type=shared.Integer(0, 2**64 - 1), default=1, show_default=True, help="Seed of all values.")
@click.option("--threads", type=shared.Integer(1), help="Files generated in parallel [number of cores].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
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
    import contextlib

    from pgdyno import _engine
    from pgdyno.cli.output import print_json, print_rows
    from pgdyno.cli.progress import Bar

    if not files:
        _require_room(out, scale * _BYTES * (_PACKED_SHARE if gzip else 1.0))
    asked = [f"--scale={scale!r}", f"--out={out}", f"--seed={seed}", *(f"--file={name}" for name in files)]
    asked += ["--gzip"] if gzip else []
    asked += [] if threads is None else [f"--threads={threads}"]
    summary: dict[str, Any] = {}
    with Bar() as bar, contextlib.closing(_engine.lines(["generate", "imdb", *asked], {})) as lines:
        for line in lines:
            if "progress" in line:
                found = line["progress"]
                bar.show(found["share"], f"generate: {found['rows']:,} rows, {found['bytes'] / 2**30:.2f} GiB")
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
            Path(one["path"]).name,
            f"{one['rows']:,}",
            f"{one['bytes'] / 1e6:,.1f}",
            f"{one['stored_bytes'] / 1e6:,.1f}",
        ]
        for one in files
    ]


def _require_room(out: Path, needed_bytes: float) -> None:
    """Refuse to fill a disk."""
    import shutil

    from pgdyno.errors import HostError

    there = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    free_bytes = shutil.disk_usage(there).free
    if needed_bytes > free_bytes:
        raise HostError(
            f"{there} has {free_bytes / 2**30:.1f} GiB left, and the files take about {needed_bytes / 2**30:.1f} GiB",
            remedy="use a smaller --scale, or another folder",
        )

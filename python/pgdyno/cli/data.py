"""``pgdyno data``: your own databases, restored once and kept for experiments, and generated data sets as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters

from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..results.kept_database import KeptDatabase


_HEADER = ["FILE", "ROWS", "MB", "MB ON DISK"]


@click.group()
def command() -> None:
    """Keep your own databases for experiments, and generate data sets.

    `data add` restores a database once and keeps it on a disk. Each experiment that names it, or names its source, then
    starts with a clone within seconds. Only root can read the files, in /var/lib/pgdyno/databases (PGDYNO_DATABASE_DIR).

    \b
    Example:
      sudo pgdyno data list
      pgdyno data generate imdb --scale 0.001 --out imdb
    """


@command.command()
@click.argument("source")
@click.option("--name", required=True, help="Name of the kept database.")
@click.option("--globals", "globals_", metavar="FILE", help="Its roles: output of `pg_dumpall --globals-only`.")
@click.option(
    "--database", metavar="NAME", help="Name of the database in the server, or which one of pg_dumpall's [the dump's]."
)
@click.option("--user", metavar="ROLE", default="postgres", show_default=True, help="Role that will send statements.")
@click.option("--prepare", metavar="SQL", help="SQL to run after the restore, or a file NAME.sql with it.")
@click.option(
    "--jobs", type=parameters.Integer(min=1), help="Sessions that restore at the same time [this host's cores]."
)
@click.option(
    "--allow", metavar="TEXT", multiple=True, help="Part of an error that does not stop the restore; repeatable."
)
@click.option(
    "--file-system", type=click.Choice(["ext4", "xfs"]), default="ext4", show_default=True, help="Its file system."
)
@click.option(
    "--role", "roles", metavar="ROLE", multiple=True, help="Further volume, as wal or tablespace.NAME; repeatable."
)
@click.option("--size", metavar="SIZE", help="Size of each volume, as 200GiB [from the source].")
@click.option("--pg-bin", type=click.Path(), help="Directory of PostgreSQL's programs [the embedded PostgreSQL].")
@click.option("--json", "as_json", is_flag=True, help="Print its record as one JSON document.")
def add(source: str, name: str, as_json: bool, **options: Any) -> None:
    """Restore SOURCE and keep it.

    SOURCE is a dump of pg_dump (custom, directory, tar, or SQL, also .gz and .zst) or pg_dumpall, a base backup, a stopped data directory, or a
    connection string. What this PostgreSQL lacks for it is listed before anything is changed.

    \b
    Example:
      sudo pgdyno data add shop.dump --globals globals.sql --name shop
    """
    from pgdyno.workload.database import table_of

    from ..base.quantity import parse_bytes
    from ..server.binaries import find_binaries
    from ..world.kept import KeepOptions, keep, require_keepable
    from .terminal import Bar

    keys = {
        "from": source,
        "globals": options["globals_"],
        "name": options["database"],
        "user": options["user"],
        "prepare": _sql(options["prepare"]),
        "jobs": options["jobs"],
        "allow": options["allow"],
    }
    tables = table_of({key: value for key, value in keys.items() if value is not None}).data_set()
    wanted = KeepOptions(
        name,
        find_binaries(Path(options["pg_bin"]) if options["pg_bin"] else None),
        options["file_system"],
        ("data", *options["roles"]),
        None if options["size"] is None else parse_bytes(options["size"], "--size"),
    )
    require_keepable(tables, wanted)
    with Bar() as bar:
        kept, result = keep(tables, wanted, bar.show)
    if as_json:
        print_json(kept.model_dump(mode="json"))
        return
    click.echo(result, err=True)
    click.echo(f"{name}: {kept.size_bytes / 2**20:,.0f} MiB, in {kept.folder}")


def _sql(written: str | None) -> Any:
    """SQL, or the text of a file."""
    from pgdyno.workload.database import read_text

    if written is None or not written.endswith(".sql"):
        return written
    return {"name": written, "text": read_text(written, "prepare")}


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_(as_json: bool) -> None:
    """List the databases that are kept.

    \b
    Example:
      sudo pgdyno data list
      sudo pgdyno data list --json
    """
    from ..results.kept_database import databases_dir, kept_databases

    databases = kept_databases()
    if as_json:
        print_json({"databases": [database.model_dump(mode="json") for database in databases]})
        return
    if not databases:
        click.echo(f"no database is kept in {databases_dir()}; `pgdyno data add` keeps one", err=True)
        return
    header = ["NAME", "DATABASE", "SIZE", "POSTGRESQL", "VOLUMES", "KEPT", "FROM"]
    print_rows(header, [_row(database) for database in databases])


@command.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Remove it. Without this flag it is only shown.")
def remove(name: str, yes: bool) -> None:
    """Remove the kept database NAME. Its source is not touched.

    \b
    Example:
      sudo pgdyno data remove shop --yes
    """
    from ..base.errors import InputError
    from ..results.kept_database import kept_databases
    from ..world.kept import remove as remove_kept

    database = next((kept_database for kept_database in kept_databases() if kept_database.name == name), None)
    if database is None:
        raise InputError(f"no database called `{name}` is kept", remedy="`pgdyno data list` shows their names")
    what = f"{database.folder} ({database.size_bytes / 2**20:,.0f} MiB, of {database.source})"
    if not yes:
        raise InputError(f"this would remove {what}", remedy=f"pgdyno data remove {name} --yes")
    remove_kept(database)
    click.echo(f"removed {what}")


def _row(database: KeptDatabase) -> list[str]:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(database.created_unix_ns / 1e9, UTC)
    volumes = ", ".join(f"{role} {size_bytes / 2**30:.0f} GiB" for role, size_bytes in database.volume_bytes.items())
    size = f"{database.size_bytes / 2**20:,.0f} MiB"
    return [
        database.name,
        database.database,
        size,
        database.postgres_version,
        volumes,
        f"{when:%Y-%m-%d %H:%M}",
        database.source,
    ]


_out = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for the files; created if missing.",
)
_gzip = click.option("--gzip", is_flag=True, help="Compress the files.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@command.group(short_help="Generate data sets as files.")
def generate() -> None:
    """Generate data sets as files, ready for `pgdyno load`.

    \b
    Example:
      pgdyno data generate imdb --scale 0.001 --out imdb
    """


@generate.command()
@click.option("--scale", type=parameters.Number(), required=True, help="Size: 1 is 204 million rows, 9.5 GB.")
@_out
@click.option(
    "--file", "files", multiple=True, help="Only this file, for example title.principals; repeatable [all seven]."
)
@_gzip
@click.option("--seed", type=parameters.Integer(0, 2**64 - 1), default=1, show_default=True, help="Seed of all values.")
@click.option("--threads", type=parameters.Integer(1), help="Files generated in parallel [number of cores].")
@_json
def imdb(
    scale: float, out: Path, files: tuple[str, ...], gzip: bool, seed: int, threads: int | None, as_json: bool
) -> None:
    """Generate files like IMDb's public data.

    The seven files have the names, columns, NULLs, ratios of rows and skew of the public files; the text is invented. The files are
    tab-separated, with a header and `\\N` for NULL, as in COPY's text format. The same seed gives the same bytes on every
    machine. Existing files with these names in the folder are replaced.

    \b
    Example:
      pgdyno data generate imdb --scale 0.001 --out imdb
      pgdyno data generate imdb --scale 0.001 --out imdb --gzip --file title.principals --json
    """
    from pgdyno.workload.generated import IMDB

    _require_room(out, IMDB.input_bytes(IMDB.tables_of(files), scale), gzip=gzip)
    texts = [*IMDB.arguments(scale, out, files, seed=seed, gzip=gzip), *_threads(threads)]
    _make(IMDB.name, texts, out, as_json=as_json)


@generate.command()
@click.option(
    "--scale",
    type=parameters.Number(0.001, 1000),
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
    type=parameters.Integer(1, 1000),
    metavar="SETS",
    help="Instead of the data, what the refresh functions of this number of sets insert and delete, as `dbgen -U` writes it.",
)
@click.option(
    "--for-copy", is_flag=True, help="Omit the separator at the end of each line, which COPY refuses and dbgen writes."
)
@_gzip
@click.option("--overwrite", is_flag=True, help="Replace existing files [an existing file is an error].")
@click.option("--threads", type=parameters.Integer(1), help="Threads that generate the files [number of cores].")
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
      pgdyno data generate tpch --scale 0.01 --out tpch
      pgdyno data generate tpch --scale 1 --answers --out answers
      pgdyno data generate tpch --scale 1 --updates 2 --out updates
      pgdyno data generate tpch --scale 0.01 --out tpch-copy --for-copy --file lineitem --file orders --json
    """
    from pgdyno.workload.generated import TPCH

    from ..base.errors import InputError
    from ..machine import preflight

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

    from ..base import engine
    from .terminal import Bar

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
    print_rows(_HEADER, _file_rows(summary["files"]), right=_HEADER[1:])
    speed = summary["bytes"] / 1e6 / max(summary["seconds"], 1e-9)
    click.echo(f"{summary['rows']:,} rows in {summary['seconds']:.1f} s ({speed:,.0f} MB/s) below {out}", err=True)


def _file_rows(files: Sequence[dict[str, Any]]) -> list[list[str]]:
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

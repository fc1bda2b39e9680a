"""``pgdyno database``: your own databases, restored once and kept for experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import shared
from pgdyno.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from ..results.kept_database import KeptDatabase


@click.group(short_help="Keep your own databases for experiments, list and remove them.")
def command() -> None:
    """Keep your own databases for experiments, list and remove them.

    A kept database is restored once, onto a disk; each experiment that names it, or the source that it was made from, begins
    with a clone of it within seconds. Its files are readable by root alone, in /var/lib/pgdyno/databases (PGDYNO_DATABASE_DIR).

    \b
    Example:
      sudo pgdyno database list
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
@click.option("--jobs", type=shared.Integer(min=1), help="Sessions that restore at the same time [this host's cores].")
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
      sudo pgdyno database add shop.dump --globals globals.sql --name shop
    """
    from pgdyno.cli.progress import Bar
    from pgdyno.workload.database import table_of

    from ..base.quantity import parse_bytes
    from ..server.binaries import find_binaries
    from ..world.kept import KeepOptions, keep, require_keepable

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
      sudo pgdyno database list
      sudo pgdyno database list --json
    """
    from ..results.kept_database import databases_dir, kept_databases

    databases = kept_databases()
    if as_json:
        print_json({"databases": [database.model_dump(mode="json") for database in databases]})
        return
    if not databases:
        click.echo(f"no database is kept in {databases_dir()}; `pgdyno database add` keeps one", err=True)
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
      sudo pgdyno database remove shop --yes
    """
    from ..base.errors import InputError
    from ..results.kept_database import kept_databases
    from ..world.kept import remove as remove_kept

    database = next((kept_database for kept_database in kept_databases() if kept_database.name == name), None)
    if database is None:
        raise InputError(f"no database called `{name}` is kept", remedy="`pgdyno database list` shows their names")
    what = f"{database.folder} ({database.size_bytes / 2**20:,.0f} MiB, of {database.source})"
    if not yes:
        raise InputError(f"this would remove {what}", remedy=f"pgdyno database remove {name} --yes")
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

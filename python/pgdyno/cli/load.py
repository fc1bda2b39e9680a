"""``pgdyno load``: files into a PostgreSQL that exists already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pgdyno.loader import Asked

NEVER: dict[str, tuple[str, str]] = {
    "unlogged": (
        "a table is never made unlogged: after a crash it would be empty, and its replicas always are",
        "a load is fast without it: synchronous_commit is off in each chunk's transaction, and nothing is lost by that",
    ),
    "multi_az_off": (
        "Multi-AZ is never switched off: the database would be without its standby while it changes most",
        "see with --dry-run whether the standby limits the load; buy throughput for its volume too",
    ),
    "set_global": (
        "no setting of the whole server is ever changed: it would hold for everybody, and after a crash for ever",
        "`pgdyno load … --dry-run --recommend DIR` writes what to change, and what undoes it",
    ),
}
"""What documents on loading advise and this does not do: option -> (why, what instead)."""


@click.command(name="load")
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option("--into", metavar="DSN", help="The database: its connection string, without a password.")
@click.option("-t", "--table", help="As in SQL: `title`, `imdb.title` [what the one file is called].")
@click.option("--format", "form", type=click.Choice(["csv", "tsv", "text"]), help="Of all files [by their names].")
@click.option("--header/--no-header", default=None, help="Whether first rows are names [if they are the columns'].")
@click.option("--delimiter", help="Between values [CSV: comma; else: tab].")
@click.option("--quote", help='CSV only ["].')
@click.option("--escape", help="CSV only: before a quote in a value [the quote].")
@click.option("--null", help="What stands for NULL [CSV: nothing; else: \\N].")
@click.option("--encoding", default="UTF8", show_default=True, help="Of the files, in PostgreSQL's words.")
@click.option("--columns", help="Columns of the values, with commas [those of the header, or all].")
@click.option("--rename", multiple=True, metavar="NAME=COLUMN", help="A header's name that is none of the table's.")
@click.option("--create", is_flag=True, help="Make the table if there is none, from the first file's beginning.")
@click.option("--truncate", is_flag=True, help="Empty the table first.")
@click.option(
    "--upsert", metavar="KEYS", help="Columns, with commas: rows that have the same ones are replaced [none]."
)
@click.option("--via", type=click.Choice(["aws_s3"]), help="Have the server read `s3://` objects, by this extension.")
@click.option("--s3-region", help="With --via: where the objects are [AWS_REGION, AWS_DEFAULT_REGION].")
@click.option(
    "--reject", type=click.Path(dir_okay=False, path_type=Path), help="File for rows that are refused [none]."
)
@click.option("--max-rejects", type=int, default=1000, show_default=True, help="More of them end the load.")
@click.option("-c", "--connections", type=int, help="Sessions to begin with [processors here, less one; at least 2].")
@click.option("--connections-max", type=int, help="Sessions at most, if they help [twice as many].")
@click.option(
    "--chunk",
    default="8MiB",
    show_default=True,
    help="Input that is committed at a time; unless given, up to 64MiB of long plain files.",
)
@click.option("--rate", help="Uncompressed input per second at most, as `20MiB` [no limit].")
@click.option(
    "--indexes",
    type=click.Choice(["auto", "keep", "rebuild"]),
    default="auto",
    show_default=True,
    help="Fill them row by row, or drop and build them again; `auto` takes what is shorter.",
)
@click.option("--autovacuum", type=click.Choice(["off", "keep"]), default="off", show_default=True, help="Meanwhile.")
@click.option("--no-vacuum", is_flag=True, help="Leave VACUUM and ANALYZE to others.")
@click.option("--no-ledger", is_flag=True, help="Write nothing down in the database; a load cannot go on then.")
@click.option("--again", is_flag=True, help="Load what was loaded already once more.")
@click.option("--abandon", is_flag=True, help="Forget an interrupted load of the table; its rows stay.")
@click.option("--s3-endpoint", metavar="URL", help="Of a store that speaks as S3 does [AWS_ENDPOINT_URL, else AWS].")
@click.option("--s3-anonymous", is_flag=True, help="Read public buckets without credentials.")
@click.option("--dry-run", is_flag=True, help="Measure a sample, say what would limit the load, change nothing.")
@click.option("--volume", help="With --dry-run: the volume beneath the server, as `gp3:size=500GiB`.")
@click.option("--free", help="With --dry-run: free space there, as `200GiB` [what can be seen].")
@click.option(
    "--recommend", type=click.Path(file_okay=False, path_type=Path), help="With --dry-run: a folder for settings."
)
@click.option("--restore", metavar="DSN", help="Put back what killed loads have changed, and do nothing else.")
@click.option("--unlogged", is_flag=True, hidden=True)
@click.option("--multi-az-off", is_flag=True, hidden=True)
@click.option("--set-global", hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: the plan, progress, the end.")
def command(sources: tuple[str, ...], as_json: bool, restore: str | None, dry_run: bool, **options: Any) -> None:
    """Load files into a PostgreSQL that exists already, exactly once.

    A SOURCE is a file, a pattern in quotes, `s3://bucket/key` (a pattern too), `https://…`, or `-` for standard input: CSV,
    TSV or PostgreSQL's text, plain or compressed with gzip, zstd, xz or bzip2. Bytes reach COPY as they are. The same command
    goes on where an interrupted one ended; a changed file is refused. Rows that the server refuses end the load, or go to
    --reject as they were.

    \b
    Example:
      pgdyno load people.csv --into "host=db.example dbname=app user=bench" --create
      pgdyno load 'part-*.csv' --into service=pgdyno --table people --create --reject bad.csv
      pgdyno load people.csv --into service=pgdyno --dry-run --volume gp3:size=100GiB
      pgdyno load --restore service=pgdyno
    """
    from pgdyno.cli import load_result
    from pgdyno.errors import InputError

    for name, (why, instead) in NEVER.items():
        if options.get(name):
            raise InputError(f"--{name.replace('_', '-')}: {why}", remedy=instead)
    if restore is not None:
        if sources or options["into"] or dry_run:
            raise InputError("--restore loads nothing", remedy="leave the files, --into and --dry-run away")
        load_result.put_back(restore, as_json)
        return
    asked = asked_of(sources, options)
    if dry_run:
        load_result.look(asked, options["volume"], _bytes(options["free"], "--free"), options["recommend"], as_json)
        return
    for name in ("volume", "free", "recommend"):
        if options[name] is not None:
            raise InputError(f"--{name} is for --dry-run", remedy="add --dry-run, or leave it away")
    load_result.run(asked, as_json)


def asked_of(sources: tuple[str, ...], options: dict[str, Any]) -> Asked:
    """The options as the loader takes them. :class:`InputError` for those that make no sense."""
    from pgdyno.errors import InputError
    from pgdyno.loader import Asked

    if not options["into"]:
        raise InputError("--into is missing", remedy='name the database: --into "host=db.example dbname=app user=me"')
    same = ("table", "header", "delimiter", "quote", "escape", "null", "encoding", "create", "truncate", "reject")
    more = ("max_rejects", "connections", "connections_max", "indexes", "again", "abandon")
    elsewhere = ("s3_endpoint", "s3_anonymous", "via", "s3_region")
    return Asked(
        sources,
        options["into"],
        format=options["form"],
        columns=tuple(_words(options["columns"])),
        upsert=tuple(_words(options["upsert"])),
        rename=dict(_pair(text) for text in options["rename"]),
        chunk_bytes=_bytes(options["chunk"], "--chunk") or 0,
        rate_bytes_per_s=_bytes(options["rate"], "--rate"),
        autovacuum_off=options["autovacuum"] == "off",
        vacuum=not options["no_vacuum"],
        ledger=not options["no_ledger"],
        **{name: options[name] for name in (*same, *more, *elsewhere)},
    )


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",")] if text else []


def _pair(text: str) -> tuple[str, str]:
    from pgdyno.errors import InputError

    name, sign, column = text.partition("=")
    if not (name and sign and column):
        raise InputError(f"--rename: `{text}` is not understood", remedy="write it as `name=column`")
    return name, column


def _bytes(text: str | None, flag: str) -> int | None:
    from pgdyno.quantity import parse_bytes

    return None if text is None else parse_bytes(text, flag)

"""``pgdyno load``: loads files into an existing PostgreSQL server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pgdyno.loader import LoadOptions, LoadResult, Preflight

    from .terminal import Bar


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1)
@click.option("--into", metavar="DSN", help="The database: its connection string, without a password.")
@click.option("-t", "--table", help="Table, as in SQL: `title`, `imdb.title` [named after the file].")
@click.option(
    "--format", "form", type=click.Choice(["csv", "tsv", "text"]), help="Format of all files [from their names]."
)
@click.option(
    "--header/--no-header", default=None, help="Whether files have a header [if the first row is column names]."
)
@click.option("--delimiter", help="Delimiter between values [CSV: comma; else: tab].")
@click.option("--quote", help='Quote character, CSV only ["].')
@click.option("--escape", help="Escape character before a quote, CSV only [the quote].")
@click.option("--null", help="Text that means NULL [CSV: nothing; else: \\N].")
@click.option("--encoding", default="UTF8", show_default=True, help="Encoding of the files, by PostgreSQL's name.")
@click.option(
    "--columns", help="Columns in file order, separated by commas, quoted as in SQL [from the header, or all]."
)
@click.option(
    "--rename", multiple=True, metavar="NAME=COLUMN", help="Map a name of the header to a column; repeatable."
)
@click.option(
    "--create", is_flag=True, help="Create the table if it does not exist, with types that return every value as it is."
)
@click.option("--truncate", is_flag=True, help="Empty the table first.")
@click.option(
    "--upsert",
    metavar="KEYS",
    help="Key columns, separated by commas: existing rows with the same keys are replaced [none].",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["skip"]),
    help="Leave out rows whose key is in the table already; the table's row stays [the first one ends the load].",
)
@click.option("--via", type=click.Choice(["aws_s3"]), help="Let the server read `s3://` objects with this extension.")
@click.option("--s3-region", help="With --via: region of the objects [AWS_REGION, AWS_DEFAULT_REGION].")
@click.option(
    "--reject",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for rejected rows; without it the first one ends the load [none].",
)
@click.option(
    "--max-rejects", type=int, default=1000, show_default=True, help="End the load after more rejected rows than this."
)
@click.option(
    "-c", "--connections", type=int, help="Initial number of sessions [the server's processors less one; at least 2]."
)
@click.option("--connections-max", type=int, help="Maximum number of sessions, if they help [twice as many].")
@click.option(
    "--chunk",
    default="8MiB",
    show_default=True,
    help="Input per transaction; the default grows to 64MiB for long uncompressed files.",
)
@click.option("--rate", help="Maximum uncompressed input per second, for example `20MiB` [no limit].")
@click.option(
    "--indexes",
    type=click.Choice(["auto", "keep", "rebuild"]),
    default="auto",
    show_default=True,
    help="Keep indexes during the load, or drop and rebuild them; `auto` chooses the faster way.",
)
@click.option(
    "--autovacuum",
    type=click.Choice(["off", "keep"]),
    default="off",
    show_default=True,
    help="Autovacuum of the table during the load.",
)
@click.option("--no-vacuum", is_flag=True, help="Do not run VACUUM and ANALYZE after the load.")
@click.option("--no-ledger", is_flag=True, help="Do not keep a ledger; an interrupted load then cannot be resumed.")
@click.option("--again", is_flag=True, help="Load files once more that are already loaded.")
@click.option("--abandon", is_flag=True, help="Forget an interrupted load of the table; its rows stay.")
@click.option("--s3-endpoint", metavar="URL", help="Endpoint of an S3-compatible store [AWS_ENDPOINT_URL, else AWS].")
@click.option("--s3-anonymous", is_flag=True, help="Read public buckets without credentials.")
@click.option("--dry-run", is_flag=True, help="Measure a sample and report what would limit the load; change nothing.")
@click.option("--volume", help="With --dry-run: the server's volume, for example `gp3:size=500GiB`.")
@click.option("--free", help="With --dry-run: its free space, for example `200GiB` [as far as visible].")
@click.option(
    "--recommend",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --dry-run: write recommended settings into this folder.",
)
@click.option("--restore", metavar="DSN", help="Only restore what killed loads have changed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: plan, progress, result.")
def command(sources: tuple[str, ...], as_json: bool, restore: str | None, dry_run: bool, **options: Any) -> None:
    """Load files into a running PostgreSQL, each row exactly once.

    A SOURCE is a file, a pattern in quotes, `s3://bucket/key` (a pattern too), `https://…`, or `-` for standard input: CSV,
    TSV or PostgreSQL's text, plain or compressed with gzip, zstd, xz or bzip2. Bytes reach COPY unchanged. The same command
    resumes an interrupted load; a changed file is refused. A row that the server refuses ends the load, or is written to
    --reject unchanged.

    \b
    Example:
      pgdyno load people.csv --into "host=db.example dbname=app user=bench" --create
      pgdyno load 'part-*.csv' --into service=pgdyno --table people --create --reject bad.csv
      pgdyno load people.csv --into service=pgdyno --dry-run --volume gp3:size=100GiB
      pgdyno load --restore service=pgdyno
    """
    from ..base.errors import InputError

    if restore is not None:
        if sources or options["into"] or dry_run:
            raise InputError("--restore does not load files", remedy="omit the files, --into and --dry-run")
        put_back(restore, as_json)
        return
    wanted = load_options(sources, options)
    if dry_run:
        look(wanted, options["volume"], _bytes(options["free"], "--free"), options["recommend"], as_json)
        return
    for name in ("volume", "free", "recommend"):
        if options[name] is not None:
            raise InputError(f"--{name} is for --dry-run", remedy="add --dry-run, or omit it")
    _load(wanted, as_json)


def load_options(sources: tuple[str, ...], options: dict[str, Any]) -> LoadOptions:
    """The options in the loader's form. :class:`InputError` for invalid ones."""
    from pgdyno.loader import LoadOptions

    from ..base.errors import InputError

    if not options["into"]:
        raise InputError("--into is missing", remedy='name the database: --into "host=db.example dbname=app user=me"')
    same = (
        "on_conflict",
        "table",
        "header",
        "delimiter",
        "quote",
        "escape",
        "null",
        "encoding",
        "create",
        "truncate",
        "reject",
    )
    more = ("max_rejects", "connections", "connections_max", "indexes", "again", "abandon")
    elsewhere = ("s3_endpoint", "s3_anonymous", "via", "s3_region")
    return LoadOptions(
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
    """Names separated by commas; a name in double quotes may contain commas, and doubled quotes, as in SQL."""
    import csv

    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True))] if text else []


def _pair(text: str) -> tuple[str, str]:
    from ..base.errors import InputError

    name, sign, column = text.partition("=")
    if not (name and sign and column):
        raise InputError(f"--rename: `{text}` is not a pair of names", remedy="write it as `name=column`")
    return name, column


def _bytes(text: str | None, flag: str) -> int | None:
    from ..base.quantity import parse_bytes

    return None if text is None else parse_bytes(text, flag)


def _load(options: LoadOptions, as_json: bool) -> None:
    """Load the files and show the result. :class:`RowsRejected` when some rows were rejected."""
    from pgdyno.loader import load_as_asked

    from ..base.errors import RowsRejected
    from .terminal import Bar

    with Bar() as bar:
        loaded = load_as_asked(options, LoadView(bar, as_json))
    if as_json:
        _line({"event": "end", **loaded.document()})
    else:
        for line in lines(loaded):
            click.echo(line)
    if loaded.rows_rejected:
        files = " and ".join(loaded.reject_files) or "the reject file of the run that loaded them"
        raise RowsRejected(
            f"{loaded.rows_rejected:,} row{' was' if loaded.rows_rejected == 1 else 's were'} rejected; all others are loaded",
            remedy=f"correct them in {files}, and load that file",
        )


def put_back(into: str, as_json: bool) -> None:
    """Restore what killed loads have changed, and show it."""
    from pgdyno.loader import restore

    from .terminal import Bar

    with Bar() as bar:
        done = restore(into, LoadView(bar, as_json))
    if as_json:
        _line({"event": "end", "put_back": done})
        return
    for line in done:
        click.echo(line.replace(" dropped, to be rebuilt", ": rebuilt").replace(", to be", ":"))
    click.echo(f"{len(done)} changes restored" if done else "there was nothing to restore")


def look(
    result: LoadOptions, volume: str | None, free_bytes: int | None, recommend: Path | None, as_json: bool
) -> None:
    """What a load would be. :class:`HostError` when the disk would fill, after all the rest was shown."""
    from pgdyno.loader import preflight
    from pgdyno.loader.recommend import require_new

    if recommend is not None:
        require_new(recommend)
    answer = preflight(result, volume=volume, free_bytes=free_bytes)
    if as_json:
        _line({"event": "preflight", **answer.document()})
    else:
        for line in answer.lines():
            click.echo(line)
    if recommend is not None:
        for path in _written(answer, recommend):
            click.echo(f"written: {path}", err=True)
    answer.require_space()


def _written(preflight: Preflight, folder: Path) -> list[Path]:
    from pgdyno.loader.recommend import write

    return write(preflight.settings, folder)


class LoadView:
    """Shows a load's events, in the way that was asked for."""

    def __init__(self, bar: Bar, as_json: bool) -> None:
        self._bar, self._json = bar, as_json

    def __call__(self, event: Mapping[str, Any]) -> None:
        """One event."""
        if self._json:
            _line(event)
            return
        kind = event["event"]
        if kind == "create":
            click.echo(f"{event['definition']};{_types_by(event['types_by'])}", err=True)
        elif kind == "note":
            click.echo(event["text"], err=True)
        elif kind == "plan":
            click.echo(_plan(event), err=True)
        elif kind == "step":
            self._bar.show(event["share"], event["text"])
        elif kind == "progress":
            self._bar.show(event["share"] or 0.0, _progress(event))


def lines(loaded: LoadResult) -> list[str]:
    """What a load came to, in words."""
    if loaded.already:
        count = loaded.rows_loaded
        return [
            f"{loaded.table}: {_counted(count, 'row')} {'was' if count == 1 else 'were'} already loaded; nothing was done"
        ]
    spent = loaded.steps_s.get("transfer", 0.0)
    rate = f", {size((loaded.bytes - loaded.bytes_before) / spent)}/s" if spent else ""
    earlier = f" ({size(loaded.bytes_before)} of them by earlier runs)" if loaded.bytes_before else ""
    texts = [f"{loaded.table}: {_counted(loaded.rows_loaded, 'row')} loaded, {loaded.rows_rejected:,} rejected"]
    if loaded.rows_skipped is not None:
        texts.append(_skipped(loaded.rows_loaded, loaded.rows_skipped))
    texts.append(
        f"{size(loaded.bytes)}{earlier} in {loaded.seconds:.1f} s: "
        + ", ".join(f"{name.replace('_', ' ')} {seconds:.1f} s" for name, seconds in loaded.steps_s.items())
        + f"; {_counted(loaded.chunks, 'chunk')}, {_counted(loaded.connections, 'connection')}{rate}"
    )
    if (limits := _limits(loaded.limits)) is not None:
        texts.append(limits)
    if loaded.rows_merged is not None and loaded.rows_skipped is None:
        texts.append(_merged(loaded.rows_loaded, loaded.rows_merged, loaded.rows_replaced))
    if loaded.indexes:
        texts.append(f"indexes {loaded.indexes}")
    return texts + [_behind(line) for line in loaded.sequences_behind]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _limits(limits: Mapping[str, float]) -> str | None:
    """What limited the transfer. Nothing is said of one that was too short for a sample: it had no limit worth a name."""
    from pgdyno.loader.limit import UNKNOWN

    if not limits or set(limits) == {UNKNOWN}:
        return None
    # The share of the unexplained time is itself unknown.
    return "limit: " + ", ".join(name if name == UNKNOWN else f"{name} {share:.0%}" for name, share in limits.items())


def _skipped(came: int, skipped: int) -> str:
    added = came - skipped
    which = "" if skipped == 0 else f"; {_counted(skipped, 'row')} skipped, because a row with the same key was there"
    return f"added: {_counted(added, 'row')}{which}"


def _behind(line: Mapping[str, Any]) -> str:
    """A sequence that the next INSERT would fail by, with what sets it."""
    column, sequence, following, there = (line[name] for name in ("column", "sequence", "next", "loaded"))
    if following is None:
        return (
            f"{column} was loaded with numbers of its own, which do not move its sequence {sequence} (not looked at); set it:"
            f" {line['statement']};"
        )
    return (
        f"the sequence {sequence} is behind: the next INSERT would give {column} {following:,}, and the table has numbers"
        f" {'down' if there < following else 'up'} to {there:,}; set it: {line['statement']};"
    )


def _merged(came: int, merged: int, replaced: int | None) -> str:
    """What became of the rows of an upsert."""
    which = "" if replaced is None else f", {replaced:,} of them replaced existing rows"
    rest = (
        f"; {came - merged:,} changed nothing (a later row has the same key, or the row is identical)"
        if came > merged
        else ""
    )
    return f"merged: {_counted(merged, 'row')}{which}{rest}"


def size(count: float) -> str:
    """Bytes in the largest unit of which there is one."""
    place = 0
    while count >= 1024 and place < len(_UNITS) - 1:
        count, place = count / 1024, place + 1
    return f"{count:,.0f} {_UNITS[place]}" if place == 0 else f"{count:,.1f} {_UNITS[place]}"


def _plan(event: Mapping[str, Any]) -> str:
    names = ", ".join(event["sources"][:3]) + (" …" if len(event["sources"]) > 3 else "")
    header = "with a header" if event["header"] else "no header"
    amount = f", about {size(event['bytes'])}" if event["bytes"] is not None else ""
    job = "" if event["job"] is None else f", job {event['job']}" + (" resumed" if event["goes_on"] else "")
    return f"{names} into {event['table']}: {header}{amount}{job}"


def _types_by(document: Mapping[str, Any]) -> str:
    """Which rows have decided the types, as a comment behind the definition."""
    if not document.get("is_whole"):
        return ""
    rows = _counted(document["rows"], "row")
    if document["streams"]:
        return f"  -- types by the first {rows}; each later one is checked before it is sent"
    return f"  -- types by {'its' if document['rows'] == 1 else 'all'} {rows}, read in {document['seconds']:.1f} s"


def _progress(event: Mapping[str, Any]) -> str:
    from pgdyno.loader.limit import UNKNOWN

    left = "" if event["eta_s"] is None else f", {event['eta_s']:.0f} s left"
    rejected = f", {event['rows_rejected']:,} rejected" if event["rows_rejected"] else ""
    rate = f"{size(event['bytes_per_s'])}/s" if event["bytes_per_s"] else "begun"
    limit = "" if event["limit"] == UNKNOWN else f"; limit: {event['limit']}"
    return f"load: {rate}{left}{rejected}{limit}"


def _line(document: Mapping[str, Any]) -> None:
    click.echo(json.dumps(document))

"""The output of ``pgdyno load``: progress on standard error, the result on standard output; or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.cli.progress import Bar
    from pgdyno.loader import LoadOptions, LoadResult, Preflight

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def run(result: LoadOptions, as_json: bool) -> None:
    """Load and show it. :class:`RowsRejected` when some rows were rejected."""
    from pgdyno.cli.progress import Bar
    from pgdyno.loader import load_as_asked

    from ..base.errors import RowsRejected

    with Bar() as bar:
        loaded = load_as_asked(result, LoadView(bar, as_json))
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
    from pgdyno.cli.progress import Bar
    from pgdyno.loader import restore

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
    header = "first rows are names" if event["header"] else "no header"
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

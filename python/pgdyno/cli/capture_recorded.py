"""A recording on a terminal: a line that lives while clients are relayed, and what was recorded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import click

from pgdyno.cli.capture_result import lacking
from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import is_live

from ..base.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType


class RecordingView:
    """What is said during a recording: on a terminal one line that is drawn again, elsewhere where clients connect."""

    def __init__(self, seconds: float | None) -> None:
        """``seconds`` is how long it will take; None until Ctrl-C."""
        self._seconds = seconds
        self._line: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        """Begin the line, if standard error is a terminal."""
        if is_live(sys.stderr):
            from rich.console import Console
            from rich.progress import Progress, TextColumn, TimeElapsedColumn

            columns = (TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            self._line = Progress(*columns, console=Console(file=drawn(sys.stderr)), transient=True)
            self._line.start()
            self._task = self._line.add_task("waiting for clients", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the line away."""
        if self._line is not None:
            self._line.stop()

    def ready(self, host: str, port: int) -> None:
        """Clients may connect."""
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        end = "Ctrl-C ends it" if self._seconds is None else f"for {self._seconds:g} s; Ctrl-C ends it before"
        self._say(f"recording clients of {where}; {end}")

    def progress(self, counted: Mapping[str, Any]) -> None:
        """What has been recorded."""
        if self._line is not None:
            self._line.update(self._task, description=_words(counted))

    def full(self, why: str) -> None:
        """The file cannot grow."""
        self._say(f"the capture is full ({why}): clients stay connected and are no longer recorded; Ctrl-C ends it")

    def short(self, why: str) -> None:
        """Clients wait for another connection."""
        self._say(f"clients wait to be let in ({why}): raise the limit of open files (ulimit -n)")

    def _say(self, text: str) -> None:
        if self._line is not None:
            self._line.console.print(printable(text), highlight=False, markup=False)
        else:
            print(text, file=sys.stderr, flush=True)


def _words(counted: Mapping[str, Any]) -> str:
    parts = [
        f"{counted['sessions']:,} sessions",
        f"{counted['calls']:,} statements",
        f"{counted['client_bytes'] / 1e6:,.1f} MB from clients",
    ]
    if counted["tls_refused"]:
        parts.append(f"{counted['tls_refused']:,} connections refused, as they wanted TLS")
    return ", ".join(parts)


def print_recorded(document: Mapping[str, Any]) -> None:
    """What was recorded, and what of it cannot be used."""
    account = document["account"]
    cpu_us = 1e6 * document["cpu_s"] / account["calls"]
    click.echo(
        f"{account['calls']:,} statements of {document['connections']:,} connections, {document['connections_max']:,} at a time, in"
        f" {document['took_s']:,.1f} s; {cpu_us:,.0f} us of CPU a statement"
    )
    if document["tls_refused"]:
        click.echo(
            f"{document['tls_refused']:,} connections were refused: they wanted TLS, and only clear text can be recorded;"
            " set sslmode=disable or prefer there"
        )
    if document["replication"]:
        click.echo(f"{document['replication']:,} sessions of replication passed; they are not in the capture")
    if document["unreachable"]:
        click.echo(f"{document['unreachable']:,} connections were not taken by the server")
    if document["short"]:
        click.echo(
            f"{document['short']:,} times clients waited to be let in, for lack of descriptors; raise `ulimit -n`"
        )
    for line in lacking(account):
        click.echo(line)

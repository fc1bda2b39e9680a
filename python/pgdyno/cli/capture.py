"""``pgdyno capture``: an application's statements, read from a server's logs or recorded by a relay, and their replay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from pgdyno.cli import parameters
from pgdyno.cli.capture_result import lacking
from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import is_live

from ..base.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from pgdyno.capture.plan import Service

    from ..kinds.replay.capture import Copied
    from ..kinds.replay.selection import Keys, Pace


_FILE = click.Path(path_type=Path)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group()
def command() -> None:
    """Record the statements of an application, and replay them.

    A capture holds each session of an application: its statements with their values, times, durations and errors. That includes
    your customers' data, so only its owner may read the file, and `show` prints no values by default.

    \b
    Example:
      pgdyno capture plan service=app
      pgdyno capture read postgresql.csv --output shop.capture
      pgdyno capture show shop.capture
    """


@command.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=_FILE)
@click.option("--output", required=True, type=_FILE, metavar="FILE", help="The capture; an existing file is an error.")
@click.option("--prefix", metavar="TEXT", help="log_line_prefix of a log in stderr's format [found].")
@click.option("--log-timezone", metavar="ZONE", help="log_timezone, where IST, CST or PST may mean several [found].")
@_json
def read(logs: tuple[Path, ...], output: Path, prefix: str | None, log_timezone: str | None, as_json: bool) -> None:
    """Read the logs of one server into a capture.

    LOG is a csvlog, a jsonlog, a log in stderr's format (RDS, Aurora), or what a provider, a container's runtime, syslog or the journal
    makes of one: Cloud SQL, CloudWatch, Azure, CloudNativePG, Kubernetes, Docker, Loki. It may be compressed by gzip, zstd, bzip2 or xz.
    Several files are read in the order of their times, and entries in another order are sorted. The server must have logged statements:
    log_statement = all with log_duration = on, or log_min_duration_statement = 0. Statements that set a password are left out, and so
    are those of which a line cannot be used.

    \b
    Example:
      pgdyno capture read postgresql.csv --output day.capture
      pgdyno capture read postgresql.log --prefix '%m [%p] %u@%d ' --output stderr.capture
    """
    import contextlib

    from pgdyno.cli.capture_result import print_account, print_losses

    from ..base import engine, owner
    from ..capture.plan import offsets
    from .terminal import Bar, print_json

    zones = {} if log_timezone is None else offsets(log_timezone)
    document = {"logs": [str(log) for log in logs], "output": str(output), "prefix": prefix, "zones": zones}
    account: Mapping[str, Any] = {}
    reading: Mapping[str, Any] = {}
    with Bar() as bar, contextlib.closing(engine.lines(["capture", "read"], document)) as lines:
        for line in lines:
            if "progress" in line:
                progress = line["progress"]
                bar.show(progress["share"], f"read: {progress['entries']:,} entries, {progress['calls']:,} statements")
            account, reading = line.get("summary", account), line.get("reading", reading)
    owner.give(output)
    if as_json:
        print_json(dict(account) | {"reading": reading, "capture": str(output)})
        return
    print_account(account)
    print_losses(reading)
    click.echo(
        f"{output} holds {account['calls']:,} statements with their values; only its owner may read it", err=True
    )


@command.command()
@click.option("--listen", required=True, metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
@click.option("--to", required=True, metavar="HOST:PORT|DSN", help="The server.")
@click.option("--output", required=True, type=_FILE, metavar="FILE", help="The capture; an existing file is an error.")
@click.option("--for", "run_for", metavar="TIME", help="Record for this long [until Ctrl-C].")
@_json
def record(listen: str, to: str, output: Path, run_for: str | None, as_json: bool) -> None:
    """Relay clients to a server, and record what they send.

    Recording ends with Ctrl-C. Let the application connect to --listen in place of the server. Each statement is kept with its values, its times in microseconds
    and its SQLSTATE; passwords are not. Nothing on the server is changed. At the end open connections are cut, so that the
    application connects again. Only clear text can be recorded: clients with sslmode=require or stricter are refused, those
    with prefer or disable are not. Every message takes some tens of microseconds longer. If the file's disk fills up, clients stay
    connected and are no longer recorded; the capture has what came before, and the command ends with an error. What was recorded is
    written every two seconds: a recording that is killed can be used up to its last seconds.

    \b
    Example:
      pgdyno capture record --listen 127.0.0.1:6432 --to service=app --output relayed.capture
    """
    from pgdyno.capture.record import record as run_record

    from ..base import owner
    from ..base.errors import OutputError
    from ..base.quantity import parse_seconds
    from .terminal import print_json

    seconds = None if run_for is None else parse_seconds(run_for, "--for")
    with RecordingView(seconds) as shown:
        document: dict[str, Any] = {
            "ready": shown.ready,
            "progress": shown.progress,
            "full": shown.full,
            "short": shown.short,
        }
        try:
            result = run_record(listen, to, output, seconds=seconds, **document)
        except OutputError:
            owner.give(output)  # what there is of it
            raise
    owner.give(output)
    if as_json:
        print_json(dict(result) | {"capture": str(output)})
    else:
        print_recorded(result)
        click.echo(
            f"{output} holds {result['account']['calls']:,} statements with their values; only its owner may read it",
            err=True,
        )
    if result["ended_early"] is not None:
        raise OutputError(
            f"{output} has only the beginning of the recording ({result['ended_early']}); it can be used as it is",
            remedy="record again into a file on a disk with more room",
            code="capture.record.full",
            data={"path": str(output), "calls": result["account"]["calls"]},
        )


@command.command()
@click.argument("capture", type=_FILE)
@click.option("--values", is_flag=True, help="Print values: an example of each statement, or all of a session.")
@click.option(
    "--session", type=parameters.Integer(1), metavar="N", help="Show the statements of this session in their order."
)
@click.option("--limit", type=parameters.Integer(1), default=20, show_default=True, help="Statements in the table.")
@_json
def show(capture: Path, values: bool, session: int | None, limit: int, as_json: bool) -> None:
    """Show the sessions, statements, load and errors of CAPTURE.

    Statements are sorted by time, and what is missing is listed. They are shown with `?` in place of each literal.

    \b
    Example:
      pgdyno capture show shop.capture
      pgdyno capture show shop.capture --session 1
      pgdyno capture show shop.capture --json
    """
    from pgdyno.cli.capture_result import print_capture, print_session

    from ..base import engine
    from .terminal import print_json

    json = engine.run_json(
        ["capture", "show"], {"capture": str(capture), "values": values, "session": session}, timeout_s=_SHOW_S
    )
    if as_json:
        print_json(json)
        return
    if session is None:
        print_capture(str(capture), json, limit)
    else:
        print_session(json)


@command.command()
@click.argument("capture", type=_FILE)
@click.option("--dsn", required=True, metavar="DSN", help="The server; users and databases are those of the capture.")
@click.option("--yes-write", is_flag=True, help="Send statements that write. Without this flag nothing is sent.")
@click.option(
    "--speed",
    type=parameters.Number(0.01, 1000),
    default=1.0,
    show_default=True,
    help="Playback speed: 2 replays twice as fast.",
)
@click.option(
    "--pace",
    type=click.Choice(["due", "gaps"]),
    default="due",
    show_default=True,
    help="due: at the captured time; gaps: keep the application's pauses.",
)
@click.option(
    "--keys",
    type=click.Choice(["learned", "captured"]),
    default="learned",
    show_default=True,
    help="Send the keys that this server generates instead of production's, or production's.",
)
@click.option(
    "--wait-max",
    "wait_max_s",
    type=parameters.Number(0, 3600),
    default=10.0,
    show_default=True,
    metavar="S",
    help="Seconds that a statement waits for the transaction that makes its key; 0: none.",
)
@click.option(
    "--copy",
    "copied",
    type=click.Choice(["left_out", "made"]),
    default="left_out",
    show_default=True,
    help="Logs lack the rows of COPY FROM STDIN: leave it out, or make rows from the columns' statistics.",
)
@click.option("--user", "users", multiple=True, metavar="CAPTURED=HERE", help="Replace a role; repeatable.")
@click.option("--database", "databases", multiple=True, metavar="CAPTURED=HERE", help="Replace a database; repeatable.")
@parameters.allow_outside
@parameters.accept_losses
@click.option(
    "--stats",
    nargs=2,
    metavar="BEFORE AFTER",
    help="Output of `pgdyno capture stats` before and after the capture, to compare each statement's work with production.",
)
@_json
def replay(
    capture: Path,
    dsn: str,
    yes_write: bool,
    speed: float,
    pace: Pace,
    keys: Keys,
    wait_max_s: float,
    copied: Copied,
    allow_outside: tuple[str, ...] | None,
    accept_losses: bool | None,
    users: tuple[str, ...],
    databases: tuple[str, ...],
    stats: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """Send the statements of CAPTURE to a server at their times, and compare the results.

    The server should have the database as it was when the capture began: a restored copy, never production. Each statement goes
    out as its user, with its protocol and its values; its error and duration are compared with the recorded ones. Keys that
    the server gives (sequences, uuids) are found in the capture and exchanged for those of this server. Rows of COPY and what leaves
    the server are left out, and counted. A database from which statements could reach other servers, or files and programs of the
    server, is refused before the first one, unless --allow-outside names the way. With --stats the server must count statements (pg_stat_statements), and their calls, rows, WAL
    and blocks are compared with production's. It ends with exit code 4 if more than 1 % of the statements, or of their recorded
    time, failed newly, was left out or did other work, if the database is older or newer than the capture, and if the capture itself lacks
    more than 1 % of the statements that its log had, unless --accept-losses says that this is known.

    \b
    Example:
      pgdyno capture replay shop.capture --dsn service=pgdyno --user app=bench --database shop=app --yes-write
    """
    from pgdyno.capture.replay import replay as run_replay
    from pgdyno.cli.capture_result import print_replay

    from ..base.endpoint import refuse_secrets
    from ..base.errors import RunInvalid
    from ..kinds.replay.outside import require_names
    from .terminal import Bar, print_json

    refuse_secrets(dsn, "--dsn", "capture replay")
    require_names(allow_outside or (), "--allow-outside")
    parameters.require_consent(f"the statements of {capture}, those that write too,", dsn, yes_write=yes_write)
    with Bar() as bar:
        replay = run_replay(
            str(capture),
            dsn,
            speed=speed,
            pace=pace,
            keys=keys,
            wait_max_s=wait_max_s,
            copied=copied,
            allowed=allow_outside or (),
            users=_pairs(users, "--user"),
            databases=_pairs(databases, "--database"),
            stats=stats,
            accept_losses=bool(accept_losses),
            progress=bar.show,
            note=lambda notice: click.echo(f"note: {notice}", err=True),
        )
    if as_json:
        print_json(replay.document())
    else:
        print_replay(replay)
    if reasons := replay.reasons():
        raise RunInvalid(
            f"this was not the captured load: {'; '.join(reasons)}",
            remedy=replay.remedy,
            code="replay.invalid",
            data={"reasons": reasons},
        )


def _pairs(written: tuple[str, ...], flag: str) -> dict[str, str]:
    """``CAPTURED=HERE`` in a mapping."""
    from ..base.errors import InputError

    pairs = {}
    for text in written:
        before, sign, after = text.partition("=")
        if not sign or not after:
            raise InputError(f"{flag}: {text} is not a pair", remedy=f"write {flag} CAPTURED=HERE")
        pairs[before] = after
    return pairs


@command.command()
@click.argument("dsn")
@click.option(
    "--for",
    "service",
    type=click.Choice(["server", "rds"]),
    default="server",
    show_default=True,
    help="Where settings are made: ALTER SYSTEM, or a parameter group of RDS or Aurora.",
)
@click.option(
    "--sample",
    type=parameters.Number(0.0001, 1),
    default=1.0,
    show_default=True,
    help="Share of the transactions to log.",
)
@_json
def plan(dsn: str, service: Service, sample: float, as_json: bool) -> None:
    """Print how to let the server DSN log what a capture needs. Nothing on the server is changed.

    Printed are the settings, the statements that undo them exactly, the size and CPU that logging will take by the server's own
    counters, and the order of log and dump.

    \b
    Example:
      pgdyno capture plan service=app
      pgdyno capture plan service=app --for rds --sample 0.05
    """
    from pgdyno.capture.plan import plan as make_plan
    from pgdyno.cli.capture_result import print_plan

    from ..base.endpoint import refuse_secrets
    from .terminal import print_json

    refuse_secrets(dsn, "DSN", "capture plan")
    result = make_plan(dsn, service, sample)
    if as_json:
        print_json(result.document())
        return
    print_plan(result, dsn)


@command.command()
@click.argument("dsn")
def stats(dsn: str) -> None:
    """Print the counters of a server as one JSON document.

    They are pg_stat_statements, settings, sequences and sizes. Keep one document from before the capture and one from after it.
    It contains no literals of statements, and no setting that may contain a password.

    \b
    Example:
      pgdyno capture stats service=app > before.json
    """
    from ..base.endpoint import refuse_secrets
    from ..capture.replay import stats as read_stats
    from .terminal import print_json

    refuse_secrets(dsn, "DSN", "capture stats")
    print_json(read_stats(dsn))


_SHOW_S = 3600.0
"""A capture of a day has some ten gigabytes, which are read once."""


class RecordingView:
    """Progress of a recording: on a terminal one line that is drawn again, elsewhere a line about where to connect."""

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

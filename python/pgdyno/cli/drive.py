"""``pgdyno drive``: scripts against a server, by pgdyno's own driver, without an experiment around them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import shared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.cli.progress import Bar
    from pgdyno.postgres.remote import RemoteServer
    from pgdyno.workload.native_record import Said
    from pgdyno.workload.spec import Server, WorkloadSpec

_SCALE_DEFAULT = 10
_NOT_OF_IDLE = ("dsn", "setup", "scale", "pg_bin")
"""Options that are about a server, which idle clients have none of."""
_EMBEDDED_MEMORY_BYTES = 512 << 20
"""Settings of the embedded server are those of so much memory; nothing is limited."""
_CONNECTIONS_BESIDE = 20
"""Of the embedded server, beside the clients': PostgreSQL's own, and somebody who looks."""


@click.command(name="drive")
@click.argument("scripts", metavar="SCRIPT...", nargs=-1, required=True)
@click.option("--dsn", help="A server that is there: its connection string, without a password [an embedded one].")
@click.option(
    "--setup", type=click.Path(dir_okay=False, path_type=Path), help="SQL that makes your scripts' tables [pgbench's]."
)
@click.option("-s", "--scale", type=int, help="Of pgbench's tables, and :scale [10, or what is there].")
@click.option("-c", "--clients", type=int, default=8, show_default=True, help="Connections that work at a time.")
@click.option("-j", "--threads", type=int, default=1, show_default=True, help="Threads that serve them.")
@shared.protocol
@shared.rate
@click.option("--arrivals", type=click.Choice(["poisson", "fixed"]), help="Of an open loop [poisson].")
@click.option("--think-ms", type=float, help="Closed loop: how long clients wait between transactions [not].")
@click.option("--late-max-ms", type=int, help="Skip what would begin later than this [nothing].")
@click.option("--tries-max", type=int, default=1, show_default=True, help="Of what 40001 or 40P01 ended; 0: no limit.")
@click.option("--warmup", default="2s", show_default=True, help="Driven, but not counted.")
@click.option("--duration", default="10s", show_default=True, help="Counted.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides every random draw.")
@click.option(
    "--pg-bin", type=click.Path(path_type=Path), help="Directory of the embedded server's programs [its own]."
)
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the driver was the limit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(scripts: tuple[str, ...], as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Drive scripts against a server, and say what they took.

    A SCRIPT is a file in pgbench's language, or `tpcb-like`, `simple-update`, `select-only`; `@9` after it is its weight
    beside the others. `idle` sends nothing and measures the driver. Without --dsn an embedded server with pgbench's
    tables is started and taken away; on a server that is there, tables must be there too, and scripts may write to them.

    Response time counts from when a transaction was due, service time from when it began. Ctrl-C ends it with the
    figures until then.

    \b
    Example:
      pgdyno drive select-only --clients 4 --duration 5s
      pgdyno drive experiments/scripts/transfer.sql@9 experiments/scripts/balance.sql --rate 200
      pgdyno drive tpcb-like --dsn "host=db.example dbname=app user=bench" --json
      pgdyno drive idle --rate 20000
    """
    from pgdyno.cli import drive_result
    from pgdyno.errors import Interrupted, RunInvalid

    spec, said, interrupted = _drive(_spec(scripts, options), options)
    result = drive_result.of(spec, said, interrupted=interrupted)
    drive_result.show(result, as_json)
    if interrupted:
        raise Interrupted(
            "interrupted; the figures above are those until then", remedy="let it run for its whole --duration"
        )
    if not result.valid and not keep_invalid:
        raise RunInvalid(
            "the driver was the limit, and not the server", remedy="ask for less, or give the driver a core of its own"
        )


def _spec(scripts: tuple[str, ...], options: Mapping[str, Any]) -> WorkloadSpec:
    from pgdyno.errors import InputError
    from pgdyno.workload import native
    from pgdyno.workload.spec import WorkloadSpec

    asked = {
        **_kind(scripts),
        "engine": "native",
        "clients": options["clients"],
        "threads": options["threads"],
        "protocol": options["protocol"],
        "rate_per_s": options["rate"],
        "think_ms": options["think_ms"],
        "late_max_ms": options["late_max_ms"],
        "tries_max": options["tries_max"],
        "seed": options["seed"],
    }
    if options["arrivals"] is not None:
        asked["arrivals"] = options["arrivals"]
    if asked["kind"] == "idle":
        _refuse_server(options)
    else:
        asked["scale"] = _SCALE_DEFAULT if options["scale"] is None else options["scale"]
    try:
        spec = WorkloadSpec.of(**asked)
    except InputError as error:
        raise InputError(error.message, remedy="see `pgdyno drive --help`") from error
    native.require(spec)
    return spec


def _refuse_server(options: Mapping[str, Any]) -> None:
    """Refuse what says something of a server beside `idle`."""
    from pgdyno.errors import InputError

    given = [f"--{name.replace('_', '-')}" for name in _NOT_OF_IDLE if options[name] is not None]
    if given:
        raise InputError(
            f"idle clients have no server, so {' and '.join(given)} would change nothing",
            remedy=f"leave {' and '.join(given)} away, or name a script instead of `idle`",
        )


def _kind(scripts: tuple[str, ...]) -> dict[str, Any]:
    """What the words after the command name: files, built-in scripts, or nothing."""
    from pgdyno.errors import InputError
    from pgdyno.workload.scripts import SCRIPTS, ScriptFile, read_script, split_weight

    names = [split_weight(script)[0] for script in scripts]
    if names == ["idle"]:
        return {"kind": "idle"}
    builtin = [name for name in names if name in SCRIPTS]
    if not builtin:
        return {"kind": "script", "files": tuple(ScriptFile(**read_script(script, Path())) for script in scripts)}
    if len(builtin) < len(names):
        raise InputError(
            "built-in scripts and others cannot be mixed", remedy="write the built-in ones into files of their own"
        )
    return {"kind": "pgbench", "script": ",".join(scripts)}


def _drive(spec: WorkloadSpec, options: Mapping[str, Any]) -> tuple[WorkloadSpec, Said, bool]:
    """Drive: what was asked in the end, what the driver said, and whether it was interrupted."""
    import tempfile

    from pgdyno.cli.progress import Bar
    from pgdyno.quantity import parse_seconds
    from pgdyno.workload import native

    warmup_ms = round(1000 * parse_seconds(options["warmup"], "--warmup"))
    duration_ms = max(1, round(1000 * parse_seconds(options["duration"], "--duration")))
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Bar())
        found = stack.enter_context(_server(spec, options, bar))
        spec = spec.model_copy(update={"scale": found.scale})
        document = native.document(spec, warmup_ms, duration_ms, spec.seed)
        if found.server is not None:
            document |= {"server": native.connection(found.server)}
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-drive-")))
        driving = stack.enter_context(
            native.Driving(document, folder / "drive.err", env=native.environment(found.environment))
        )
        heard = native.shown(native.span_of(driving.said, warmup_ms, duration_ms), bar.show)
        interrupted = False
        try:
            driving.follow(heard)
        except KeyboardInterrupt:
            interrupted = True
            driving.stop()
            driving.follow(heard)
        return spec, driving.said, interrupted


@dataclass(frozen=True)
class _Found:
    """The server, with what the scripts need on it; None for idle clients."""

    server: Server | None
    scale: int
    """Of pgbench's tables there."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the connection needs beside its string."""


@contextlib.contextmanager
def _server(spec: WorkloadSpec, options: Mapping[str, Any], bar: Bar) -> Iterator[_Found]:
    """The server that was named, or one of the command's own that is gone afterwards."""
    from pgdyno.postgres import settings
    from pgdyno.postgres.binaries import find_binaries
    from pgdyno.postgres.remote import RemoteServer
    from pgdyno.postgres.throwaway import throwaway
    from pgdyno.workload.load import load

    if spec.kind == "idle":
        yield _Found(None, spec.scale)
        return
    binaries = find_binaries(options["pg_bin"])
    if options["dsn"] is not None:
        _refuse_secrets(options["dsn"])
        remote = RemoteServer.open(options["dsn"], binaries)
        _set_up(remote, options["setup"])
        yield _Found(remote, _scale_of(remote, options["scale"], spec), remote.environment)
        return
    bar.show(0.0, "start: an embedded server")
    connections = {"max_connections": str(spec.clients + _CONNECTIONS_BESIDE)}
    with throwaway(binaries, settings.tuned(_EMBEDDED_MEMORY_BYTES, binaries.major) | connections) as cluster:
        if spec.kind == "pgbench" or options["setup"] is None:
            load(cluster, spec, lambda share, text: bar.show(share, f"load: {text}"))
        _set_up(cluster, options["setup"])
        yield _Found(cluster, spec.scale)


def _refuse_secrets(dsn: str) -> None:
    from pydantic_core import PydanticCustomError

    from pgdyno.errors import InputError
    from pgdyno.experiment.tables import refuse_secrets

    try:
        refuse_secrets(dsn)
    except PydanticCustomError as error:
        raise InputError(f"--dsn: {error.message()}", remedy="see `pgdyno drive --help`") from error


def _scale_of(remote: RemoteServer, asked: int | None, spec: WorkloadSpec) -> int:
    """The scale of pgbench's tables on a server, as pgbench finds it; that of a user's script is what was asked."""
    from pgdyno.errors import InputError

    with remote.connect() as connection:
        there = connection.execute("SELECT to_regclass('pgbench_branches') IS NOT NULL").fetchone()
        row = connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() if there and there[0] else None
    if row is None:
        if spec.kind == "pgbench":
            raise InputError(
                f"the database {remote.record.dbname} has no pgbench tables",
                remedy=f"make them with `pgbench -i -s {spec.scale}`",
            )
        return asked or 1
    if asked is not None and asked != row[0] and spec.kind == "pgbench":
        raise InputError(f"pgbench's tables there have scale {row[0]}, not {asked}", remedy="leave --scale away")
    return asked or max(1, int(row[0]))


def _set_up(server: Server, file: Path | None) -> None:
    """Execute a file of SQL as one transaction; :class:`InputError` with what the server says of it."""
    if file is None:
        return
    import psycopg

    from pgdyno.errors import InputError

    try:
        text = file.read_text(encoding="utf-8")
        with psycopg.connect(server.dsn) as connection:
            connection.execute(text.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--setup: {file} cannot be read: {error}", remedy="name a file of SQL") from error
    except psycopg.Error as error:
        raise InputError(f"--setup: {file}: {' '.join(str(error).split())}", remedy="correct the file") from error

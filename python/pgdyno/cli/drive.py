"""``pgdyno drive``: runs scripts, or streams of TPC-H's queries, against a server, without an experiment."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.workload.native_record import DriverOutput
    from pgdyno.workload.outcome import Outcome
    from pgdyno.workload.server import Server

    from ..kinds.tpch.kind import Tpch
    from ..server.remote import RemoteServer
    from ..workload.clients import Clients
    from .terminal import Bar

_SCALE_DEFAULT = 10
_WAREHOUSES_DEFAULT = 2
_OF_SCRIPTS = ("setup", "scale", "define")
_OF_TPCC = ("warehouses", "profile", "routines", "schema")
_OF_CAPTURE = ".capture"
"""How the name of a capture ends."""
_NOT_OF_CAPTURE = ("protocol", "tries_max", "continue_on_error")
"""Options that the statements of a capture decide themselves."""
_OF_TPCH = ("scale_factor", "query_sets", "degree", "refresh")
_SCALE_FACTOR_DEFAULT = 0.1
_TPCH_OPTIONS = (
    "scripts",
    "dsn",
    "scale_factor",
    "profile",
    "clients",
    "query_sets",
    "degree",
    "schema",
    "refresh",
    "duration",
    "seed",
    "pg_bin",
)
_ALWAYS = ("keep_invalid", "as_json")
_MIB = 2**20
_DONE = {"insert": "inserted", "delete": "deleted"}
_NOT_OF_IDLE = ("dsn", "setup", "scale", "define", "pg_bin")
"""Options about the server: idle clients have no server."""
_EMBEDDED_MEMORY_BYTES = 512 << 20
"""The embedded server's settings are those for this memory; the memory itself is not limited."""


@click.command(name="drive")
@click.argument("scripts", metavar="SCRIPT...", nargs=-1, required=True)
@click.option("--dsn", help="An existing server: its connection string, without a password [an embedded one].")
@click.option(
    "--setup",
    type=click.Path(dir_okay=False, path_type=Path),
    help="SQL file that creates the tables of your scripts [pgbench's tables].",
)
@click.option(
    "-s",
    "--scale",
    type=int,
    help="Scale of pgbench's tables, and value of :scale [10, or that of the existing tables].",
)
@click.option(
    "-D",
    "--define",
    metavar="NAME=VALUE",
    multiple=True,
    help="Value of a variable of your scripts, as in pgbench; repeatable.",
)
@click.option("--warehouses", type=int, help="For `tpcc`: number of warehouses [2].")
@click.option(
    "--profile",
    type=click.Choice(["hammerdb", "spec"]),
    help="For `tpcc` and `tpch`: like HammerDB's TPROC-C and TPROC-H, or as specified by TPC-C and TPC-H [hammerdb].",
)
@click.option(
    "--routines",
    type=click.Choice(["functions", "procedures", "statements"]),
    help="For `tpcc`: how a transaction runs its statements [functions].",
)
@click.option(
    "--schema",
    type=click.Choice(["public"]),
    help="For `tpcc` and `tpch` with --dsn: use the tables that HammerDB built [pgdyno's own tables].",
)
@click.option(
    "--scale-factor", type=parameters.Number(), help="For `tpch`: dbgen's scale factor; 1 is about 2 GiB [0.1]."
)
@click.option("--query-sets", type=parameters.Integer(1), help="For `tpch`: how often a stream runs all queries [1].")
@click.option("--degree", type=parameters.Integer(0), help="For `tpch`: parallel workers of a query [2].")
@click.option(
    "--refresh",
    type=click.Choice(["none", "power", "stream"]),
    help="For `tpch`: refresh functions around the queries of one stream, or beside the streams [none].",
)
@click.option(
    "-c",
    "--clients",
    type=int,
    default=8,
    show_default=True,
    help="Number of clients; for `tpch` of streams [1].",
)
@click.option("-j", "--threads", type=int, default=1, show_default=True, help="Threads that serve the clients.")
@parameters.protocol
@parameters.rate
@click.option(
    "--arrivals", type=click.Choice(["poisson", "fixed"]), help="Distribution of arrivals in an open loop [poisson]."
)
@click.option("--think-ms", type=parameters.Number(), help="Closed loop: think time between transactions [0].")
@click.option("--late-max-ms", type=int, help="Skip transactions that would start more than this late [never skip].")
@click.option(
    "--tries-max",
    type=int,
    help="Attempts per transaction after a serialization failure or deadlock; 0 is unlimited [1; for `tpcc` 10].",
)
@click.option(
    "--continue-on-error", is_flag=True, help="Count statements that the server refuses [end at the first one]."
)
@click.option("--warmup", default="2s", show_default=True, help="Length of the warm-up, which is not measured.")
@click.option("--duration", default="10s", show_default=True, help="Length of the measured phase.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of all random draws.")
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="CAPTURED[=HERE]",
    help="For a capture: only this role; repeatable [all].",
)
@click.option(
    "--database",
    "databases",
    multiple=True,
    metavar="CAPTURED[=HERE]",
    help="For a capture: only this database, possibly under another name here; repeatable [all].",
)
@parameters.allow_outside
@parameters.accept_losses
@click.option("--yes-write", is_flag=True, help="For a capture: send its statements, including those that write.")
@click.option(
    "--pg-bin", type=click.Path(path_type=Path), help="Directory of PostgreSQL's programs [the embedded PostgreSQL]."
)
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the figures are invalid.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(scripts: tuple[str, ...], as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Run SQL scripts against a server and measure them.

    A SCRIPT is a file in pgbench's language, or `tpcb-like`, `simple-update`, `select-only`; `@9` after it is its weight
    in a mix. `tpcc` runs five transactions derived from TPC-C. `tpch` runs 22 queries derived from TPC-H once; --duration is then
    their time limit [1h]. A file whose name ends in .capture is one of `pgdyno capture read`:
    its transactions are drawn, with their values, and sent to a copy of its database (--dsn), each as its role. `idle` sends
    nothing and measures the driver. Without --dsn an embedded server with the tables is started and removed afterwards. On an
    existing server the tables must exist, and scripts may change them.

    Response time counts from the scheduled start of a transaction, service time from its actual start. Ctrl-C, or a
    statement that the server refuses, ends the run; the figures until then are printed.

    \b
    Example:
      pgdyno drive select-only --clients 4 --duration 5s
      pgdyno drive experiments/scripts/transfer.sql@9 experiments/scripts/balance.sql --rate 200
      pgdyno drive tpcb-like --dsn "host=db.example dbname=app user=bench" --json
      pgdyno drive tpcc --warehouses 2
      pgdyno drive tpch --scale-factor 0.1
      pgdyno drive idle --rate 20000
    """
    from ..base.errors import Interrupted, PgdynoError, RunInvalid
    from . import drive_result

    _refuse_schema(options)
    if scripts == ("tpch",):
        _run_tpch(options, as_json=as_json, keep_invalid=keep_invalid)
        return
    _refuse_options_of_tpch()
    spec, output, interrupted = _drive(_spec(scripts, options), options)
    result = drive_result.of(spec, output, interrupted=interrupted)
    drive_result.show(result, as_json)
    if interrupted:
        raise Interrupted(
            "interrupted; the figures above cover the time until then", remedy="let it run for its whole --duration"
        )
    if result.ended_by is not None:
        # Not as an error of input: transactions may be committed.
        raise PgdynoError(
            f"{result.ended_by['message']}; the figures above are incomplete",
            remedy=result.ended_by["remedy"],
            code=result.ended_by["code"],
            data=result.ended_by["data"],
        )
    if result.invalid is not None and not keep_invalid:
        raise RunInvalid(
            f"the figures are invalid: {result.invalid.figure}", remedy=drive_result.REMEDIES[result.invalid.check]
        )


def _spec(scripts: tuple[str, ...], options: Mapping[str, Any]) -> Clients:
    from pgdyno.workload import native

    from ..base.errors import InputError
    from ..kinds.registry import kind_of, workload_of
    from ..workload.clients import clients_of

    document = {
        **_kind(scripts, options),
        "engine": "native",
        "clients": options["clients"],
        "threads": options["threads"],
        "protocol": options["protocol"],
        "rate_per_s": options["rate"],
        "think_ms": options["think_ms"],
        "late_max_ms": options["late_max_ms"],
        "seed": options["seed"],
    }
    document |= {name: options[name] for name in ("arrivals", "tries_max") if options[name] is not None}
    kind = kind_of(document)
    _refuse_foreign(document, options)
    if "capture" in document:
        _refuse_of_capture(options)
        document = {name: value for name, value in document.items() if name not in _NOT_OF_CAPTURE}
    elif kind is None or not kind.asks_server:
        _refuse_server(options)
    elif "warehouses" not in document:
        document["scale"] = _SCALE_DEFAULT if options["scale"] is None else options["scale"]
    try:
        spec = clients_of(workload_of(**document))
    except InputError as error:
        raise InputError(error.message, remedy="see `pgdyno drive --help`", code=error.code, data=error.data) from error
    assert spec is not None
    if "capture" in document:
        spec.require()
        return spec
    native.require(spec)
    return spec


def _refuse_schema(options: Mapping[str, Any]) -> None:
    """Refuse HammerDB's tables on a server that is started here: it has none."""
    from ..base.errors import InputError

    if options["schema"] is not None and options["dsn"] is None:
        raise InputError(
            "--schema public is what HammerDB has built on an existing server",
            remedy="name the server with --dsn, or omit --schema",
        )


def _refuse_options_of_tpch() -> None:
    """Refuse options of `tpch` for another workload."""
    from ..base.errors import InputError

    foreign = [f"--{name.replace('_', '-')}" for name in _OF_TPCH if _given(name)]
    if foreign:
        raise InputError(
            f"{' and '.join(foreign)} would have no effect: it is for `tpch`", remedy=f"omit {' and '.join(foreign)}"
        )


def _refuse_server(options: Mapping[str, Any]) -> None:
    """Refuse options about a server together with `idle`."""
    from ..base.errors import InputError

    given = [f"--{name.replace('_', '-')}" for name in _NOT_OF_IDLE if options[name] not in (None, ())]
    if given:
        raise InputError(
            f"idle clients have no server, so {' and '.join(given)} would have no effect",
            remedy=f"omit {' and '.join(given)}, or name a script instead of `idle`",
        )


def _refuse_of_capture(options: Mapping[str, Any]) -> None:
    """Refuse what a capture has itself, and to send it without a server that may be changed."""
    from ..base.errors import InputError

    foreign = [f"--{name.replace('_', '-')}" for name in (*_OF_SCRIPTS, *_NOT_OF_CAPTURE) if _given(name)]
    if foreign:
        raise InputError(
            f"{' and '.join(foreign)} would have no effect: a capture has its statements and its tables",
            remedy=f"omit {' and '.join(foreign)}",
        )
    if options["dsn"] is None:
        raise InputError(
            "an embedded server has no copy of the captured database",
            remedy='name a server that has one with --dsn, or use kind = "sample" in an experiment file',
        )


def _refuse_foreign(document: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse options about other tables than the workload's."""
    from ..base.errors import InputError

    has_warehouses = "warehouses" in document
    given = [f"--{name}" for name in (_OF_SCRIPTS if has_warehouses else _OF_TPCC) if options[name] not in (None, ())]
    if given:
        tables = "tables of warehouses" if has_warehouses else "no warehouses"
        raise InputError(
            f"{' and '.join(given)} would have no effect: this workload has {tables}",
            remedy=f"omit {' and '.join(given)}",
        )


def _kind(scripts: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The workload's kind: files, built-in scripts, tpcc or idle."""
    from ..base.errors import InputError
    from ..kinds.pgbench import SCRIPTS, ScriptFile, read_script, split_weight

    names = [split_weight(script)[0] for script in scripts]
    if len(names) == 1 and names[0].endswith(_OF_CAPTURE):
        chosen = {
            name: options[name] for name in ("users", "databases", "allow_outside", "accept_losses") if options[name]
        }
        return {"kind": "sample", "capture": names[0]} | chosen
    if names == ["idle"]:
        return {"kind": "idle"}
    if names == ["tpcc"]:
        warehouses, profile = options["warehouses"], options["profile"]
        return {
            "kind": "tpcc",
            "warehouses": _WAREHOUSES_DEFAULT if warehouses is None else warehouses,
            "profile": profile or "hammerdb",
            "routines": options["routines"] or "functions",
            **({} if options["schema"] is None else {"schema": options["schema"]}),
        }
    builtin = [name for name in names if name in SCRIPTS]
    if not builtin:
        files = tuple(ScriptFile(**read_script(script, Path())) for script in scripts)
        return {"kind": "script", "files": files, "variables": _variables(options["define"])}
    if options["define"]:
        raise InputError(
            "--define would have no effect: the built-in scripts take no variables", remedy="omit --define"
        )
    if len(builtin) < len(names):
        raise InputError(
            "built-in scripts and your own files cannot be mixed", remedy="write the built-in ones into files, too"
        )
    return {"kind": "pgbench", "script": ",".join(scripts)}


def _variables(definitions: tuple[str, ...]) -> dict[str, str]:
    """The values of ``-D NAME=VALUE``, the last of each name. :class:`InputError` without a name or a `=`."""
    from ..base.errors import InputError

    variables = {}
    for definition in definitions:
        name, equals, value = definition.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(
                f"-D {definition}: a variable is given as NAME=VALUE",
                remedy="write it as -D rows=1000; a name has letters, digits and underscores",
                code="drive.define.malformed",
                data={"definition": definition},
            )
        variables[name] = value
    return variables


def _drive(spec: Clients, options: Mapping[str, Any]) -> tuple[Clients, DriverOutput, bool]:
    """Run the scripts: the workload as it was driven, the driver's output, and whether it was interrupted."""
    import tempfile

    from pgdyno.workload import native

    from ..base.errors import InputError
    from ..base.quantity import parse_seconds
    from ..workload.process import DriverProcess
    from .terminal import Bar

    warmup_ms = round(1000 * parse_seconds(options["warmup"], "--warmup"))
    duration_ms = round(1000 * parse_seconds(options["duration"], "--duration"))
    if duration_ms == 0:
        raise InputError(
            "--duration is zero: nothing would be measured", remedy="give a duration", code="drive.duration.zero"
        )
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Bar())
        enter_context = stack.enter_context(_server(spec, options, bar))
        if enter_context.scale is not None:
            spec = spec.model_copy(update={"scale": enter_context.scale})
        document = native.document(spec, warmup_ms, duration_ms, spec.seed)
        document["continue_on_error"] = options["continue_on_error"]
        if enter_context.server is not None:
            document |= spec.order(enter_context.server, 1)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-drive-")))
        driving = stack.enter_context(DriverProcess(document, folder / "drive.err", command=spec.command))
        shown = native.shown(native.span_of(driving.output.ready, warmup_ms, duration_ms), bar.show)
        interrupted = False
        try:
            driving.follow(shown)
        except KeyboardInterrupt:
            interrupted = True
            driving.stop()
            driving.follow(shown)
        return spec, driving.output, interrupted


@dataclass(frozen=True)
class _Server:
    """The server; None for idle clients."""

    server: Server | None
    scale: int | None = None
    """Scale of pgbench's tables there, where it is not what was asked for."""


@contextlib.contextmanager
def _server(spec: Clients, options: Mapping[str, Any], bar: Bar) -> Iterator[_Server]:
    """The named server, or an embedded one that is removed afterwards."""
    from pgdyno.workload.fill import fill, load
    from pgdyno.workload.tables import PgbenchTables, SchemaTables
    from pgdyno.world.dataset import require_schema_of

    from ..base.endpoint import refuse_secrets
    from ..server import settings
    from ..server.binaries import find_binaries
    from ..server.remote import RemoteServer
    from ..server.throwaway import throwaway

    if not spec.asks_server:
        yield _Server(None)
        return
    binaries = find_binaries(options["pg_bin"])
    if options["dsn"] is not None:
        refuse_secrets(options["dsn"], "--dsn", "drive")
        remote = RemoteServer.open(options["dsn"], binaries)
        if spec.consent:
            parameters.require_consent(spec.consent, options["dsn"], yes_write=options["yes_write"])
        if spec.protocol == "prepared":
            remote.require_prepared()
        remote.require_engine()
        if spec.consent:
            spec.rehearse(remote)
            yield _Server(remote)
            return
        needed = spec.needed_tables()
        if isinstance(needed, SchemaTables):
            require_schema_of(remote, needed)
            yield _Server(remote)
            return
        _set_up(remote, options["setup"])
        yield _Server(remote, _scale_of(remote, options["scale"], spec))
        return
    bar.show(0.0, "starting an embedded server")
    connections = {"max_connections": str(spec.clients + settings.CONNECTIONS_BESIDE)}
    with throwaway(binaries, settings.tuned(_EMBEDDED_MEMORY_BYTES, binaries.major) | connections) as cluster:
        needed = spec.needed_tables()
        if isinstance(needed, SchemaTables):
            fill(cluster, needed, lambda share, text: bar.show(share, f"fill: {text}"))
        elif needed is not None or options["setup"] is None:
            tables = PgbenchTables(_SCALE_DEFAULT if options["scale"] is None else options["scale"])
            load(cluster, tables, lambda share, text: bar.show(share, f"fill: {text}"))
        _set_up(cluster, options["setup"])
        yield _Server(cluster)


def _scale_of(remote: RemoteServer, number: int | None, spec: Clients) -> int:
    """The scale of pgbench's tables on a server, determined as pgbench does; for a user's script the one given."""
    from pgdyno.workload.tables import PgbenchTables

    from ..base.errors import InputError

    with remote.connect() as connection:
        there = connection.execute("SELECT to_regclass('pgbench_branches') IS NOT NULL").fetchone()
        row = connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() if there and there[0] else None
    needed = spec.needed_tables()
    if row is None:
        if isinstance(needed, PgbenchTables):
            raise InputError(
                f"the database {remote.record.dbname} has no pgbench tables",
                remedy=f"create them with `pgbench -i -s {needed.scale}`",
            )
        return number or 1
    if number is not None and number != row[0] and needed is not None:
        raise InputError(f"pgbench's tables there have scale {row[0]}, not {number}", remedy="omit --scale")
    return number or max(1, int(row[0]))


def _set_up(server: Server, file: Path | None) -> None:
    """Execute an SQL file as one transaction; :class:`InputError` with the server's message."""
    if file is None:
        return
    import psycopg

    from ..base.errors import InputError

    try:
        text = file.read_text(encoding="utf-8")
        with psycopg.connect(server.dsn) as connection:
            connection.execute(text.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--setup: {file} cannot be read: {error}", remedy="name a readable SQL file") from error
    except psycopg.Error as error:
        raise InputError(f"--setup: {file}: {' '.join(str(error).split())}", remedy="correct the file") from error


def _run_tpch(options: Mapping[str, Any], *, as_json: bool, keep_invalid: bool) -> None:
    """Drive what the options say, and print what each query took."""
    from ..base.errors import Interrupted, RunInvalid

    spec = _tpch_spec(options)
    try:
        outcome = _drive_tpch(spec, options)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; the queries that were under way were cancelled on the server", remedy="run it again"
        ) from None
    wrong = [f"{check.name}: {check.detail}" for check in outcome.checks if not check.ok]
    _show(spec, outcome, wrong, as_json=as_json)
    if wrong and not keep_invalid:
        raise RunInvalid(f"the figures are invalid: {wrong[0]}", remedy="raise --duration, or see the server's log")


def _given(name: str) -> bool:
    """Whether an option was given."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _tpch_spec(options: Mapping[str, Any]) -> Tpch:
    from pgdyno.kinds.registry import workload_of
    from pgdyno.kinds.tpch.kind import Tpch

    from ..base.errors import InputError

    foreign = [
        f"--{name.replace('_', '-')}" for name in options if name not in (*_TPCH_OPTIONS, *_ALWAYS) and _given(name)
    ]
    if foreign:
        raise InputError(
            f"{' and '.join(foreign)} would have no effect: streams ask their next query when the last one has ended",
            remedy=f"omit {' and '.join(foreign)}",
        )
    document = {
        "kind": "tpch",
        "scale_factor": _SCALE_FACTOR_DEFAULT if options["scale_factor"] is None else options["scale_factor"],
        "profile": options["profile"] or "hammerdb",
        "clients": options["clients"] if _given("clients") else 1,
        "query_sets": options["query_sets"] or 1,
        "degree": options["degree"],
        "refresh": options["refresh"] or "none",
        **({"duration": options["duration"]} if _given("duration") else {}),
        **({} if options["schema"] is None else {"schema": options["schema"]}),
    }
    try:
        spec = workload_of(seed=options["seed"], **document)
    except InputError as error:
        raise InputError(error.message, remedy="see `pgdyno drive --help`") from error
    assert isinstance(spec, Tpch)
    return spec


def _drive_tpch(spec: Tpch, options: Mapping[str, Any]) -> Outcome:
    import tempfile
    from pathlib import Path

    from pgdyno.workload.outcome import RunRequest

    from .terminal import Bar

    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Bar())
        server = stack.enter_context(_tpch_server(spec, options, bar))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-drive-")))
        outcome = spec.runner()(server, RunRequest(spec.limit_s, folder, progress=bar.show))
        return replace(outcome, checks=(*outcome.checks, *spec.proofs(server, outcome)))


@contextlib.contextmanager
def _tpch_server(spec: Tpch, options: Mapping[str, Any], bar: Bar) -> Iterator[Server]:
    """The named server, or an embedded one that is removed afterwards."""
    from pgdyno.workload.fill import fill

    from ..base.endpoint import refuse_secrets
    from ..machine import preflight
    from ..server import settings
    from ..server.binaries import find_binaries
    from ..server.remote import RemoteServer
    from ..server.throwaway import throwaway
    from ..world.dataset import require_schema_of
    from ..world.fill import require_whole

    binaries, tables = find_binaries(options["pg_bin"]), spec.data_set()
    if options["dsn"] is not None:
        refuse_secrets(options["dsn"], "--dsn", "drive")
        remote = RemoteServer.open(options["dsn"], binaries)
        remote.require_prepared()
        require_schema_of(remote, tables)
        yield remote
        return
    preflight.require_memory(tables.filling_bytes, "TPC-H's text")
    bar.show(0.0, "starting an embedded server")
    connections = {"max_connections": str(spec.sessions + settings.CONNECTIONS_BESIDE)}
    with throwaway(binaries, settings.tuned(_EMBEDDED_MEMORY_BYTES, binaries.major) | connections) as cluster:

        def progress(share: float, text: str) -> None:
            bar.show(share, f"fill: {text}")

        fill(cluster, tables, progress)
        require_whole(cluster, tables, progress)
        yield cluster


def _show(spec: Tpch, outcome: Outcome, wrong: list[str], *, as_json: bool) -> None:
    from ..base.text import UNKNOWN, number
    from .terminal import print_json, print_rows

    assert outcome.streams is not None and outcome.query_rows is not None
    record, account = outcome.streams, outcome.account
    per_hour = 3600 * outcome.tps
    if as_json:
        print_json(
            {
                "workload": spec.record(),
                "seconds": outcome.phases[-1].seconds,
                "valid": not wrong,
                "why_invalid": wrong,
                **account.model_dump(include={"scheduled", "succeeded", "failed", "skipped"}),
                "queries_per_hour": per_hour,
                **record.model_dump(mode="json"),
                "queries": outcome.query_rows.to_pylist(),
            }
        )
        return
    rows = outcome.query_rows.to_pylist()
    header = ["QUERY", "SECONDS", "ROWS", "TEMP MiB"]
    table = []
    for query, seconds in record.query_s.items():
        brought = {row["rows"] for row in rows if str(row["query"]) == query and not row["error"]}
        spilled = record.temp_bytes.get(query)
        low, high = min(brought), max(brought)
        table.append(
            [
                f"Q{query}",
                number(seconds),
                f"{low:,}" if low == high else f"{low:,} to {high:,}",
                UNKNOWN if spilled is None else number(spilled / _MIB),
            ]
        )
    print_rows(header, table, right=header[1:])
    click.echo()
    click.echo(
        f"derived from TPC-H, not a TPC result: {spec.clients} stream{'s' if spec.clients > 1 else ''},"
        f" {account.succeeded:,} queries in {outcome.phases[-1].seconds:.1f} s, {number(per_hour)} queries per hour,"
        f" geometric mean {number(record.geometric_mean_s)} s"
    )
    for refresh_record in record.refresh:
        click.echo(
            f"refresh function, in none of these figures: {refresh_record.orders:,} orders {_DONE[refresh_record.function]} in"
            f" {number(refresh_record.seconds)} s, {refresh_record.transactions:,} transactions"
        )
    if record.temp_unseen:
        click.echo(f"temporary files were not counted: {record.temp_unseen}")
    for text in wrong:
        click.echo(f"invalid: {text}")

"""``pgdyno drive tpch``: streams of queries derived from TPC-H against a server, without an experiment."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pgdyno.cli.progress import Bar
    from pgdyno.workload.outcome import Outcome
    from pgdyno.workload.server import Server

    from ..kinds.tpch.kind import Tpch

_SCALE_DEFAULT = 0.1
_TAKEN = (
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
_EMBEDDED_MEMORY_BYTES = 512 << 20
"""The embedded server's settings are those for this memory; the memory itself is not limited."""
_MIB = 2**20
_DONE = {"insert": "inserted", "delete": "deleted"}


def run(options: Mapping[str, Any], *, as_json: bool, keep_invalid: bool) -> None:
    """Drive what the options say, and print what each query took."""
    from ..base.errors import Interrupted, RunInvalid

    spec = _spec(options)
    try:
        outcome = _drive(spec, options)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; the queries that were under way were cancelled on the server", remedy="run it again"
        ) from None
    wrong = [f"{check.name}: {check.detail}" for check in outcome.checks if not check.ok]
    _show(spec, outcome, wrong, as_json=as_json)
    if wrong and not keep_invalid:
        raise RunInvalid(f"the figures are invalid: {wrong[0]}", remedy="raise --duration, or see the server's log")


def given(name: str) -> bool:
    """Whether an option was given."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _spec(options: Mapping[str, Any]) -> Tpch:
    from ..base.errors import InputError
    from ..kinds.registry import workload_of
    from ..kinds.tpch.kind import Tpch

    foreign = [f"--{name.replace('_', '-')}" for name in options if name not in (*_TAKEN, *_ALWAYS) and given(name)]
    if foreign:
        raise InputError(
            f"{' and '.join(foreign)} would have no effect: streams ask their next query when the last one has ended",
            remedy=f"omit {' and '.join(foreign)}",
        )
    document = {
        "kind": "tpch",
        "scale_factor": _SCALE_DEFAULT if options["scale_factor"] is None else options["scale_factor"],
        "profile": options["profile"] or "hammerdb",
        "clients": options["clients"] if given("clients") else 1,
        "query_sets": options["query_sets"] or 1,
        "degree": options["degree"],
        "refresh": options["refresh"] or "none",
        **({"duration": options["duration"]} if given("duration") else {}),
        **({} if options["schema"] is None else {"schema": options["schema"]}),
    }
    try:
        spec = workload_of(seed=options["seed"], **document)
    except InputError as error:
        raise InputError(error.message, remedy="see `pgdyno drive --help`") from error
    assert isinstance(spec, Tpch)
    return spec


def _drive(spec: Tpch, options: Mapping[str, Any]) -> Outcome:
    import tempfile
    from pathlib import Path

    from pgdyno.cli.progress import Bar
    from pgdyno.workload.outcome import RunRequest

    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Bar())
        server = stack.enter_context(_server(spec, options, bar))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-drive-")))
        outcome = spec.runner()(server, RunRequest(spec.limit_s, folder, progress=bar.show))
        return replace(outcome, checks=(*outcome.checks, *spec.proofs(server, outcome)))


@contextlib.contextmanager
def _server(spec: Tpch, options: Mapping[str, Any], bar: Bar) -> Iterator[Server]:
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
    from pgdyno.cli.output import print_json, print_rows

    from ..base.text import UNKNOWN, number

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

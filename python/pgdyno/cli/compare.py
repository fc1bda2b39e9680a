"""``pgdyno compare`` and ``pgdyno demo``: PostgreSQL on two or more volumes, with an interval on the ratio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pgdyno.cli import parameters

if TYPE_CHECKING:
    from pgdyno.experiment import Experiment


@click.command()
@click.argument("volumes", metavar="VOLUME VOLUME...", nargs=-1, required=True, shell_complete=parameters.volume_types)
@click.option("-b", "--script", default="tpcb-like", show_default=True, help="pgbench script, or a mix (see above).")
@click.option("-s", "--scale", type=int, default=150, show_default=True, help="pgbench's scale factor; 16 MB per unit.")
@click.option(
    "--restore",
    metavar="SOURCE",
    help="Your own database instead of pgbench's tables: a dump, a base backup, a connection string, or a kept database.",
)
@click.option("--globals", "globals_", metavar="FILE", help="Its roles: output of `pg_dumpall --globals-only`.")
@click.option("--prepare", metavar="SQL", help="SQL to run after the restore, or a file NAME.sql with it.")
@click.option("--user", metavar="ROLE", help="Role that sends the statements of --files [postgres].")
@click.option(
    "--files",
    metavar="FILE@WEIGHT...",
    multiple=True,
    help="Your scripts in pgbench's language instead of --script; several may follow.",
)
@click.option(
    "--capture",
    metavar="FILE",
    help="A capture of your application (`pgdyno capture read`), replayed on the database of --restore.",
)
@click.option(
    "--stats",
    nargs=2,
    metavar="BEFORE AFTER",
    help="Output of `pgdyno capture stats` before and after the capture, to compare each statement's work with production.",
)
@click.option(
    "--copy",
    "copy_",
    type=click.Choice(["left_out", "made"]),
    help="Logs lack the rows of COPY FROM STDIN: leave it out, or make rows from the columns' statistics [left_out].",
)
@parameters.allow_outside
@parameters.accept_losses
@click.option("-c", "--clients", type=int, default=16, show_default=True, help="Number of clients.")
@click.option("-j", "--threads", type=int, default=1, show_default=True, help="Threads of the driver.")
@parameters.protocol
@click.option("-F", "--fillfactor", type=int, default=100, show_default=True, help="Fill factor of the tables.")
@parameters.rate
@click.option("--memory", help="Memory of the instance, page cache included [512MiB, or the instance type's].")
@click.option("--instance", metavar="TYPE", help="Instance type, for example r6g.large.")
@click.option(
    "--wal",
    metavar="VOLUME",
    shell_complete=parameters.volume_types,
    help="Separate volume for WAL, in every run [on the data volume].",
)
@click.option(
    "--file-system",
    type=click.Choice(["ext4", "xfs"]),
    default="ext4",
    show_default=True,
    help="File system of all volumes.",
)
@click.option("--mount-options", metavar="OPTIONS", help="Mount options, for example noatime [the file system's own].")
@click.option(
    "--dilation",
    type=parameters.Integer(min=1),
    metavar="TIMES",
    help="Slow volumes and timers down by this factor, so that this machine stands for a larger one; takes longer [1].",
)
@click.option("--warmup", default="15s", show_default=True, help="Length of the warm-up, which is not measured.")
@click.option("--duration", default="30s", show_default=True, help="Length of the measured phase of each run.")
@click.option("-n", "--replicates", type=int, default=3, show_default=True, help="Runs per volume.")
@click.option(
    "--settings",
    type=click.Choice(["tuned", "defaults"]),
    default="tuned",
    show_default=True,
    help="PostgreSQL settings: a plain set for the instance's memory, or PostgreSQL's defaults.",
)
@click.option("--setting", "extra", metavar="NAME=VALUE", multiple=True, help="PostgreSQL setting; repeatable.")
@click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a key of the experiment, as in an experiment file; repeatable.",
)
@click.option("--server-cpus", help="CPUs of PostgreSQL, for example `0` or `0-3` [all].")
@click.option(
    "--client-rtt-ms",
    type=parameters.Number(min=0),
    metavar="MS",
    help="Emulated network round trip between driver and server [0: a local socket].",
)
@click.option("--driver-cpus", help="CPUs of the driver [all].")
@parameters.goal
@click.option("--full-check", is_flag=True, help="Check all balances after each run; reads all data.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the order and of all random draws.")
@click.option("--pg-bin", type=click.Path(), help="Directory of PostgreSQL's programs [the embedded PostgreSQL].")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the results are unreliable.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(volumes: tuple[str, ...], as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Compare PostgreSQL on two or more emulated volumes.

    Fills a pgbench data set once, then runs the workload on a clone of it on each volume, in interleaved replicates. Each run is
    a real PostgreSQL on a block device that behaves like the volume, in the memory of an instance. Prints throughput and
    latency with the ratios of the volumes and their 95 % intervals, recommends one of them, and writes a report.

    A VOLUME is written as its type and what differs from the defaults: gp3, gp3:iops=6000. `pgdyno catalog volumes` lists
    the types. A script is tpcb-like, simple-update or select-only; a mix is select-only@9,simple-update@1. With --capture each run
    replays the recorded statements of an application.

    \b
    Example:
      sudo pgdyno compare gp3 io2bx:iops=8000
      sudo pgdyno compare gp3 gp3:iops=8000 io2bx --goal "tps>=2000, p99<=20ms"
      sudo pgdyno compare gp3 gp3:iops=6000,throughput=250 --script select-only --clients 32 --json
      sudo pgdyno compare gp3 io2bx --restore shop.dump --globals globals.sql --user app --files history.sql@9 order.sql@1
    """
    from pgdyno.flow.plan import plan

    from .run import execute_and_show

    given = click.get_current_context()
    named = {
        name for name in (*_OF_PGBENCH, *_OF_CLIENTS) if given.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    experiment = _experiment(*_apart(volumes, options), named=named)
    execute_and_show(plan(experiment), options["results"], as_json, keep_invalid)


def _apart(arguments: tuple[str, ...], options: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Volumes, and the options with the scripts that followed the first one of --files."""
    if not options["files"]:
        return arguments, options
    scripts = tuple(
        argument for argument in arguments if argument.rpartition("@")[0].endswith(".sql") or argument.endswith(".sql")
    )
    volumes = tuple(argument for argument in arguments if argument not in scripts)
    return volumes, options | {"files": (*options["files"], *scripts)}


def _experiment(volumes: tuple[str, ...], options: dict[str, Any], *, named: set[str]) -> Experiment:
    """The experiment of the flags: one factor, the volume. ``named`` are the flags of pgbench's tables and of clients that were given."""
    from pgdyno.experiment import Experiment, Origin
    from pgdyno.experiment.file import assign, with_capture, with_database

    from ..base.errors import InputError

    if len(volumes) < 2:
        raise InputError(
            "a comparison needs at least two volumes (the same volume twice shows the noise)",
            remedy="add another volume: pgdyno compare gp3 io2bx",
        )
    document: dict[str, Any] = {
        "schema_version": 1,
        "name": "compare",
        "factors": {"world.volume": list(volumes)},
        "postgres": {"parameters": dict(_setting(text) for text in options["extra"])},
    }
    flags: dict[tuple[str | int, ...], str] = {
        ("postgres", "parameters"): "--setting",
        ("factors", "world.volume"): "VOLUME",
    }
    omitted = _own(options, document, flags) - named
    for option, path in _PLACES.items():
        if options[option] is not None and option not in omitted:
            *tables, key = path
            table = document
            for name in tables:
                table = table.setdefault(name, {})
            table[key] = list(options[option]) if isinstance(options[option], tuple) else options[option]
            flags[path] = "--" + option.strip("_").replace("_", "-")
    document, assigned = assign(document, options["assignments"])
    flags |= assigned
    origin = Origin(flags=flags, remedy="see `pgdyno compare --help`")
    document = with_capture(with_database(document, Path(), origin), Path(), origin)
    return Experiment.of(document, origin, kind="compare")


def _own(options: dict[str, Any], document: dict[str, Any], flags: dict[tuple[str | int, ...], str]) -> set[str]:
    """Put the user's own scripts or capture into the document. Returns the flags whose defaults do not apply then."""
    from ..base.errors import InputError
    from ..kinds.pgbench import read_script

    if options["restore"] is None:
        given = [flag for name, flag in _OF_DATABASE.items() if options[name] is not None]
        if given:
            raise InputError(f"{given[0]} is for a database of your own", remedy="name it with --restore")
    elif not options["files"] and options["capture"] is None:
        raise InputError(
            "pgbench's scripts do not run on a database of your own",
            remedy="name your scripts with --files FILE.sql@WEIGHT, or a capture with --capture",
        )
    if options["capture"] is not None:
        if options["files"]:
            raise InputError("--capture and --files are two workloads", remedy="omit one of them")
        document["workload"] = {"kind": "replay"}
        return {*_OF_PGBENCH, *_OF_CLIENTS}
    if not options["files"]:
        return set()
    document["workload"] = {"kind": "script", "files": [read_script(file, Path()) for file in options["files"]]}
    flags["workload", "files"] = "--files"
    return {"script"} if options["restore"] is None else set(_OF_PGBENCH)


_OF_PGBENCH = ("script", "scale", "fillfactor")
"""Flags about pgbench's scripts and tables."""
_OF_CLIENTS = ("clients", "threads", "protocol", "rate", "warmup", "duration")
"""Flags about clients that a replay does not have."""
_OF_DATABASE = {
    "globals_": "--globals",
    "prepare": "--prepare",
    "user": "--user",
    "capture": "--capture",
    "stats": "--stats",
    "copy_": "--copy",
    "allow_outside": "--allow-outside",
    "accept_losses": "--accept-losses",
}
"""Flags that need --restore."""

_PLACES: dict[str, tuple[str, ...]] = {
    "script": ("workload", "script"),
    "scale": ("workload", "scale"),
    "restore": ("workload", "database", "from"),
    "globals_": ("workload", "database", "globals"),
    "prepare": ("workload", "database", "prepare"),
    "user": ("workload", "database", "user"),
    "capture": ("workload", "capture"),
    "stats": ("workload", "stats"),
    "copy_": ("workload", "copy"),
    "allow_outside": ("workload", "allow_outside"),
    "accept_losses": ("workload", "accept_losses"),
    "clients": ("workload", "clients"),
    "threads": ("workload", "threads"),
    "protocol": ("workload", "protocol"),
    "fillfactor": ("workload", "fillfactor"),
    "rate": ("workload", "rate_per_s"),
    "warmup": ("workload", "warmup"),
    "duration": ("workload", "duration"),
    "driver_cpus": ("workload", "driver_cpus"),
    "full_check": ("workload", "full_check"),
    "memory": ("instance", "memory"),
    "instance": ("instance", "type"),
    "wal": ("world", "volumes", "wal"),
    "file_system": ("world", "file_system"),
    "mount_options": ("world", "mount_options"),
    "dilation": ("world", "dilation"),
    "server_cpus": ("instance", "cpus"),
    "client_rtt_ms": ("client", "rtt_ms"),
    "settings": ("postgres", "settings"),
    "pg_bin": ("postgres", "bin"),
    "replicates": ("replicates",),
    "seed": ("seed",),
    "goal": ("goal",),
}
"""The key of an experiment that each flag sets."""


def _setting(text: str) -> tuple[str, str]:
    from ..base.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--setting: `{text}` is not a setting", remedy="write it as --setting work_mem=16MB")
    return name.strip(), value.strip()


WORDS = ("gp3", "gp3:iops=8000", "io2bx:iops=8000", "--warmup", "10s", "--duration", "20s")
"""What is compared: some minutes on two cores. At 16,000 IOPS two cores would be the limit, and not the volume."""


@click.command(
    context_settings={"ignore_unknown_options": True},
)
@click.argument("options", metavar="[OPTIONS OF COMPARE]...", nargs=-1, type=click.UNPROCESSED)
def demo(options: tuple[str, ...]) -> None:
    """Compare three emulated volumes in five minutes.

    Runs `pgdyno compare gp3 gp3:iops=8000 io2bx:iops=8000 --warmup 10s --duration 20s` and writes a report. Options of
    `pgdyno compare` can be added, for example --results.

    \b
    Example:
      sudo pgdyno demo
    """
    code = command.main([*WORDS, *options], prog_name="pgdyno demo", standalone_mode=False)
    if isinstance(code, int):
        click.get_current_context().exit(code)

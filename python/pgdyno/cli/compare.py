"""``pgdyno compare``: PostgreSQL on two or more volumes, with an interval on the ratio."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import complete, shared

if TYPE_CHECKING:
    from pgdyno.experiment import Experiment


@click.command(name="compare")
@click.argument("volumes", metavar="VOLUME VOLUME...", nargs=-1, required=True, shell_complete=complete.volume_types)
@click.option("-b", "--script", default="tpcb-like", show_default=True, help="pgbench's script, or a mix (see below).")
@click.option("-s", "--scale", type=int, default=150, show_default=True, help="Scale factor; 16 MB of data each.")
@click.option("-c", "--clients", type=int, default=16, show_default=True, help="Connections that work at a time.")
@click.option("-j", "--threads", type=int, default=1, show_default=True, help="Threads of pgbench.")
@shared.protocol
@click.option("-F", "--fillfactor", type=int, default=100, show_default=True, help="Fill factor of the tables.")
@shared.rate
@click.option("--memory", help="Memory of the instance, page cache included [512MiB, or the instance type's].")
@click.option("--instance", metavar="TYPE", help="An instance type by name, as r6g.large.")
@click.option(
    "--wal",
    metavar="VOLUME",
    shell_complete=complete.volume_types,
    help="A volume of its own for WAL, in every run [on the data's volume].",
)
@click.option(
    "--file-system", type=click.Choice(["ext4", "xfs"]), default="ext4", show_default=True, help="Of every volume."
)
@click.option("--mount-options", metavar="OPTIONS", help="For mount(8), as noatime [the file system's own].")
@click.option(
    "--dilation",
    type=click.IntRange(min=1),
    metavar="TIMES",
    help="Slow volumes and timers so many times: this machine stands for a larger one, and takes longer [1].",
)
@click.option("--warmup", default="15s", show_default=True, help="Driven, but not measured.")
@click.option("--duration", default="30s", show_default=True, help="Measured, in each run.")
@click.option("-n", "--replicates", type=int, default=3, show_default=True, help="Runs of each volume.")
@click.option(
    "--settings",
    type=click.Choice(["tuned", "defaults"]),
    default="tuned",
    show_default=True,
    help="PostgreSQL's settings: a plain set for the memory, or its own.",
)
@click.option("--set", "extra", metavar="NAME=VALUE", multiple=True, help="A PostgreSQL setting; may be repeated.")
@click.option("--server-cpus", help="CPUs of PostgreSQL, as `0` or `0-3` [all].")
@click.option(
    "--client-rtt-ms",
    type=click.FloatRange(min=0),
    metavar="MS",
    help="Emulated round trip between driver and server [0: both here, over a local socket].",
)
@click.option("--driver-cpus", help="CPUs of pgbench [all].")
@click.option("--full-check", is_flag=True, help="Add up every account after each run: reads all data.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides order and every random draw.")
@click.option("--pg-bin", type=click.Path(), help="Directory of PostgreSQL's programs [embedded].")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the numbers must not be used.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(volumes: tuple[str, ...], as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Compare PostgreSQL on two or more emulated volumes.

    Loads a pgbench data set once, then runs the workload on a clone of it on each volume, in interleaved replicates:
    real PostgreSQL, on a block device that behaves like the volume, in an instance's memory. Prints throughput and
    latency with the ratio to the first volume and its 95 % interval, and writes a report.

    A script is tpcb-like, simple-update or select-only; a mix is select-only@9,simple-update@1.

    \b
    Example:
      sudo pgdyno compare gp3 io2bx:iops=16000
      sudo pgdyno compare gp3 gp3:iops=6000,throughput=250 --script select-only --clients 32 --json
    """
    from pgdyno.cli.outcome import execute_and_show
    from pgdyno.run import plan

    execute_and_show(plan(_experiment(volumes, options)), options["results"], as_json, keep_invalid)


def _experiment(volumes: tuple[str, ...], options: dict[str, Any]) -> Experiment:
    """The experiment of the flags: one factor, the volume."""
    from pgdyno.errors import InputError
    from pgdyno.experiment import Experiment, Origin

    if len(volumes) < 2:
        raise InputError(
            "a comparison needs at least two volumes (the same one twice shows the noise)",
            remedy="name another one: pgdyno compare gp3 io2bx",
        )
    document: dict[str, Any] = {
        "schema_version": 1,
        "name": "compare",
        "factors": {"world.volume": list(volumes)},
        "postgres": {"parameters": dict(_setting(text) for text in options["extra"])},
    }
    flags: dict[tuple[str | int, ...], str] = {
        ("postgres", "parameters"): "--set",
        ("factors", "world.volume"): "VOLUME",
    }
    for option, path in _PLACES.items():
        if options[option] is not None:
            *tables, key = path
            table = document
            for name in tables:
                table = table.setdefault(name, {})
            table[key] = options[option]
            flags[path] = "--" + option.replace("_", "-")
    return Experiment.of(document, Origin(flags=flags, remedy="see `pgdyno compare --help`"), kind="compare")


_PLACES: dict[str, tuple[str, ...]] = {
    "script": ("workload", "script"),
    "scale": ("workload", "scale"),
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
}
"""Where each flag stands in an experiment."""


def _setting(text: str) -> tuple[str, str]:
    from pgdyno.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set: `{text}` is not a setting", remedy="write it as --set work_mem=16MB")
    return name.strip(), value.strip()

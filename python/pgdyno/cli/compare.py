"""``pgdyno compare``: PostgreSQL on two or more volumes, with an interval on the ratio."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pgdyno.experiment import CompareExperiment


@click.command(name="compare")
@click.argument("volumes", metavar="VOLUME VOLUME...", nargs=-1, required=True)
@click.option("-b", "--script", default="tpcb-like", show_default=True, help="pgbench's script, or a mix (see below).")
@click.option("-s", "--scale", type=int, default=150, show_default=True, help="Scale factor; 16 MB of data each.")
@click.option("-c", "--clients", type=int, default=16, show_default=True, help="Connections that work at a time.")
@click.option("-j", "--threads", type=int, default=1, show_default=True, help="Threads of pgbench.")
@click.option(
    "-M",
    "--protocol",
    type=click.Choice(["simple", "extended", "prepared"]),
    default="prepared",
    show_default=True,
    help="Query protocol.",
)
@click.option("-F", "--fillfactor", type=int, default=100, show_default=True, help="Fill factor of the tables.")
@click.option("-R", "--rate", type=float, help="Open loop: transactions per second [closed loop].")
@click.option("--memory", default="512MiB", show_default=True, help="Memory of the instance, page cache included.")
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
@click.option("--driver-cpus", help="CPUs of pgbench [all].")
@click.option("--full-check", is_flag=True, help="Add up every account after each run: reads all data.")
@click.option("--seed", type=int, default=1, show_default=True, help="Decides order and every random draw.")
@click.option("--pg-bin", type=click.Path(path_type=Path), help="Directory of PostgreSQL's programs [embedded].")
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
    from pgdyno.analysis.compare import summarise
    from pgdyno.cli.progress import Display
    from pgdyno.errors import EXIT_INVALID, RunInvalid
    from pgdyno.report import document, print_table, write_report
    from pgdyno.run import OVERHEAD_S, compare
    from pgdyno.store import results_root

    experiment = _experiment(volumes, options)
    words = ("pgdyno", *sys.argv[1:])
    with Display(experiment, experiment.estimate_s(OVERHEAD_S)) as display:
        directory = compare(
            experiment,
            root=results_root(options["results"]).absolute(),
            command=words,
            pg_bin=options["pg_bin"],
            on_step=display.step,
            on_run=display.finished,
        )
        display.note("writing the report")
        comparison = summarise(directory)
        written = write_report(comparison, directory / "report.html")
    if as_json:
        click.echo(document(comparison, written.page).model_dump_json(indent=2))
    else:
        print_table(comparison, written.page)
    if not comparison.valid and not keep_invalid:
        raise RunInvalid(
            "the numbers above must not be used; the reasons stand below the table",
            remedy="mend the cause and run again; --keep-invalid accepts them as they are",
            exit_code=EXIT_INVALID,
        )


def _experiment(volumes: tuple[str, ...], options: dict[str, Any]) -> CompareExperiment:
    from pgdyno.experiment import CompareExperiment, parse_bytes, parse_seconds
    from pgdyno.workload.spec import PgbenchSpec

    workload = PgbenchSpec.of(
        script=options["script"],
        scale=options["scale"],
        fillfactor=options["fillfactor"],
        clients=options["clients"],
        threads=options["threads"],
        protocol=options["protocol"],
        rate_per_s=options["rate"],
    )
    return CompareExperiment.of(
        arms=volumes,
        replicates=options["replicates"],
        seed=options["seed"],
        workload=workload,
        warmup_s=parse_seconds(options["warmup"], "--warmup"),
        measure_s=parse_seconds(options["duration"], "--duration"),
        memory_bytes=parse_bytes(options["memory"], "--memory"),
        server_cpus=options["server_cpus"],
        driver_cpus=options["driver_cpus"],
        settings=options["settings"],
        extra_settings=dict(_setting(text) for text in options["extra"]),
        full_check=options["full_check"],
    )


def _setting(text: str) -> tuple[str, str]:
    from pgdyno.errors import InputError

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--set: `{text}` is not a setting", remedy="write it as --set work_mem=16MB")
    return name.strip(), value.strip()

"""``pgdyno run``: an experiment file, from its first run to its report; or the rest of one that was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pgdyno.experiment import Experiment
    from pgdyno.run import Plan


@click.command(name="run")
@click.argument("file", metavar="EXPERIMENT.toml", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--resume",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Make the runs that an experiment lacks: its directory, or its name in the results folder.",
)
@click.option(
    "--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Set a key of the file; may be repeated."
)
@click.option("--seed", type=int, help="Instead of the file's.")
@click.option("-n", "--replicates", type=int, help="Instead of the file's.")
@click.option(
    "--only", metavar="ARM", multiple=True, help="Run this arm only; its label or its number from 1. Repeatable."
)
@click.option("--budget", metavar="TIME", help="Begin no run that would not end within this time, as 30min.")
@click.option("--dry-run", is_flag=True, help="Print the arms, the runs and how long they take; change nothing.")
@click.option("--dsn", help="Measure a server that exists already: its connection string, without a password.")
@click.option("--yes-create", is_flag=True, help="Make pgbench's tables there if it has none.")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the numbers must not be used.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(file: Path | None, as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Run an experiment file.

    The file names a world, an instance, a server, a workload, and factors: keys with several levels. Every combination
    of levels is an arm; the arms run interleaved, in replicates, each on a clone of a data set that is loaded once.
    Ends in a table and a report, as `pgdyno compare` does.

    An interrupted experiment keeps its finished runs; --resume DIR makes the others. With a file beside it, a file
    that has changed is refused.

    \b
    Example:
      sudo pgdyno run experiments/compare-gp3-io2bx.toml
      sudo pgdyno run experiments/wal-volume.toml --dry-run
      sudo pgdyno run experiments/wal-volume.toml --set workload.duration=5s --replicates 1
      pgdyno run experiments/real-server.toml --dsn "host=db.example dbname=app user=bench"
      sudo pgdyno run --resume results/20261121T124500Z-wal-volume-5c0ffe
    """
    from pgdyno.cli.outcome import execute_and_show
    from pgdyno.errors import InputError
    from pgdyno.quantity import parse_seconds
    from pgdyno.run import plan

    if options["resume"] is not None:
        options["resume"] = _directory(options["resume"], options["results"])
    budget_s = None if options["budget"] is None else parse_seconds(options["budget"], "--budget")
    experiment = _experiment(file, options)
    if options["yes_create"] and not experiment.real:
        raise InputError(
            "--yes-create is for a server that exists already, and this experiment makes its own",
            remedy="leave it away, or name a server with --dsn",
        )
    only = _arms(experiment, options["only"])
    planned = plan(
        experiment,
        resume=options["resume"],
        only=only,
        yes_create=options["yes_create"],
        to_run=not options["dry_run"],
    )
    if options["dry_run"]:
        _print_plan(planned, as_json, budget_s)
    else:
        execute_and_show(planned, options["results"], as_json, keep_invalid, budget_s)


def _experiment(file: Path | None, options: dict[str, Any]) -> Experiment:
    from pgdyno.errors import InputError
    from pgdyno.experiment import read_experiment
    from pgdyno.resume import recorded

    flags = {key: (f"--{key}", options[key]) for key in ("seed", "replicates") if options[key] is not None}
    if options["dsn"] is not None:
        flags |= {"world.kind": ("--dsn", "real"), "world.dsn": ("--dsn", options["dsn"])}
    if file is not None:
        return read_experiment(file, options["assignments"], flags)
    if options["resume"] is None:
        raise InputError("no experiment is named", remedy="pgdyno run EXPERIMENT.toml, or --resume DIR")
    if flags or options["assignments"]:
        raise InputError(
            "a resumed experiment is as it was",
            remedy="leave --set, --seed and --replicates away; with --dsn name the file, too",
        )
    experiment = recorded(options["resume"])
    if experiment.real:
        raise InputError(
            "the connection string is not recorded",
            remedy=f"pgdyno run EXPERIMENT.toml --resume {options['resume']}, with the flags that it was begun with",
        )
    return experiment


def _directory(resume: Path, results: Path | None) -> Path:
    """The directory of an experiment by its path or its name."""
    from pgdyno.store import results_root

    named = results_root(results) / resume
    return (named if not resume.exists() and named.is_dir() else resume).absolute()


def _arms(experiment: Experiment, only: tuple[str, ...]) -> list[int]:
    """Indexes of the arms that ``--only`` names by label or by number; of arms with one label only the number tells which."""
    import difflib

    from pgdyno.errors import InputError

    labels = [arm.label for arm in experiment.arms]
    chosen: list[int] = []
    for text in only:
        if text in labels:
            chosen += [index for index, label in enumerate(labels) if label == text]
        elif text.isascii() and text.isdigit() and 0 < int(text) <= len(labels):
            chosen.append(int(text) - 1)
        else:
            near = difflib.get_close_matches(text, labels, n=1)
            remedy = f"did you mean `{near[0]}`?" if near else f"there are: {'; '.join(labels)}"
            raise InputError(f"--only: there is no arm `{text}`", remedy=remedy)
    return chosen


def _print_plan(planned: Plan, as_json: bool, at_once_s: float | None) -> None:
    import json

    from pgdyno.run import begun, cell_s

    count = begun(planned, at_once_s)
    total_s = planned.load_s + planned.cells_s
    if as_json:
        runs = [
            {
                "position": c.position,
                "block": c.block,
                "arm": c.arm.label,
                "seconds": planned.seconds(c),
                "seconds_max": cell_s(c),
            }
            for c in planned.cells
        ]
        arms = [{"label": arm.label, "factors": arm.levels} for arm in planned.experiment.arms]
        said = {"arms": arms, "runs": runs, "runs_within_budget": count, "load_s": planned.load_s, "total_s": total_s}
        click.echo(json.dumps(said, indent=1))
        return
    for arm in planned.experiment.arms:
        click.echo(f"arm {arm.index + 1}: {arm.label}")
    tables = f", {planned.tables.family}'s tables of {planned.tables}" if planned.tables else ""
    click.echo(f"load: {len(planned.wanted)} data sets{tables}, {_time(planned.load_s)}")
    for cell in planned.cells:
        takes = _duration(planned.seconds(cell), cell_s(cell))
        click.echo(f"run {cell.position + 1}: replicate {cell.block}, {cell.arm.label}, {takes}")
    budget_s = planned.experiment.file.budget_s
    if planned.further and budget_s is not None:
        click.echo(f"then more runs of the arms that scatter most, until {_time(budget_s)} are used")
    click.echo(f"about {_time(total_s)} in all")
    if count < len(planned.cells):
        click.echo(f"within the budget: {count} of these {len(planned.cells)} runs; --resume makes the others")


def _duration(seconds: float, longest_s: float) -> str:
    """How long a run takes, and at most where that is known to be more."""
    return _time(seconds) if seconds == longest_s else f"about {_time(seconds)}, at most {_time(longest_s)}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"

"""``pgdyno run``: runs an experiment file, or resumes an interrupted experiment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgdyno.cli import parameters
from pgdyno.cli.streams import drawn

if TYPE_CHECKING:
    from pgdyno.experiment import Experiment
    from pgdyno.flow.plan import ExperimentPlan

    from ..base.goal import Goal
    from ..hosts.connection import HostsFile
    from ..hosts.examine import SpreadOptions


@click.command()
@click.argument("file", metavar="EXPERIMENT.toml", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--resume",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Resume an experiment: its directory, or its name in the results folder.",
)
@click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Set a key of the file; repeatable.")
@click.option("--seed", type=int, help="Seed [the file's].")
@click.option("-n", "--replicates", type=int, help="Runs per arm [the file's].")
@parameters.goal
@click.option(
    "--only", metavar="ARM", multiple=True, help="Run only this arm: its label, or its number from 1; repeatable."
)
@click.option("--budget", metavar="TIME", help="Do not start runs that would end after this time, for example 30min.")
@click.option("--dry-run", is_flag=True, help="Print the arms, the runs and their estimated time; change nothing.")
@click.option("--dsn", help="Measure an existing server: its connection string, without a password.")
@click.option("--yes-create", is_flag=True, help="Create the workload's tables there if they are missing.")
@click.option("--yes-drop", is_flag=True, help="Drop those again after the last run.")
@click.option("--yes-write", is_flag=True, help="Send the statements of a capture there, including those that write.")
@click.option(
    "--drivers",
    "hosts",
    metavar="HOSTS.toml",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Drive from the hosts that this file names.",
)
@click.option("--spread", metavar="tls://HOST:PORT", help="Divide the replicates among the hosts of this scheduler.")
@click.option(
    "--keys",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --spread: directory with authority.crt, coordinator.crt and coordinator.key.",
)
@click.option("--mixed", is_flag=True, help="With --spread: allow hosts of different cores, memory, kernel or CPU.")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--keep-invalid", is_flag=True, help="Exit with 0 even if the results are unreliable.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
def command(file: Path | None, as_json: bool, keep_invalid: bool, **options: Any) -> None:
    """Run an experiment file.

    The file names a world, an instance, a server, a workload, and factors: keys with several levels. Every combination
    of levels is an arm; the arms run interleaved, in replicates, each on a clone of a data set that is filled once.
    Prints a table and writes a report, like `pgdyno compare`.

    With --drivers the load comes from other hosts, on which `pgdyno hosts worker` serves. Those of the file's client.drivers
    drive, or, if it names none, all of the hosts file.

    With --spread each replicate runs as a whole on one of the hosts on which `pgdyno hosts worker` serves; the results are written
    here. If a host is lost, another host repeats its replicate.

    With the table [crash], power failures of a server like each arm's are simulated after each run, as in `pgdyno crashtest`; if
    data is lost, the exit code is 6.

    An interrupted experiment keeps its finished runs; --resume DIR does the missing ones. If you also name the file, it must be
    unchanged.

    \b
    Example:
      sudo pgdyno run experiments/compare-gp3-io2bx.toml
      sudo pgdyno run experiments/wal-volume.toml --dry-run
      sudo pgdyno run experiments/wal-volume.toml --set workload.duration=5s --replicates 1
      pgdyno run experiments/real-server.toml --dsn "host=db.example dbname=app user=bench"
      pgdyno run experiments/real-server.toml --dsn service=test --drivers hosts.toml
      pgdyno run experiments/wal-volume.toml --spread tls://10.0.0.5:8786 --keys keys
      sudo pgdyno run --resume results/20261121T124500Z-wal-volume-5c0ffe
    """
    from pgdyno.flow.plan import plan

    from ..base.goal import parse_goal
    from ..base.quantity import parse_seconds
    from ..hosts.connection import read

    if options["resume"] is not None:
        options["resume"] = _directory(options["resume"], options["results"])
    budget_s = None if options["budget"] is None else parse_seconds(options["budget"], "--budget")
    hosts = None if options["hosts"] is None else read(options["hosts"])
    spread = _spread(options)
    goal = None if options["goal"] is None or file is not None else parse_goal(options["goal"], "--goal")
    experiment = _experiment(file, options, hosts)
    only = _arms(experiment, options["only"])
    if not options["dry_run"]:
        _require_consent(experiment, yes_write=options["yes_write"])
    planned = plan(
        experiment,
        resume=options["resume"],
        only=only,
        yes_create=options["yes_create"],
        to_run=not options["dry_run"],
        hosts=hosts,
        spread=spread,
    )
    if options["yes_drop"]:
        planned.world.remove_tables()
    if options["dry_run"]:
        _print_plan(planned, as_json, budget_s)
    else:
        execute_and_show(planned, options["results"], as_json, keep_invalid, budget_s, goal)


def _spread(options: dict[str, Any]) -> SpreadOptions | None:
    from ..base.errors import InputError
    from .parameters import hosts_of

    spread = hosts_of(options["spread"], options["keys"], mixed=options["mixed"])
    if spread is None:
        return None
    for other in ("hosts", "budget"):
        if options[other] is not None:
            name = "drivers" if other == "hosts" else other
            raise InputError(f"--spread and --{name} exclude each other", remedy=f"omit --{name}")
    return spread


def _experiment(file: Path | None, options: dict[str, Any], hosts: HostsFile | None) -> Experiment:
    from pgdyno.experiment import read_experiment
    from pgdyno.flow.resume import recorded
    from pgdyno.world import world_of

    from ..base.errors import InputError

    flags = {key: (f"--{key}", options[key]) for key in ("seed", "replicates") if options[key] is not None}
    if options["goal"] is not None and file is not None:
        flags["goal"] = ("--goal", options["goal"])
    if options["dsn"] is not None:
        flags |= {"world.kind": ("--dsn", "real"), "world.dsn": ("--dsn", options["dsn"])}
    if file is not None:
        result = read_experiment(file, options["assignments"], flags)
        if hosts is None or any(arm.client.hosts for arm in result.arms):
            return result
        return read_experiment(file, options["assignments"], flags | {"client.drivers": ("--drivers", hosts.drivers)})
    if options["resume"] is None:
        raise InputError("the experiment is missing", remedy="pgdyno run EXPERIMENT.toml, or --resume DIR")
    if flags or options["assignments"]:
        raise InputError(
            "options cannot be changed when resuming an experiment",
            remedy="omit --set, --seed and --replicates; with --dsn name the file, too",
        )
    experiment = recorded(options["resume"])
    if world_of(experiment).resumed_by_file:
        raise InputError(
            "the connection string is not recorded",
            remedy=f"name the experiment's file: pgdyno run EXPERIMENT.toml --resume {shlex.quote(str(options['resume']))},"
            " with the flags that it was started with",
        )
    return experiment


def _require_consent(experiment: Experiment, *, yes_write: bool) -> None:
    """Refuse to send what a server of the user's must be named for, and more."""
    for arm in experiment.arms:
        if arm.workload.consent and arm.world.dsn is not None:
            parameters.require_consent(arm.workload.consent, arm.world.dsn, yes_write=yes_write)


def _directory(resume: Path, results: Path | None) -> Path:
    """The directory of an experiment by its path or its name."""
    from ..results import results_root

    named = results_root(results) / resume
    return (named if not resume.exists() and named.is_dir() else resume).absolute()


def _arms(experiment: Experiment, only: tuple[str, ...]) -> list[int]:
    """Indexes of the arms that ``--only`` names, by label or by number (which distinguishes arms with the same label)."""
    import difflib

    from ..base.errors import InputError

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


def _print_plan(planned: ExperimentPlan, as_json: bool, at_once_s: float | None) -> None:
    import json

    from pgdyno.flow.plan import begun

    from ..base.quantity import duration_words

    count = begun(planned, at_once_s)
    total_s = planned.load_s + planned.cells_s
    if as_json:
        runs = [
            {
                "position": c.position,
                "block": c.block,
                "arm": c.arm.label,
                "seconds": planned.world.run_s(c),
                "seconds_max": planned.world.run_s_max(c),
            }
            for c in planned.cells
        ]
        arms = [{"label": arm.label, "factors": arm.levels} for arm in planned.experiment.arms]
        document = {
            "name": planned.experiment.name,
            "arms": arms,
            "warnings": planned.warnings,
            "events": _events(planned),
            "power_cuts": _power_cuts(planned),
            "preparation": [step.what for step in planned.preparation],
            "runs": runs,
            "runs_within_budget": count,
            "memory_bytes": planned.memory_bytes,
            "load_s": planned.load_s,
            "total_s": total_s,
        }
        click.echo(json.dumps(document, indent=1))
        return
    for arm in planned.experiment.arms:
        click.echo(f"arm {arm.index + 1}: {arm.label}")
    for event in _events(planned):
        click.echo(f"in each run: {event['at_s']:g} s after measuring began, {event['words']}")
    if words := planned.experiment.file.crash.words:
        click.echo(f"after each run: {words}")
    for step in planned.preparation:
        click.echo(f"fill: {step.what}, {duration_words(step.estimate_s)}")
    for cell in planned.cells:
        takes = _duration(planned.world.run_s(cell), planned.world.run_s_max(cell))
        click.echo(f"run {cell.position + 1}: replicate {cell.block}, {cell.arm.label}, {takes}")
    budget_s = planned.experiment.file.budget_s
    if planned.further and budget_s is not None:
        click.echo(
            f"then more runs of the arms that scatter most, until the budget of {duration_words(budget_s)} is used"
        )
    click.echo(f"about {duration_words(total_s)} in total")
    if planned.memory_bytes is not None:
        click.echo(_memory_words(planned.memory_bytes))
    if count < len(planned.cells):
        click.echo(f"within the budget: {count} of these {len(planned.cells)} runs; --resume makes the rest")
    for text in planned.warnings:
        click.echo(f"warning: {text}", err=True)


def _memory_words(needed_bytes: int) -> str:
    """What is needed beside what is there now: more than that is refused when filling begins."""
    from ..machine.memory import memory_available_bytes

    available_bytes = memory_available_bytes()
    short = "; filling will be refused" if available_bytes < needed_bytes else ""
    return f"up to {needed_bytes / 2**30:.1f} GiB of memory for data and a run, {available_bytes / 2**30:.1f} GiB are available now{short}"


def _events(planned: ExperimentPlan) -> list[dict[str, Any]]:
    """The timeline of each run; it is the same in all arms."""
    events = planned.experiment.arms[0].events
    return [{"at_s": event.at_s, "do": event.do, "on": event.target, "words": event.words} for event in events]


def _power_cuts(planned: ExperimentPlan) -> dict[str, Any] | None:
    """What follows each run; it is the same in all arms."""
    table = planned.experiment.file.crash
    if not table.cuts:
        return None
    return {"cuts": table.cuts, "readings": list(table.reading), "cache": table.cache, "seconds": table.estimate_s}


def _duration(seconds: float, longest_s: float) -> str:
    """The estimated time of a run, and its maximum if that is longer."""
    from ..base.quantity import duration_words

    return (
        duration_words(seconds)
        if seconds == longest_s
        else f"about {duration_words(seconds)}, at most {duration_words(longest_s)}"
    )


def execute_and_show(
    plan: ExperimentPlan,
    results: Path | None,
    as_json: bool,
    keep_invalid: bool,
    budget_s: float | None = None,
    goal: Goal | None = None,
) -> None:
    """Run, report, print. :class:`CutFailed` when a database did not survive a power cut; :class:`RunInvalid` when the numbers must not
    be used, unless ``keep_invalid``. ``goal`` goes before the one of the experiment.
    """
    from pgdyno.analysis.compare import summarise
    from pgdyno.analysis.durability import cuts_of
    from pgdyno.flow.run import execute
    from pgdyno.flow.schedule import allowance
    from pgdyno.report import document, print_table, write_report

    from ..base.errors import EXIT_INVALID, CutFailed, RunInvalid
    from ..flow.cell import Listener
    from ..results import results_root
    from .terminal import Display

    with Display(plan, allowance(plan.experiment, plan.directory, budget_s).left_s) as display:
        directory = execute(
            plan,
            root=results_root(results).absolute(),
            command=("pgdyno", *_words(plan)),
            budget_s=budget_s,
            tell=Listener(display.step, display.finished, display.say),
        )
        display.note("writing the report")
        comparison = summarise(directory, goal=goal)
        written = write_report(comparison, directory / "report.html")
    if as_json:
        click.echo(document(comparison, written.page).model_dump_json(indent=2))
    else:
        print_table(comparison, written.page, drawn(sys.stdout))
    for arm in comparison.arms:
        for cuts in cuts_of(arm):
            if cuts.failed:
                # Noise of the machine changes figures, and not what a cut leaves.
                raise CutFailed(
                    f"{arm.label}: {cuts.verdict}",
                    remedy=f"`pgdyno crashtest --replay {cuts.first_failed[0].id} --shrink` says what was lost",
                )
    if not comparison.valid and not keep_invalid:
        raise RunInvalid(
            "these results are unreliable (reasons below the table)",
            remedy="fix the cause and run again; --keep-invalid accepts the results as they are",
            exit_code=EXIT_INVALID,
        )


def _words(plan: ExperimentPlan) -> list[str]:
    """The command line as it may be recorded: a connection string is reduced to where the server is."""
    dsn = plan.experiment.arms[0].world.dsn
    if not dsn:
        return sys.argv[1:]
    from ..base.endpoint import public_dsn

    return [word.replace(dsn, public_dsn(dsn)) for word in sys.argv[1:]]

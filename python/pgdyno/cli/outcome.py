"""What ``pgdyno compare`` and ``pgdyno run`` have in common: making the runs of a plan and showing what came of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pgdyno.cli.streams import drawn

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.flow.plan import ExperimentPlan

    from ..base.goal import Goal


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
    from pgdyno.analysis.power_cuts import cuts_of
    from pgdyno.cli.progress import Display
    from pgdyno.flow.run import execute
    from pgdyno.flow.schedule import allowance
    from pgdyno.report import document, print_table, write_report

    from ..base.errors import EXIT_INVALID, CutFailed, RunInvalid
    from ..flow.cell import Listener
    from ..results import results_root

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
            "the numbers above must not be used; the reasons are below the table",
            remedy="remove the cause and run again; --keep-invalid accepts them as they are",
            exit_code=EXIT_INVALID,
        )


def _words(plan: ExperimentPlan) -> list[str]:
    """The command line as it may be recorded: a connection string is reduced to where the server is."""
    dsn = plan.experiment.arms[0].world.dsn
    if not dsn:
        return sys.argv[1:]
    from ..base.endpoint import public_dsn

    return [word.replace(dsn, public_dsn(dsn)) for word in sys.argv[1:]]

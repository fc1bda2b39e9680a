"""``pgdyno crashtest EXPERIMENT.toml``: the power cuts of an experiment's arms, without a run of any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..durability.crash.campaign import CampaignResult

BESIDE = ("file", "results", "as_json")
"""What may be given with a file; it says the rest itself."""


def require_alone(ctx: click.Context) -> None:
    """Refuse options beside a file that says the same."""
    from ..base.errors import InputError

    for parameter in ctx.command.params:
        name = str(parameter.name)
        if name not in BESIDE and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"{parameter.opts[-1]}: the experiment file says what is cut",
                remedy="write it in the file, or omit the file",
            )


def cut_arms(
    file: Path, results: Path | None, show: Callable[[float, str], None]
) -> Iterator[tuple[str, CampaignResult]]:
    """Record and cut each arm of an experiment file; its label with what came of it, for each reading."""
    from pgdyno.experiment import read_experiment
    from pgdyno.world.resolved import emulated_arms

    from ..base.errors import InputError
    from ..durability.crash import campaign, recording, recovery
    from ..world import emulated

    experiment = read_experiment(file)
    table = experiment.file.crash
    if not table.cuts:
        raise InputError(f"{file} asks for no power cuts", remedy="add the table [crash] with cuts = 200")
    arms = emulated_arms(experiment, to_run=False)
    campaign.require_ready()
    for resolved in arms:
        label = resolved.arm.label
        answer = emulated.asked_of(resolved)
        show(0.0, f"{label}: record PostgreSQL for {answer.seconds:g} s")
        recorded = recording.record(answer, recording.new_folder(answer, results))
        for reading in table.reading:

            def tell(result: CampaignResult, what: str = f"{label}, {reading}") -> None:
                failed = f", {len(result.failed)} failed" if result.failed else ""
                show(result.tried / table.cuts, f"{what}: {result.tried} of {table.cuts}{failed}")

            result = recovery.cut(recorded, reading, experiment.seed % emulated.SEED_MAX, table.cuts, tell=tell)
            campaign.keep(result)
            yield label, result


def cut_and_print(file: Path, results: Path | None, as_json: bool, print_one: Callable[[Any], None]) -> None:
    """Cut the arms of a file and print what came of it. :class:`CutFailed` where one did not survive a cut."""
    from pgdyno.cli.output import print_json
    from pgdyno.cli.progress import Bar

    from ..base.errors import CutFailed

    with Bar() as bar:
        answer = list(cut_arms(file, results, bar.show))
    if as_json:
        print_json({"schema_version": 1, "arms": [{"arm": label, **result.to_json()} for label, result in answer]})
    else:
        for label, result in answer:
            click.echo(label)
            print_one(result)
    for label, result in answer:
        if result.failed:
            raise CutFailed(
                f"{label}: {result.verdict}",
                remedy=f"`pgdyno crashtest --replay {result.failed[0].cut.name} --shrink` says what was lost",
            )

"""Resuming an experiment: which of its runs are there, whether it is still the same experiment, and the command that resumes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgdyno.experiment import Experiment
from pgdyno.flow.schedule import Allowance
from pgdyno.world import World

from ..analysis.compare import Difference, differences, flat, same_order
from ..base.errors import HostError, InputError
from ..experiment.origin import Origin, dotted
from ..results import open_experiment

_SHOWN = 5
"""Differences that an error lists; the first ones say enough."""


def recorded(directory: Path) -> Experiment:
    """The experiment that a directory was made from, as it was.

    Of a connection string only host, port, database and user are recorded.
    """
    written = open_experiment(directory).record
    if not written.file_schema_version:
        raise InputError(f"{directory} was made by a version that could not resume experiments", remedy="run it again")
    document = {
        "schema_version": written.file_schema_version,
        "name": written.name,
        "title": written.title,
        "seed": written.seed,
        "replicates": written.replicates,
        **written.settings,
    }
    return Experiment.of(document, Origin(str(directory / "experiment.json")), kind=written.kind)


def finished(directory: Path) -> set[int]:
    """Positions of the runs that are whole.

    :class:`InputError` for a directory that has another name than it was given, or a run that cannot be read: it would be
    made again, and its place is taken.
    """
    experiment = open_experiment(directory)
    given = experiment.record.experiment_id
    if directory.resolve().name != given:
        raise InputError(
            f"{directory} is the experiment {given} under another name",
            remedy=f"its runs name it; rename the directory to {given} to resume it",
        )
    for path, why in experiment.unreadable.items():
        raise InputError(
            f"{path} cannot be read: {why}",
            remedy="resume with the pgdyno that wrote it, or remove that directory, so that its run is made again",
        )
    return {run.record.position for run in experiment.runs}


def require_same(directory: Path, experiment: Experiment, versions: Mapping[str, str]) -> None:
    """Refuse to continue an experiment that has changed, or whose programs have; the error lists the differences.

    A different time limit is allowed: an interrupted experiment may get more time.
    """
    before = open_experiment(directory).record
    first = recorded(directory)
    documents = _timeless(first), _timeless(experiment)
    results = [*differences(*documents), *_of_versions(before.versions, versions, "version of ")]
    if not results:
        _require_order(directory, first, experiment)
        return
    there = flat(documents[1])
    shown = "; ".join(
        f"{experiment.origin.place(result.place) if result.place in there else dotted(result.place)} is {_words(result.new)}, was {_words(result.old)}"
        for result in results[:_SHOWN]
    )
    more = f"; and {len(results) - _SHOWN} more" if len(results) > _SHOWN else ""
    raise InputError(
        f"{directory} was a different experiment: {shown}{more}",
        remedy="change it back, or run the file without --resume",
    )


def require_programs(directory: Path, versions: Mapping[str, str]) -> None:
    """Refuse to make runs for an experiment that another host started with other programs, or on another database of the user's."""
    differences = _of_versions(open_experiment(directory).record.versions, versions)
    if differences:
        shown = "; ".join(
            f"{dotted(difference.place)} is {_words(difference.new)}, not {_words(difference.old)}"
            for difference in differences
        )
        raise HostError(
            f"this host differs from the one that started the experiment: {shown}",
            remedy="install the same pgdyno and the same PostgreSQL on all hosts, with the same databases",
        )


def _of_versions(before: Mapping[str, str], now: Mapping[str, str], of: str = "") -> list[Difference]:
    """Programs and databases that have changed. Python's version is not one of them: no figure depends on it."""
    made, here = ({of + name: text for name, text in item.items() if name != "python"} for item in (before, now))
    return differences(made, here)


def _require_order(directory: Path, first: Experiment, experiment: Experiment) -> None:
    """In another order of the factors, runs that are there would be taken for other arms'."""
    order = list(first.file.factors)
    if not same_order(experiment.file.factors, order):
        raise InputError(
            f"{experiment.origin.place(('factors',))}: {directory} was started with its factors in another order",
            remedy=f"write them in this order: {', '.join(order)}; or run the file without --resume",
        )


def _timeless(experiment: Experiment) -> dict[str, Any]:
    return {name: value for name, value in experiment.whole().items() if name != "budget"}


def _words(value: Any) -> str:
    return "not there" if value is None else repr(value)


def command_to_resume(world: World, directory: Path, *, longer: bool = False) -> str:
    """The command that resumes an experiment; ``longer`` where the budget of its file is used up.

    The record has neither the connection string nor a longer budget, so the file is named, with the flags that were given
    beside it: without them it would be another experiment.
    """
    experiment = world.experiment
    name = experiment.origin.name
    # What was resumed without its file comes from its record.
    named = name if name and not name.endswith(".json") else "EXPERIMENT.toml"
    file = f"{shlex.quote(named)} " if world.resumed_by_file or longer else ""
    more = " --set budget=TIME" if longer else ""
    again = _flags(experiment, longer=longer) if file else ""
    hosts = "" if world.hosts_file is None else f" --drivers {shlex.quote(str(world.hosts_file.path))}"
    hosts += "" if world.spread is None else f" {world.spread.flags}"
    return f"`pgdyno run {file}--resume {shlex.quote(str(directory))}{again}{hosts}{more}`"


def more_time(world: World, directory: Path | None, allowed: Allowance) -> str:
    """How to allow more time. The budget of a file counts from the experiment's first run, and stands in its record."""
    if not allowed.of_file:
        return "allow more time with --budget"
    if directory is None:
        return "allow more time: raise the file's budget, or give --set budget=TIME"
    return f"allow more time: {command_to_resume(world, directory, longer=True)}"


def _flags(experiment: Experiment, *, longer: bool) -> str:
    """The flags that changed an experiment's file, to be given again; of a connection string only its flag."""
    values = {"--seed": str(experiment.seed), "--replicates": str(experiment.replicates), "--dsn": "DSN"}
    words: dict[str, None] = {}
    for path, flag in experiment.origin.flags.items():
        name, _, assigned = flag.partition(" ")
        if not (longer and path == ("budget",)) and name != "--drivers":
            words[f" {name} {shlex.quote(assigned or values.get(name, ''))}"] = None
    return "".join(words)

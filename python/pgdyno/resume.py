"""Continuing an experiment: which of its runs are there, and whether it is still the same experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.analysis.difference import differences, flat
from pgdyno.errors import InputError
from pgdyno.experiment import Experiment
from pgdyno.experiment.origin import Origin, dotted
from pgdyno.store import open_experiment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SHOWN = 5
"""Differences that an error lists; the first ones say enough."""


def recorded(directory: Path) -> Experiment:
    """The experiment that a directory was made from, as it was.

    Of a connection string only host, port, database and user are recorded.
    """
    written = open_experiment(directory).record
    if not written.file_schema_version:
        raise InputError(f"{directory} was made before experiments could be continued", remedy="run it anew")
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
            remedy=f"its runs name it; rename the directory to {given} to continue it",
        )
    for path, why in experiment.unreadable.items():
        raise InputError(
            f"{path} cannot be read: {why}",
            remedy="continue with the pgdyno that wrote it; or remove that directory, and its run is made again",
        )
    return {run.record.position for run in experiment.runs}


def require_same(directory: Path, experiment: Experiment, versions: Mapping[str, str]) -> None:
    """Refuse to continue an experiment that has changed, or whose programs have; the error lists the differences.

    How long it may take is no difference: what was interrupted may be given more time.
    """
    before = open_experiment(directory).record
    first = recorded(directory)
    asked = _timeless(first), _timeless(experiment)
    made = {"version of " + name: value for name, value in before.versions.items() if name != "python"}
    here = {"version of " + name: value for name, value in versions.items() if name != "python"}
    found = [*differences(*asked), *differences(made, here)]
    if not found:
        _require_order(directory, first, experiment)
        return
    there = flat(asked[1])
    shown = "; ".join(
        f"{experiment.origin.place(one.place) if one.place in there else dotted(one.place)} is {_words(one.new)}, was {_words(one.old)}"
        for one in found[:_SHOWN]
    )
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise InputError(
        f"{directory} was another experiment: {shown}{more}",
        remedy="change it back, or run the file anew without --resume",
    )


def _require_order(directory: Path, first: Experiment, experiment: Experiment) -> None:
    """Arms are numbered by the order of the factors: in another one, runs that are there would be taken for other arms'."""
    order = list(first.file.factors)
    if list(experiment.file.factors) != order:
        raise InputError(
            f"{experiment.origin.place(('factors',))}: {directory} was begun with its factors in another order",
            remedy=f"write them in this order: {', '.join(order)}; or run the file anew without --resume",
        )


def _timeless(experiment: Experiment) -> dict[str, Any]:
    return {name: value for name, value in experiment.whole().items() if name != "budget"}


def _words(value: Any) -> str:
    return "not there" if value is None else repr(value)

"""The published documents that came with pgdyno, and the experiment files that answer them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.experiment import Experiment
from pgdyno.published import PublishedDocument, read_documents

from ..base import installation
from ..base.errors import HostError, InputError
from .document import RequiredRun

DOCUMENTS, EXPERIMENTS = "catalog/published", "experiments"


@dataclass(frozen=True)
class DocumentLibrary:
    """Documents and experiment files."""

    documents: tuple[PublishedDocument, ...]
    experiments: Path
    """The folder of the experiment files."""

    def chosen(self, name: str | None) -> tuple[PublishedDocument, ...]:
        """The document of a name, or all of them. :class:`InputError` lists them where there is none."""
        chosen = tuple(document for document in self.documents if name in (None, document.name))
        if chosen:
            return chosen
        names = [document.name for document in self.documents]
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise InputError(f"there is no document `{name}`", remedy=f"{hint}the documents are {', '.join(names)}")

    def experiment(self, run: RequiredRun) -> Experiment:
        """The experiment of one of a document's files, with the replicates that the document asks for."""
        from pgdyno.experiment import read_experiment

        flags = {} if run.replicates is None else {"replicates": ("--replicates", run.replicates)}
        return read_experiment(self.experiments / f"{run.experiment}.toml", (), flags)


def library() -> DocumentLibrary:
    """The library that ships with pgdyno. :class:`HostError` when the installation lacks it."""
    folder = installation.data_folder(DOCUMENTS)
    documents = tuple(read_documents(folder))
    if not documents:
        raise HostError(
            f"{folder} is empty, but pgdyno comes with documents there", remedy=installation.how_to_install_again()
        )
    return DocumentLibrary(documents, installation.data_folder(EXPERIMENTS))


def runs_of(document: PublishedDocument, *, full: bool) -> list[RequiredRun]:
    """The experiment files that a document is reproduced with."""
    return [run for run in document.run if full or not run.full_only]


def arms_named(document: PublishedDocument, experiment: Experiment, *, full: bool) -> tuple[int, ...]:
    """The indexes of the arms that ``--quick`` runs: those that comparisons rest on, and points of charts. Empty means all: in ``full``, and
    where none is named.
    """
    if full:
        return ()
    answers = [comparison.answer for comparison in document.comparison if comparison.answer is not None]
    pairs = [pair for answer in answers for pair in (answer, *answer.varied)]
    wanted = [
        arm_of(experiment.factors, levels)
        for pair in pairs
        if pair.experiment == experiment.name and not pair.full_only
        for levels in (pair.high, pair.low)
    ]
    wanted += [
        arm_of(experiment.factors, point.levels)
        for chart in document.chart
        if chart.experiment == experiment.name
        for line in chart.line
        for point in document.points(chart, line)
        if chart.full_only_above is None or point.x <= chart.full_only_above
    ]
    return tuple(arm.index for arm in experiment.arms if arm.levels in wanted)


def arm_of(factors: Mapping[str, tuple[str, ...]], wanted: Mapping[str, str]) -> dict[str, str] | None:
    """The level of each factor in a wanted arm, the first of those that are not named; None where the experiment has no such arm."""
    if any(level not in factors.get(name, ()) for name, level in wanted.items()):
        return None
    return {name: wanted.get(name, levels[0]) for name, levels in factors.items()}

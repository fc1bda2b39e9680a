"""Figures of published documents have a place, a known unit and one entry; what is not stated has a range and a reason.

Arithmetic is recomputed: where a document's figures do not give what it states, its file says why, and only there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pgdyno.analysis.loads import LOAD_METRICS
from pgdyno.analysis.ratio import figures_by_name
from pgdyno.base.errors import InputError
from pgdyno.experiment import read_experiment
from pgdyno.published import PublishedDocument, read_document
from pgdyno.published.document import Arithmetic, Arms, Chart, PublishedComparison, RunAnswer, UnstatedChoice
from pgdyno.published.formula import FormulaError
from pgdyno.published.library import arm_of
from tools.lint import Finding

UNITS = {
    *("s", "ms", "min", "TPS", "QPS", "TPM", "NOPM", "transactions", "rows", "clients", "threads", "sessions"),
    *("IOPS", "MiB/s", "Kb/s", "GB", "GiB", "MiB", "MB", "kB", "vCPUs", "%", "times", "count", "requests"),
    *("USD a month", "USD a GB-month", "USD an IOPS-month", "USD a MiB/s-month", "USD an hour", "TiB"),
    *("KiB", "IOPS per GiB", "IOPS per GB", "MiB/s per IOPS", "volumes", "statements", "warehouses", "cells"),
}
"""Units as the documents have them; `Kb/s` is kept as printed where it is not clear what it means."""


def check(root: Path) -> list[Finding]:
    """Files that cannot be read, and entries that break a rule."""
    findings, documents = [], []
    for path in sorted((root / "catalog" / "published").glob("*.toml")):
        place = path.relative_to(root).as_posix()
        try:
            document = read_document(path)
        except InputError as error:
            findings.append(Finding(place, 0, error.message.removeprefix(f"{path}: ")))
            continue
        documents.append((place, document))
        texts = [*problems(document), *unanswered(document, root / "experiments")]
        findings += [Finding(place, 0, message) for message in texts]
    titles = _twice(document.title for _, document in documents)
    return findings + [
        Finding(place, 0, f"`{document.title}` has two files: remove one")
        for place, document in documents
        if document.title in titles
    ]


def problems(document: PublishedDocument) -> list[str]:
    """What breaks a rule, as sentences."""
    names = [figure.name for figure in document.figure]
    names += [f"{table.name}_{column.name}" for table in document.table for column in table.columns]
    claims: list[PublishedComparison | Arithmetic] = [*document.comparison, *document.arithmetic]
    return [
        *(f"the name `{name}` is used twice: rename or remove one" for name in sorted(_twice(names))),
        *(f"figure stands twice: {what}; remove one" for what in sorted(_twice(_identities(document)))),
        *(
            f"`{unit}` is not a known unit: use one of tools/lint/published.py, or add it"
            for unit in _unknown(document)
        ),
        *(message for choice in document.unstated for message in _range(choice)),
        *(message for claim in claims for message in _claim(document, claim)),
    ]


def unanswered(document: PublishedDocument, experiments: Path) -> list[str]:
    """Comparisons that say neither how they are answered nor why they are not, and answers that no experiment file can give."""
    names = {comparison.name for comparison in document.comparison}
    answers = [comparison.answer for comparison in document.comparison if comparison.answer is not None]
    used = {arms.experiment for answer in answers for arms in (answer, *answer.varied)}
    used |= {chart.experiment for chart in document.chart}
    run = {run.experiment for run in document.run}
    return [
        *(
            f"`{comparison.name}` needs `answer`, `offer`, or in `unanswered` why there is neither"
            for comparison in document.comparison
            if not (comparison.answer or comparison.offer or comparison.unanswered)
        ),
        *(f"experiment `{name}` answers nothing: remove its `run`" for name in sorted(run - used)),
        *(f"experiment `{name}` is not run: add a `run`" for name in sorted(used - run)),
        *(
            f"order `{order.name}`: there is no comparison `{step}`"
            for order in document.order
            for step in order.steps
            if step not in names
        ),
        *(message for answer in answers for message in _answer(document, answer, experiments)),
        *(message for chart in document.chart for message in _chart(document, chart, experiments)),
    ]


def _answer(document: PublishedDocument, answer: RunAnswer, experiments: Path) -> Iterator[str]:
    if answer.metric not in figures_by_name() and answer.metric not in LOAD_METRICS:
        yield f"`{answer.metric}` is not a metric of runs or of loads"
    stated = {choice.what for choice in document.unstated}
    for variant in answer.varied:
        if variant.what not in stated:
            yield f"`{variant.what}` is varied, and is not among what the document does not state"
    for arms in (answer, *answer.varied):
        yield from _arms(arms, experiments / f"{arms.experiment}.toml")


def _chart(document: PublishedDocument, chart: Chart, experiments: Path) -> Iterator[str]:
    if chart.metric not in figures_by_name():
        yield f"`{chart.metric}` is not a metric of runs"
    try:
        factors = read_experiment(experiments / f"{chart.experiment}.toml").factors
    except InputError as error:
        yield error.message.removeprefix(f"{experiments}/")
        return
    for line in chart.line:
        if not any(arm_of(factors, point.levels) for point in document.points(chart, line)):
            yield f"chart `{chart.name}`: {chart.experiment}.toml has no arm for any point of `{line.name}`"


def _arms(arms: Arms, path: Path) -> Iterator[str]:
    try:
        experiment = read_experiment(path)
    except InputError as error:
        yield error.message.removeprefix(f"{path.parent}/")
        return
    there = [arm.levels for arm in experiment.arms]
    for wanted in (arms.high, arms.low):
        if arm_of(experiment.factors, wanted) not in there:
            yield f"{arms.experiment}.toml has no arm {wanted}"


def _twice(names: Iterable[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _identities(document: PublishedDocument) -> Iterator[str]:
    """What each figure is of: two entries with the same are one figure. Words and letters' case do not matter beyond that."""
    for figure in document.figure:
        yield _plain(f"{figure.measures} of {figure.of or 'the document'}")
    for table in document.table:
        for row in table.rows:
            axes = ", ".join(f"{axis} {value}" for axis, value in zip(table.axes, row, strict=False))
            for column in table.columns:
                yield _plain(f"{column.measures} of {table.of or 'the document'} at {axes}")


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _unknown(document: PublishedDocument) -> list[str]:
    used = {figure.unit for figure in document.figure} | {arithmetic.unit for arithmetic in document.arithmetic}
    used |= {column.unit for table in document.table for column in table.columns}
    used |= {choice.unit for choice in document.unstated if choice.unit}
    return sorted(used - UNITS)


def _range(choice: UnstatedChoice) -> list[str]:
    if choice.choices:
        numbers = choice.low is not None or choice.high is not None
        fit = len(set(choice.choices)) > 1 and not numbers
        return (
            []
            if fit
            else [f"unstated `{choice.what}` needs two `choices` or more, and no `low` and `high` beside them"]
        )
    if choice.low is None or choice.high is None or not choice.unit:
        return [f"unstated `{choice.what}` needs `low`, `high` and `unit`, or `choices`"]
    return (
        []
        if choice.low < choice.high
        else [f"unstated `{choice.what}`: low {choice.low} is not below high {choice.high}"]
    )


def _claim(document: PublishedDocument, claim: PublishedComparison | Arithmetic) -> list[str]:
    name = claim.name if isinstance(claim, PublishedComparison) else claim.claim
    try:
        outcome = document.outcome(claim)
    except FormulaError as error:
        return [f"`{name}`: {error}"]
    if outcome.agrees and claim.because:
        return [f"`{name}` adds up: remove its `because`"]
    if not outcome.agrees and not claim.because:
        return [f"`{name}` comes to {outcome.computed:.6g} and not to {outcome.stated}: say why in `because`"]
    return []

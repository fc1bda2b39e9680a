"""The JSON of ``pgdyno reproduce --json``. ``schema/reproduce.schema.json`` is made from it.

A field is added, never renamed or given another meaning. A figure that is not known is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import WithJsonSchema

from pgdyno import __version__

from ..analysis.statistics import Estimate
from ..analysis.sweep import Scaling
from ..report.schema import DocumentPart
from .judge import ChartResult, ComparisonResult, DocumentResult, Sign, Verdict

SCHEMA_VERSION = 1
_SIGNS = [str(item) for item in Sign if item is not Sign.UNKNOWN]
KnownSign = Annotated[Sign, WithJsonSchema({"type": "string", "enum": _SIGNS})]
VerdictValue = Annotated[Verdict, WithJsonSchema({"type": "string", "enum": [str(item) for item in Verdict]})]


class RunRatio(DocumentPart):
    """A ratio of two arms."""

    ratio: float
    low: float | None
    """End of the 95 % interval; null for one replicate."""
    high: float | None
    replicates: int


class ThereOf(DocumentPart):
    """Figures of the document."""

    high: float | None
    """Null where the document states the ratio alone."""
    low: float | None
    unit: str
    ratio: float
    about_share: float
    """By which share its "about" leaves the ratio open, either way."""


class HereOf(DocumentPart):
    """Figures that were measured here."""

    metric: str
    high: float | None
    low: float | None
    unit: str
    high_arm: str
    low_arm: str
    bound: list[str]
    """The limit that bound in each of the arms; empty for figures of the catalogue."""
    ratio: RunRatio


class VariedOf(DocumentPart):
    """The ratio with another choice of something that is not stated."""

    what: str
    choice: str
    ratio: RunRatio | None
    """Null where there are no valid runs of it."""


class ComparisonOf(DocumentPart):
    """One comparison."""

    name: str
    there: ThereOf
    here: HereOf | None
    sign: KnownSign | None
    """Whether the larger figure there is the larger one here; null where there is no ratio here."""
    verdict: VerdictValue
    because: str
    differently: str
    """What is measured in another way than there."""
    experiment: str
    """The experiment file; empty where none answers it."""
    varied: list[VariedOf]
    sensitivity_low: float | None
    """Extremes of the ratio over what was varied; null where nothing was."""
    sensitivity_high: float | None


class OrderOf(DocumentPart):
    """The order of several figures."""

    name: str
    steps: list[str]
    """Comparisons, each a step down."""
    sign: KnownSign | None
    """Right where all steps are; null where one has no ratio here."""


class RunEstimate(DocumentPart):
    """A figure of runs."""

    mean: float
    low: float | None
    """End of the 95 % interval; null for one replicate."""
    high: float | None
    replicates: int


class PointOf(DocumentPart):
    """One point of a line."""

    x: float
    there: float
    here: RunEstimate | None
    """Null where there are no valid runs of it."""


class LawOf(DocumentPart):
    """The universal scalability law through the points of a line."""

    contention: float
    """Share of the work for which one waits for another, 0 to 1."""
    coherence: float
    """What each pair costs."""
    deviation: float
    """Root mean square of the difference of logarithms of points and curve."""


class LineOf(DocumentPart):
    """One line of a chart."""

    name: str
    points: list[PointOf]
    law_there: LawOf | None
    """Null for fewer than four points."""
    law_here: LawOf | None


class ChartOf(DocumentPart):
    """A figure of the document over a number, beside runs."""

    name: str
    x: str
    """What the number counts."""
    unit: str
    metric: str
    experiment: str
    lines: list[LineOf]


class UnstatedOf(DocumentPart):
    """Something that the document does not state."""

    what: str
    varied_for: list[str]
    """Comparisons; empty where it was not varied."""


class ExperimentOf(DocumentPart):
    """An experiment file of the document."""

    name: str
    directory: str | None
    """Null where there are no runs."""
    why: str
    """Why there are none."""
    changed: list[str]
    """In what the recorded experiment differs from the file."""


class DocumentOf(DocumentPart):
    """One document."""

    name: str
    title: str
    comparisons: list[ComparisonOf]
    orders: list[OrderOf]
    unstated: list[UnstatedOf]
    claims: int
    """Claims of its arithmetic."""
    claims_that_add_up: int
    experiments: list[ExperimentOf]
    charts: list[ChartOf]


class ReproduceDocument(DocumentPart):
    """All documents that were asked for."""

    schema_version: int
    pgdyno_version: str
    headline: str
    documents: list[DocumentOf]


def reproduce_document(documents: Sequence[DocumentResult]) -> ReproduceDocument:
    """The document of what was found."""
    from .words import headline

    return ReproduceDocument(
        schema_version=SCHEMA_VERSION,
        pgdyno_version=__version__,
        headline=headline(documents),
        documents=[_document(document) for document in documents],
    )


def _document(result: DocumentResult) -> DocumentOf:
    about = result.document
    return DocumentOf(
        name=about.name,
        title=about.title,
        comparisons=[_comparison(comparison) for comparison in result.comparisons],
        orders=[OrderOf(name=each.name, steps=list(each.steps), sign=_known(each.sign)) for each in result.orders],
        unstated=[UnstatedOf(what=each.what, varied_for=of) for each, of in result.open_points],
        claims=len(about.arithmetic),
        claims_that_add_up=sum(about.outcome(each).agrees for each in about.arithmetic),
        experiments=[
            ExperimentOf(
                name=each.name,
                directory=None if each.path is None else str(each.path),
                why=each.why,
                changed=list(each.changed),
            )
            for each in result.results
        ],
        charts=[_chart(each) for each in result.charts],
    )


def _chart(result: ChartResult) -> ChartOf:
    return ChartOf(
        name=result.chart.name,
        x=result.chart.x_title,
        unit=result.unit,
        metric=result.chart.metric,
        experiment=result.chart.experiment,
        lines=[
            LineOf(
                name=line.name,
                points=[PointOf(x=each.x, there=each.there, here=_estimate(each.here)) for each in line.points],
                law_there=_law(line.law_there),
                law_here=_law(line.law_here),
            )
            for line in result.lines
        ],
    )


def _estimate(estimate: Estimate | None) -> RunEstimate | None:
    return (
        None
        if estimate is None
        else RunEstimate(mean=estimate.mean, low=estimate.low, high=estimate.high, replicates=estimate.n)
    )


def _law(scaling: Scaling | None) -> LawOf | None:
    if scaling is None:
        return None
    return LawOf(contention=scaling.contention, coherence=scaling.coherence, deviation=scaling.deviation)


def _comparison(result: ComparisonResult) -> ComparisonOf:
    low, high = result.reach or (None, None)
    return ComparisonOf(
        name=result.name,
        there=ThereOf(
            high=result.there_high,
            low=result.there_low,
            unit=result.there_unit,
            ratio=result.there.ratio,
            about_share=result.there.share,
        ),
        here=_here(result),
        sign=_known(result.sign),
        verdict=result.judgement.verdict,
        because=result.judgement.because,
        differently=result.differently,
        experiment=result.experiment,
        varied=[VariedOf(what=each.what, choice=each.choice, ratio=_ratio(each.ratio)) for each in result.varied],
        sensitivity_low=low,
        sensitivity_high=high,
    )


def _here(result: ComparisonResult) -> HereOf | None:
    ratio = _ratio(result.ratio)
    if result.here is None or result.arms is None or ratio is None:
        return None
    return HereOf(
        metric=result.metric,
        high=result.here.high,
        low=result.here.low,
        unit=result.unit,
        high_arm=result.arms[0],
        low_arm=result.arms[1],
        bound=list(result.limits),
        ratio=ratio,
    )


def _known(sign: Sign) -> Sign | None:
    return None if sign is Sign.UNKNOWN else sign


def _ratio(estimate: Estimate | None) -> RunRatio | None:
    if estimate is None:
        return None
    return RunRatio(ratio=estimate.mean, low=estimate.low, high=estimate.high, replicates=estimate.n)

"""The judge of published comparisons: figures, ratios, sign, sensitivity and verdict of each, beside what was recorded here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial

from pgdyno.analysis.loads import LOAD_METRICS
from pgdyno.published import PublishedDocument
from pgdyno.published.document import PublishedComparison, UnstatedChoice
from pgdyno.published.formula import evaluate

from ..analysis.ratio import PairOfArms, paired
from ..analysis.statistics import Estimate, distinguishable, t_interval
from ..analysis.sweep import Scaling, fit
from ..base.specification import VolumeSpec
from .document import Arms, Chart, RunAnswer, VolumePair
from .experiments import ArmFigureSet, ExperimentResult, metric_title

CLOSE_SHARE = 0.05
"""An interval that is this near to the document's ratio agrees with it even where it includes 1: a wider one would agree with anything."""

NO_CAUSE = "the cause is not known"
"""What stands in the place of a cause."""


class Verdict(StrEnum):
    """The verdict in a word or a few."""

    AGREES = "agrees"
    WITHIN = "agrees within what is unstated"
    DIFFERS = "differs"
    NOT_ANSWERED = "not answered"


class Sign(StrEnum):
    """Agreement of direction: is the larger figure of the document the larger one here?"""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "not distinguishable"
    NONE = "no difference there"
    """The document's own ratio is 1, as far as its figures say."""
    UNKNOWN = "–"
    """There is no ratio here."""


@dataclass(frozen=True)
class PublishedRatio:
    """The ratio in the document."""

    ratio: float
    share: float = 0.0
    """By which share its "about" leaves the ratio open, either way."""

    @property
    def low(self) -> float:
        """The least that the document can mean."""
        return self.ratio * (1 - self.share)

    @property
    def high(self) -> float:
        """The most that it can mean."""
        return self.ratio * (1 + self.share)


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason."""

    verdict: Verdict
    because: str = ""
    """A clause; empty for what agrees."""

    def sentence(self, mark: str = "") -> str:
        """``differs: because …``, with ``mark`` behind the word."""
        joint = "" if not self.because else ": " if self.because == NO_CAUSE else ": because "
        return f"{self.verdict}{mark}{joint}{self.because}"


def compare_signs(there: PublishedRatio, here: Estimate | None) -> Sign:
    """The direction of the difference, there and here."""
    if here is None:
        return Sign.UNKNOWN
    if there.low <= 1 <= there.high:
        return Sign.NONE
    if not distinguishable(here):
        return Sign.OPEN
    return Sign.RIGHT if (there.ratio > 1) is (here.mean > 1) else Sign.WRONG


def sign_of_order(signs: Sequence[Sign]) -> Sign:
    """The order of several figures, from the signs of its steps: wrong where one step is, right where all are."""
    for sign in (Sign.WRONG, Sign.UNKNOWN, Sign.OPEN):
        if sign in signs:
            return sign
    return Sign.RIGHT


def judge_ratio(there: PublishedRatio, here: Estimate, varied: Sequence[Estimate], cause: str) -> Judgement:
    """The verdict on a ratio with its interval. ``varied`` are the same ratio with other choices of what is not stated.

    ``cause`` is why the two differ, where they do.
    """
    if here.low is None or here.high is None:
        return Judgement(Verdict.NOT_ANSWERED, "each arm ran only once, so there is no interval")
    inside = here.low <= there.high and there.low <= here.high
    close = here.low >= there.low * (1 - CLOSE_SHARE) and here.high <= there.high * (1 + CLOSE_SHARE)
    if inside and (distinguishable(here) or close):
        return Judgement(Verdict.AGREES)
    reach = sensitivity_interval(here, varied)
    if reach is not None and reach[0] <= there.high and there.low <= reach[1]:
        return Judgement(Verdict.WITHIN)
    if inside:
        return Judgement(Verdict.NOT_ANSWERED, "the interval includes both 1 and the document's ratio")
    return Judgement(Verdict.DIFFERS, cause or NO_CAUSE)


def sensitivity_interval(here: Estimate, varied: Sequence[Estimate]) -> tuple[float, float] | None:
    """The sensitivity interval: the extremes of the ratio over what was varied; None where nothing was."""
    means = [here.mean, *(estimate.mean for estimate in varied)]
    return (min(means), max(means)) if varied else None


@dataclass(frozen=True)
class PointResult:
    """One row of the document."""

    x: float
    there: float
    here: Estimate | None
    """None where there are no valid runs of it."""
    why: str = ""
    """Why there are none: a clause."""


@dataclass(frozen=True)
class LineResult:
    """The points of one line."""

    name: str
    points: tuple[PointResult, ...]

    @cached_property
    def law_there(self) -> Scaling | None:
        """The universal scalability law through the document's points; None for fewer than four."""
        return fit([(point.x, point.there) for point in self.points])

    @cached_property
    def law_here(self) -> Scaling | None:
        """The same of the runs."""
        return fit([(point.x, point.here.mean) for point in self.points if point.here is not None])


@dataclass(frozen=True)
class ChartResult:
    """One chart, there and here."""

    chart: Chart
    unit: str
    lines: tuple[LineResult, ...]

    @property
    def why(self) -> str:
        """Why nothing is here: a clause; empty where something is."""
        points = [point for line in self.lines for point in line.points]
        return "" if any(point.here for point in points) else points[0].why


def chart_result(
    document: PublishedDocument, chart: Chart, arm_of: Callable[[Mapping[str, str]], ArmFigureSet | str]
) -> ChartResult:
    """A chart beside its runs. ``arm_of`` has the arm of some levels, or why there is none."""
    lines = []
    for line in chart.line:
        points = []
        for point in document.points(chart, line):
            arm = arm_of(point.levels)
            here: tuple[Estimate | None, str] = (None, arm) if isinstance(arm, str) else _figure(arm, chart.metric)
            points.append(PointResult(point.x, point.y, *here))
        lines.append(LineResult(line.name, tuple(points)))
    return ChartResult(chart, document.unit_of(chart.column), tuple(lines))


def _figure(arm: ArmFigureSet, metric: str) -> tuple[Estimate | None, str]:
    if arm.invalid:
        return None, f"runs are invalid: {arm.invalid[0]}"
    block = arm.by_block(metric)
    return (t_interval([*block.values()]), "") if block else (None, f"the runs have no `{metric}`")


CENTS_SHARE = 0.0005
"""Prices are printed to cents, and a ratio of two of them is no more exact than that."""
CATALOGUE_METRICS = {
    "usd_per_month": ("list price", "USD a month"),
    "failures_per_year_percent": ("annual failure rate, least", "%"),
}


@dataclass(frozen=True)
class VariantResult:
    """The ratio with another choice of something that is not stated."""

    what: str
    choice: str
    ratio: Estimate | None
    """None where there are no valid runs of it."""


@dataclass(frozen=True, kw_only=True)
class OwnMeasurement:
    """The measurement here that answers one comparison."""

    unanswered: str = ""
    """Why there is no ratio: a clause; empty where there is one."""
    metric: str = ""
    """What was measured here; empty where nothing was."""
    title: str = ""
    unit: str = ""
    here: PairOfArms | None = None
    arms: tuple[str, str] | None = None
    """Labels of the arms of ``here``."""
    limits: tuple[str, ...] = ()
    """What bound in each of the arms."""
    cause: str = ""
    """Why the ratio differs, where it does."""
    share: float = 0.0
    """By which share the document's ratio is open for what is compared, either way."""
    differently: str = ""
    varied: tuple[VariantResult, ...] = ()
    invalid: bool = False
    """Whether a run that it rests on must not be used."""
    experiment: str = ""
    changed: bool = False
    """Whether the runs were recorded with other settings than those of the experiment file."""

    @property
    def ratio(self) -> Estimate | None:
        """The ratio here."""
        return None if self.here is None else self.here.ratio

    @property
    def reach(self) -> tuple[float, float] | None:
        """The sensitivity interval; None where nothing was varied."""
        return None if self.ratio is None else sensitivity_interval(self.ratio, self.others)

    @property
    def others(self) -> list[Estimate]:
        """The ratio with other choices of what is not stated, as far as there are valid runs."""
        return [result.ratio for result in self.varied if result.ratio is not None]


@dataclass(frozen=True, kw_only=True)
class ComparisonResult(OwnMeasurement):
    """One comparison, there and here."""

    name: str
    there: PublishedRatio
    there_high: float | None
    """The document's two figures; None where it states their ratio alone."""
    there_low: float | None
    there_unit: str
    sign: Sign
    judgement: Judgement


@dataclass(frozen=True)
class OrderResult:
    """The order of several figures."""

    name: str
    steps: tuple[str, ...]
    sign: Sign


@dataclass(frozen=True)
class DocumentResult:
    """A document with what is known here."""

    document: PublishedDocument
    comparisons: tuple[ComparisonResult, ...]
    orders: tuple[OrderResult, ...]
    results: tuple[ExperimentResult, ...]
    """What there is of its experiment files."""
    charts: tuple[ChartResult, ...] = ()

    @property
    def open_points(self) -> list[tuple[UnstatedChoice, list[str]]]:
        """Each thing that is not stated, with the comparisons for which it was varied."""
        return [
            (
                choice,
                [
                    comparison.name
                    for comparison in self.comparisons
                    if any(v.what == choice.what and v.ratio for v in comparison.varied)
                ],
            )
            for choice in self.document.unstated
        ]


def judge_document(
    document: PublishedDocument, results: Mapping[str, ExperimentResult], resolve: Callable[[str], VolumeSpec] | None
) -> DocumentResult:
    """Judge every comparison of a document. ``resolve`` asks the catalogue of volumes; None where it cannot be asked."""
    judge = Judge(document, results, resolve)
    comparisons = tuple(judge.judge(comparison) for comparison in document.comparison)
    signs = {comparison.name: comparison.sign for comparison in comparisons}
    orders = tuple(
        OrderResult(order.name, tuple(order.steps), sign_of_order([signs[step] for step in order.steps]))
        for order in document.order
    )
    own = tuple(results[run.experiment] for run in document.run if run.experiment in results)
    charts = tuple(chart_result(document, chart, partial(judge.arm, chart.experiment)) for chart in document.chart)
    return DocumentResult(document, comparisons, orders, own, charts)


class Judge:
    """Answers the comparisons of one document. The arms of an experiment are read once."""

    def __init__(
        self,
        document: PublishedDocument,
        results: Mapping[str, ExperimentResult],
        resolve: Callable[[str], VolumeSpec] | None,
    ) -> None:
        self._document = document
        self._results = results
        self._resolve = resolve
        self._metrics = metrics_of(document)
        self._known: dict[str, dict[tuple[int, ...], ArmFigureSet]] = {}

    def judge(self, comparison: PublishedComparison) -> ComparisonResult:
        """The verdict on a comparison, with what was measured here."""
        here = self._measurement(comparison)
        ratio, share = self._document.ratio(comparison)
        there = PublishedRatio(float(ratio), max(float(share), here.share))
        high, low = (
            float(evaluate(side, self._document.scope)) if side else None for side in (comparison.high, comparison.low)
        )
        return ComparisonResult(
            **vars(here),
            name=comparison.name,
            there=there,
            there_high=high,
            there_low=low,
            there_unit=self._document.unit_of(comparison.high) if comparison.high else "",
            sign=compare_signs(there, here.ratio),
            judgement=Judgement(Verdict.NOT_ANSWERED, here.unanswered)
            if here.ratio is None
            else judge_ratio(there, here.ratio, here.others, here.cause),
        )

    def _measurement(self, comparison: PublishedComparison) -> OwnMeasurement:
        if comparison.answer is not None:
            return self._measured(comparison.answer)
        if comparison.offer is not None:
            return self._from_catalogue(comparison.offer)
        return OwnMeasurement(unanswered=comparison.unanswered or "no experiment file answers it")

    def _measured(self, answer: RunAnswer) -> OwnMeasurement:
        arms = self._arms(answer)
        if isinstance(arms, str):
            return OwnMeasurement(unanswered=arms, experiment=answer.experiment)
        if reasons := [reason for arm in arms for reason in arm.invalid]:
            return OwnMeasurement(
                unanswered=f"runs are invalid: {reasons[0]}", experiment=answer.experiment, invalid=True
            )
        pair = _pair_of_arms(arms, answer.metric)
        if pair.ratio is None:
            what = "no repeated loads" if answer.metric in LOAD_METRICS else f"no `{answer.metric}`"
            return OwnMeasurement(unanswered=f"the results have {what} of both arms", experiment=answer.experiment)
        title, unit = metric_title(answer.metric)
        return OwnMeasurement(
            metric=answer.metric,
            title=title,
            unit=unit,
            here=pair,
            arms=(arms[0].label, arms[1].label),
            limits=(arms[0].bound, arms[1].bound),
            cause=answer.cause,
            differently=answer.differently,
            varied=tuple(
                VariantResult(each.what, each.choice, self._ratio(each, answer.metric)) for each in answer.varied
            ),
            experiment=answer.experiment,
            changed=bool(self._results[answer.experiment].changed),
        )

    def _from_catalogue(self, offer: VolumePair) -> OwnMeasurement:
        if self._resolve is None:
            return OwnMeasurement(unanswered="the engine is missing, so the catalogue of volumes cannot be read")
        specs = [self._resolve(spec) for spec in (offer.high, offer.low)]
        high, low = (_catalogue_figure(spec, offer.metric) for spec in specs)
        title, unit = CATALOGUE_METRICS[offer.metric]
        if high is None or not low:
            return OwnMeasurement(unanswered=f"the catalogue has no {title} of both")
        exact = Estimate(high / low, high / low, high / low, 1)
        return OwnMeasurement(
            metric=offer.metric,
            title=title,
            unit=unit,
            here=PairOfArms(high, low, exact),
            arms=(specs[0].spec, specs[1].spec),
            cause=offer.cause,
            share=CENTS_SHARE,
        )

    def arm(self, experiment: str, wanted: Mapping[str, str]) -> ArmFigureSet | str:
        """The arm of these levels, or why it is not there."""
        result = self._results.get(experiment)
        if result is None:
            return f"{experiment}.toml was not chosen"
        if result.path is None:
            return result.why
        if experiment not in self._known:
            self._known[experiment] = {arm.levels: arm for arm in result.arms(self._metrics)}
        place = result.places(wanted)
        kept_arm = None if place is None else self._known[experiment].get(place)
        if kept_arm is not None:
            return kept_arm
        why = result.why_not(wanted)
        return f"{', '.join(wanted.values())} of {experiment}.toml has no finished run{': ' if why else ''}{why}"

    def _arms(self, pair: Arms) -> tuple[ArmFigureSet, ArmFigureSet] | str:
        """The two arms, or why they are not there."""
        high, low = (self.arm(pair.experiment, wanted) for wanted in (pair.high, pair.low))
        if isinstance(high, str):
            return high
        return low if isinstance(low, str) else (high, low)

    def _ratio(self, pair: Arms, metric: str) -> Estimate | None:
        arms = self._arms(pair)
        if isinstance(arms, str) or arms[0].invalid or arms[1].invalid:
            return None
        return _pair_of_arms(arms, metric).ratio


def metrics_of(document: PublishedDocument) -> set[str]:
    """The metrics that its answers and charts ask for."""
    charted = {chart.metric for chart in document.chart}
    return charted | {comparison.answer.metric for comparison in document.comparison if comparison.answer is not None}


def _pair_of_arms(arms: tuple[ArmFigureSet, ArmFigureSet], metric: str) -> PairOfArms:
    return paired(arms[0].by_block(metric), arms[1].by_block(metric))


def _catalogue_figure(spec: VolumeSpec, metric: str) -> float | None:
    if metric == "usd_per_month":
        return spec.usd_per_month
    failures = spec.document.get("annual_failure_rate_percent")
    return float(min(failures)) if failures else None

"""Each comparison of a document beside what was recorded here: figures, ratios, sign, sensitivity, verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.loads import LOAD_METRICS
from pgdyno.published import PublishedDocument
from pgdyno.published.answer import Arms, RunAnswer, VolumePair
from pgdyno.published.document import PublishedComparison, UnstatedChoice
from pgdyno.published.formula import evaluate

from ...analysis.ratio import PairOfArms, paired
from ...analysis.statistics import Estimate
from ...base.specification import VolumeSpec
from .chart import ChartResult, chart_told
from .kept import KeptArm, asked
from .results import ExperimentResult
from .verdict import JudgedVerdict, PublishedRatio, Sign, Word, judged, order_of, reach_of, sign_of

CENTS_SHARE = 0.0005
"""Prices are printed to cents, and a ratio of two of them is no more exact than that."""
ASKED = {
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
    """What is known here of one comparison."""

    untold: str = ""
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
        return None if self.ratio is None else reach_of(self.ratio, self.others)

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
    judged: JudgedVerdict


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


def tell(
    document: PublishedDocument, results: Mapping[str, ExperimentResult], resolve: Callable[[str], VolumeSpec] | None
) -> DocumentResult:
    """Judge every comparison of a document. ``resolve`` asks the catalogue of volumes; None where it cannot be asked."""
    teller = _Teller(document, results, resolve)
    comparisons = tuple(teller.told(comparison) for comparison in document.comparison)
    signs = {comparison.name: comparison.sign for comparison in comparisons}
    orders = tuple(
        OrderResult(order.name, tuple(order.steps), order_of([signs[step] for step in order.steps]))
        for order in document.order
    )
    own = tuple(results[run.experiment] for run in document.run if run.experiment in results)
    charts = tuple(chart_told(document, chart, partial(teller.arm, chart.experiment)) for chart in document.chart)
    return DocumentResult(document, comparisons, orders, own, charts)


class _Teller:
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
        self._known: dict[str, dict[tuple[int, ...], KeptArm]] = {}

    def told(self, comparison: PublishedComparison) -> ComparisonResult:
        here = self._here(comparison)
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
            sign=sign_of(there, here.ratio),
            judged=JudgedVerdict(Word.UNTOLD, here.untold)
            if here.ratio is None
            else judged(there, here.ratio, here.others, here.cause),
        )

    def _here(self, comparison: PublishedComparison) -> OwnMeasurement:
        if comparison.answer is not None:
            return self._answered(comparison.answer)
        if comparison.offer is not None:
            return self._offered(comparison.offer)
        return OwnMeasurement(untold=comparison.untold or "no experiment file answers it")

    def _answered(self, answer: RunAnswer) -> OwnMeasurement:
        arms = self._arms(answer)
        if isinstance(arms, str):
            return OwnMeasurement(untold=arms, experiment=answer.experiment)
        if reasons := [reason for arm in arms for reason in arm.invalid]:
            return OwnMeasurement(untold=f"runs are invalid: {reasons[0]}", experiment=answer.experiment, invalid=True)
        pair = _paired(arms, answer.metric)
        if pair.ratio is None:
            what = "no repeated loads" if answer.metric in LOAD_METRICS else f"no `{answer.metric}`"
            return OwnMeasurement(untold=f"the results have {what} of both arms", experiment=answer.experiment)
        title, unit = asked(answer.metric)
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

    def _offered(self, offer: VolumePair) -> OwnMeasurement:
        if self._resolve is None:
            return OwnMeasurement(untold="the catalogue of volumes cannot be asked, because the engine is missing")
        specs = [self._resolve(spec) for spec in (offer.high, offer.low)]
        high, low = (_of_offer(spec, offer.metric) for spec in specs)
        title, unit = ASKED[offer.metric]
        if high is None or not low:
            return OwnMeasurement(untold=f"the catalogue has no {title} of both")
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

    def arm(self, experiment: str, wanted: Mapping[str, str]) -> KeptArm | str:
        """The arm of these levels, or why it is not there."""
        result = self._results.get(experiment)
        if result is None:
            return f"{experiment}.toml was not asked for"
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

    def _arms(self, pair: Arms) -> tuple[KeptArm, KeptArm] | str:
        """The two arms, or why they are not there."""
        high, low = (self.arm(pair.experiment, wanted) for wanted in (pair.high, pair.low))
        if isinstance(high, str):
            return high
        return low if isinstance(low, str) else (high, low)

    def _ratio(self, pair: Arms, metric: str) -> Estimate | None:
        arms = self._arms(pair)
        if isinstance(arms, str) or arms[0].invalid or arms[1].invalid:
            return None
        return _paired(arms, metric).ratio


def metrics_of(document: PublishedDocument) -> set[str]:
    """The metrics that its answers and charts ask for."""
    charted = {chart.metric for chart in document.chart}
    return charted | {comparison.answer.metric for comparison in document.comparison if comparison.answer is not None}


def _paired(arms: tuple[KeptArm, KeptArm], metric: str) -> PairOfArms:
    return paired(arms[0].by_block(metric), arms[1].by_block(metric))


def _of_offer(spec: VolumeSpec, metric: str) -> float | None:
    if metric == "usd_per_month":
        return spec.usd_per_month
    failures = spec.document.get("annual_failure_rate_percent")
    return float(min(failures)) if failures else None

"""Each comparison of a document beside what was recorded here: figures, ratios, sign, sensitivity, verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pgdyno.analysis.interval import Estimate
from pgdyno.analysis.loads import LOAD_METRICS
from pgdyno.analysis.paired import PairOfArms, paired
from pgdyno.published.formula import evaluate
from pgdyno.reproduce.chart import ChartTold, chart_told
from pgdyno.reproduce.kept import asked
from pgdyno.reproduce.verdict import Judged, Sign, There, Word, judged, order_of, reach_of, sign_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pgdyno.published import Document
    from pgdyno.published.answer import Answer, Arms, Offer
    from pgdyno.published.document import Comparison, Unstated
    from pgdyno.reproduce.kept import KeptArm
    from pgdyno.reproduce.results import Result
    from pgdyno.specification import VolumeSpec

CENTS_SHARE = 0.0005
"""Prices are printed to cents, and a ratio of two of them is no more exact than that."""
ASKED = {
    "usd_per_month": ("list price", "USD a month"),
    "failures_per_year_percent": ("annual failure rate, least", "%"),
}


@dataclass(frozen=True)
class Varied:
    """The ratio with another choice of something that is not stated."""

    what: str
    choice: str
    ratio: Estimate | None
    """None where there are no valid runs of it."""


@dataclass(frozen=True, kw_only=True)
class Here:
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
    varied: tuple[Varied, ...] = ()
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
        return [one.ratio for one in self.varied if one.ratio is not None]


@dataclass(frozen=True, kw_only=True)
class Told(Here):
    """One comparison, there and here."""

    name: str
    there: There
    there_high: float | None
    """The document's two figures; None where it states their ratio alone."""
    there_low: float | None
    there_unit: str
    sign: Sign
    judged: Judged


@dataclass(frozen=True)
class OrderTold:
    """The order of several figures."""

    name: str
    steps: tuple[str, ...]
    sign: Sign


@dataclass(frozen=True)
class DocumentTold:
    """A document with what is known here."""

    document: Document
    comparisons: tuple[Told, ...]
    orders: tuple[OrderTold, ...]
    results: tuple[Result, ...]
    """What there is of its experiment files."""
    charts: tuple[ChartTold, ...] = ()

    @property
    def open_points(self) -> list[tuple[Unstated, list[str]]]:
        """Each thing that is not stated, with the comparisons for which it was varied."""
        return [
            (one, [told.name for told in self.comparisons if any(v.what == one.what and v.ratio for v in told.varied)])
            for one in self.document.unstated
        ]


def tell(
    document: Document, results: Mapping[str, Result], resolve: Callable[[str], VolumeSpec] | None
) -> DocumentTold:
    """Judge every comparison of a document. ``resolve`` asks the catalogue of volumes; None where it cannot be asked."""
    teller = _Teller(document, results, resolve)
    comparisons = tuple(teller.told(one) for one in document.comparison)
    signs = {one.name: one.sign for one in comparisons}
    orders = tuple(
        OrderTold(one.name, tuple(one.steps), order_of([signs[step] for step in one.steps])) for one in document.order
    )
    own = tuple(results[one.experiment] for one in document.run if one.experiment in results)
    charts = tuple(chart_told(document, one, partial(teller.arm, one.experiment)) for one in document.chart)
    return DocumentTold(document, comparisons, orders, own, charts)


class _Teller:
    """Answers the comparisons of one document. The arms of an experiment are read once."""

    def __init__(
        self, document: Document, results: Mapping[str, Result], resolve: Callable[[str], VolumeSpec] | None
    ) -> None:
        self._document = document
        self._results = results
        self._resolve = resolve
        self._metrics = metrics_of(document)
        self._known: dict[str, dict[tuple[int, ...], KeptArm]] = {}

    def told(self, one: Comparison) -> Told:
        here = self._here(one)
        ratio, share = self._document.ratio(one)
        there = There(float(ratio), max(float(share), here.share))
        high, low = (float(evaluate(side, self._document.scope)) if side else None for side in (one.high, one.low))
        return Told(
            **vars(here),
            name=one.name,
            there=there,
            there_high=high,
            there_low=low,
            there_unit=self._document.unit_of(one.high) if one.high else "",
            sign=sign_of(there, here.ratio),
            judged=Judged(Word.UNTOLD, here.untold)
            if here.ratio is None
            else judged(there, here.ratio, here.others, here.cause),
        )

    def _here(self, one: Comparison) -> Here:
        if one.answer is not None:
            return self._answered(one.answer)
        if one.offer is not None:
            return self._offered(one.offer)
        return Here(untold=one.untold or "no experiment file answers it")

    def _answered(self, answer: Answer) -> Here:
        arms = self._arms(answer)
        if isinstance(arms, str):
            return Here(untold=arms, experiment=answer.experiment)
        if reasons := [reason for arm in arms for reason in arm.invalid]:
            return Here(untold=f"runs are invalid: {reasons[0]}", experiment=answer.experiment, invalid=True)
        pair = _paired(arms, answer.metric)
        if pair.ratio is None:
            what = "no repeated loads" if answer.metric in LOAD_METRICS else f"no `{answer.metric}`"
            return Here(untold=f"the results have {what} of both arms", experiment=answer.experiment)
        title, unit = asked(answer.metric)
        return Here(
            metric=answer.metric,
            title=title,
            unit=unit,
            here=pair,
            arms=(arms[0].label, arms[1].label),
            limits=(arms[0].bound, arms[1].bound),
            cause=answer.cause,
            differently=answer.differently,
            varied=tuple(Varied(each.what, each.choice, self._ratio(each, answer.metric)) for each in answer.varied),
            experiment=answer.experiment,
            changed=bool(self._results[answer.experiment].changed),
        )

    def _offered(self, offer: Offer) -> Here:
        if self._resolve is None:
            return Here(untold="the catalogue of volumes cannot be asked, because the engine is missing")
        specs = [self._resolve(spec) for spec in (offer.high, offer.low)]
        high, low = (_of_offer(spec, offer.metric) for spec in specs)
        title, unit = ASKED[offer.metric]
        if high is None or not low:
            return Here(untold=f"the catalogue has no {title} of both")
        exact = Estimate(high / low, high / low, high / low, 1)
        return Here(
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
        found = None if place is None else self._known[experiment].get(place)
        if found is not None:
            return found
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


def metrics_of(document: Document) -> set[str]:
    """The metrics that its answers and charts ask for."""
    charted = {one.metric for one in document.chart}
    return charted | {one.answer.metric for one in document.comparison if one.answer is not None}


def _paired(arms: tuple[KeptArm, KeptArm], metric: str) -> PairOfArms:
    return paired(arms[0].by_block(metric), arms[1].by_block(metric))


def _of_offer(spec: VolumeSpec, metric: str) -> float | None:
    if metric == "usd_per_month":
        return spec.usd_per_month
    failures = spec.document.get("annual_failure_rate_percent")
    return float(min(failures)) if failures else None

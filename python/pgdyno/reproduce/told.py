"""Each comparison of a document beside what was recorded here: figures, ratios, sign, sensitivity, verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.limits import TITLES
from pgdyno.analysis.finding import why_invalid
from pgdyno.analysis.interval import Estimate
from pgdyno.analysis.paired import PairOfArms, figures_by_name, paired
from pgdyno.published.formula import evaluate
from pgdyno.reproduce.verdict import Judged, Sign, There, Word, judged, order_of, reach_of, sign_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.paired import Named
    from pgdyno.published import Document
    from pgdyno.published.answer import Answer, Arms, Offer
    from pgdyno.published.document import Comparison, Unstated
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


@dataclass(frozen=True)
class Told:
    """One comparison, there and here."""

    name: str
    there: There
    there_high: float | None
    """The document's two figures; None where it states their ratio alone."""
    there_low: float | None
    there_unit: str
    sign: Sign
    judged: Judged
    metric: str = ""
    """What was measured here; empty where nothing was."""
    title: str = ""
    unit: str = ""
    here: PairOfArms | None = None
    arms: tuple[str, str] | None = None
    """Labels of the arms of ``here``."""
    limits: tuple[str, ...] = ()
    """What bound in each of the arms."""
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
        if self.ratio is None:
            return None
        return reach_of(self.ratio, [one.ratio for one in self.varied if one.ratio is not None])


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
    return DocumentTold(document, comparisons, orders, own)


@dataclass(frozen=True)
class _Teller:
    document: Document
    results: Mapping[str, Result]
    resolve: Callable[[str], VolumeSpec] | None

    def told(self, one: Comparison) -> Told:
        if one.answer is not None:
            return self._answered(one, one.answer)
        if one.offer is not None:
            return self._offered(one, one.offer)
        return self._untold(one, one.untold or "no experiment file answers it")

    def _there(self, one: Comparison) -> tuple[There, float | None, float | None, str]:
        ratio, share = self.document.ratio(one)
        sides = [float(evaluate(side, self.document.scope)) if side else None for side in (one.high, one.low)]
        unit = self.document.unit_of(one.high) if one.high else ""
        return There(float(ratio), float(share)), sides[0], sides[1], unit

    def _untold(self, one: Comparison, why: str, experiment: str = "", *, invalid: bool = False) -> Told:
        return Told(
            one.name, *self._there(one), Sign.UNTOLD, Judged(Word.UNTOLD, why), experiment=experiment, invalid=invalid
        )

    def _answered(self, one: Comparison, answer: Answer) -> Told:
        arms = self._arms(answer)
        if isinstance(arms, str):
            return self._untold(one, arms, answer.experiment)
        reasons = [reason for arm in arms for reason in _invalid(arm)]
        if reasons:
            return self._untold(one, f"runs are invalid: {reasons[0]}", answer.experiment, invalid=True)
        figure = figures_by_name()[answer.metric]
        here = paired(*arms, figure.of)
        if here.ratio is None:
            return self._untold(one, f"the runs have no `{answer.metric}` of both arms", answer.experiment)
        varied = tuple(Varied(each.what, each.choice, self._ratio(each, figure)) for each in answer.varied)
        there, high, low, unit = self._there(one)
        known = [each.ratio for each in varied if each.ratio is not None]
        return Told(
            name=one.name,
            there=there,
            there_high=high,
            there_low=low,
            there_unit=unit,
            sign=sign_of(there, here.ratio),
            judged=judged(there, here.ratio, known, answer.cause),
            metric=answer.metric,
            title=figure.title,
            unit=figure.unit,
            here=here,
            arms=(arms[0].label, arms[1].label),
            limits=tuple(self._limits(answer, arms)),
            differently=answer.differently,
            varied=varied,
            experiment=answer.experiment,
            changed=bool(self.results[answer.experiment].changed),
        )

    def _offered(self, one: Comparison, offer: Offer) -> Told:
        if self.resolve is None:
            return self._untold(one, "the catalogue of volumes cannot be asked, because the engine is missing")
        specs = [self.resolve(spec) for spec in (offer.high, offer.low)]
        values = [_of_offer(spec, offer.metric) for spec in specs]
        if None in values or not values[1]:
            return self._untold(one, f"the catalogue has no {ASKED[offer.metric][0]} of both")
        assert values[0] is not None
        ratio = values[0] / values[1]
        exact = Estimate(ratio, ratio, ratio, 1)
        there, high, low, unit = self._there(one)
        there = There(there.ratio, max(there.share, CENTS_SHARE))
        title, own_unit = ASKED[offer.metric]
        return Told(
            name=one.name,
            there=there,
            there_high=high,
            there_low=low,
            there_unit=unit,
            sign=sign_of(there, exact),
            judged=judged(there, exact, [], offer.cause),
            metric=offer.metric,
            title=title,
            unit=own_unit,
            here=PairOfArms(values[0], values[1], exact),
            arms=(specs[0].spec, specs[1].spec),
        )

    def _arms(self, pair: Arms) -> tuple[ArmSummary, ArmSummary] | str:
        """The two arms, or why they are not there."""
        result = self.results.get(pair.experiment)
        if result is None:
            return f"{pair.experiment}.toml was not asked for"
        if result.path is None:
            return result.why
        arms = result.arm(pair.high), result.arm(pair.low)
        if arms[0] is None or arms[1] is None:
            return f"an arm of it has no finished run in {result.path}"
        return arms[0], arms[1]

    def _ratio(self, pair: Arms, figure: Named) -> Estimate | None:
        arms = self._arms(pair)
        if isinstance(arms, str) or any(_invalid(arm) for arm in arms):
            return None
        return paired(*arms, figure.of).ratio

    def _limits(self, answer: Answer, arms: Sequence[ArmSummary]) -> Iterator[str]:
        comparison = self.results[answer.experiment].comparison
        assert comparison is not None
        for arm in arms:
            verdict = comparison.bindings[arm.index].verdict
            yield "none stands out" if verdict.limit is None else TITLES[verdict.limit]


def _invalid(arm: ArmSummary) -> list[str]:
    return [reason for one in arm.replicates for reason in why_invalid(one.findings)]


def _of_offer(spec: VolumeSpec, metric: str) -> float | None:
    if metric == "usd_per_month":
        return spec.usd_per_month
    failures = spec.document.get("annual_failure_rate_percent")
    return float(min(failures)) if failures else None

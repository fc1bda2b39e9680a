"""The effects of the factors in words, for the page and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.effects import Effect, Within
from pgdyno.analysis.headline import Headline
from pgdyno.analysis.interval import Estimate
from pgdyno.analysis.verdict import sides
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Grid, Heading, Section, Sentences

from ..base.text import UNKNOWN, ratio_interval, times


@dataclass(frozen=True)
class EffectRow:
    """One level against the first of its factor."""

    factor: str
    over: str
    under: str
    estimate: Estimate | None
    metric: Headline
    distinguishable: bool
    depends: bool
    """Whether it was seen to depend on another factor."""
    at: str = ""
    """For a row below another: the level of the other factor that it holds at."""

    @property
    def ratio(self) -> str:
        """The ratio alone."""
        return UNKNOWN if self.estimate is None else times(self.estimate.mean)

    @property
    def extent(self) -> str:
        """Its interval."""
        return UNKNOWN if self.estimate is None else ratio_interval(self.estimate.low, self.estimate.high)

    @property
    def verdict(self) -> str:
        """What it comes to."""
        if self.estimate is None:
            return "no pair of runs"
        if self.estimate.low is None:
            return "a single run has no interval"
        return self.metric.apart(self.estimate.mean) if self.distinguishable else "not distinguishable"


def effects_section(comparison: Comparison) -> Section | None:
    """Ratios with their intervals, and where one factor depends on another."""
    rows, metric = effect_rows(comparison), comparison.metric
    if not any(row.estimate is not None for row in rows):
        return None
    drawing = Drawing(
        "effects",
        "Effect of each factor",
        f"How many times the {metric.counts} a level {metric.does}, against the first level of its factor, {held_factors(comparison)}. Bar:"
        " 95 % interval; grey where it includes 1: not distinguishable. Thin: the same at each level of a factor that it depends"
        " on.",
        partial(figures.effects, rows, comparison.arms),
    )
    cells = tuple((f"{row.over} against {row.under}", row.at, row.ratio, row.extent, row.verdict) for row in rows)
    table = Grid(("effect", "with", "ratio", "95 % interval", ""), cells, drawn=True)
    texts = tuple(dependence_sentences(comparison))
    depends = (Heading("Where one factor depends on another"), Sentences(texts)) if texts else ()
    return Section("effects", "What each factor does", (drawing, table, *depends), brief=True)


def effect_rows(comparison: Comparison) -> list[EffectRow]:
    """Every main effect, each followed by itself at the levels of a factor that it depends on.

    Along the axes of a sweep nothing is followed: its figures show how one depends on another.
    """
    rows = []
    for effect in comparison.effects:
        rows.append(_row(comparison, effect))
        for within in _told(comparison, effect):
            over, under = sides(comparison.factors, effect)
            at = comparison.factors[within.factor].labels[within.level]
            low, high = within.estimate.low, within.estimate.high
            output = low is not None and high is not None and not low <= 1 <= high
            title = comparison.factors[effect.factor].title
            rows.append(EffectRow(title, over, under, within.estimate, comparison.metric, output, False, at))
    return rows


def held_factors(comparison: Comparison) -> str:
    """What the other factors were while one changed."""
    if comparison.one_at_a_time:
        return "with every other factor at its first level"
    return "over all combinations of the other factors"


def dependence_sentences(comparison: Comparison) -> list[str]:
    """A sentence for each effect that depends on another factor."""
    sentences = []
    for effect in comparison.effects:
        over, under = sides(comparison.factors, effect)
        for place in dict.fromkeys(within.factor for within in _told(comparison, effect)):
            factor = comparison.factors[place]
            parts = [
                f"{times(within.estimate.mean)} with {factor.labels[within.level]}"
                for within in effect.within
                if within.factor == place
            ]
            sentences.append(
                f"{over} against {under} is {' and '.join(parts)}: its mean over the {factor.title} describes neither."
            )
    return sentences


def _told(comparison: Comparison, effect: Effect) -> tuple[Within, ...]:
    """The effect at levels of other factors, but for what a sweep draws."""
    axes = set() if comparison.sweep is None else {axis.factor for axis in comparison.sweep.axes}
    return () if effect.factor in axes else tuple(item for item in effect.within if item.factor not in axes)


def _row(comparison: Comparison, effect: Effect) -> EffectRow:
    over, under = sides(comparison.factors, effect)
    title = comparison.factors[effect.factor].title
    return EffectRow(
        title, over, under, effect.estimate, comparison.metric, effect.distinguishable, bool(effect.within)
    )

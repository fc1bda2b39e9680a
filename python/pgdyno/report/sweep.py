"""Sections on sweeps and factors: figures and raw table of a sweep, effects of the factors, and slowed time extrapolated to dilation 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.distribution import merge
from pgdyno.analysis.statistics import box_of
from pgdyno.analysis.sweep import CLIENTS, Sweep
from pgdyno.analysis.verdict import sides
from pgdyno.report import figures
from pgdyno.report.figures.parts import evenly
from pgdyno.report.section import Drawing, Grid, Heading, Legend, Make, Note, Part, Section, Sentences

from ..analysis.distribution import latency_map
from ..analysis.extrapolation import Undilated
from ..analysis.factors import Effect, Within
from ..analysis.series import events_of
from ..analysis.statistics import Estimate
from ..analysis.sweep import Scaling
from ..base.text import UNKNOWN, money, number, percent, ratio_interval, times
from .figures.factors import (
    EffectRow,
    FrontPoint,
    bars,
    concurrency_multiples,
    cost_front,
    latency_heat,
    scaling_curve,
    throughput_boxes,
    throughput_heat,
)
from .figures.latency import cumulative_latency

CURVES_MAX = 8
"""Curves of a panel: more shades of one colour cannot be told apart."""
MAPS_MAX = 4
"""Maps of response times over time."""


@dataclass(frozen=True)
class Pivot:
    """The headline of a variant by its axes."""

    title: str
    columns: str
    """What the columns are."""
    rows: str
    """What the rows are."""
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]


def figures_of(comparison: Comparison) -> list[Drawing]:
    """Every figure that the sweep has data for, in the order of the page."""
    sweep = comparison.sweep
    if sweep is None:
        return []
    makers = (_boxes, _bars, _multiples, _heat, _scaling, _cumulative, _over_time, _front)
    return [figure for maker in makers for figure in maker(comparison, sweep)]


def _drawing(name: str, title: str, alternative: str, caption: str, make: Make) -> Drawing:
    return Drawing(name, alternative, caption, make, title)


def sweep_section(comparison: Comparison) -> Section | None:
    """Its figures, the law of its clients, its raw tables."""
    sweep = comparison.sweep
    if sweep is None:
        return None
    parts: list[Part] = [Legend(tuple((f"arm{colour}", name) for colour, name in variant_key(comparison)))]
    sentences = tuple(law_sentences(comparison))
    for drawing in figures_of(comparison):
        parts.append(drawing)
        if drawing.name == "sweep-scaling" and sentences:
            parts.append(Sentences(sentences))
    parts.append(Heading("Raw table"))
    for table in pivots(comparison):
        head = " \\ ".join(part for part in (table.rows, table.columns) if part)
        parts += [Heading(table.title, 4)] if table.title else []
        parts.append(Grid((head, *table.heads), tuple((name, *cells) for name, cells in table.lines), "figures pivot"))
    title = comparison.metric.title.capitalize()
    parts.append(Note(f"{title}, mean of the replicates. pgdyno report --format csv has every run."))
    return Section("sweep", "The sweep", tuple(parts), brief=True)


def law_sentences(comparison: Comparison) -> list[str]:
    """The law of each variant in a sentence, or that the runs do not follow it."""
    sweep = comparison.sweep
    if sweep is None:
        return []
    return [
        _law_sentence(variant.label or "the server", law)
        for variant, law in zip(sweep.variants, sweep.laws, strict=True)
        if law is not None
    ]


def pivots(comparison: Comparison) -> list[Pivot]:
    """The raw tables: a row for each level of the first axis, a column for each of the second, or for each variant."""
    sweep = comparison.sweep
    if sweep is None:
        return []
    if sweep.along is None:
        lines = [
            (text, tuple(_cell(variant.arms.get((x, 0))) for variant in sweep.variants))
            for x, text in enumerate(sweep.x.texts)
        ]
        short = comparison.metric.short
        heads = tuple(variant.label or short for variant in sweep.variants)
        return [Pivot("", "", sweep.x.title, heads, tuple(lines))]
    return [
        Pivot(
            variant.label,
            sweep.along.title,
            sweep.x.title,
            sweep.along.texts,
            tuple(
                (text, tuple(_cell(variant.arms.get((x, second))) for second in sweep.second))
                for x, text in enumerate(sweep.x.texts)
            ),
        )
        for variant in sweep.variants
    ]


def variant_key(comparison: Comparison) -> list[tuple[int, str]]:
    """(colour, name) of each variant; empty for a single one."""
    sweep = comparison.sweep
    if sweep is None or len(sweep.variants) < 2:
        return []
    return [(variant.index % 6, variant.label) for variant in sweep.variants]


def _cell(arm: ArmSummary | None) -> str:
    return (
        UNKNOWN
        if arm is None
        else f"{arm.headline.mean:,.0f}"
        if arm.headline.mean >= 100
        else number(arm.headline.mean)
    )


def _law_sentence(label: str, law: Scaling) -> str:
    if not law.follows:
        return f"{label}: the law does not describe these runs, which lie {percent(law.deviation)} off its curve (root mean square)."
    peak = law.peak_clients
    low, high = law.clients
    if peak is None or peak > high:
        most = f"no fewer transactions up to {high:,.0f} clients"
    elif peak <= low:
        most = f"fewer transactions with more than {low:,.0f} clients"
    else:
        most = f"the most transactions with about {peak:,.0f} clients"
    return (
        f"{label}: contention {law.contention:.3f}, coherence {law.coherence:.2g}, {most}; runs lie {percent(law.deviation)} off the"
        " curve (root mean square)."
    )


def _extent(sweep: Sweep) -> str:
    """The range over all arms."""
    arms = [arm for variant in sweep.variants for arm in variant.arms.values()]
    every = [arm.headline.mean for arm in arms]
    return f"{number(min(every))} to {number(max(every))} {arms[0].metric.title}"


def _boxes(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    title = comparison.metric.title
    texts = [
        f"{variant.label or 'all arms'}: median {number(box.median)}, half of the runs {number(box.first_quartile)} to"
        f" {number(box.third_quartile)}"
        for variant in sweep.variants
        for box in (box_of(variant.of_runs),)
    ]
    yield _drawing(
        "sweep-spread",
        f"Spread of the {title}",
        f"Box plot of {title}. {'; '.join(texts)}.",
        f"{title.capitalize()} of every run of a variant. Box: the middle half and its median; whiskers: up to 1.5 times"
        " the box's width beyond it; circles: runs outside.",
        partial(throughput_boxes, sweep, comparison.arms),
    )


def _bars(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    title = comparison.metric.title
    second = "a variant" if sweep.along is None else f"a level of the {sweep.along.title}, the palest the lowest"
    yield _drawing(
        "sweep-bars",
        f"{title.capitalize()}, grouped by {sweep.x.title}",
        f"Bars grouped by {sweep.x.title}, from {_extent(sweep)}; the raw table has every figure.",
        f"{title.capitalize()} (vertical) by {sweep.x.title}. Each bar: {second}; mean of the replicates.",
        partial(bars, sweep, comparison.arms),
    )


def _multiples(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    title = comparison.metric.title
    if sweep.along is None:
        return
    yield _drawing(
        "sweep-multiples",
        f"{title.capitalize()} at each level of the {sweep.x.title}",
        f"A small panel for each of {len(sweep.x.texts)} levels of the {sweep.x.title}: {title} along the"
        f" {sweep.along.title}, {_extent(sweep)}; the raw table has every figure.",
        f"{title.capitalize()} (vertical) along the {sweep.along.title} (horizontal), on common scales.",
        partial(concurrency_multiples, sweep, comparison.arms),
    )


def _heat(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    title = comparison.metric.title
    if sweep.along is None:
        return
    yield _drawing(
        "sweep-heat",
        f"{title.capitalize()} over {sweep.x.title} and {sweep.along.title}",
        f"Heat map of {title}, rows {sweep.x.title}, columns {sweep.along.title}, {_extent(sweep)}; the raw table"
        " has every figure.",
        f"{title.capitalize()}. Rows: {sweep.x.title}; columns: {sweep.along.title}. The fuller the colour, the more; each variant has shades of its own.",
        partial(throughput_heat, sweep, comparison.arms),
    )


def _scaling(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    title = comparison.metric.title
    if sweep.x.name != CLIENTS:
        return
    drawn = [law if law is not None and law.follows else None for law in sweep.laws]
    curve = "Curve: the universal scalability law fitted to the runs. " if any(drawn) else ""
    yield _drawing(
        "sweep-scaling",
        "How throughput grows with clients",
        f"{title.capitalize()} by clients, {_extent(sweep)}. {' '.join(law_sentences(comparison))}".strip(),
        f"{title.capitalize()} (vertical) by clients. {curve}Circle: an arm.",
        lambda width, theme: scaling_curve(sweep, drawn, comparison.arms, width, theme),
    )


def _cumulative(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    panels = []
    results = []
    for variant in sweep.variants[:MAPS_MAX]:
        curves = []
        for x in evenly(range(len(sweep.x.texts)), CURVES_MAX):
            result = merge(arm.latency_ms for (at, _), arm in variant.arms.items() if at == x)
            if result.total:
                curves.append((f"{sweep.x.texts[x]} {sweep.x.title}", result))
        if curves:
            panels.append((variant.label, variant.index, curves))
            results += [f"{variant.label} {name}: p99 {number(item.percentile(99) or 0.0)} ms" for name, item in curves]
    if panels:
        yield _drawing(
            "sweep-cumulative",
            "Response times, cumulative",
            f"Share of the transactions by response time, a curve for each level of the {sweep.x.title}. {'; '.join(results)}.",
            "Share of the transactions (vertical) that took no longer than the milliseconds below (logarithmic). A curve"
            f" for each level of the {sweep.x.title}, the palest the lowest: {', '.join(name for name, _ in panels[0][2])}.{_passed_over(sweep)}",
            lambda width, theme: cumulative_latency(panels, comparison.arms, width, theme),
        )


def _over_time(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    """The best arm of each variant; the worst too of a single one."""
    chosen = [variant.best for variant in sweep.variants[:MAPS_MAX]]
    if len(sweep.variants) == 1 and sweep.variants[0].worst is not chosen[0]:
        chosen.append(sweep.variants[0].worst)
    whose = "The best arm of each variant"
    if len(sweep.variants) < len(chosen):
        whose = "The best arm and the worst"
    colours = {arm.index: variant.index for variant in sweep.variants for arm in variant.arms.values()}
    maps = [
        (arm.label, colours[arm.index], cells, events_of(arm.representative.figures.run))
        for arm in chosen
        if (cells := latency_map(arm.representative.figures.run))
    ]
    if maps:
        yield _drawing(
            "sweep-over-time",
            "Response times over time",
            f"Heat map of response times over the seconds of a run, for {'; '.join(title for title, _, _, _ in maps)}.",
            "Response time in milliseconds (vertical, logarithmic) over the seconds of the measure phase; the fuller the colour, the more"
            f" transactions. {whose}, its replicate with the median.{_passed_over(sweep)}",
            lambda width, theme: latency_heat(maps, comparison.arms, width, theme),
        )


def _passed_over(sweep: Sweep) -> str:
    """A remark on variants without a panel; empty where there are none."""
    more = sweep.variants[MAPS_MAX:]
    return f" Not drawn, because there is no room: {', '.join(variant.label for variant in more)}." if more else ""


def _front(comparison: Comparison, sweep: Sweep) -> Iterator[Drawing]:
    """At the load at which all variants together do most; nothing where there are not two prices."""
    title = comparison.metric.title
    at = sweep.common_load()
    if at is None:
        return
    offers = []
    for variant in sweep.variants:
        arm = variant.arms[at]
        if arm.usd_per_month is not None:
            low, high = (
                arm.headline.mean if end is None else max(0.0, end) for end in (arm.headline.low, arm.headline.high)
            )
            on_front = comparison.costs[arm.index].front.get(arm.metric.name, False)
            label = variant.label or arm.label
            offers.append(FrontPoint(label, variant.index, arm.usd_per_month, arm.headline.mean, low, high, on_front))
    if len({offer.usd_per_month for offer in offers}) < 2:
        return
    texts = [f"{offer.label}: {number(offer.value)} for {money(offer.usd_per_month)}" for offer in offers]
    yield _drawing(
        "sweep-front",
        f"Cost front with {sweep.words(at)}",
        f"{title.capitalize()} by price a month with {sweep.words(at)}. {'; '.join(texts)}.",
        f"{title.capitalize()} (vertical) by the volumes' list price in US$ a month, with 95 % intervals. Circle: on the cost front;"
        " cross: another one costs less and is not slower.",
        lambda width, theme: cost_front(offers, comparison.arms, width, theme),
    )


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
        for within in _effects_within(comparison, effect):
            over, under = sides(comparison.factors, effect)
            at = comparison.factors[within.factor].labels[within.level]
            low, high = within.estimate.low, within.estimate.high
            output = low is not None and high is not None and not low <= 1 <= high
            title = comparison.factors[effect.factor].title
            rows.append(EffectRow(title, over, under, within.estimate, comparison.metric, output, False, at))
    return rows


def held_factors(comparison: Comparison) -> str:
    """Levels of the other factors while one changed, in words."""
    if comparison.one_at_a_time:
        return "with every other factor at its first level"
    return "over all combinations of the other factors"


def dependence_sentences(comparison: Comparison) -> list[str]:
    """A sentence for each effect that depends on another factor."""
    sentences = []
    for effect in comparison.effects:
        over, under = sides(comparison.factors, effect)
        for place in dict.fromkeys(within.factor for within in _effects_within(comparison, effect)):
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


def _effects_within(comparison: Comparison, effect: Effect) -> tuple[Within, ...]:
    """The effect at levels of other factors, but for what a sweep draws."""
    axes = set() if comparison.sweep is None else {axis.factor for axis in comparison.sweep.axes}
    return () if effect.factor in axes else tuple(item for item in effect.within if item.factor not in axes)


def _row(comparison: Comparison, effect: Effect) -> EffectRow:
    over, under = sides(comparison.factors, effect)
    title = comparison.factors[effect.factor].title
    return EffectRow(
        title, over, under, effect.estimate, comparison.metric, effect.distinguishable, bool(effect.within)
    )


TITLE = "At dilation 1, extrapolated"
MEANING = (
    "In slowed time the host's part of a transaction shrinks by the dilation, so response times lie on a straight"
    " line in its inverse. The line is fitted to the dilations above 1 of each block; its end is a machine with"
    " enough cores. Noise is that of a run, multiplied."
)


def undilated_section(comparison: Comparison) -> Section | None:
    """Every combination of the other factors at dilation 1; None where there are no two dilations above it."""
    undilateds = comparison.undilated
    if not undilateds:
        return None
    dilations = sorted({arm.dilation for undilated in undilateds for arm in undilated.arms})
    unit = comparison.metric.short
    heads = (
        "",
        *(f"{unit} at {dilation}" for dilation in dilations),
        "at 1, extrapolated",
        "at 1, measured",
        "noise",
        "",
    )
    rows = tuple(_undilated_row(undilated, dilations) for undilated in undilateds)
    return Section(
        "undilated", TITLE, (Grid(heads, rows), Sentences(tuple(undilated_ratios(comparison))), Note(MEANING))
    )


def undilated_lines(comparison: Comparison) -> list[str]:
    """The same in sentences, for the terminal."""
    return [
        *(_sentence(undilated, comparison.metric.short) for undilated in comparison.undilated),
        *undilated_ratios(comparison),
    ]


def _sentence(undilated: Undilated, unit: str) -> str:
    if undilated.because:
        return f"{undilated.label}: not extrapolated, because {undilated.because}"
    beside = "" if undilated.measured is None else f", measured {number(undilated.measured.headline.mean)}"
    return f"{undilated.label}: {_with_ends(undilated.estimate)} {unit}{beside}; the noise of a run {_noise(undilated)}"


def undilated_ratios(comparison: Comparison) -> Iterator[str]:
    """Each combination against the first, at dilation 1 and as measured."""
    first, *others = comparison.undilated or (None,)
    for item in others:
        assert first is not None
        ratio = item.ratio_to(first)
        if ratio is not None:
            seen = ", ".join(_seen(item, first))
            yield (
                f"{item.label} {comparison.metric.does} {_times(ratio)} the {comparison.metric.counts} of {first.label}"
                f" at dilation 1, extrapolated; measured {seen}."
            )


def _seen(undilated: Undilated, first: Undilated) -> Iterator[str]:
    of_first = {arm.dilation: arm.headline.mean for arm in first.arms}
    for arm in undilated.arms:
        if of_first.get(arm.dilation):
            yield f"{times(arm.headline.mean / of_first[arm.dilation])} at {arm.dilation}"


def _undilated_row(undilated: Undilated, dilations: list[int]) -> tuple[str, ...]:
    of = {arm.dilation: number(arm.headline.mean) for arm in undilated.arms}
    measured = UNKNOWN if undilated.measured is None else number(undilated.measured.headline.mean)
    cells = (
        _with_ends(undilated.estimate),
        measured,
        _noise(undilated),
        undilated.because and f"because {undilated.because}",
    )
    return (undilated.label, *(of.get(dilation, UNKNOWN) for dilation in dilations), *cells)


def _noise(undilated: Undilated) -> str:
    return UNKNOWN if undilated.noise is None else f"× {number(undilated.noise)}"


def _with_ends(estimate: Estimate | None) -> str:
    if estimate is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ({number(estimate.low)} to {number(estimate.high)})"


def _times(estimate: Estimate) -> str:
    ends = "" if estimate.low is None else f" (95 % interval {ratio_interval(estimate.low, estimate.high)})"
    return f"{times(estimate.mean)} times{ends}"

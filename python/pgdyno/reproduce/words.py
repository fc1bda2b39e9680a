"""The comparisons in words, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pgdyno.reproduce.verdict import Sign, Word
from pgdyno.text import UNKNOWN, ratio_interval, times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgdyno.analysis.scaling import Scaling
    from pgdyno.published.document import Unstated
    from pgdyno.reproduce.chart import ChartTold
    from pgdyno.reproduce.told import DocumentTold, OrderTold, Told, Varied

NOT_FITTED = (
    "Nothing is fitted to a published figure: volumes have the limits and service times of the catalogue, and memory, data and CPUs are"
    " scaled as each experiment file says. Compare ratios, not absolute figures."
)
INTERVAL = "Intervals are of 95 %, of runs paired by replicate."
NOT_VARIED = "not varied"
CHART = "Both axes are logarithmic. Curves: the universal scalability law, where the points follow one. Absolute figures are of different machines: compare slopes."
COHERENCE_LEAST = 1e-6
"""Below it is what a fit leaves of nothing: of 64 each costs less than a ten-thousandth."""
CHANGED = " (by runs that differ from the experiment file)"


def headline(documents: Sequence[DocumentTold]) -> str:
    """What all comparisons come to, in a sentence or two."""
    told = [one for document in documents for one in document.comparisons]
    words = Counter(one.judged.word for one in told)
    signs = Counter(one.sign for one in told)
    parts = [
        f"{words[Word.AGREES]} agree",
        f"{words[Word.WITHIN]} agree within what the document does not state",
        f"{words[Word.DIFFERS]} differ",
        f"{words[Word.UNTOLD]} cannot be told here",
    ]
    known = signs[Sign.RIGHT] + signs[Sign.WRONG]
    text = f"Of {len(told)} published comparisons {', '.join(parts[:-1])}, and {parts[-1]}."
    return f"{text} The sign is right in {signs[Sign.RIGHT]} of {known} that are known." if known else text


def figure(value: float | None) -> str:
    """A figure of a document or of runs: four digits, from a thousand on none behind the point."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def there_ratio(told: Told) -> str:
    """``about 2.08 times``."""
    return ("about " if told.there.share > 0.01 else "") + times(told.there.ratio)


def here_ratio(told: Told) -> str:
    """The same here; a dash where there is none."""
    return UNKNOWN if told.ratio is None else times(told.ratio.mean)


def there(told: Told) -> str:
    """``2.08 (269,823 / 129,729 TPM)``."""
    ratio = there_ratio(told)
    if told.there_high is None or told.there_low is None:
        return ratio
    unit = f" {told.there_unit}" if told.there_unit else ""
    return f"{ratio} ({figure(told.there_high)} / {figure(told.there_low)}{unit})"


def here(told: Told) -> str:
    """The same here; a dash where nothing was measured."""
    if told.here is None or told.ratio is None:
        return UNKNOWN
    # Tables have 1/min where a sentence has `transactions per minute`.
    unit = f" {told.title if told.unit.startswith('1/') else told.unit}" if told.unit else ""
    return f"{here_ratio(told)} ({figure(told.here.high)} / {figure(told.here.low)}{unit})"


def extent(told: Told) -> str:
    """The interval of the ratio here."""
    if told.ratio is None or told.ratio.low == told.ratio.high:
        return UNKNOWN
    return ratio_interval(told.ratio.low, told.ratio.high)


def reach(told: Told) -> str:
    """The sensitivity interval."""
    return UNKNOWN if told.reach is None else f"{times(told.reach[0])} to {times(told.reach[1])}"


def verdict(told: Told) -> str:
    """``differs: because …``."""
    return told.judged.sentence(CHANGED if told.changed else "")


def details(told: Told) -> Iterator[str]:
    """What else there is to know of a comparison, in sentences."""
    if told.arms is not None:
        bound = f"; what bound: {told.limits[0]} against {told.limits[1]}" if told.limits else ""
        source = told.experiment or "the catalogue"
        yield f"{told.title} of {told.arms[0]} against {told.arms[1]}, from {source}{bound}."
    if told.differently:
        yield f"Measured differently: {told.differently}."
    if told.varied:
        yield f"Varied of what is not stated: {'; '.join(map(_varied, told.varied))}."
    elif told.arms is not None and told.experiment:
        yield "Nothing of what is not stated was varied."


def _varied(one: Varied) -> str:
    ratio = "no valid runs" if one.ratio is None else times(one.ratio.mean)
    return f"{one.what} {one.choice}: {ratio}"


def order(one: OrderTold) -> str:
    """The order of several figures."""
    return f"Order of {one.name}: {one.sign}."


def of_chart(chart: ChartTold) -> Iterator[str]:
    """How much each line grows, there and here, with the law that it follows."""
    for line in chart.lines:
        there = _grown([(one.x, one.there) for one in line.points], chart, line.law_there)
        here = _grown([(one.x, one.here.mean) for one in line.points if one.here is not None], chart, line.law_here)
        yield f"{line.name}: {there} in the document; here {here or 'there are no runs of two points'}."
    if chart.why:
        yield f"No runs here, because {chart.why}."


def _grown(points: Sequence[tuple[float, float]], chart: ChartTold, law: Scaling | None) -> str:
    """``20.3 times the TPS from 2 to 64 vCPUs (contention 0.012, coherence 3e-05)``; empty for fewer than two points."""
    if len(points) < 2:
        return ""
    (low_x, low), (high_x, high) = points[0], points[-1]
    said = ""
    if law is not None:
        coherence = f"{law.coherence:.2g}" if law.coherence >= COHERENCE_LEAST else "0"
        said = f" (contention {law.contention:.3f}, coherence {coherence})" if law.follows else " (by no such law)"
    return f"{times(high / low)} times the {chart.unit} from {low_x:g} to {high_x:g} {chart.chart.x_title}{said}"


def plausible(one: Unstated) -> str:
    """What something that is not stated may have been."""
    if one.choices:
        return " or ".join(one.choices)
    unit = "" if one.unit in ("", "count") else f" {one.unit}"
    return f"{one.low:,f} to {one.high:,f}{unit}"


def adding_up(document: DocumentTold) -> str:
    """How much of the document's own arithmetic adds up."""
    claims = document.document.arithmetic
    right = sum(document.document.outcome(one).agrees for one in claims)
    return f"Its own arithmetic, recomputed: {right} of {len(claims)} claims add up."


def not_adding_up(document: DocumentTold) -> list[tuple[str, str, str, str]]:
    """The claims that do not: claim, what it comes to, what is stated, why."""
    rows = []
    for one in document.document.arithmetic:
        outcome = document.document.outcome(one)
        if not outcome.agrees:
            sides = [None if side is None else float(side) for side in (outcome.computed, outcome.stated)]
            rows.append((one.claim, f"{figure(sides[0])} {one.unit}", figure(sides[1]), one.because))
    return rows


def sources(document: DocumentTold) -> Iterator[str]:
    """Where the runs are, and in what they differ from the experiment files."""
    for one in document.results:
        if one.path is None:
            yield f"{one.name}: {one.why}."
        else:
            changed = f", recorded with {'; '.join(one.changed)}" if one.changed else ""
            yield f"{one.name}: {one.path}{changed}."


def lines(documents: Iterable[DocumentTold]) -> Iterator[str]:
    """The whole as text, a block for each comparison."""
    place = 0
    for document in documents:
        yield f"{document.document.name}: {document.document.title}"
        for told in document.comparisons:
            place += 1
            yield f"{place:3d}  {told.name}"
            yield f"     there {there(told)}; here {here(told)}"
            if told.ratio is not None:
                yield f"     95 % interval {extent(told)}; within what is unstated {reach(told)}; sign {told.sign}"
            yield f"     {verdict(told)}"
        for one in document.orders:
            yield f"     {order(one)}"
        yield f"     {adding_up(document)}"
        yield from (f"     {text}" for text in sources(document))
        yield ""

"""Comparisons in words, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pgdyno.analysis.sweep import Scaling
from pgdyno.published.document import UnstatedChoice

from ..base.text import UNKNOWN, ratio_interval, times
from .judge import ChartResult, ComparisonResult, DocumentResult, OrderResult, Sign, VariantResult, Verdict

NOT_FITTED = (
    "Nothing is fitted to a published figure: volumes have the limits and service times of the catalogue, and memory, data and CPUs are"
    " scaled as each experiment file says. Compare ratios, not absolute figures."
)
INTERVAL = "Intervals are 95 %, over runs paired by replicate."
NOT_VARIED = "not varied"
CHART = "Both axes are logarithmic. Curves: the universal scalability law, where the points follow one. Absolute figures are of different machines: compare slopes."
COHERENCE_LEAST = 1e-6
"""Below it is what a fit leaves of nothing: of 64 each costs less than a ten-thousandth."""
CHANGED = " (by runs that differ from the experiment file)"


def headline(documents: Sequence[DocumentResult]) -> str:
    """All comparisons in a sentence or two."""
    results = [comparison for document in documents for comparison in document.comparisons]
    words = Counter(result.judgement.verdict for result in results)
    signs = Counter(result.sign for result in results)
    parts = [
        f"{words[Verdict.AGREES]} agree",
        f"{words[Verdict.WITHIN]} agree within what the document does not state",
        f"{words[Verdict.DIFFERS]} differ",
        f"{words[Verdict.NOT_ANSWERED]} are not answered",
    ]
    known = signs[Sign.RIGHT] + signs[Sign.WRONG]
    text = f"Of {len(results)} published comparisons {', '.join(parts[:-1])}, and {parts[-1]}."
    return f"{text} The sign is right in {signs[Sign.RIGHT]} of {known} that are known." if known else text


def figure(value: float | None) -> str:
    """A figure of a document or of runs: four digits, from a thousand on none behind the point."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def there_ratio(result: ComparisonResult) -> str:
    """``about 2.08 times``."""
    return ("about " if result.there.share > 0.01 else "") + times(result.there.ratio)


def here_ratio(result: ComparisonResult) -> str:
    """The same here; a dash where there is none."""
    return UNKNOWN if result.ratio is None else times(result.ratio.mean)


def there(result: ComparisonResult) -> str:
    """``2.08 (269,823 / 129,729 TPM)``."""
    ratio = there_ratio(result)
    if result.there_high is None or result.there_low is None:
        return ratio
    unit = f" {result.there_unit}" if result.there_unit else ""
    return f"{ratio} ({figure(result.there_high)} / {figure(result.there_low)}{unit})"


def here(result: ComparisonResult) -> str:
    """The same here; a dash where nothing was measured."""
    if result.here is None or result.ratio is None:
        return UNKNOWN
    # Tables have 1/min where a sentence has `transactions per minute`.
    unit = f" {result.title if result.unit.startswith('1/') else result.unit}" if result.unit else ""
    return f"{here_ratio(result)} ({figure(result.here.high)} / {figure(result.here.low)}{unit})"


def extent(result: ComparisonResult) -> str:
    """The interval of the ratio here."""
    if result.ratio is None or result.ratio.low == result.ratio.high:
        return UNKNOWN
    return ratio_interval(result.ratio.low, result.ratio.high)


def reach(result: ComparisonResult) -> str:
    """The sensitivity interval."""
    return UNKNOWN if result.reach is None else f"{times(result.reach[0])} to {times(result.reach[1])}"


def verdict(result: ComparisonResult) -> str:
    """``differs: because …``."""
    return result.judgement.sentence(CHANGED if result.changed else "")


def details(result: ComparisonResult) -> Iterator[str]:
    """Further details of a comparison, in sentences."""
    if result.arms is not None:
        bound = f"; what bound: {result.limits[0]} against {result.limits[1]}" if result.limits else ""
        source = result.experiment or "the catalogue"
        yield f"{result.title} of {result.arms[0]} against {result.arms[1]}, from {source}{bound}."
    if result.differently:
        yield f"Measured differently: {result.differently}."
    if result.varied:
        yield f"Varied, because the document does not state it: {'; '.join(map(_varied, result.varied))}."
    elif result.arms is not None and result.experiment:
        yield "Nothing that the document leaves open was varied."


def _varied(result: VariantResult) -> str:
    ratio = "no valid runs" if result.ratio is None else times(result.ratio.mean)
    return f"{result.what} {result.choice}: {ratio}"


def order(result: OrderResult) -> str:
    """The order of several figures."""
    return f"Order of {result.name}: {result.sign}."


def of_chart(chart: ChartResult) -> Iterator[str]:
    """Growth of each line, there and here, with the law that it follows."""
    for line in chart.lines:
        there = _grown([(point.x, point.there) for point in line.points], chart, line.law_there)
        here = _grown(
            [(point.x, point.here.mean) for point in line.points if point.here is not None], chart, line.law_here
        )
        yield f"{line.name}: {there} in the document; here {here or 'there are no runs of two points'}."
    if chart.why:
        yield f"No runs here, because {chart.why}."


def _grown(points: Sequence[tuple[float, float]], chart: ChartResult, law: Scaling | None) -> str:
    """``20.3 times the TPS from 2 to 64 vCPUs (contention 0.012, coherence 3e-05)``; empty for fewer than two points."""
    if len(points) < 2:
        return ""
    (low_x, low), (high_x, high) = points[0], points[-1]
    text = ""
    if law is not None:
        coherence = f"{law.coherence:.2g}" if law.coherence >= COHERENCE_LEAST else "0"
        text = f" (contention {law.contention:.3f}, coherence {coherence})" if law.follows else " (by no such law)"
    return f"{times(high / low)} times the {chart.unit} from {low_x:g} to {high_x:g} {chart.chart.x_title}{text}"


def plausible(choice: UnstatedChoice) -> str:
    """The plausible range of something that is not stated."""
    if choice.choices:
        return " or ".join(choice.choices)
    unit = "" if choice.unit in ("", "count") else f" {choice.unit}"
    return f"{choice.low:,f} to {choice.high:,f}{unit}"


def adding_up(document: DocumentResult) -> str:
    """Count of the document's own claims that add up."""
    claims = document.document.arithmetic
    right = sum(document.document.outcome(claim).agrees for claim in claims)
    return f"Its own arithmetic, recomputed: {right} of {len(claims)} claims add up."


def not_adding_up(document: DocumentResult) -> list[tuple[str, str, str, str]]:
    """The claims that do not: claim, what it comes to, what is stated, why."""
    rows = []
    for arithmetic in document.document.arithmetic:
        outcome = document.document.outcome(arithmetic)
        if not outcome.agrees:
            sides = [None if side is None else float(side) for side in (outcome.computed, outcome.stated)]
            rows.append(
                (arithmetic.claim, f"{figure(sides[0])} {arithmetic.unit}", figure(sides[1]), arithmetic.because)
            )
    return rows


def sources(document: DocumentResult) -> Iterator[str]:
    """Where the runs are, and in what they differ from the experiment files."""
    for result in document.results:
        if result.path is None:
            yield f"{result.name}: {result.why}."
        else:
            changed = f", recorded with {'; '.join(result.changed)}" if result.changed else ""
            yield f"{result.name}: {result.path}{changed}."


def lines(documents: Iterable[DocumentResult]) -> Iterator[str]:
    """The whole as text, a block for each comparison."""
    place = 0
    for document in documents:
        yield f"{document.document.name}: {document.document.title}"
        for comparison in document.comparisons:
            place += 1
            yield f"{place:3d}  {comparison.name}"
            yield f"     there {there(comparison)}; here {here(comparison)}"
            if comparison.ratio is not None:
                yield f"     95 % interval {extent(comparison)}; within what is unstated {reach(comparison)}; sign {comparison.sign}"
            yield f"     {verdict(comparison)}"
        for result in document.orders:
            yield f"     {order(result)}"
        yield f"     {adding_up(document)}"
        yield from (f"     {text}" for text in sources(document))
        yield ""

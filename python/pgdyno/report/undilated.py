"""Slowed time taken to one, in words, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.interval import Estimate
from pgdyno.analysis.undilated import Undilated
from pgdyno.report.section import Grid, Note, Section, Sentences

from ..base.text import UNKNOWN, number, ratio_interval, times

TITLE = "At dilation 1, extrapolated"
MEANING = (
    "In slowed time the host's part of a transaction is shorter by the dilation, so response times are a straight line in its inverse. The line is drawn"
    " through the dilations above 1 of each block; a machine with enough cores would be at its end. Noise is that of a run, multiplied."
)


def undilated_section(comparison: Comparison) -> Section | None:
    """What each combination of the other factors comes to at dilation 1; None where there are no two dilations above it."""
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
    rows = tuple(_row(undilated, dilations) for undilated in undilateds)
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


def _row(undilated: Undilated, dilations: list[int]) -> tuple[str, ...]:
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

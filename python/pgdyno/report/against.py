"""The page that compares one stored result with another: their differences, then the results of their common arms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.analysis.verdict import interval as extent_of
from pgdyno.report import figures
from pgdyno.report.render import drawing, moment, rendered, write_whole

from ..analysis.compare import Against, Difference, Pair
from ..analysis.run import Headline
from ..base.text import UNKNOWN, number, times
from .figures.factors import EffectRow

TOLD_MAX = 4
"""More arms than this are counted in the verdict instead of told one by one."""


@dataclass(frozen=True)
class ArmLine:
    """A common arm in words."""

    label: str
    cells: tuple[str, ...]
    """In the order of :func:`columns`."""


def columns(metric: Headline) -> tuple[str, ...]:
    """The heads of the table of common arms."""
    short = metric.short
    return (f"{short} here", f"{short} there", "ratio", "95 % interval", "verdict", "p99 here, ms", "p99 there, ms")


def write_against(against: Against, output: Path) -> Path:
    """Write the page; :class:`~pgdyno.base.errors.HostError` when it cannot be."""
    write_whole(output, html(against).encode())
    return output


def html(against: Against) -> str:
    """The page as text."""
    rows = [_effect(pair) for pair in against.pairs if pair.ratio is not None]
    with figures.unchecked():
        drawn = (
            drawing(
                "against", verdict(against), lambda width, theme: figures.effects(rows, against.one.arms, width, theme)
            )
            if rows
            else None
        )
    return rendered(
        "against.html",
        found=against,
        verdict=verdict(against),
        caveat=caveat(against),
        drawn=drawn,
        columns=columns(against.one.metric),
        metric=against.one.metric,
        lines=lines(against),
        tables=[
            ("Configuration", differing(against.configuration)),
            ("Programs and host", differing(against.programs)),
            ("PostgreSQL's settings", differing(against.settings)),
        ],
        sides=[("here", against.one.experiment, moment(against.one.experiment.created_unix_ns)),
               ("there", against.other.experiment, moment(against.other.experiment.created_unix_ns))],
    )  # fmt: skip


def verdict(against: Against) -> str:
    """The verdict on both results, in one sentence or a few."""
    if not against.pairs:
        return "The two results have no arm in common."
    invalid = [pair.arm.label for pair in against.pairs if not (pair.arm.valid and pair.other.valid)]
    if invalid:
        return f"No verdict: runs of {', '.join(invalid[:TOLD_MAX])} are invalid."
    if len(against.pairs) > TOLD_MAX:
        more, fewer = (
            sum(
                pair.distinguishable and pair.ratio is not None and (pair.ratio.mean > 1) is up
                for pair in against.pairs
            )
            for up in (True, False)
        )
        same = len(against.pairs) - more - fewer
        metric = against.one.metric
        return (
            f"Of {len(against.pairs)} common arms {more} {metric.do} more {metric.counts} here, {fewer} {metric.do} {metric.fewer}"
            f" and {same} are not distinguishable."
        )
    return " ".join(_sentence(pair) for pair in against.pairs)


def caveat(against: Against) -> str:
    """The caveat of ratios across experiments."""
    same = against.one.experiment.experiment_hash == against.other.experiment.experiment_hash
    text = "The two ran at different times, so the ratio includes whatever else the machine did then. Intervals are Welch's, for unpaired runs."
    return text + (
        " They are repetitions of one experiment; `pgdyno report` pools them when both are named." if same else ""
    )


def lines(against: Against) -> list[ArmLine]:
    """Each common arm in figures."""
    return [
        ArmLine(
            pair.arm.label,
            (
                number(pair.arm.headline.mean),
                number(pair.other.headline.mean),
                UNKNOWN if pair.ratio is None else times(pair.ratio.mean),
                _extent(pair),
                _word(pair),
                number(pair.arm.latency_ms.percentile(99)),
                number(pair.other.latency_ms.percentile(99)),
            ),
        )
        for pair in against.pairs
    ]


def differing(differences: tuple[Difference, ...]) -> list[tuple[str, str, str]]:
    """(what, there, here) of every difference."""
    return [(_place(difference.place), _value(difference.old), _value(difference.new)) for difference in differences]


def _place(place: tuple[str | int, ...]) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in place)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return UNKNOWN if value is None or value in ("", [], {}) else str(value)


def _extent(pair: Pair) -> str:
    if pair.ratio is None or pair.ratio.low is None or pair.ratio.high is None:
        return UNKNOWN
    return f"{times(pair.ratio.low)} to {times(pair.ratio.high)}"


def _word(pair: Pair) -> str:
    if pair.ratio is None:
        return "nothing was done"
    if pair.ratio.low is None:
        return "too few runs for an interval"
    return pair.arm.metric.apart(pair.ratio.mean) if pair.distinguishable else "not distinguishable"


def _sentence(pair: Pair) -> str:
    if pair.ratio is None:
        return f"{pair.arm.label} did nothing in one of them."
    metric = pair.arm.metric
    ratio = f"{times(pair.ratio.mean)} times the {metric.counts}"
    if pair.ratio.low is None:
        return f"{pair.arm.label} {metric.did} {ratio} here: too few runs for an interval."
    if not pair.distinguishable:
        return f"{pair.arm.label} here and there are not distinguishable: {ratio} ({extent_of(pair.ratio)})."
    return f"{pair.arm.label} {metric.does} {ratio} here ({extent_of(pair.ratio)})."


def _effect(pair: Pair) -> EffectRow:
    return EffectRow(
        "result", f"{pair.arm.label} here", "there", pair.ratio, pair.arm.metric, pair.distinguishable, False
    )

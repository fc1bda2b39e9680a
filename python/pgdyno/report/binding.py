"""The limit that binds in words, for the page and for the terminal."""

from __future__ import annotations

from typing import NamedTuple

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.binding.arm import OF_INVALID, ArmBinding
from pgdyno.analysis.binding.remedy import Remedy
from pgdyno.analysis.binding.verdict import BindingVerdict
from pgdyno.analysis.compare import Comparison
from pgdyno.report.section import Block, Note, Section, listed, many

from ..analysis.binding.rules import LIMITS, TITLES, Limit
from ..analysis.run import Headline
from ..base.text import UNKNOWN, money, percent, times
from .section import COLUMNS_MAX

NOT_EXPLAINED = "not explained"
_SURE = {"high": "", "low": "probably ", "unknown": ""}
COLOURS = (
    "wait1",
    "wait2",
    "wait5",
    "wait4",
    "role2",
    "wait3",
    "wait8",
    "wait0",
    "arm3",
    "wait7",
    "wait6",
    "role3",
    "role6",
    "arm5",
)
"""Class of the page for each limit, in the order of :data:`~pgdyno.analysis.binding.rules.LIMITS`."""


class Stretch(NamedTuple):
    """Neighbouring seconds of a run with one limit, as a part of a bar."""

    seconds: int
    title: str
    colour: str
    """A class of the page; empty for what is not explained."""


class BoundRow(NamedTuple):
    """One arm on the page."""

    arm: ArmSummary
    limit: str
    confidence: str
    share: str
    """Share of the seconds."""
    stretches: tuple[Stretch, ...]
    """The seconds of the replicate with the median headline."""
    described: str
    """What the bar shows, for who does not see it."""
    evidence: tuple[str, ...]
    not_seen: tuple[str, ...]


_NOTE = (
    "The limit is derived from what a real host shows too (block devices, wait events, PostgreSQL's counters,"
    " CPU) and from what was bought, never from an emulated volume's own counters. Confidence is high where"
    " independent sources agree in most seconds. A second counts in full for the limit reached in it, so this"
    " share is larger than the share of time in which requests waited."
)


def binding_section(comparison: Comparison) -> Section:
    """The limit of each arm, and its evidence."""
    bars = "" if many(comparison) else f"Bar: each second of the replicate with the median {comparison.metric.short}. "
    block = Block(
        "binding.html",
        {"rows": binding_rows(comparison), "limits": limit_colours(comparison), "fold": not listed(comparison)},
    )
    return Section("binding", "What limits it", (block, Note(bars + _NOTE)))


def binding_rows(comparison: Comparison) -> list[BoundRow]:
    """Every arm, in the order of the table."""
    return [_row(arm, comparison.bindings[arm.index]) for arm in comparison.arms]


def limit_colours(comparison: Comparison) -> list[tuple[str, str]]:
    """(class, name) of the limits that bound in any second that is drawn."""
    drawn = {limit for binding in comparison.bindings.values() for _, _, limit in binding.representative.spans}
    return [(COLOURS[place], TITLES[limit]) for place, limit in enumerate(LIMITS) if limit in drawn]


def binding_lines(comparison: Comparison) -> list[tuple[str, str]]:
    """(word before it, text) for the terminal: each arm, or a line for each limit where there are many arms."""
    if len(comparison.arms) > COLUMNS_MAX:
        return _counted(comparison)
    lines = []
    for arm in comparison.arms:
        if not arm.valid:
            continue
        binding = comparison.bindings[arm.index]
        texts = binding.evidence if binding.verdict.limit is not None else (*binding.missing, *binding.evidence)
        evidence = "; ".join(texts or binding.missing)
        what = f"{arm.label}: {verdict_words(binding.verdict)}"
        lines.append(("bound by: ", f"{what}: {evidence}" if evidence else what))
    return lines


def verdict_words(verdict: BindingVerdict) -> str:
    """``volume IOPS in 97 % of the seconds``, ``probably locks in 55 % and server CPU in 30 %``, or what there is a little of."""
    if verdict.limit is None:
        several = " and ".join(f"{TITLES[limit]} {percent(share)}" for limit, share in list(verdict.shares.items())[:3])
        return f"unknown ({several} of the seconds)" if several else "unknown"
    further = "".join(f" and {TITLES[limit]} in {percent(share)}" for limit, share in verdict.beside.items())
    return f"{_SURE[verdict.confidence]}{_name(verdict)} in {percent(verdict.share)}{further} of the seconds"


def remedy_words(remedy: Remedy, metric: Headline) -> str:
    """The action, its price and its effect, as the end of a sentence."""
    parts = [part for part in (_price(remedy), _effect(remedy, metric)) if part]
    return "; ".join([remedy.action, *parts])


def _row(arm: ArmSummary, binding: ArmBinding) -> BoundRow:
    verdict = binding.verdict
    parts = [f"{TITLES[limit]} {percent(share)} of the seconds" for limit, share in verdict.shares.items()]
    return BoundRow(
        arm=arm,
        limit=_limit(arm, verdict),
        confidence=verdict.confidence,
        share=UNKNOWN if verdict.limit is None else percent(verdict.share),
        stretches=tuple(
            Stretch(end - begin, f"second {begin + 1} to {end}: {_title(limit)}", _colour(limit))
            for begin, end, limit in binding.representative.spans
        ),
        described=f"{arm.label}: {', '.join(parts) or NOT_EXPLAINED}",
        evidence=binding.evidence if arm.valid else (OF_INVALID,),
        not_seen=binding.missing if arm.valid else (),
    )


def _limit(arm: ArmSummary, verdict: BindingVerdict) -> str:
    """The limit of an arm in a word."""
    if not arm.valid:
        return "not named (invalid)"
    if verdict.limit is None:
        return "unknown"
    return " and ".join((_name(verdict), *(TITLES[limit] for limit in verdict.beside)))


def _name(verdict: BindingVerdict) -> str:
    """The limit; of another volume than the data's, which."""
    assert verdict.limit is not None
    title = TITLES[verdict.limit]
    return title if verdict.role in (None, "data") else f"{title} ({verdict.role})"


def _title(limit: Limit | None) -> str:
    return NOT_EXPLAINED if limit is None else TITLES[limit]


def _colour(limit: Limit | None) -> str:
    return "" if limit is None else COLOURS[LIMITS.index(limit)]


def _price(remedy: Remedy) -> str:
    """``$15.50 a month, $7.50 more``; empty where it is not known."""
    if remedy.usd_per_month is None:
        return "no purchase" if remedy.usd_more_per_month == 0 else ""
    if remedy.usd_more_per_month is None:
        return f"{money(remedy.usd_per_month)} a month"
    change = f"{money(abs(remedy.usd_more_per_month))} {'less' if remedy.usd_more_per_month < 0 else 'more'}"
    return f"{money(remedy.usd_per_month)} a month, {change if remedy.usd_more_per_month else 'the same as now'}"


def _effect(remedy: Remedy, metric: Headline) -> str:
    """``up to 1.50 times the transactions; the next limit is volume IOPS``."""
    if remedy.tps_ratio_max is None:
        return ""
    then = "" if remedy.then is None else f"; the next limit is {TITLES[remedy.then]}"
    how = f"the {metric.counts}" if metric.better == "more" else "as fast"
    return f"up to {times(remedy.tps_ratio_max)} times {how}{then}"


def _counted(comparison: Comparison) -> list[tuple[str, str]]:
    by_limit: dict[str, list[ArmSummary]] = {}
    for arm in comparison.arms:
        by_limit.setdefault(_limit(arm, comparison.bindings[arm.index].verdict), []).append(arm)
    ordered = sorted(by_limit.items(), key=lambda item: -len(item[1]))
    return [("bound by: ", f"{name}: {len(arms)} of {len(comparison.arms)} arms, as {arms[0].label}")
            for name, arms in ordered]  # fmt: skip

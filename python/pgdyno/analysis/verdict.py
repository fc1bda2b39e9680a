"""The sentences of a verdict. Arms that could not be told apart are called so; single runs tell nothing apart, and the sentence says that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.ratio import Ratio
from pgdyno.analysis.replay import replay_of
from pgdyno.analysis.sweep import Sweep

from ..base.text import TOO_FEW, money, number, percent, ratio_interval, times
from .factors import Effect
from .run import Headline
from .statistics import Estimate

NO_INTERVAL: Final = "Use -n 3 for a confidence interval."
SENTENCES_MAX = 4
"""More arms than this after the first are counted instead of listed: fifteen sentences are too many to read."""
PAIRED_SENTENCES_MAX = 3
"""Arms of which every pair has a sentence: with three there are three."""
FAR_APART = 0.1
"""Ratio below which the sides change places: 274 times is read at once, and 0.00366 times is not."""
RULED_OUT_MAX = 0.5
"""That two volumes differ by less than a half is nothing to say."""


def sentence(arms: Sequence[ArmSummary], ratios: Sequence[Ratio], pairs: Sequence[Ratio] = ()) -> str:
    """The verdict of a comparison, one sentence for each pair of a few arms; of more for each arm after the first."""
    if not ratios:
        return _alone(arms[0])
    if len(arms) <= PAIRED_SENTENCES_MAX and pairs:
        ratios = pairs
    by_name = {arm.index: arm for arm in arms}
    if len(ratios) > SENTENCES_MAX:
        return _counted(by_name, ratios)
    return " ".join(_against(by_name[ratio.index], by_name[ratio.to_index], ratio) for ratio in ratios)


def of_replays(arms: Sequence[ArmSummary]) -> str:
    """Whether each arm kept up with the captured load, before a verdict; empty of other workloads."""
    summaries = [(arm, replay) for arm in arms if arm.valid and (replay := replay_of(arm)) is not None]
    in_time = [arm.label for arm, replay in summaries if replay.kept_up]
    late = [(arm, replay) for arm, replay in summaries if not replay.kept_up]
    words = []
    if len(summaries) > SENTENCES_MAX + 1:
        return f"{len(in_time)} of {len(summaries)} arms kept up with the captured load. "
    if in_time:
        words.append(f"{listed(in_time)} kept up with the captured load")
    words += [
        f"{arm.label} fell behind: it took {number(replay.late_s.mean)} s longer than the {number(replay.runs[0].due_s)} s that were due"
        for arm, replay in late
    ]
    return f"{'; '.join(words)}. " if words else ""


def listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def with_events(arms: Sequence[ArmSummary]) -> str:
    """What happened on purpose while measuring, before a verdict; empty where nothing did."""
    most = max((len(events) for arm in arms for events in arm.events), default=0)
    if not most:
        return ""
    runs = [replicate.figures.record for arm in arms for replicate in arm.replicates]
    parts = [f"With {most} event{'s' * (most > 1)}{' in each run' if len(runs) > 1 else ''}"]
    down = [seconds for arm in arms for seconds in arm.down_s]
    if max(down) > 0:
        extent = dict.fromkeys(number(seconds) for seconds in (min(down), max(down)))
        parts.append(
            f"the server down for {' to '.join(extent)} of {number(max(run.measure.seconds for run in runs))} s"
        )
        failed = sum(run.account.failed for run in runs)
        tried = failed + sum(run.account.succeeded + run.account.rolled_back for run in runs)
        if failed:
            parts.append(f"{percent(failed / tried)} of the transactions failed")
    return f"{', '.join(parts)}: "


def of_effects(arms: Sequence[ArmSummary], factors: Sequence[Factor], effects: Sequence[Effect]) -> str:
    """The verdict of an experiment with several factors: what each did over all others, the largest first."""
    if (refusal := _invalid(arms)) is not None:
        return refusal
    known = [effect for effect in effects if effect.estimate is not None]
    results = sorted((effect for effect in known if effect.distinguishable), key=lambda e: -distance(e.estimate))
    same = [effect for effect in known if not effect.distinguishable]
    if known and all(effect.estimate is None or effect.estimate.low is None for effect in known):
        metric = arms[0].metric
        parts = [f"{sides(factors, e)[0]} {metric.did} {times(e.estimate.mean)} times the {metric.counts} of {sides(factors, e)[1]}"
                 for e in known if e.estimate is not None]  # fmt: skip
        return f"In a single run of each arm {', '.join(parts)}. {NO_INTERVAL}"
    sentences = [effect_sentence(factors, effect, arms[0].metric) for effect in results]
    if same:
        pairs = ", ".join(" and ".join(sides(factors, effect)) for effect in same)
        sentences.append(f"Not distinguishable: {pairs}.")
    return " ".join(sentences) or "No verdict: no two runs differ in only one factor."


def of_sweep(arms: Sequence[ArmSummary], factors: Sequence[Factor], effects: Sequence[Effect], sweep: Sweep) -> str:
    """The verdict of a sweep: what the other factors did, then how far each variant goes up and down along the axes."""
    if (refusal := _invalid(arms)) is not None:
        return refusal
    swept = {axis.factor for axis in sweep.axes}
    others = [effect for effect in effects if effect.factor not in swept]
    texts, metric = [of_effects(arms, factors, others)] if others else [], arms[0].metric
    for variant in sweep.variants[:SENTENCES_MAX]:
        (most_at, most), (least_at, least) = variant.most, variant.least
        texts.append(
            f"{variant.label or 'It'} {metric.does} {number(least.headline.mean)} to {number(most.headline.mean)} {metric.title}:"
            f" the most with {sweep.words(most_at)}, the {metric.fewest} with {sweep.words(least_at)}."
        )
    return " ".join(texts)


def _invalid(arms: Sequence[ArmSummary]) -> str | None:
    """Why there is no verdict on arms that are compared all together."""
    invalid = [arm.label for arm in arms if not arm.valid]
    if not invalid:
        return None
    some = "all arms are" if len(invalid) == len(arms) else f"{len(invalid)} of the {len(arms)} arms are"
    names = f"{invalid[0]} is" if len(invalid) == 1 else some
    return f"No verdict: {names} invalid, and each factor's effect needs all arms."


def effect_sentence(factors: Sequence[Factor], effect: Effect, metric: Headline) -> str:
    """One distinguishable effect, with its interval and what it depends on."""
    over, under = sides(factors, effect)
    assert effect.estimate is not None
    text = f"{over} {metric.does} {times(effect.estimate.mean)} times the {metric.counts} of {under} ({interval(effect.estimate)})"
    on = dict.fromkeys(factors[within.factor].title for within in effect.within)
    return text + (f", which depends on the {' and the '.join(on)}." if on else ".")


def sides(factors: Sequence[Factor], effect: Effect) -> tuple[str, str]:
    """The names of the two levels of an effect."""
    labels = factors[effect.factor].labels
    return labels[effect.level], labels[0]


def distance(estimate: Estimate | None) -> float:
    """How far a ratio is from 1, the same for a ratio and its inverse."""
    return 0.0 if estimate is None or estimate.mean <= 0 else abs(math.log(estimate.mean))


def interval(estimate: Estimate) -> str:
    """``95% CI 2.9 to 3.1``, or that there is none."""
    if estimate.low is None or estimate.high is None:
        return "a single run, so no interval"
    ends = ratio_interval(estimate.low, estimate.high)
    return "too few runs for an interval" if ends == TOO_FEW else f"95% CI {ends}"


def _counted(by_index: dict[int, ArmSummary], ratios: Sequence[Ratio]) -> str:
    base = by_index[ratios[0].to_index]
    metric = base.metric
    results = [
        ratio
        for ratio in ratios
        if ratio.estimate is not None and ratio.distinguishable and by_index[ratio.index].valid and base.valid
    ]
    invalid = [ratio for ratio in ratios if not by_index[ratio.index].valid or not base.valid]
    more = [ratio for ratio in results if ratio.estimate is not None and ratio.estimate.mean > 1]
    known = [ratio for ratio in ratios if ratio not in invalid]
    if known and all(ratio.estimate is None or not ratio.has_interval for ratio in known):
        return _in_single_runs(by_index, base, known)
    parts = [
        f"{len(more)} {metric.do} more {metric.counts} than {base.label}",
        f"{len(results) - len(more)} {metric.do} {metric.fewer}",
        f"{len(ratios) - len(results) - len(invalid)} are not distinguishable from it",
        *([f"{len(invalid)} have no verdict because runs are invalid"] if invalid else []),
    ]
    sentence = f"Of {len(ratios)} arms {', '.join(parts[:-1])} and {parts[-1]}."
    better = [ratio for ratio in results if (ratio in more) is (metric.better == "more")]
    if better:
        best = max(better, key=lambda ratio: distance(ratio.estimate))
        sentence += " " + _against(by_index[best.index], base, best)
    return sentence


def _in_single_runs(by_index: dict[int, ArmSummary], base: ArmSummary, ratios: Sequence[Ratio]) -> str:
    """The ends of single runs of many arms: none has an interval."""
    values = [(ratio.estimate.mean, by_index[ratio.index].label) for ratio in ratios if ratio.estimate is not None]
    if not values:
        return f"No verdict: no arm has a run that can be compared with {base.label}."
    (low, least), (high, most) = min(values), max(values)
    metric = base.metric
    return (
        f"In a single run of each arm the others {metric.did} {times(low)} ({least}) to {times(high)} ({most}) times the"
        f" {metric.counts} of {base.label}. {NO_INTERVAL}"
    )


def _alone(arm: ArmSummary) -> str:
    if not arm.valid:
        return f"No verdict on {arm.label}: it is invalid."
    return f"{arm.label} {arm.metric.does} {number(arm.headline.mean)} {arm.metric.title}{_price(arm)}."


def _against(arm: ArmSummary, base: ArmSummary, ratio: Ratio) -> str:
    invalid = [side.label for side in (arm, base) if not side.valid]
    if invalid:
        names = " and ".join(invalid)
        return f"No verdict on {arm.label} against {base.label}: {names} {'are' if len(invalid) > 1 else 'is'} invalid."
    if ratio.estimate is None:
        return f"No verdict on {arm.label} against {base.label}: no block has a run of both with a result."
    estimate = ratio.estimate
    if estimate.mean < FAR_APART:
        arm, base, estimate = base, arm, inverse(estimate)
    ratio_text = times(estimate.mean)
    if estimate.low is None or estimate.high is None:
        return f"In a single run of each {arm.label} {arm.metric.did} {ratio_text} times the {arm.metric.counts} of {base.label}. {NO_INTERVAL}"
    text = f"{interval(estimate)}, {estimate.n} replicates"
    money = _prices(arm, base)
    if not ratio.distinguishable:
        return (
            f"{arm.label} and {base.label} are not distinguishable: {ratio_text} times the {arm.metric.counts} ({text}"
            f"{_ruled_out(ratio)}){money}."
        )
    return f"{arm.label} {arm.metric.does} {ratio_text} times the {arm.metric.counts} of {base.label} ({text}){money}."


def inverse(estimate: Estimate) -> Estimate:
    """The ratio of the same arms the other way round."""
    low, high = (None if end is None else (1 / end if end > 0 else math.inf) for end in (estimate.high, estimate.low))
    return replace(estimate, mean=1 / estimate.mean, low=low, high=high)


def _ruled_out(ratio: Ratio) -> str:
    """What "not distinguishable" leaves possible, where that is less than anything."""
    within = ratio.equivalent_within
    return (
        "" if within is None or within > RULED_OUT_MAX else f"; a difference of {percent(within)} or more is ruled out"
    )


def _price(arm: ArmSummary) -> str:
    return "" if arm.usd_per_month is None else f" for {money(arm.usd_per_month)} a month"


def _prices(arm: ArmSummary, base: ArmSummary) -> str:
    if arm.usd_per_month is None or base.usd_per_month is None:
        return ""
    return f" for {money(arm.usd_per_month)} instead of {money(base.usd_per_month)} a month"

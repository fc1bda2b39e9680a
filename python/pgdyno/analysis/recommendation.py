"""The one recommendation for a set of arms, in words: the arm to buy or use, its alternatives, and the next step beyond it.

Its first sentence is the answer. Then follow the arms that cannot be told apart from it, what a dearer arm buys, and how sure that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.binding.arm import ArmBinding
from pgdyno.analysis.choice import BestOption, Option, choose, meets, shortfall
from pgdyno.analysis.cost import ArmCost
from pgdyno.analysis.factors import Factor
from pgdyno.analysis.replay import replay_of
from pgdyno.analysis.verdict import interval, listed

from ..base.goal import Goal, GoalCondition
from ..base.text import UNKNOWN, money, number, probability, times
from .choice import StepResult, steps_of
from .statistics import Estimate, distinguishable

Action = Literal["buy", "use", "none"]
MENTIONED_MAX: Final = 3
"""Other arms that a recommendation names of each sort: more are counted."""
LOSS_LESS: Final = 1.5
"""Times the published probability of loss from which a volume is called more durable."""
SOONER: Final = 1.25
"""Times the p99 from which an arm is said to answer sooner."""


@dataclass(frozen=True)
class Met:
    """One condition of the goal and the figure that it is about, of the recommended arm or the nearest one."""

    condition: str
    """``p99 <= 20 ms``."""
    value: float | None
    """In the unit of the figure of that name; None where it was not measured."""
    low: float | None
    high: float | None
    met: bool
    sure: bool
    """Whether the whole interval meets it."""


@dataclass(frozen=True)
class Recommendation:
    """What to take of a set of arms."""

    action: Action
    """``buy`` where arms differ in what they cost, ``use`` where they do not, ``none`` where there is nothing to recommend."""
    lead: str
    """The answer, in one sentence."""
    details: str
    """What else would do, and how sure the answer is; may be empty."""
    arm: int | None
    """Index of the recommended arm; None where none is recommended."""
    label: str | None
    usd_per_month: float | None
    alike: tuple[int, ...] = ()
    """Indexes of arms that cannot be told apart from it."""
    goal: tuple[Met, ...] = ()
    steps: tuple[StepResult, ...] = ()
    """From the cheapest arm upwards, and beyond what was measured."""

    @property
    def sentence(self) -> str:
        """All of it."""
        return f"{self.lead} {self.details}".strip()


def recommend(
    arms: Sequence[ArmSummary],
    factors: Sequence[Factor],
    goal: Goal | None,
    bindings: Mapping[int, ArmBinding],
    costs: Mapping[int, ArmCost],
    absent: Sequence[str] = (),
) -> Recommendation:
    """Recommend one of the arms, or say why none is recommended."""
    choice = choose(arms, factors, goal)
    steps = steps_of(choice, bindings)
    missing = _missing(choice, absent)
    chosen = choice.chosen
    if chosen is None or _is_open(choice, goal, absent):
        lead, details = _none(choice, arms, goal, missing)
        nearest = _nearest(choice, goal)
        return Recommendation("none", lead, details, None, None, None, (), _met(nearest, goal), steps)
    if len(choice.options) == 1 and not choice.set_aside and goal is None:
        lead, details = _alone(chosen, arms)
        return Recommendation("none", lead, details, None, None, None, (), (), steps)
    action: Action = "buy" if choice.purchase and chosen.usd_per_month is not None else "use"
    alike = [option for option in choice.options if option is not chosen and _is_alike(choice.against(option))]
    lead = f"{action.title()} {chosen.label}: {does(chosen, goal)}{_for(chosen)}."
    further = [
        *_unpriced(choice, chosen),
        *_alike(choice, chosen, alike, costs),
        *_others(choice, chosen, alike, goal),
        *_sooner(choice, chosen, alike, goal),
        *(["Its data end with its instance."] if costs[chosen.arm.index].ends_with_its_instance else []),
        *_doubts(choice, chosen, goal),
        *([f"Not judged: {missing}."] if missing else []),
        *(
            [f"Not considered: {listed([option.label for option in choice.set_aside])}, without durability."]
            if choice.set_aside
            else []
        ),
    ]
    return Recommendation(
        action=action,
        lead=lead,
        details=" ".join(further),
        arm=chosen.arm.index,
        label=chosen.label,
        usd_per_month=chosen.usd_per_month,
        alike=tuple(option.arm.index for option in alike),
        goal=_met(chosen, goal),
        steps=steps,
    )


def does(option: Option, goal: Goal | None = None) -> str:
    """``it does 2,263 transactions per second with a p99 of 67.5 ms``, of a replay first whether it kept up."""
    arm = option.arm
    parts = [_kept_up(option)] if replay_of(arm) is not None else []
    parts.append(_speed(option))
    named = {condition.name for condition in goal.conditions} if goal is not None else set()
    further = [] if goal is None else [_achieved(option, condition) for condition in goal.conditions]
    further = [part for part in further if part]
    if arm.metric.better == "more" and option.p99_ms is not None and "p99" not in named:
        further.insert(0, f"a p99 of {number(option.p99_ms)} ms")
    return " and ".join(parts) + (f" with {listed(further)}" if further else "")


def _is_open(choice: BestOption, goal: Goal | None, absent: Sequence[str]) -> bool:
    """Whether arms without usable figures could change the answer: any without a goal, with one only those that may be cheaper."""
    if goal is None or absent:
        return bool(choice.left_out or absent)
    assert choice.chosen is not None
    usd = choice.chosen.usd_per_month
    return any(usd is None or option.usd_per_month is None or option.usd_per_month < usd for option in choice.left_out)


def _missing(choice: BestOption, absent: Sequence[str]) -> str:
    """Arms without usable figures, each with the reason; empty without any."""
    invalid = [option.label for option in choice.left_out]
    parts = [f"{listed(invalid)} {'are' if len(invalid) > 1 else 'is'} invalid"] if invalid else []
    if absent:
        parts.append(f"{listed(absent)} {'have' if len(absent) > 1 else 'has'} no finished run")
    return listed(parts)


def _none(choice: BestOption, arms: Sequence[ArmSummary], goal: Goal | None, missing: str) -> tuple[str, str]:
    """Why nothing is recommended, and what the valid arms say all the same."""
    if not choice.options:
        return (
            f"No recommendation: {'every arm is invalid' if len(arms) > 1 else missing or 'no run did anything'}.",
            "",
        )
    if (chosen := choice.chosen) is not None:
        may_be = "the fastest" if goal is None else "a cheaper way to the goal"
        lead = f"No recommendation: {missing}, and may be {may_be}."
        words = f"{does(chosen, goal)}{_for(chosen)}"
        if len(choice.options) == 1:
            return lead, f"The only valid arm is {chosen.label}: {words}."
        return lead, f"Among the valid arms {chosen.label} would be the choice: {words}."
    not_judged = f"Not judged: {missing}." if missing else ""
    if goal is not None:
        return _missed(choice, goal), not_judged
    by_lateness = sorted(choice.options, key=_late_s)
    late = [f"{option.label} {_kept_up(option).removeprefix('it ')}" for option in by_lateness[:MENTIONED_MAX]]
    subject = "the arm did not keep up" if len(choice.options) == 1 else "no arm kept up"
    return f"No recommendation: {subject} with the captured load; {'; '.join(late)}.", not_judged


def _missed(choice: BestOption, goal: Goal) -> str:
    """That no arm meets the goal, and how far the nearest one is from it."""
    unmeasured = [c.name for c in goal.conditions if all(option.value(c) is None for option in choice.options)]
    if unmeasured:
        return f"No recommendation: the goal asks for {listed(unmeasured)}, which were not measured."
    nearest = _nearest(choice, goal)
    assert nearest is not None
    wrong = [
        f"{c.name} is {_value(nearest, c)} (goal: {c.written})"
        for c in goal.conditions
        if (value := nearest.value(c)) is None or not c.met_by(value.mean)
    ]
    if not wrong:
        return f"No arm meets the goal {goal.words}: {nearest.label} {_kept_up(nearest).removeprefix('it ')}."
    subject = (
        f"No arm meets the goal {goal.words}. The nearest is {nearest.label}"
        if len(choice.options) > 1
        else f"{nearest.label} misses the goal {goal.words}"
    )
    return f"{subject}: its {listed(wrong)}."


def _nearest(choice: BestOption, goal: Goal | None) -> Option | None:
    return None if goal is None else min(choice.options, key=lambda option: shortfall(option, goal), default=None)


def _alone(only: Option, arms: Sequence[ArmSummary]) -> tuple[str, str]:
    """One option, and nothing that was asked of it."""
    if len(arms) > 1:
        return (
            "No recommendation: the arms differ in what is asked of the server, not in what could be bought or used.",
            "",
        )
    lead = f"{only.label} {does(only).removeprefix('it ')}{_for(only)}."
    return lead, 'There is nothing to compare it with: name a second arm, or a goal such as --goal "p99<=20ms".'


def _met(option: Option | None, goal: Goal | None) -> tuple[Met, ...]:
    if option is None or goal is None:
        return ()
    results = []
    for condition in goal.conditions:
        value = option.value(condition)
        results.append(
            Met(condition.words, None, None, None, met=False, sure=False)
            if value is None
            else Met(
                condition.words,
                value.mean,
                value.low,
                value.high,
                condition.met_by(value.mean),
                _is_sure(condition, value),
            )
        )
    return tuple(results)


def _is_sure(condition: GoalCondition, value: Estimate) -> bool:
    """Whether the worse end of the interval meets a condition; a price has none and needs none."""
    if condition.name == "price":
        return condition.met_by(value.mean)
    worse = value.low if condition.figure.better == "more" else value.high
    return worse is not None and condition.met_by(worse)


def _speed(option: Option) -> str:
    """What its headline says, of several works the worst."""
    arm = option.arm
    if arm.metric.name == "response_ms":
        return f"it answers in {number(arm.headline.mean)} ms on average"
    if arm.metric.name == "geomean_s":
        return f"its queries take {number(arm.headline.mean)} s (geometric mean)"
    if arm.metric.name == "seconds":
        return f"it takes {number(arm.headline.mean)} s"
    extent = [arm.headline.mean for arm in option.arms.values()]
    values = dict.fromkeys(number(value) for value in (min(extent), max(extent)))
    rate = arm.replicates[0].figures.record.workload.get("rate_per_s")
    if rate and arm.metric.name == "tps" and len(option.arms) == 1:
        return f"it serves {number(arm.headline.mean)} of the {number(float(rate))} transactions per second that arrive"
    return f"it does {' to '.join(values)} {arm.metric.title}"


def _kept_up(option: Option) -> str:
    late_s = _late_s(option)
    if option.kept_up:
        return "it kept up with the captured load"
    return f"it fell behind: it took {number(late_s)} s longer than the {number(_due_s(option))} s that were due"


def _late_s(option: Option) -> float:
    return max(
        (replay.late_s.mean for arm in option.arms.values() if (replay := replay_of(arm)) is not None), default=0.0
    )


def _due_s(option: Option) -> float:
    return max(
        (replay.runs[0].due_s for arm in option.arms.values() if (replay := replay_of(arm)) is not None), default=0.0
    )


def _achieved(option: Option, condition: GoalCondition) -> str:
    """A figure that a goal asks for, beside the headline and the price."""
    value = option.value(condition)
    if value is None or condition.name == "price" or condition.figure.name == option.arm.metric.name:
        return ""
    return f"{condition.figure.words or f'{condition.name} at'} {_value(option, condition)}"


def _value(option: Option, condition: GoalCondition) -> str:
    value = option.value(condition)
    if value is None:
        return UNKNOWN
    if condition.figure.kind == "money":
        return money(value.mean)
    unit = {1e-3: " ms", 1.0: " s"}[condition.figure.unit_s] if condition.figure.kind == "time" else ""
    return f"{number(value.mean)}{unit}"


def _for(option: Option) -> str:
    return "" if option.usd_per_month is None else f", for {money(option.usd_per_month)} a month"


def _at(option: Option) -> str:
    """An option with its price: ``io2bx at $532.50``."""
    return option.label if option.usd_per_month is None else f"{option.label} at {money(option.usd_per_month)}"


def _is_alike(gain: Estimate | None) -> bool:
    """Whether two arms have an interval, and it does not tell them apart."""
    return gain is not None and gain.low is not None and not distinguishable(gain)


def _unpriced(choice: BestOption, chosen: Option) -> list[str]:
    """That the catalogue lacks a price that would have decided."""
    lacking = [option.label for option in choice.candidates if option.usd_per_month is None]
    if not choice.purchase or not lacking:
        return []
    if chosen.usd_per_month is None:
        return ["Its price is not known, so this is the fastest arm, not the cheapest."]
    return [f"The price of {listed(lacking[:MENTIONED_MAX])} is not known."]


def _alike(choice: BestOption, chosen: Option, alike: Sequence[Option], costs: Mapping[int, ArmCost]) -> list[str]:
    """What cannot be told apart from the chosen one, and what is bought by paying more for it."""
    if not alike:
        return []
    if len(alike) > MENTIONED_MAX:
        return [f"{len(alike)} arms cannot be told apart from it, {_at(alike[0])} among them."]
    results = []
    for option in alike:
        gain = choice.against(option)
        assert gain is not None
        text = f"It cannot be told apart from {_at(option)} ({times(gain.mean)} times as fast, {_interval(gain)})"
        if _is_dearer(option, chosen):
            text += f"; what {money(_more(option, chosen))} more buys is {_bought(option, chosen, costs)}"
        elif _is_dearer(chosen, option):
            text += "; more runs would show whether that one is fast enough"
        results.append(f"{text}.")
    return results


def _bought(option: Option, chosen: Option, costs: Mapping[int, ArmCost]) -> str:
    """What a dearer arm has that the chosen one has not."""
    here, there = costs[chosen.arm.index], costs[option.arm.index]
    gains = []
    if here.ends_with_its_instance and not there.ends_with_its_instance:
        gains.append("data that survive the instance")
    loss, other = here.loss_per_year, there.loss_per_year
    if loss is not None and other is not None and loss.high > LOSS_LESS * other.high:
        gains.append(f"durability ({_loss(there)} lost within a year instead of {_loss(here)})")
    p99, sooner = chosen.p99_ms, option.p99_ms
    if p99 and sooner and p99 > SOONER * sooner:
        gains.append(f"a p99 of {number(sooner)} ms instead of {number(p99)} ms")
    return listed(gains) or "no measured advantage"


def _loss(cost: ArmCost) -> str:
    assert cost.loss_per_year is not None
    ends = dict.fromkeys(map(probability, (cost.loss_per_year.low, cost.loss_per_year.high)))
    return " to ".join(ends)


def _others(choice: BestOption, chosen: Option, alike: Sequence[Option], goal: Goal | None) -> list[str]:
    """Arms that are told apart from it: the fastest of those that are dearer, and the dearest of those that cost less."""
    rest = [option for option in choice.options if option is not chosen and option not in alike]
    known = [(option, gain) for option in rest if (gain := option.gain(chosen)) is not None]
    results = []
    faster = [(option, gain) for option, gain in known if gain.mean > 1]
    if faster:
        option, gain = max(faster, key=lambda item: item[1].mean)
        results.append(f"{_at(option)} is {times(gain.mean)} times as fast ({_interval(gain)}).")
    slower = [(option, gain) for option, gain in known if gain.mean <= 1]
    if slower:
        option, _ = min(
            slower, key=lambda item: (not _is_dearer(chosen, item[0]), -(item[0].usd_per_month or 0.0), -item[1].mean)
        )
        gain = chosen.gain(option)
        assert gain is not None
        missed = " and misses the goal" if goal is not None and not meets(option, goal) else ""
        kept = f", which {_kept_up(option).removeprefix('it ')}" if replay_of(option.arm) is not None else ""
        results.append(
            f"It is {times(gain.mean)} times as fast as {_at(option)}{kept} ({_interval(gain)}){missed and f', which{missed[4:]}'}."
        )
    return results


def _sooner(choice: BestOption, chosen: Option, alike: Sequence[Option], goal: Goal | None) -> list[str]:
    """In an open loop all may serve what is asked for: what answers much sooner, if the user has not said how soon is soon enough."""
    record = chosen.arm.replicates[0].figures.record
    p99 = chosen.p99_ms
    if record.workload.get("closed", True) or goal is not None or not p99 or chosen.arm.metric.better == "less":
        return []
    rest = [(other, option) for option in choice.options if option not in alike and (other := option.p99_ms)]
    if not rest:
        return []
    soonest, option = min(rest, key=lambda values: values[0])
    if p99 <= SOONER * soonest:
        return []
    return [
        f'{_at(option)} has a lower p99, {number(soonest)} ms: set a goal if you need that, such as --goal "p99<=20ms".'
    ]


def _doubts(choice: BestOption, chosen: Option, goal: Goal | None) -> list[str]:
    """What makes the answer less sure: single runs, and a goal that lies inside of an interval."""
    if chosen.arm.headline.n == 1 and len(choice.options) > 1:
        return ["Each arm ran once, so no figure has an interval: use -n 3."]
    doubts = []
    for condition in () if goal is None else goal.conditions:
        value = chosen.value(condition)
        if value is None or condition.name == "price" or _is_sure(condition, value):
            continue
        if value.low is None or value.high is None:
            doubts.append(f"Its {condition.name} comes from a single run: use -n 3.")
        else:
            ends = f"{number(max(0.0, value.low))} to {number(value.high)}"
            doubts.append(
                f"The 95% CI of its {condition.name} ({ends}) extends past the goal: make more runs to be sure."
            )
    return doubts


def _is_dearer(option: Option, than: Option) -> bool:
    return (
        option.usd_per_month is not None
        and than.usd_per_month is not None
        and option.usd_per_month > than.usd_per_month
    )


def _more(option: Option, than: Option) -> float:
    assert option.usd_per_month is not None
    assert than.usd_per_month is not None
    return option.usd_per_month - than.usd_per_month


def _interval(estimate: Estimate) -> str:
    return "a single run of each" if estimate.low is None else interval(estimate)

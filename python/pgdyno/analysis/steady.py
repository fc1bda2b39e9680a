"""The steady state of a run: whether it came to one, from when on, and how sure its mean is, from its seconds alone.

Three answers are possible. *Steady*: from some second on the transactions per second scatter around one level, whose
interval is given. *Not steady*: they kept changing, and a mean would describe no time of the run. *Too short*: this
cannot be decided. The mean of the whole measure phase stays the figure of a run: choosing seconds afterwards would choose the
result. What is found here says whether that figure has warm-up in it.

- The begin is the changepoint that makes the mean of the rest surest (the marginal standard error rule of White, 1997, on
  means of five seconds), if what is cut off differs from the rest beyond doubt.
- The rest is steady when its cumulative sums wander no further than those of the same values in random order.
- Where checkpoints began, the unit is a whole cycle, from one begin to the next: a run that holds two and a half of them
  has a mean that depends on which half. One cycle is a value, and between its seconds nothing is concluded.
- Where credits went or came back (:mod:`pgdyno.analysis.credit`), the longest part between is looked at and named: a mean
  over the knee is of no limit that there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from pgdyno.analysis.credit import Regime
from pgdyno.analysis.finding import CheckResult
from pgdyno.analysis.series import checkpoint_starts

from ..base.text import number, percent
from ..results import StoredRun
from .statistics import FREQUENCIES, SeriesMean, series_mean, t_quantile

if TYPE_CHECKING:
    import numpy as np

State = Literal["steady", "not steady", "too short"]

SECONDS_MIN = 20
"""Of fewer seconds there are not even twenty values to put into another order."""
CYCLES_MIN = 4
"""Of three cycles an interval is as wide as what it is about: its factor is 4.3."""
SECONDS_PER_FREQUENCY = 15
"""A wave of a run's seconds that is faster than this does not estimate their variance at frequency zero: neighbours are alike
for some seconds. So a short run's interval rests on fewer than eight."""
FREQUENCIES_MIN = 4
"""Fewer make the interval as wide as what it is about: the factor of three is 3.2."""
EFFECTIVE_PER_FREQUENCY = 2.0
"""With fewer effective values than this for each frequency, most of the variance lies in the slowest waves that there are:
then the run is a few swings, and the next one may be different."""
BATCH_S = 5
"""Means of five values, as is usual for the marginal standard error rule: single ones mislead it."""
PARTS = 20
"""Into which the rest is divided to see whether it wanders: each is then longer than most of what seconds share."""
WANDERS_P = 0.01
"""One steady run in a hundred is called wandering."""
CUT_LEVEL = 0.999
"""How sure the difference of warm-up and rest must be. It is high because the begin of the rest was searched for."""
CUT_LONGER = 1.5
"""What is cut, times what the changepoint says: a cache fills ever more slowly, and the changepoint leaves the end of it."""
ORDERS = 999
_NS = 1_000_000_000


@dataclass(frozen=True)
class Steady:
    """What a run's seconds say about its steadiness."""

    state: State
    seconds: int
    """Whole seconds that were looked at."""
    begin_s: int = 0
    """When the window begins, seconds since measuring began: the end of warm-up, and the begin of a cycle."""
    end_s: int = 0
    warm_up_s: int = 0
    """Seconds of warm-up that the measure phase had in it."""
    cycles: int = 0
    """Whole checkpoint cycles in the window; 0 where no checkpoint began, so that seconds are the unit."""
    tps: SeriesMean | None = None
    """Mean of the window with its interval; None unless it is steady."""
    why: str = ""
    """Why not, as a sentence's end."""
    part: Regime | None = None
    """The part of the run that this is about, where its credits went or came back; None: all of it."""


def steady_of(run: StoredRun, values: np.ndarray[Any, Any], regimes: Sequence[Regime] = ()) -> Steady:
    """Whether a recorded run was steady; ``values`` are the transactions of each of its seconds."""
    begin_ns = run.record.measure.begin_ns
    starts = [round((t_ns - begin_ns) / _NS) for t_ns in checkpoint_starts(run)]
    return steady_within(values, starts, regimes)


def steady_within(values: np.ndarray[Any, Any], checkpoint_begins: Sequence[int], regimes: Sequence[Regime]) -> Steady:
    """Whether the longest of several regimes was steady, the latest of equal ones; seconds are counted from the begin of the run."""
    if len(regimes) < 2:
        return steady_state(values, checkpoint_begins)
    part = max(regimes, key=lambda regime: (regime.end_s - regime.begin_s, regime.begin_s))
    inside = [second - part.begin_s for second in checkpoint_begins if part.begin_s <= second < part.end_s]
    steady = steady_state(values[part.begin_s : part.end_s], inside)
    moved = part.begin_s if steady.end_s else 0
    return replace(steady, begin_s=steady.begin_s + moved, end_s=steady.end_s + moved, part=part)


def steadiness(steady: Steady, tps: float) -> CheckResult:
    """What to tell of it; ``tps`` is the figure of the run, over its whole measure phase."""
    part = steady.part
    if part is not None:
        whole = steadiness(replace(steady, part=None), part.tps)
        return replace(whole, figure=f"{whole.figure}; in seconds {part.begin_s + 1} to {part.end_s}, {part.words}")
    check, mean = "steady state", steady.tps
    if steady.state == "too short":
        return CheckResult(check, "unknown", steady.why)
    if mean is None:
        return CheckResult(check, "warn", f"none: {steady.why}")
    if steady.warm_up_s and mean.mean > 0 and not mean.low <= tps <= mean.high:
        off = tps / mean.mean - 1
        figure = (
            f"the first {steady.warm_up_s} of {steady.seconds} s were still warm-up, which makes the transactions per second"
            f" of all of them {percent(abs(off))} {'more' if off > 0 else 'fewer'} than those of the rest"
        )
        return CheckResult(check, "warn", figure)
    unit = f"{steady.cycles} whole checkpoint cycles" if steady.cycles else f"{steady.end_s - steady.begin_s} s"
    figure = f"{number(mean.mean)} transactions per second over {unit} (95 % interval {number(mean.low)} to {number(mean.high)})"
    return CheckResult(check, "ok", figure)


def per_second(run: StoredRun) -> np.ndarray[Any, Any]:
    """Transactions per second of each whole second of the measure phase, all scripts together."""
    import numpy as np

    measure = run.record.measure
    table = run.table("workload/throughput")
    begin, end = table["t_begin_ns"].to_numpy(), table["t_end_ns"].to_numpy()
    inside = (begin >= measure.begin_ns) & (end <= measure.end_ns) & (end - begin > _NS * 19 // 20)
    second, place = np.unique(begin[inside], return_inverse=True)
    transactions = np.bincount(place, weights=table["transactions"].to_numpy()[inside], minlength=len(second))
    lasted = np.zeros(len(second))
    lasted[place] = (end - begin)[inside] / _NS
    rate: np.ndarray[Any, Any] = transactions / lasted
    return rate


def steady_state(values: np.ndarray[Any, Any], checkpoint_begins: Sequence[int] = ()) -> Steady:
    """Whether a series of one value a second is steady; ``checkpoint_begins`` are the seconds at which checkpoints began, in order."""
    n = len(values)
    if n < SECONDS_MIN:
        return Steady("too short", n, why=f"{n} s are too few to tell: {SECONDS_MIN} are needed")
    begins = sorted({second for second in checkpoint_begins if 0 <= second < n})
    if not begins:
        return _judged(values, n, list(range(n + 1)), cycles=False)
    cycles = len(begins) - 1
    if cycles < CYCLES_MIN:
        held = f"{max(0, cycles)} whole checkpoint cycle{'' if cycles == 1 else 's'}"
        return Steady("too short", n, why=f"{n} s hold {held}, and {CYCLES_MIN} are needed")
    return _judged(_cycle_values(values, begins), n, begins, cycles=True)


def _judged(values: np.ndarray[Any, Any], seconds: int, borders: Sequence[int], *, cycles: bool) -> Steady:
    """Judge values of equal weight; the value at place i lasts from the second ``borders[i]`` to ``borders[i + 1]``."""
    batch = 1 if cycles else BATCH_S
    cut = _warm_up_end(values, batch)
    certain = cut if cut and _differs(values, cut, cycles=cycles) else 0
    # A short warm-up may not differ beyond doubt and yet make the whole wander.
    for begin in dict.fromkeys((certain, cut)):
        rest = values[begin:]
        if not _wanders(rest):
            mean = _mean(rest, cycles=cycles)
            steady = Steady("steady", seconds, borders[begin], borders[-1], borders[begin] if begin else 0)
            if cycles and len(rest) < CYCLES_MIN:
                why = f"{len(rest)} checkpoint cycles are left behind its warm-up, and {CYCLES_MIN} are needed"
                return replace(steady, state="too short", why=why)
            least = EFFECTIVE_PER_FREQUENCY * mean.degrees
            if not cycles and mean.n_effective < least:
                why = f"its {len(rest)} s are worth {mean.n_effective:.0f} independent ones, and {least:.0f} are needed"
                return replace(steady, state="too short", why=why)
            return replace(steady, cycles=len(rest) if cycles else 0, tps=mean)
    return Steady("not steady", seconds, why=_course(values))


def _cycle_values(values: np.ndarray[Any, Any], begins: Sequence[int]) -> np.ndarray[Any, Any]:
    """A value for each cycle, so that their mean is the rate over all of them though they differ in length.

    What a cycle did beyond its share (of the rate over all), over the mean length: the linear form of a ratio's error.
    """
    import numpy as np

    length = np.diff(np.array(begins))
    total = np.add.reduceat(values[: begins[-1]], begins[:-1])
    rate = total.sum() / length.sum()
    cycle_values: np.ndarray[Any, Any] = rate + (total - rate * length) / length.mean()
    return cycle_values


def _warm_up_end(values: np.ndarray[Any, Any], batch: int) -> int:
    """Where to cut so that the squared standard error of the rest's mean, as if independent, is least; at most half."""
    import numpy as np

    count = len(values) // batch
    means = values[: count * batch].reshape(count, batch).mean(axis=1)
    means = means - means.mean()  # so that the squares below lose no digits
    left = np.arange(count, 0, -1)
    sums = means[::-1].cumsum()[::-1]
    squares = (means[::-1] ** 2).cumsum()[::-1]
    error = (squares - sums**2 / left) / left**2
    return min(count // 2, math.ceil(int(np.argmin(error[: count // 2 + 1])) * CUT_LONGER)) * batch


def _differs(values: np.ndarray[Any, Any], cut: int, *, cycles: bool) -> bool:
    """Whether what is cut off has another mean than the rest, by the rest's own long-run variance."""
    head, rest = values[:cut], _mean(values[cut:], cycles=cycles)
    error = math.sqrt(rest.long_run_variance * (1 / cut + 1 / (len(values) - cut)))
    return bool(abs(float(head.mean()) - rest.mean) > t_quantile(rest.degrees, CUT_LEVEL) * error)


def _mean(values: np.ndarray[Any, Any], *, cycles: bool) -> SeriesMean:
    """Cycles stand for themselves; of seconds only the slow waves count."""
    slow = max(FREQUENCIES_MIN, len(values) // SECONDS_PER_FREQUENCY)
    return series_mean(values, FREQUENCIES if cycles else min(FREQUENCIES, slow))


def _wanders(values: np.ndarray[Any, Any]) -> bool:
    """Whether the cumulative sums of the parts' means go further than those of the same means in random order.

    A drift, a step and a slow swing all do. Nothing is supposed of how the means are distributed; that neighbours are
    independent holds as far as a part is longer than the series' memory.
    """
    import numpy as np

    parts = min(PARTS, len(values))
    length = len(values) // parts
    means = values[len(values) - parts * length :].reshape(parts, length).mean(axis=1)
    means = means - means.mean()
    orders = means[_orders(parts)]
    reached = np.abs(orders.cumsum(axis=1)).max(axis=1)
    here = np.abs(means.cumsum()).max()
    # What is equal but for rounding counts as equal.
    as_far = int((reached >= here * (1 - 1e-12)).sum())
    return (1 + as_far) / (1 + ORDERS) <= WANDERS_P


@lru_cache(maxsize=32)
def _orders(count: int) -> np.ndarray[Any, Any]:
    """Random orders of ``count`` values, always the same ones: a report made again says the same."""
    import numpy as np

    rng = np.random.default_rng(count)
    return rng.permuted(np.tile(np.arange(count), (ORDERS, 1)), axis=1)


def _course(values: np.ndarray[Any, Any]) -> str:
    """How it changed, for the reader: its quarters."""
    quarter = max(1, len(values) // 4)
    first, last = float(values[:quarter].mean()), float(values[-quarter:].mean())
    return f"{number(first)} transactions per second in its first quarter, {number(last)} in its last"

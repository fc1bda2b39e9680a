"""What is asked of the statistics: each case draws one series, or one experiment, and says whether the answer was right.

Everything is judged by the functions that judge real runs; nothing here computes an interval.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from pgdyno.analysis.credit import CreditUse, regimes
from pgdyno.analysis.ratio import floor_of
from pgdyno.analysis.statistics import (
    DIFFERENCE_OF_INTEREST,
    POWER,
    detectable_difference,
    distinguishable,
    equivalent_within,
    ratio_interval,
    t_interval,
)
from pgdyno.analysis.steady import steady_state, steady_within
from tools.calibration import series

COVERS = (0.93, 0.97)
"""Of 95 % intervals: two points either way are what an experimenter would not notice."""
ALARMS = (0.03, 0.07)
"""Of comparisons of something with itself, at 5 %."""
RATIO = 1.3
REPLICATES = 5
RUN_S = 60
RUNS_DIFFER = 0.01
"""Standard deviation of the logarithm between runs of one arm, beside what their seconds do."""
DRIFT_PER_BLOCK = 0.04
"""By how much the host slows from one block to the next, where it drifts."""
LATENCIES = 1000
SEED = 20261122
"""Set when every threshold was: the page counts on series that none of them was chosen on."""

Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One question."""

    group: str
    name: str
    once: Callable[[Rng], bool | None]
    """Draws and judges: whether it counts; None where no answer was given."""
    low: float
    """What share of the answers must count at least, and at most."""
    high: float


@dataclass(frozen=True)
class Counted:
    """What came of a case."""

    case: Case
    drawn: int
    answered: int
    counted: int

    @property
    def share(self) -> float:
        """Of the answers, those that count."""
        return self.counted / self.answered if self.answered else math.nan

    @property
    def holds(self) -> bool:
        """Whether the share is where it must be."""
        return self.case.low <= self.share <= self.case.high


def count(case: Case, draws: int) -> Counted:
    """Draw that many times, from a seed of the case's own."""
    rng = np.random.default_rng(zlib.crc32(f"{case.group}: {case.name}; {SEED}".encode()))
    results = [answer for answer in (case.once(rng) for _ in range(draws)) if answer is not None]
    return Counted(case, draws, len(results), sum(results))


def cases() -> list[Case]:
    """Every case, in the order of the page."""
    return [*_within_a_run(), *_steadiness(), *_across_runs(), *_resolution()]


def _within_a_run() -> list[Case]:
    group = "Within a run: the 95 % interval of its mean holds the truth"
    drawn: dict[str, Callable[[Rng], tuple[series.Values, list[int]]]] = {
        "300 s, independent seconds": lambda rng: (series.level(rng, 300, 0.0), []),
        "60 s, AR(1) of 0.5": lambda rng: (series.level(rng, 60), []),
        "300 s, AR(1) of 0.5": lambda rng: (series.level(rng, 300), []),
        "300 s, AR(1) of 0.8": lambda rng: (series.level(rng, 300, 0.8), []),
        "300 s that warm up for 30, AR(1) of 0.5": lambda rng: (series.warming(rng, 300), []),
        "600 s, bimodal: two speeds, 10 s at a time": lambda rng: (series.two_speeds(rng, 600), []),
        "600 s, sawtooth of checkpoints, every 45 to 55 s": lambda rng: series.sawtooth(rng, 600),
    }
    whole = [
        Case(group, name, partial(_covers, draw, series.sawtooth_truth() if "sawtooth" in name else 1.0), *COVERS)
        for name, draw in drawn.items()
    ]
    return [
        *whole,
        Case(group, "300 s, credits that go after 60 to 150 s: of the longer part", _covers_beside_a_knee, *COVERS),
    ]


def _covers(draw: Callable[[Rng], tuple[series.Values, list[int]]], truth: float, rng: Rng) -> bool | None:
    mean = steady_state(*draw(rng)).tps
    return None if mean is None else mean.low <= truth <= mean.high


def _covers_beside_a_knee(rng: Rng) -> bool | None:
    values, knee_s = series.bursting(rng, 300)
    gone = CreditUse("credits", (False,) * knee_s + (True,) * (len(values) - knee_s))
    mean = steady_within(values, (), regimes([gone], values)).tps
    return None if mean is None else mean.low <= 1.0 <= mean.high


def _steadiness() -> list[Case]:
    group = "Within a run: what has no steady state is not called steady"
    drawn: dict[str, Callable[[Rng, int], series.Values]] = {
        "300 s, drift by 20 %": series.drifting,
        "300 s, a step of 10 % after 200 s": series.stepping,
        "300 s, random walk": series.walking,
    }
    unsteady = [Case(group, name, partial(_not_called_steady, draw), 0.95, 1.0) for name, draw in drawn.items()]
    calm = "Within a run: what is steady is not called unsteady"
    steady = [
        Case(calm, f"300 s, AR(1) of {phi}", partial(_called_unsteady, phi), 0.0, 0.03) for phi in (0.0, 0.5, 0.8)
    ]
    return unsteady + steady


def _not_called_steady(draw: Callable[[Rng, int], series.Values], rng: Rng) -> bool:
    return steady_state(draw(rng, 300)).state != "steady"


def _called_unsteady(phi: float, rng: Rng) -> bool:
    return steady_state(series.level(rng, 300, phi)).state == "not steady"


_RUNS: dict[str, Callable[[Rng], series.Values]] = {
    "AR(1) of 0.8": lambda rng: series.level(rng, RUN_S, 0.8, 0.05),
    "sawtooth of checkpoints": lambda rng: series.sawtooth(rng, RUN_S)[0],
    "bimodal": lambda rng: series.two_speeds(rng, RUN_S, 20),
    "drift of runs and of the host": lambda rng: series.drifting(rng, RUN_S),
}


def _across_runs() -> list[Case]:
    covers = f"Across {REPLICATES} replicates: the 95 % interval holds the truth"
    alarms = f"Across {REPLICATES} replicates: A/A comparisons that are called different"
    ratios = [Case(covers, f"ratio of TPS, {name}", partial(_ratio_covers, name), *COVERS) for name in _RUNS]
    means = [
        Case(covers, f"mean TPS, {name}", partial(_mean_covers, name), *COVERS) for name in _RUNS if "drift" not in name
    ]
    p99 = Case(covers, "ratio of p99, gamma latencies", _p99_covers, *COVERS)
    false = [Case(alarms, name, partial(_alarm, name), *ALARMS) for name in _RUNS]
    return [*means, *ratios, p99, *false]


def _blocks(rng: Rng, name: str, ratio: float) -> list[tuple[float, float]]:
    """TPS of both arms in each block, as a run's figure is made: the mean of its seconds."""
    drift = DRIFT_PER_BLOCK if "drift" in name else 0.0
    return [
        (ratio * host * _run(rng, name), host * _run(rng, name))
        for host in (1 - drift * block for block in range(REPLICATES))
    ]


def _run(rng: Rng, name: str) -> float:
    return float(_RUNS[name](rng).mean()) * _between_runs(rng)


def _between_runs(rng: Rng, deviation: float = RUNS_DIFFER) -> float:
    """A factor of mean 1."""
    return math.exp(float(rng.normal(-(deviation**2) / 2, deviation)))


def _ratio_covers(name: str, rng: Rng) -> bool:
    result = ratio_interval(_blocks(rng, name, RATIO))
    assert result.low is not None and result.high is not None
    return result.low <= RATIO <= result.high


def _mean_covers(name: str, rng: Rng) -> bool:
    estimate = t_interval([under for _, under in _blocks(rng, name, 1.0)])
    assert estimate.low is not None and estimate.high is not None
    return estimate.low <= (series.sawtooth_truth() if "sawtooth" in name else 1.0) <= estimate.high


def _p99_covers(rng: Rng) -> bool:
    result = ratio_interval([(RATIO * _p99(rng), _p99(rng)) for _ in range(REPLICATES)])
    assert result.low is not None and result.high is not None
    return result.low <= RATIO <= result.high


def _p99(rng: Rng) -> float:
    return float(np.percentile(rng.gamma(2.0, 1.0, LATENCIES), 99)) * _between_runs(rng, 0.05)


def _alarm(name: str, rng: Rng) -> bool:
    return distinguishable(ratio_interval(_blocks(rng, name, 1.0)))


def _resolution() -> list[Case]:
    group = f"What {REPLICATES} replicates could have shown"
    margin = f"{DIFFERENCE_OF_INTEREST * 100:.0f} %"
    return [
        Case(group, f"called equivalent within {margin}, and {margin} apart", _equivalent, *ALARMS),
        Case(group, "the detectable difference is found", _found, POWER - 0.03, POWER + 0.03),
        Case(group, "two further runs of an arm differ by less than the noise floor", _below_the_floor, *COVERS),
    ]


def _pairs(rng: Rng, ratio: float, deviation: float) -> list[tuple[float, float]]:
    return [(ratio * math.exp(float(log)), 1.0) for log in rng.normal(0.0, deviation, REPLICATES)]


def _equivalent(rng: Rng) -> bool:
    within = equivalent_within(ratio_interval(_pairs(rng, 1 + DIFFERENCE_OF_INTEREST, 0.008)))
    return within is not None and within <= DIFFERENCE_OF_INTEREST


def _found(rng: Rng) -> bool:
    """What is detectable with this spread is reckoned from a ratio that has exactly it."""
    deviation = 0.02
    around = np.array([-1.0, 1.0, -1.0, 1.0, 0.0]) * deviation
    known = detectable_difference(ratio_interval([(math.exp(log), 1.0) for log in around.tolist()]))
    assert known is not None
    return distinguishable(ratio_interval(_pairs(rng, 1 + known, deviation)))


def _below_the_floor(rng: Rng) -> bool:
    """Two arms, blocks that differ by 20 %, runs that differ by 3 %."""
    blocks = rng.normal(0.0, 0.2, REPLICATES)
    floor = floor_of((rng.normal(0.0, 0.03, (2, REPLICATES)) + blocks).tolist())
    assert floor is not None
    result, other = rng.normal(0.0, 0.03, 2)
    return bool(abs(result - other) < math.log1p(floor.difference))

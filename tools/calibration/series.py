"""Series of transactions per second whose truth is known; a level of 1 unless said."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Values = np.ndarray[Any, Any]

DEPTH = 0.3
"""What a checkpoint's full pages cost at its begin; wears off over the cycle."""
CYCLE_S = 50
CYCLE_SPREAD_S = 5
DWELL_S = 10
"""How long a volume of two speeds stays at one on average."""
SPEEDS = (0.9, 1.1)


def correlated(rng: np.random.Generator, n: int, phi: float, deviation: float) -> Values:
    """Noise around 0 of which each second keeps the share ``phi`` of the one before (AR(1)), in its stationary state."""
    from scipy.signal import lfilter

    before = rng.normal(0.0, deviation)
    steps = rng.normal(0.0, deviation * (1 - phi**2) ** 0.5, n)
    return np.asarray(lfilter([1.0], [1.0, -phi], steps, zi=[phi * before])[0])


def level(rng: np.random.Generator, n: int, phi: float = 0.5, deviation: float = 0.03) -> Values:
    """A steady run."""
    return 1.0 + correlated(rng, n, phi, deviation)


def warming(rng: np.random.Generator, n: int) -> Values:
    """A cache that fills: half as fast at first, with a time constant of 10 s."""
    return np.asarray(level(rng, n) - 0.5 * np.exp(-np.arange(n) / 10))


def bursting(rng: np.random.Generator, n: int) -> tuple[Values, int]:
    """A volume whose credits go in its first half and leave a tenth, which is 1; and the second in which they go."""
    knee_s = int(rng.integers(n // 5, n // 2))
    return np.concatenate([10 * level(rng, knee_s), level(rng, n - knee_s)]), knee_s


def sawtooth(rng: np.random.Generator, n: int, spread_s: int = CYCLE_SPREAD_S) -> tuple[Values, list[int]]:
    """Checkpoint cycles of unequal length from anywhere within one on, and the seconds at which they begin."""
    begins = [-int(rng.integers(0, CYCLE_S))]
    while begins[-1] < n:
        begins.append(begins[-1] + CYCLE_S + int(rng.integers(-spread_s, spread_s + 1)))
    shape = np.concatenate([_cycle(end - begin) for begin, end in pairwise(begins)])
    values = shape[-begins[0] : -begins[0] + n] + correlated(rng, n, 0.5, 0.03)
    return values, [begin for begin in begins if 0 <= begin < n]


def sawtooth_truth() -> float:
    """Transactions of all cycles over their seconds."""
    lengths = range(CYCLE_S - CYCLE_SPREAD_S, CYCLE_S + CYCLE_SPREAD_S + 1)
    return float(sum(_cycle(length).sum() for length in lengths) / sum(lengths))


def two_speeds(rng: np.random.Generator, n: int, dwell_s: float = DWELL_S) -> Values:
    """A volume that has two speeds and changes between them at random: bimodal seconds, mean 1."""
    changes = rng.random(n) < 1 / dwell_s
    state = (int(rng.integers(0, 2)) + np.cumsum(changes)) % 2
    return np.asarray(np.array(SPEEDS)[state] + rng.normal(0.0, 0.02, n))


def drifting(rng: np.random.Generator, n: int, change: float = 0.2) -> Values:
    """A level that falls by so much from begin to end."""
    return np.asarray(level(rng, n) - change * np.linspace(0, 1, n))


def stepping(rng: np.random.Generator, n: int) -> Values:
    """A tenth slower from two thirds of the run on."""
    return np.asarray(level(rng, n) - 0.1 * (np.arange(n) >= n * 2 // 3))


def walking(rng: np.random.Generator, n: int) -> Values:
    """A random walk, which has no level at all."""
    return np.asarray(1.0 + np.cumsum(rng.normal(0.0, 0.01, n)))


def _cycle(length: int) -> Values:
    return np.asarray(1.0 - DEPTH * (1.0 - np.arange(length) / length))

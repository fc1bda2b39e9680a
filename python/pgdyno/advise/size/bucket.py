"""When a bucket of credits runs empty under a measured load that is repeated endlessly.

A bucket of capacity C is filled at the sustained rate and drained by the load. From full, what is missing after a time t is

    missing(t) = max over s <= t of S(s) - S(t),    S = sum of (sustained - load) up to then,

and the bucket is empty as soon as missing > C. A measurement that is repeated brings the same sum again: if the load's mean is at
most the sustained rate, the second repetition is like all further ones; if it is more, each one takes the same amount off.
"""

from __future__ import annotations

import math

from ...base.specification import Rate
from .demand import Series


def first_empty_s(rate: Rate, load: Series, seconds: Series) -> float | None:
    """Seconds until the bucket is empty, from full; ``None`` when it never is. What is above the maximum is not delivered.

    ``load`` has a value for each interval of length ``seconds``; the whole is repeated without end.
    """
    import numpy as np

    if not rate.bursts:
        return None if load.max() <= rate.sustained else 0.0
    net = np.minimum(rate.sustained - np.minimum(load, rate.maximum), rate.refill_max)
    sums = np.cumsum(net * seconds)
    highest = np.maximum(0.0, np.maximum.accumulate(sums))
    total_s, missing, repetitions = float(seconds.sum()), 0.0, 0
    for _ in range(4):  # first, second, a jump over those that are alike, and the one in which it happens
        course = np.maximum(missing, highest) - sums
        if course.max() > rate.capacity:
            place = int(np.argmax(course > rate.capacity))
            before = float(course[place - 1]) if place else missing
            within = (rate.capacity - before) / -float(net[place])
            return repetitions * total_s + float(seconds[:place].sum()) + within
        loss = float(course[-1]) - missing
        if repetitions and loss <= 0:
            return None
        jump = max(0, math.floor((rate.capacity - float(course.max())) / loss)) if repetitions else 0
        missing, repetitions = float(course[-1]) + jump * max(loss, 0.0), repetitions + 1 + jump
    return None

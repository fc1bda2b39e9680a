"""Which values a disk can have. Anything else is a damaged file, and no load."""

from __future__ import annotations

import math

from ....base.errors import InputError

NOT_A_NUMBER, IMPOSSIBLE = "size.value.not_a_number", "size.value.impossible"
"""Codes of the errors."""
COUNT_MAX = 1e9
"""Requests per second, requests in a queue, milliseconds of a request: a hundred times what the fastest arrays do."""
BYTES_MAX = float(1 << 50)
"""Bytes per second: 1 PiB/s, a thousand times what the fastest arrays do."""
SECONDS_MAX = 366 * 86_400.0
"""Length of an interval: a year."""


def possible(value: float, what: str, most: float) -> float:
    """``value``, when it is from 0 to ``most``; ``what`` names the file, the place in it and the field.

    :class:`InputError` otherwise.
    """
    if not math.isfinite(value):
        raise _refused(f"{what} is {value}, which is not a number", NOT_A_NUMBER)
    if value < 0:
        raise _refused(f"{what} is negative: {value:g}", IMPOSSIBLE)
    if value > most:
        raise _refused(f"{what} is {value:g}, which no disk reaches", IMPOSSIBLE)
    return value


def _refused(message: str, code: str) -> InputError:
    return InputError(message, remedy="remove the damaged interval, or measure again", code=code)

"""Times and values of metrics as they stand in a file, checked."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime

from ....base.errors import InputError
from .possible import possible

SHOWN_MAX = 40
"""Characters of a value that an error shows."""
YEAR_2100_S = 4_102_444_800.0
MILLISECONDS_MIN = 100_000_000_000.0
"""Seconds since 1970 are smaller until the year 5138: a larger number is of milliseconds."""
FLOAT_MAX = 1e300
"""JSON has integers that no float holds."""


def by_time(pairs: Iterable[tuple[object, object]], what: str) -> dict[float, float]:
    """Values by their time, in seconds since 1970. :class:`InputError` where one is none, or impossible, or there twice."""
    points: dict[float, float] = {}
    for time, value in pairs:
        at, where = unix_s(time, what), f"{what} at {time}"
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(
                f"{where} is {shown(value)}, which is not a number",
                remedy="ask again, or remove the value",
                code="size.metrics.not_a_number",
            )
        result = possible(math.inf if value > FLOAT_MAX else float(value), where, FLOAT_MAX)
        if points.get(at, result) != result:
            raise InputError(
                f"{where} has two values",
                remedy="ask again, and keep each answer in a file of its own",
                code="size.metrics.two_values",
            )
        points[at] = result
    return points


def shown(value: object) -> str:
    """A value of a document, for an error."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def unix_s(at: object, what: str) -> float:
    """Seconds since 1970; a time without a zone is UTC's. :class:`InputError` if it is not a time, or one before the service existed."""
    unix_s = math.nan
    with contextlib.suppress(ValueError, OverflowError):
        if isinstance(at, str):
            moment = datetime.fromisoformat(at.replace("/", "-").strip())
            unix_s = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        elif isinstance(at, int | float) and not isinstance(at, bool):
            unix_s = float(at) / (1000 if at > MILLISECONDS_MIN else 1)
    if not 0 < unix_s < YEAR_2100_S:
        raise InputError(
            f"{what} has a value at {shown(at)}, which is not a time of a metric",
            remedy="write the answer with `aws cloudwatch get-metric-data --output json`, and leave it as it is",
            code="size.metrics.time",
        )
    return unix_s

"""HammerDB's time profile: calls, percentiles and sums of each type of transaction, from the first to the last of a run.

It keeps no distribution, and its ramp-up is in all of its figures. What is made of it here has its percentiles and its sum
exactly, and nothing in between.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

PROFILE_FILE: Final = "hdbxtprofile.log"
"""Its name in the folder for temporary files."""
PROCEDURES: Final = {
    "NEWORD": "new_order",
    "PAYMENT": "payment",
    "DELIVERY": "delivery",
    "SLEV": "stock_level",
    "OSTAT": "order_status",
}
"""HammerDB's name of a type -> ours."""
_SECTION = re.compile(r">>>>> (?:VIRTUAL USER (\d+) :|SUMMARY OF (\d+) ACTIVE VIRTUAL USERS)")
"""A user's part, or the summary, which comes last."""
_PROCEDURE = re.compile(r"PROC: (\w+)")
_FIGURE = re.compile(r"\b(CALLS|MIN|AVG|MAX|P99|P95|P75|P50|P25): ([\d.]+)")
_PERCENTILES: Final = {"P25": 0.25, "P50": 0.50, "P75": 0.75, "P95": 0.95, "P99": 0.99}
"""Those of 4.12 lack the quarters."""


@dataclass(frozen=True)
class TransactionTimes:
    """One type of transaction."""

    calls: int
    mean_ms: float
    marks_ms: tuple[tuple[float, float], ...]
    """(Share of the calls, which took at most this long), from the shortest to the longest."""

    def buckets_us(self, count: int) -> dict[int, int]:
        """``count`` calls as whole microseconds -> number: the percentiles are those of the profile, and so is the mean.

        Of the calls between two percentiles it is only known where they lie, so they are put at its two ends: as many at the
        upper one as the mean asks for, one at least.
        """
        if count <= 0:
            return {}
        steps = list(self._steps(count))
        low_ms = math.fsum(many * lower for many, lower, _ in steps)
        high_ms = math.fsum(many * upper for many, _, upper in steps)
        asked_ms = self.mean_ms * count
        above = 1.0 if high_ms <= low_ms else min(1.0, max(0.0, (asked_ms - low_ms) / (high_ms - low_ms)))
        buckets_us: dict[int, int] = {}
        for many, lower, upper in steps:
            at_upper = max(1, round(many * above))
            for value_ms, number in ((upper, at_upper), (lower, many - at_upper)):
                if number:
                    value_us = round(value_ms * 1e3)
                    buckets_us[value_us] = buckets_us.get(value_us, 0) + number
        return buckets_us

    def _steps(self, count: int) -> Iterator[tuple[int, float, float]]:
        """(How many, more than this, at most that) between neighbouring marks."""
        for (share, lower), (next_share, upper) in pairwise(self.marks_ms):
            # The tolerance keeps 95 % of 20 at the 19th, as where percentiles are taken.
            many = math.ceil(count * next_share - 1e-9) - math.ceil(count * share - 1e-9)
            if many:
                yield many, lower, upper


@dataclass(frozen=True)
class Profile:
    """The summary over all users."""

    users: int
    """That reported their times."""
    times: Mapping[str, TransactionTimes]
    """By type of transaction."""

    @property
    def complete(self) -> bool:
        """Whether each type is there."""
        return set(self.times) == set(PROCEDURES.values())


def read_profile(text: str) -> Profile | None:
    """The summary of a profile's log; None where it has none.

    Percentiles are the summary's. Calls and their mean are added up over the users: the summary of 4.12 counts each call twice
    where times are stored with its job too, which is its default.
    """
    calls, total_ms = defaultdict[str, int](int), defaultdict[str, float](float)
    parts = _SECTION.split(text)
    for user, summary, section in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        values = _figures(section)
        if user is not None:
            for name, figures in values.items():
                calls[name] += round(figures["CALLS"])
                total_ms[name] += figures["CALLS"] * figures["AVG"]
        if summary is not None:
            return Profile(
                int(summary),
                {name: _times(values[name], calls[name], total_ms[name]) for name in values if calls[name]},
            )
    return None


def _figures(section: str) -> dict[str, dict[str, float]]:
    """By type, what a section says of it; without those that lack a figure."""
    parts = _PROCEDURE.split(section)
    document = {}
    for name, figures in zip(parts[1::2], parts[2::2], strict=True):
        values = {key: float(value) for key, value in _FIGURE.findall(figures)}
        if name in PROCEDURES and {"CALLS", "MIN", "AVG", "MAX", "P50"} <= values.keys():
            document[PROCEDURES[name]] = values
    return document


def _times(values: Mapping[str, float], calls: int, total_ms: float) -> TransactionTimes:
    marks = [(share, values[key]) for key, share in _PERCENTILES.items() if key in values]
    return TransactionTimes(calls, total_ms / calls, _rising([(0.0, values["MIN"]), *marks, (1.0, values["MAX"])]))


def _rising(marks: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The marks with no value below the one before: its percentiles are of a sample, its least and greatest of all calls."""
    results: list[tuple[float, float]] = []
    for share, value in marks:
        results.append((share, max([value, *(value for _, value in results[-1:])])))
    return tuple(results)

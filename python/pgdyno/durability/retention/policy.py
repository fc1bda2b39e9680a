"""A policy file: when snapshots are taken, and how long each of them is kept.

The rules are those of Amazon Data Lifecycle Manager; their figures come from the catalogue.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.errors import InputError
from ...base.quantity import duration_words, in_units
from ...base.toml_file import read_toml, require_keys
from .cron import EXAMPLE, Cron, read_cron

DAY_S = 86_400
_SPANS_S = {"h": 3600.0, "d": DAY_S * 1.0, "w": 7.0 * DAY_S, "y": 365.0 * DAY_S}
_EXAMPLES = "12h, 30d, 4w or 1y"
_KEYS = {"name", "every", "at", "cron", "keep", "keep_for", "fast_restore", "archive_for", "copies"}


@dataclass(frozen=True)
class HourInterval:
    """A number of hours from one to the next, beginning at a time of the day."""

    hours: int
    at: dt.time

    def __str__(self) -> str:
        """For people."""
        return f"every {self.hours} h from {self.at:%H:%M} on"

    def instants(self, begin: dt.datetime, end: dt.datetime) -> Iterator[dt.datetime]:
        """Each instant from ``begin`` on and before ``end``. They are the same on every day."""
        step = dt.timedelta(hours=self.hours)
        at = begin.replace(hour=self.at.hour, minute=self.at.minute, second=0, microsecond=0) - dt.timedelta(days=1)
        while at < end:
            if at >= begin:
                yield at
            at += step


@dataclass(frozen=True)
class Keep:
    """How long: the newest ``count``, or those not older than ``age_s``. One of the two is None."""

    count: int | None = None
    age_s: float | None = None


@dataclass(frozen=True)
class Copy:
    """A copy of each snapshot in another region."""

    region: str
    age_s: float


@dataclass(frozen=True)
class SnapshotSchedule:
    """One schedule of a policy."""

    name: str
    when: HourInterval | Cron
    keep: Keep
    fast_count: int = 0
    """The newest of its snapshots, for which fast snapshot restore is enabled."""
    fast_zones: int = 0
    archive_s: float | None = None
    """How long a snapshot is kept in the archive after that."""
    copies: tuple[Copy, ...] = ()


def read_policy(path: Path, rules: Mapping[str, Any]) -> tuple[SnapshotSchedule, ...]:
    """The schedules of a file; ``rules`` are the provider's figures. :class:`InputError` names the key and the rule."""
    document = read_toml(path, "a policy file", {"schedule"})
    tables, most = document.get("schedule"), rules["schedules_max"]
    if not isinstance(tables, list) or not 1 <= len(tables) <= most:
        raise InputError(f"{path}: a policy has 1 to {most} schedules", remedy="write each of them as [[schedule]]")
    schedules = tuple(_schedule(table, f"schedule {number}", rules) for number, table in enumerate(tables, 1))
    if len({schedule.name for schedule in schedules}) < len(schedules):
        raise InputError(f"{path}: two schedules have the same name", remedy="give each of them a name of its own")
    if len({schedule.keep.count is None for schedule in schedules}) > 1:
        raise InputError(
            f"{path}: a policy keeps snapshots by count or by age, the same in all of its schedules",
            remedy="write keep in all of them, or keep_for",
        )
    return schedules


def _schedule(table: Any, what: str, rules: Mapping[str, Any]) -> SnapshotSchedule:
    require_keys(table, _KEYS, what)
    if ("every" in table) == ("cron" in table):
        raise InputError(f"{what}: a schedule has every or cron", remedy='write every = "6h", or cron')
    if ("keep" in table) == ("keep_for" in table):
        raise InputError(f"{what}: a schedule keeps by count or by age", remedy='write keep = 7, or keep_for = "30d"')
    when = _cron(str(table["cron"]), f"{what}.cron", rules) if "cron" in table else _interval(table, what, rules)
    keep = (
        Keep(count=_count(table["keep"], f"{what}.keep", rules["count_max"]))
        if "keep" in table
        else Keep(age_s=_age(table["keep_for"], f"{what}.keep_for", rules))
    )
    fast_count, fast_zones = _fast(table.get("fast_restore"), f"{what}.fast_restore", keep, rules)
    return SnapshotSchedule(
        name=str(table.get("name", what)),
        when=when,
        keep=keep,
        fast_count=fast_count,
        fast_zones=fast_zones,
        archive_s=_archive(table, what, when, rules),
        copies=_copies(table.get("copies", []), f"{what}.copies", rules),
    )


def _interval(table: Mapping[str, Any], what: str, rules: Mapping[str, Any]) -> HourInterval:
    hours = (in_units(str(table["every"]), _SPANS_S) or 0.0) / 3600
    if hours not in rules["interval_hours"]:
        allowed = ", ".join(f"{hours}h" for hours in rules["interval_hours"])
        raise InputError(
            f"{what}.every: `{table['every']}` is not offered", remedy=f"write one of {allowed}, or use cron"
        )
    try:
        at = dt.time.fromisoformat(str(table.get("at", "00:00")))
    except ValueError:
        raise InputError(f"{what}.at: `{table['at']}` is not a time", remedy='write it as "03:00", in UTC') from None
    return HourInterval(int(hours), at)


def _fast(table: Any, what: str, keep: Keep, rules: Mapping[str, Any]) -> tuple[int, int]:
    if table is None:
        return 0, 0
    require_keys(table, {"keep", "zones"}, what)
    count = _count(table.get("keep"), f"{what}.keep", rules["count_max"])
    if keep.count is not None and count > keep.count:
        raise InputError(
            f"{what}.keep: it is enabled for {count} snapshots, and the schedule keeps {keep.count}",
            remedy=f"write at most {keep.count}",
        )
    return count, _count(table.get("zones", 1), f"{what}.zones", rules["zones_max"])


def _archive(table: Mapping[str, Any], what: str, when: HourInterval | Cron, rules: Mapping[str, Any]) -> float | None:
    if "archive_for" not in table:
        return None
    seconds = _age(table["archive_for"], f"{what}.archive_for", rules)
    least, apart = rules["archive_days_min"], rules["archive_schedule_days_min"]
    if seconds < least * DAY_S:
        raise InputError(
            f"{what}.archive_for: an archived snapshot is kept for at least {least} days",
            remedy=f'write archive_for = "{least}d" or more',
        )
    if closest_s(when) < apart * DAY_S:
        raise InputError(
            f"{what}: only snapshots at least {apart} days apart are archived, and these are {when}",
            remedy='archive in a schedule of its own, such as cron = "cron(0 3 1 * ? *)"',
        )
    return seconds


def closest_s(when: HourInterval | Cron) -> float:
    """How near two snapshots of a schedule come to each other."""
    if isinstance(when, HourInterval):
        return when.hours * 3600.0
    gaps = when.gaps_s()
    return math.inf if gaps is None else gaps[0]


def _cron(text: str, what: str, rules: Mapping[str, Any]) -> Cron:
    """A cron expression of which two snapshots are neither too near nor too far from each other."""
    when = read_cron(text, what)
    gaps = when.gaps_s()
    hours, most = rules["cron_hours_min"], rules["cron_days_max"]
    data = {"cron": text, "hours_min": hours, "days_max": most}
    if gaps is None:
        raise InputError(
            f"{what}: `{text}` names a day that never comes",
            remedy=f"write a day that each of the months has, as in {EXAMPLE}",
            code="policy.cron.never",
            data=data,
        )
    shortest_s, longest_s = gaps
    if shortest_s < hours * 3600:
        raise InputError(
            f"{what}: `{text}` takes snapshots {duration_words(shortest_s)} apart, and the least that is offered is {hours} h",
            remedy='write one minute, and hours that are not nearer than that, or every = "1h"',
            code="policy.cron.too_often",
            data=data,
        )
    if longest_s > most * DAY_S:
        raise InputError(
            f"{what}: `{text}` takes snapshots up to {longest_s / DAY_S:,.0f} days apart, and the most that is offered is a year",
            remedy=f"write days that come each year, as in {EXAMPLE}",
            code="policy.cron.too_rare",
            data=data,
        )
    return when


def _copies(tables: Any, what: str, rules: Mapping[str, Any]) -> tuple[Copy, ...]:
    most = rules["regions_max"]
    if not isinstance(tables, list) or len(tables) > most:
        raise InputError(f"{what}: snapshots are copied to at most {most} regions", remedy="remove some of them")
    results = []
    for table in tables:
        require_keys(table, {"region", "keep_for"}, what)
        if "region" not in table or "keep_for" not in table:
            raise InputError(
                f"{what}: a copy has a region and keep_for", remedy='write { region = "eu-west-1", keep_for = "7d" }'
            )
        results.append(Copy(str(table["region"]), _age(table["keep_for"], f"{what}.keep_for", rules)))
    return tuple(results)


def _count(value: Any, what: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InputError(f"{what}: `{value}` is not a number from 1 to {most:,}", remedy=f"write 1 to {most:,}")
    return value


def _age(value: Any, what: str, rules: Mapping[str, Any]) -> float:
    most = rules["age_days_max"]
    seconds = in_units(str(value), _SPANS_S)
    if seconds is None or not DAY_S <= seconds <= most * DAY_S:
        raise InputError(
            f"{what}: `{value}` is not an age of 1 day to {most:,} days", remedy=f"write it as {_EXAMPLES}"
        )
    return seconds


def span_s(text: str, what: str) -> float:
    """Seconds of ``90d`` or ``1y``; ``what`` is the flag that an :class:`InputError` names."""
    seconds = in_units(text, _SPANS_S)
    if seconds is None or seconds <= 0:
        raise InputError(f"{what}: `{text}` is not a time", remedy=f"write it as {_EXAMPLES}")
    return seconds

"""A watch again and again, on a grid of instants of the wall clock, into one directory.

A server that does not answer once is noted beside the watches, and the next one comes at its time.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ...base import owner
from ...base.errors import InputError, OutputError, PgdynoError
from ...base.quantity import parse_seconds

MISSED_FILE = "missed.jsonl"
"""One line for each watch that came to nothing: ``unix_s`` and ``why``."""
BESIDE_S = 5.0
"""What a watch takes beside its own time, at most: connecting, writing, judging."""
WAIT_S = 3600.0
"""The longest wait at once: a machine that slept, or whose clock was set, is noticed after it."""


@dataclass(frozen=True)
class WatchSchedule:
    """When to watch, in seconds since 1970."""

    begin_unix_s: float
    every_s: float
    until_unix_s: float | None
    """No watch begins from then on; None: until it is interrupted."""

    def due(self, number: int) -> float:
        """The instant of a watch; numbers begin at 0."""
        return self.begin_unix_s + number * self.every_s

    def next_after(self, number: int, now_s: float) -> int:
        """The number of the next watch: those whose time is over are left out."""
        return max(number + 1, -int(-(now_s - self.begin_unix_s) // self.every_s))


def schedule_of(every: str, until: str | None, seconds: float, now_s: float) -> WatchSchedule:
    """From ``--every`` and ``--until``. :class:`InputError` where watches would overlap, or none would be made."""
    every_s = parse_seconds(every, "--every")
    if every_s < seconds + BESIDE_S:
        raise InputError(
            f"--every {every}: a watch of {seconds:g} s takes up to {seconds + BESIDE_S:g} s with all around it",
            remedy=f"watch less often, --every {seconds + BESIDE_S:g}s, or for less time with --for",
        )
    ends_s = None if until is None else _instant(until, now_s)
    if ends_s is not None and ends_s <= now_s:
        raise InputError(f"--until {until} is over", remedy="name a later time, for example 08:00 or 24h")
    return WatchSchedule(now_s, every_s, ends_s)


def repeated(
    schedule: WatchSchedule,
    once: Callable[[], None],
    root: Path,
    tell: Callable[[float], None],
    note: Callable[[str], None],
) -> int:
    """Call ``once`` at each instant and return how many were made. The first must succeed; later errors are noted and kept.

    ``tell`` gets the instant of the next watch before each wait.
    """
    made = 0
    for number in _numbers(schedule):
        if number:
            tell(schedule.due(number))
            _wait_until(schedule.due(number))
        try:
            once()
            made += 1
        except PgdynoError as error:
            if not number:
                raise
            note(f"no watch at {datetime.now().astimezone():%H:%M}: {error.message}")
            _keep(root, error.message)
    return made


def _numbers(schedule: WatchSchedule) -> Iterator[int]:
    number = 0
    while schedule.until_unix_s is None or schedule.due(number) < schedule.until_unix_s:
        yield number
        number = schedule.next_after(number, time.time())


def _wait_until(unix_s: float) -> None:
    never = threading.Event()
    while (left_s := unix_s - time.time()) > 0:
        never.wait(min(left_s, WAIT_S))


def _keep(root: Path, why: str) -> None:
    path = root / MISSED_FILE
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unix_s": round(time.time(), 3), "why": why}) + "\n")
        owner.give(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}", remedy="name another --keep") from error


def _instant(until: str, now_s: float) -> float:
    """``2026-11-26T08:00``, ``08:00`` (the next one) or ``24h``, as seconds since 1970; times without a zone are local ones."""
    try:
        if len(until) <= len("08:00") and ":" in until:
            hour, minute = (int(part) for part in until.split(":"))
            today = (
                datetime.fromtimestamp(now_s).astimezone().replace(hour=hour, minute=minute, second=0, microsecond=0)
            )
            return (today if today.timestamp() > now_s else today + timedelta(days=1)).timestamp()
        if ":" in until or "-" in until:
            return datetime.fromisoformat(until).astimezone().timestamp()
    except ValueError:
        raise InputError(
            f"--until {until} is not a time", remedy="write 08:00, 2026-11-26T08:00, or how long: 24h"
        ) from None
    return now_s + parse_seconds(until, "--until")

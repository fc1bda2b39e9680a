"""Files of ``sar -d``, and of ``sadf -j`` and ``sadf -d`` which say the same.

sar counts reads and writes together (``tps``) and their bytes apart. A row's time is the end of its interval; the table's
header has the time at which the first one began. ``-z`` leaves out a device that did nothing in an interval.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from pgdyno.errors import InputError
from pgdyno.size.measured import Measured, Sample
from pgdyno.size.reading import columns
from pgdyno.size.reading.iostat import SHARED_OUT
from pgdyno.size.reading.times import SET_BACK, elapsed_s, seconds_of_day, without_set_back

_MERIDIEM = ("AM", "PM", "am", "pm")


@dataclass
class Interval:
    """One interval: how long it was, and the cells of each device by column."""

    seconds: float
    cells: dict[str, dict[str, float]] = field(default_factory=dict)


def read(text: str, path: str) -> dict[str, Measured]:
    """The devices of a file by name. :class:`InputError` when it has none."""
    notes = [SHARED_OUT]
    if text.lstrip().startswith("{"):
        intervals = list(_of_json(text, path))
    elif text.startswith("# hostname;") or "\n# hostname;" in text:
        intervals = list(_of_database(text))
    else:
        intervals = list(_of_text(text))
        lengths, set_back = without_set_back([one.seconds for one in intervals])
        intervals = [Interval(seconds, one.cells) for one, seconds in zip(intervals, lengths, strict=True)]
        notes += [SET_BACK] if set_back else []
    samples = _samples([one for one in intervals if one.seconds > 0])
    if not samples:
        raise InputError(
            f"{path} has no disks of sar", remedy="write it with `sar -d 1 > FILE` or `sadf -j DATAFILE -- -d > FILE`"
        )
    return {name: Measured("sar", name, found, False, None, tuple(notes)) for name, found in samples.items()}


def _samples(intervals: list[Interval]) -> dict[str, tuple[Sample, ...]]:
    """Of each device one for each interval: one that is not there was idle, and devices can be added up."""
    names = dict.fromkeys(name for one in intervals for name in one.cells)
    found: dict[str, tuple[Sample, ...]] = {}
    for name in names:
        known = [columns.sample_of(one.cells[name], one.seconds) if name in one.cells else None for one in intervals]
        if any(known):
            found[name] = tuple(
                one[0] if one else Sample.idle(interval.seconds) for one, interval in zip(known, intervals, strict=True)
            )
    return found


def _of_text(text: str) -> Iterator[Interval]:
    names: list[str] = []
    stamp = 0.0
    interval = Interval(0.0)
    for line in text.splitlines():
        words = line.split()
        at = (
            seconds_of_day(words[0] + (f" {words[1]}" if words[1:2] and words[1] in _MERIDIEM else ""))
            if words
            else None
        )
        if at is None or "RESTART" in line:  # blank, the system's line, averages, a restart
            names = []
            continue
        words = words[2:] if words[1:2] and words[1] in _MERIDIEM else words[1:]
        if columns.is_header(words):
            names, stamp = words, at
        elif names and len(words) == len(names):
            if at != stamp:
                yield from _whole(interval)
                interval, stamp = Interval(elapsed_s(stamp, at)), at
            _add_row(interval, names, words)
    yield from _whole(interval)


def _of_database(text: str) -> Iterator[Interval]:
    """``sadf -d``: one line of names after ``#``, then semicolons; the interval is the second field, its end the third."""
    names: list[str] = []
    end = ""
    interval = Interval(0.0)
    for line in text.splitlines():
        fields = line.removeprefix("# ").split(";")
        if line.startswith("#"):
            names = fields[3:] if columns.is_header(fields) else []
        elif names and len(fields) == len(names) + 3:
            if fields[2] != end:
                yield from _whole(interval)
                interval, end = Interval(float(fields[1])), fields[2]
            _add_row(interval, names, fields[3:])
    yield from _whole(interval)


def _whole(interval: Interval) -> Iterator[Interval]:
    """The interval, when a row of it could be read."""
    if interval.cells:
        yield interval


def _add_row(interval: Interval, names: list[str], words: list[str]) -> None:
    """A row of a table. One that has something else than numbers is left out."""
    place = columns.device_column(names)
    pairs = [(name, word) for at, (name, word) in enumerate(zip(names, words, strict=True)) if at != place]
    try:
        interval.cells[words[place]] = {name: columns.number(word, name) for name, word in pairs}
    except ValueError:
        return


def _of_json(text: str, path: str) -> Iterator[Interval]:
    try:
        statistics = json.loads(text)["sysstat"]["hosts"][0]["statistics"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{path} is no JSON of sadf: {error}", remedy="write it with `sadf -j -- -d > FILE`"
        ) from error
    for one in statistics:
        # iostat's own JSON has a time alone there: its reports are not intervals that say how long they are.
        if "disk" not in one:
            continue
        stamp = one.get("timestamp")
        seconds = float(stamp.get("interval", 0)) if isinstance(stamp, dict) else 0.0
        yield Interval(seconds, {str(disk.get("disk-device")): columns.numbers(disk) for disk in one["disk"]})

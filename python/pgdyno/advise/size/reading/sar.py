"""Files of ``sar -d``, and of ``sadf -j`` and ``sadf -d`` which say the same.

sar counts reads and writes together (``tps``) and their bytes apart. A row's time is the end of its interval; the table's
header has the time at which the first one began. ``-z`` leaves out a device that did nothing in an interval.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ....base.errors import InputError
from ..measured import DeviceSamples, IntervalSample
from . import columns, mended
from .iostat import SHARED_OUT
from .judge import IntervalTable, Judge
from .possible import SECONDS_MAX, possible
from .times import DAY_S, SET_BACK, SET_BACK_S, elapsed_s, plain, seconds_of_day, unix_s, without_set_back

_LEAD_MAX = 4
"""Words before the columns: a time, AM or PM, and a zone."""


@dataclass
class SarInterval(IntervalTable):
    """One interval: how long it was, and the cells of each device by column."""

    seconds: float = 0.0
    end_s: float | None = None
    """When it ended, in seconds since 1970; ``None`` where the file does not tell."""


def read(text: str, path: str, near_s: float | None = None, wanted: Collection[str] = ()) -> dict[str, DeviceSamples]:
    """The devices of a file by name; ``near_s`` is the instant near which the caller expects the file's, in seconds since 1970.

    Rows of devices that are not among ``wanted``, if there are any, are not judged.
    :class:`InputError` when it has none.
    """
    notes, judge = [SHARED_OUT], Judge(wanted)
    if text.lstrip().startswith("{"):
        intervals, mends = _of_json(text, path, judge)
        notes += mends
    elif text.startswith("# hostname;") or "\n# hostname;" in text:
        intervals = list(_of_database(text, path, judge))
    else:
        intervals = list(_of_text(text, path, near_s, judge))
        lengths, set_back = without_set_back([interval.seconds for interval in intervals])
        intervals = [replace(interval, seconds=seconds) for interval, seconds in zip(intervals, lengths, strict=True)]
        notes += [SET_BACK] if set_back else []
    samples = _samples([interval for interval in intervals if interval.seconds > 0])
    if not samples:
        raise InputError(
            f"{path} has no disks of sar",
            remedy="write it with `LC_ALL=C sar -d 1 > FILE` or `sadf -j DATAFILE -- -d > FILE`",
            code="size.sar.none",
        )
    notes += judge.notes()
    return {name: DeviceSamples("sar", name, sample, False, None, tuple(notes)) for name, sample in samples.items()}


def _samples(intervals: list[SarInterval]) -> dict[str, tuple[IntervalSample, ...]]:
    """One interval of each device for each interval: a missing device was idle, so that devices can be added up."""
    names = dict.fromkeys(name for interval in intervals for name in interval.cells)
    samples: dict[str, tuple[IntervalSample, ...]] = {}
    for name in names:
        known = [
            columns.sample_of(interval.cells[name], interval.seconds) if name in interval.cells else None
            for interval in intervals
        ]
        if any(known):
            samples[name] = tuple(
                _dated(item[0] if item else IntervalSample.idle(interval.seconds), interval)
                for item, interval in zip(known, intervals, strict=True)
            )
    return samples


def _dated(sample: IntervalSample, interval: SarInterval) -> IntervalSample:
    return sample if interval.end_s is None else replace(sample, at_s=interval.end_s - interval.seconds)


@dataclass
class _Calendar:
    """The date of a text: its head has one, and rows have times of day that begin again at midnight."""

    near_s: float | None
    midnight_s: float | None = None
    last_s: float = 0.0

    def begin(self, head: str) -> None:
        """The line of the system's name."""
        date = head.partition(")")[2]  # behind the kernel's version, which may look like one
        self.midnight_s, self.last_s = unix_s(f"{date} 00:00:00", self.near_s), 0.0

    def at(self, of_day_s: float) -> float | None:
        """The instant of a time of day."""
        if self.midnight_s is not None and self.last_s - of_day_s > SET_BACK_S:
            self.midnight_s += DAY_S
        self.last_s = of_day_s
        return None if self.midnight_s is None else self.midnight_s + of_day_s


def _of_text(text: str, path: str, near_s: float | None, judge: Judge) -> Iterator[SarInterval]:
    lines = text.splitlines()
    names: list[str] = []
    stamp, calendar, lead = 0.0, _Calendar(near_s), 1
    interval = SarInterval()
    for place, line in enumerate(map(plain, lines)):
        words = line.split()
        at = _time_of(words)
        if columns.is_head(line):
            calendar.begin(line)
        if at is None or "RESTART" in line:  # blank, the system's line, averages, a restart
            names = []
            continue
        instant_s = calendar.at(at)
        header = _lead(words)
        if header is not None:
            lead, names, stamp = header, words[header:], at
        elif names:
            where = f"{path}, line {place + 1}"
            text_row = judge.text_row(names, words[lead:], where, may_be_cut=columns.is_cut(lines, place))
            if text_row is not None:
                if at != stamp:
                    yield from _whole(interval)
                    interval, stamp = SarInterval(seconds=elapsed_s(stamp, at), end_s=instant_s), at
                interval.add(judge, *text_row, where)
    yield from _whole(interval)


def _time_of(words: list[str]) -> float | None:
    """Seconds since midnight of the time that a line begins with: ``10:00:01``, ``10:00:01 AM``, ``10.00.01``."""
    if not words or not words[0][:1].isdigit():
        return None
    return seconds_of_day(" ".join(words[:3]), dotted=True)


def _lead(words: list[str]) -> int | None:
    """How many words stand before the names of columns; ``None`` where there are none."""
    for count in range(1, min(_LEAD_MAX, len(words) - 1) + 1):
        if columns.is_column(words[count]):
            return count if columns.is_header(words[count:]) else None
    return None


def _of_database(text: str, path: str, judge: Judge) -> Iterator[SarInterval]:
    """``sadf -d``: one line of names after ``#``, then semicolons; the interval is the second field, its end the third."""
    lines = text.splitlines()
    names: list[str] = []
    end = ""
    interval = SarInterval()
    for place, line in enumerate(lines):
        fields = line.removeprefix("# ").split(";")
        where = f"{path}, line {place + 1}"
        if line.startswith("#"):
            names = fields[3:] if columns.is_header(fields) else []
        elif names and line.strip() and "RESTART" not in line and "COMMENT" not in line:
            text_row = judge.text_row(names, fields[3:], where, may_be_cut=columns.is_cut(lines, place))
            if text_row is not None:
                if fields[2] != end:
                    yield from _whole(interval)
                    interval, end = SarInterval(seconds=_seconds(fields[1], where), end_s=unix_s(fields[2])), fields[2]
                interval.add(judge, *text_row, where)
    yield from _whole(interval)


def _whole(interval: SarInterval) -> Iterator[SarInterval]:
    """The interval, when a row of it could be read."""
    if interval.cells:
        yield interval


def _seconds(value: object, where: str) -> float:
    """Length of an interval as the file says it."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else float("nan")
    except ValueError:
        raise InputError(
            f"{where}: the interval is `{value}`, which is not a number", remedy="write it again with sadf"
        ) from None
    return possible(seconds, f"{where}: the interval", SECONDS_MAX)


def _of_json(text: str, path: str, judge: Judge) -> tuple[list[SarInterval], list[str]]:
    """The intervals, and notes of what was put right."""
    remedy = "write it with `LC_ALL=C sadf -j -- -d > FILE`"
    runs, notes = mended.reports(text, f"{path} is not JSON of sadf", remedy)
    intervals = list[SarInterval]()
    for place, document in enumerate(document for run in runs for document in run):
        # iostat's own JSON has a time alone there: its reports are not intervals that say how long they are.
        stamp = document.get("timestamp")
        where = f"{path}, interval {place + 1}"
        stamp = stamp if isinstance(stamp, dict) else {}
        zone = " UTC" if stamp.get("utc") else ""
        interval = SarInterval(
            seconds=_seconds(stamp.get("interval", 0), where),
            end_s=unix_s(f"{stamp.get('date')} {stamp.get('time')}{zone}"),
        )
        for disk in document["disk"]:
            name = str(disk.get("disk-device"))
            row = judge.row(name, list(disk), list(disk.values()), f"{where}, {name}")
            interval.add(judge, name, row, f"{where}, {name}")
        intervals += _whole(interval)
    return intervals, notes

"""Files of sysstat: ``iostat -x``, ``sar -d``, ``sadf -d`` and ``sadf -j``, as text of any release or as JSON.

===================  ===========================================================================================================
release              mistake
===================  ===========================================================================================================
11.6 to 12.1.4       ``iostat -y -o JSON`` writes a comma before the first report (sysstat#163, #222)
10.1 to 11.3         ``sadf -j`` writes the decimal comma of the locale, ``"tps": 2000,50`` (sysstat#128, #229)
any                  ``nan`` or ``inf`` where a counter went backwards, which JSON has no word for
===================  ===========================================================================================================
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

from ....base.errors import InputError
from ..measured import SECONDS_MAX, DeviceSamples, FirstReport, IntervalSample, possible
from . import columns
from .columns import IntervalTable, Judge

_MENDS = (
    (
        re.compile(r"\[(\s*),"),
        r"[\1",
        "a comma before the first report was left out: sysstat before 12.1.5 writes it with -y",
    ),
    (
        re.compile(r"(:\s*-?\d+),(\d+)(?=\s*[,}\]])"),
        r"\1.\2",
        "numbers have a decimal comma, and were read so: sysstat before 11.4 writes them in the locale's way; LC_ALL=C avoids it",
    ),
    (re.compile(r"(:\s*)-?(?:nan|inf)(?=\s*[,}\]])"), r"\1NaN", ""),
)
"""What is wrong, what is right, and the note of it."""


def documents(text: str, what: str, remedy: str) -> tuple[list[Any], list[str]]:
    """The documents of a text, one after the other as ``>>`` makes them, and notes of what was corrected.

    :class:`InputError`, with ``what``, where it is none or was cut off.
    """
    try:
        return _parsed(text), []
    except ValueError as error:
        first = error
    notes = []
    for wrong, right, note in _MENDS:
        text, count = wrong.subn(right, text)
        if count and note:
            notes.append(note)
    try:
        return _parsed(text), notes
    except ValueError as error:
        last = error if notes else first
    if isinstance(last, json.JSONDecodeError) and (
        last.pos >= len(text.rstrip()) or last.msg.startswith("Unterminated")
    ):
        raise InputError(f"{what}: it ends in the middle", remedy=remedy, code="size.json.cut") from last
    raise InputError(f"{what}: {last}", remedy=remedy, code="size.json.invalid") from last


def _parsed(text: str) -> list[Any]:
    decoder, at, results = json.JSONDecoder(), 0, []
    text = text.strip()
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        results.append(document)
        while at < len(text) and text[at].isspace():
            at += 1
    return results


def reports_of_json(text: str, what: str, remedy: str) -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The reports with disks of each run of a program of sysstat, and notes. :class:`InputError` where there are none."""
    pages, notes = documents(text, what, remedy)
    runs = []
    for page in pages:
        try:
            statistics = page["sysstat"]["hosts"][0]["statistics"]
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(f"{what}: {type(error).__name__} {error}", remedy=remedy) from error
        run = (
            [statistic for statistic in statistics if isinstance(statistic, dict) and "disk" in statistic]
            if isinstance(statistics, list)
            else None
        )
        if run is None or not all(
            isinstance(item["disk"], list) and all(isinstance(disk, dict) for disk in item["disk"]) for item in run
        ):
            raise InputError(f"{what}: its statistics are not lists of disks", remedy=remedy)
        runs.append(run)
    return runs, notes


DAY_S = 86_400.0
SET_BACK_S = DAY_S / 2
"""A time of day that is so much later is an earlier one: at the end of summer time, or when a clock is set right."""
SET_BACK = "the clock was set back within an interval: its length is taken to be the usual one"
"""What a reader must know of it."""
_TIME = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2}):(\d{2})\b(?:\s*([AaPp])\.?\s?[Mm]\b)?")
_DOTTED = re.compile(r"(?:\d\.?\s+|^)(\d{1,2})\.(\d{2})\.(\d{2})(?=\s|$)")
"""``10.00.01``, as Finnish writes it: behind a date, or alone."""
_HOURS_MAX = 24
_EPOCH = re.compile(r"\s*(\d{9,11})\s*")
_DATE = re.compile(r"(?<![\d:])(\d{1,4})([-/.]) ?(\d{1,2})\2 ?(\d{1,4})(?![\d:])")
_WORDED_DATE = re.compile(r"(\d{4})[年년] ?(\d{1,2})[月월] ?(\d{1,2})[日일]")
_WORDED_TIME = re.compile(r"(\d{1,2})[時时시] ?(\d{1,2})[分분] ?(\d{1,2})[秒초]")
"""Japanese, Chinese and Korean have words between the figures."""
_ZONE = re.compile(r":\d{2}(?:[.,]\d+)?\s*(Z|UTC|GMT|([+-])(\d{2}):?(\d{2}))\b")
_CENTURY = 2000
"""Of years with two digits."""


def plain(line: str) -> str:
    """The line with its date and time in figures alone, ``2026-11-25 10:00:01``, where a locale writes words between them."""
    if line.isascii():
        return line
    return _WORDED_TIME.sub(r"\1:\2:\3", _WORDED_DATE.sub(r"\1-\2-\3", line))


def seconds_of_day(text: str, *, dotted: bool = False) -> float | None:
    """Seconds since midnight of the first time of day in ``text``, or of seconds since 1970 alone; ``None``: neither.

    ``dotted``: a text that begins with ``10.00.01`` begins with a time and not with a date.
    """
    match = _TIME.search(text)
    if match is None:
        epoch = _EPOCH.fullmatch(text)
        if epoch:
            return float(epoch[1]) % DAY_S
        return _dotted_seconds(text, dotted)
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + (12 if match[4] in "Pp" else 0)
    return hour * 3600.0 + int(match[2]) * 60.0 + int(match[3])


def _dotted_seconds(text: str, alone: bool) -> float | None:
    result = next((match for match in _DOTTED.finditer(text) if alone or match.start() > 0), None)
    if result is None:
        return None
    hour, minute, second = (int(result[place]) for place in (1, 2, 3))
    return hour * 3600.0 + minute * 60.0 + second if hour < _HOURS_MAX and minute < 60 and second < 60 else None


def elapsed_s(begin: float, end: float) -> float:
    """Seconds from one time of day to the next, over midnight if need be."""
    return (end - begin) % DAY_S


def without_set_back(lengths: Sequence[float]) -> tuple[list[float], bool]:
    """Lengths of intervals, and whether a clock was set back in one, which would seem to last for most of a day.

    It would outweigh all others in every percentile. Where each is as long, they are what they seem.
    """
    usual = [length for length in lengths if length <= SET_BACK_S]
    if not usual or len(usual) == len(lengths):
        return list(lengths), False
    median = statistics.median(usual)
    return [length if length <= SET_BACK_S else median for length in lengths], True


def unix_s(text: str, near_s: float | None = None) -> float | None:
    """Seconds since 1970 of the date and time in ``text``, or of such seconds alone; ``None`` without both.

    Without a zone it is a time of this machine's. A date that can be read in several ways is the one nearest to ``near_s``; without
    it, the American order comes first.
    """
    epoch = _EPOCH.fullmatch(text)
    if epoch:
        return float(epoch[1])
    of_day, date = seconds_of_day(text), _DATE.search(text)
    if of_day is None or date is None:
        return None
    zone = _zone(text)
    results = [(day.replace(tzinfo=zone) + timedelta(seconds=of_day)).timestamp() for day in _days(date)]
    if near_s is not None:
        return min(results, key=lambda result: abs(result - near_s), default=None)
    return results[0] if results else None


def _zone(text: str) -> timezone | None:
    match = _ZONE.search(text)
    if match is None:
        return None
    if match[2] is None:
        return UTC
    offset = timedelta(hours=int(match[3]), minutes=int(match[4]))
    return timezone(-offset if match[2] == "-" else offset)


def _days(date: re.Match[str]) -> Iterator[datetime]:
    """The days that a date may be, the likeliest first."""
    first, between, middle, last = int(date[1]), date[2], int(date[3]), int(date[4])
    month_first, day_first, year_first = (last, first, middle), (last, middle, first), (first, middle, last)
    orders = [day_first, month_first] if between == "." else [month_first, day_first, year_first]
    for year, month, day in [year_first] if len(date[1]) == 4 else orders:
        with contextlib.suppress(ValueError):
            yield datetime(year if year >= 100 else _CENTURY + year, month, day)  # noqa: DTZ001 (the zone is set by the caller)


_STAMP = re.compile(r"\d{1,4}[-/.] ?\d{1,2}[-/.] ?\d{1,4}\.?[ T].*|[^\W\d]+ ?: \d.*|\d{9,11}")
"""A date and a time, ``Time: 10:00:01`` or ``Zeit: 10:00:01`` of old releases, or seconds since 1970."""
SHARED_OUT = "reads and writes were not counted apart: they are shared out by their bytes"
FIRST_ONLY, NO_LENGTH = "size.iostat.first_only", "size.iostat.no_length"
"""Codes of errors whose remedies are options of ``size``."""
DROPPED = "the first report, an average since boot, is dropped"
_INTERVALS_MAX = 1.5
"""A first report that was at most as long as this number of others is an interval: one since boot is hours or days long."""


IN_SECTORS = (
    "bytes that were written stood in sectors, as JSON of sysstat 12.2 writes them by mistake, and were converted"
)
_WRITTEN = ("wkB/s", "wMB/s")
"""The columns of that mistake (sysstat#264)."""


@dataclass
class Report(IntervalTable):
    """One report."""

    at_s: float | None = None
    """The time of day, if there is one."""
    stamp: str = ""
    """The date and time as they are written; empty where there are none."""
    end_s: float | None = None
    """When it ended, in seconds since 1970; ``None`` where its stamp does not tell."""
    is_first: bool = False
    """Whether a run of iostat begins with it."""
    seconds: float = 0.0
    """How long the interval was."""
    counts: bool | None = True
    """Whether it is an interval; ``None`` where a first report may be the time since boot."""


def read_iostat(
    text: str,
    path: str,
    interval_s: float | None = None,
    keep_first: bool | None = None,
    near_s: float | None = None,
    wanted: Collection[str] = (),
) -> dict[str, DeviceSamples]:
    """The devices of a file by name. ``interval_s`` is what the caller knows of an interval's length, ``near_s`` the instant, in
    seconds since 1970, near which it expects the file's. Rows of devices that are not among ``wanted``, if there are any, are not
    judged.

    ``keep_first``: first reports are intervals, as of ``iostat -y``, or are not. Without it they are left for
    :mod:`pgdyno.advise.size.choice` to judge, unless the file says how long they were. :class:`InputError` when nothing can be read,
    there is only the report since boot, or the interval is not known.
    """
    judge = Judge(wanted)
    reports, notes = _of_json(text, path, judge) if text.lstrip().startswith("{") else (_of_text(text, path, judge), [])
    if not any(report.cells for report in reports):
        raise InputError(
            f"{path} is not output of iostat",
            remedy="write it with `LC_ALL=C iostat -dxt 1 > FILE`",
            code="size.iostat.none",
        )
    if all(report.is_first for report in reports) and not keep_first:
        raise InputError(
            f"{path} has one report, which is an average since boot unless iostat was run with -y",
            remedy="let iostat run on, `iostat -dxt 1 > FILE`; after -y add --first-report keep and --interval",
            code=FIRST_ONLY,
        )
    notes += _with_lengths(reports, path, interval_s)
    for report in reports:
        report.end_s = unix_s(report.stamp, near_s)
        if report.is_first:
            report.counts = _is_interval(report) if keep_first is None else keep_first
    if any(report.counts is False for report in reports):
        notes.append(DROPPED)
    notes += judge.notes()
    names = dict.fromkeys(name for report in reports for name in report.cells)
    samples = {name: _measured(name, reports, notes) for name in names}
    return {name: sample for name, sample in samples.items() if sample.samples}


def _measured(name: str, reports: list[Report], notes: list[str]) -> DeviceSamples:
    samples, first_reports, apart, incomplete = list[IntervalSample](), list[FirstReport](), True, 0
    for report in reports:
        if name in report.cells:
            results = columns.sample_of(report.cells[name], report.seconds)
            if results is None:
                incomplete += 1
                continue
            apart = apart and results[1]
            sample = results[0]
        else:  # `-z` leaves out a device that did nothing
            sample = IntervalSample.idle(report.seconds)
        if report.end_s is not None:
            sample = replace(sample, at_s=report.end_s - report.seconds)
        if report.counts is None:
            first_reports.append(FirstReport(len(samples), sample))
        elif report.counts:
            samples.append(sample)
    notes = notes if apart else [*notes, SHARED_OUT]
    if incomplete and samples:
        notes = [*notes, f"{incomplete} of {len(reports)} reports lack columns of {name}, and are left out"]
    return DeviceSamples("iostat", name, tuple(samples), apart, None, tuple(notes), tuple(first_reports))


def _with_lengths(reports: list[Report], path: str, interval_s: float | None) -> list[str]:
    """Set how long each interval was, and of a first report the usual length; what a reader must know of it."""
    pairs = [(before, report) for before, report in pairwise(reports) if not report.is_first]
    lengths = [_length_s(before, report, path, interval_s) for before, report in pairs]
    lengths, set_back = (lengths, False) if interval_s is not None else without_set_back(lengths)
    for (_, report), seconds in zip(pairs, lengths, strict=True):
        report.seconds = seconds
    if interval_s is None and not lengths:
        raise InputError(
            f"{path} does not say how long its one interval was", remedy="say it: --interval 60s", code=NO_LENGTH
        )
    usual = interval_s if interval_s is not None else statistics.median(lengths)
    for report in reports:
        report.seconds = report.seconds or usual
    return [SET_BACK] if set_back else []


def _is_interval(report: Report) -> bool | None:
    """Whether a first report was as long as the others; ``None`` where it does not tell."""
    longest = max((columns.length_s(cells) or 0.0 for cells in report.cells.values()), default=0.0)
    return longest <= report.seconds * _INTERVALS_MAX if longest else None


def _length_s(before: Report, report: Report, path: str, interval_s: float | None) -> float:
    if interval_s is not None:
        return interval_s
    if before.at_s is None or report.at_s is None:
        raise InputError(
            f"{path} has no timestamps, so the length of its intervals is not known",
            remedy="say it, `--interval 1s`, or measure with `iostat -dxt 1`",
            code=NO_LENGTH,
        )
    return elapsed_s(before.at_s, report.at_s) or 1.0  # two reports within one second of the clock


def _of_text(text: str, path: str, judge: Judge) -> list[Report]:
    reports = list[Report]()
    lines = text.splitlines()
    report, names = Report(is_first=True), list[str]()
    seen: set[str] = set()
    for place, line in enumerate(map(plain, lines)):
        words = line.split()
        if columns.is_head(line):
            if report.cells:
                reports.append(report)
            report, names, seen = Report(is_first=True), [], set()
        elif _STAMP.fullmatch(line.strip()) and seconds_of_day(line) is not None:
            output = bool(
                report.cells or seen
            )  # names of columns alone: no device did anything, and `-z` leaves all out
            if output:
                reports.append(report)
            report = Report(at_s=seconds_of_day(line), stamp=line.strip(), is_first=report.is_first and not output)
            names, seen = [], set()
        elif columns.is_header(words):
            if seen & set(words) - {"Device", "Device:"}:  # a column again: the next report begins
                reports.append(report)
                report, seen = Report(), set()
            names, seen = words, seen | set(words)
        elif not words or words[0].startswith("avg-cpu"):
            names = []
        elif names:
            where = f"{path}, line {place + 1}"
            may_be_cut = columns.is_cut(lines, place)
            text_row = judge.text_row(names, words, where, may_be_cut=may_be_cut, is_interval=not report.is_first)
            if text_row is not None:
                report.add(judge, *text_row, where)
    if report.cells:  # without a device it may have been cut off
        reports.append(report)
    return reports


def _of_json(text: str, path: str, judge: Judge) -> tuple[list[Report], list[str]]:
    """The reports, and notes of what was put right."""
    remedy = "end iostat by a count, `iostat -dxt -o JSON 1 60`, so that it closes its document"
    runs, notes = reports_of_json(text, f"{path} is not JSON of iostat", remedy)
    disks = [
        disk
        for run in runs
        for document in run
        for disk in document["disk"]
        if judge.counts(str(disk.get("disk_device")))
    ]
    if any(_is_in_sectors(disk) for disk in disks):
        notes.append(IN_SECTORS)
        for disk in disks:
            _convert_sectors(disk)
    reports = list[Report]()
    for run in runs:
        for place, document in enumerate(run):
            at = document.get("timestamp")
            stamp = plain(at) if isinstance(at, str) else ""
            report = Report(at_s=seconds_of_day(stamp), stamp=stamp, is_first=place == 0)
            for disk in document["disk"]:
                if "disk_device" in disk:  # sadf, whose first interval is none since boot, writes `disk-device`
                    name = str(disk["disk_device"])
                    where = f"{path}, report {len(reports) + 1}, {name}"
                    row = judge.row(name, list(disk), list(disk.values()), where, is_interval=place > 0)
                    report.add(judge, name, row, where)
            reports.append(report)
    return reports, notes


def _is_in_sectors(disk: dict[str, Any]) -> bool:
    """Whether a row shows sysstat#264: only what was written is wrong, and right as sectors."""
    return any(name in disk for name in _WRITTEN) and columns.figures_of(list(disk), list(disk.values())).in_sectors(
        "write"
    )


def _convert_sectors(disk: dict[str, Any]) -> None:
    for name in _WRITTEN:
        if isinstance(disk.get(name), int | float):
            disk[name] *= columns.SECTOR_BYTES / ((1 << 20) if name == "wMB/s" else (1 << 10))


_LEAD_MAX = 4
"""Words before the columns: a time, AM or PM, and a zone."""


@dataclass
class SarInterval(IntervalTable):
    """One interval: how long it was, and the cells of each device by column."""

    seconds: float = 0.0
    end_s: float | None = None
    """When it ended, in seconds since 1970; ``None`` where the file does not tell."""


def read_sar(
    text: str, path: str, near_s: float | None = None, wanted: Collection[str] = ()
) -> dict[str, DeviceSamples]:
    """The devices of a file by name; ``near_s`` is the instant near which the caller expects the file's, in seconds since 1970.

    Rows of devices that are not among ``wanted``, if there are any, are not judged.
    :class:`InputError` when it has none.
    """
    notes, judge = [SHARED_OUT], Judge(wanted)
    if text.lstrip().startswith("{"):
        intervals, mends = _sar_of_json(text, path, judge)
        notes += mends
    elif text.startswith("# hostname;") or "\n# hostname;" in text:
        intervals = list(_of_database(text, path, judge))
    else:
        intervals = list(_sar_of_text(text, path, near_s, judge))
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


def _sar_of_text(text: str, path: str, near_s: float | None, judge: Judge) -> Iterator[SarInterval]:
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


def _sar_of_json(text: str, path: str, judge: Judge) -> tuple[list[SarInterval], list[str]]:
    """The intervals, and notes of what was put right."""
    remedy = "write it with `LC_ALL=C sadf -j -- -d > FILE`"
    runs, notes = reports_of_json(text, f"{path} is not JSON of sadf", remedy)
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

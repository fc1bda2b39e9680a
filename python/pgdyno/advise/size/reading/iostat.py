"""Files of ``iostat -x``, as text of any release or as JSON.

Traps that are taken care of: the first report covers the time since boot (unless ``-y``); a file may hold several runs;
the interval is nowhere written and follows from the timestamps of ``-t``; ``-h`` tells one report in three tables; units
are the user's choice; the device's column may be the last one.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ....base.errors import InputError
from ..measured import DeviceSamples, FirstReport, IntervalSample
from . import columns, mended
from .judge import IntervalTable, Judge
from .times import SET_BACK, elapsed_s, plain, seconds_of_day, unix_s, without_set_back

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


def read(
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
    runs, notes = mended.reports(text, f"{path} is not JSON of iostat", remedy)
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

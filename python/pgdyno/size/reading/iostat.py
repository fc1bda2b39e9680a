"""Files of ``iostat -x``, as text of any release or as JSON.

Traps that are taken care of: the first report covers the time since boot (unless ``-y``) and is dropped; the interval is
nowhere written and follows from the timestamps of ``-t``; ``-h`` tells one report in three tables; units are the
user's choice; the device's column may be the last one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from pgdyno.errors import InputError
from pgdyno.size.measured import Measured, Sample
from pgdyno.size.reading import columns
from pgdyno.size.reading.times import SET_BACK, elapsed_s, seconds_of_day, without_set_back

_STAMP = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T].*|Time: .*|\d{9,11}")
SHARED_OUT = "reads and writes were not counted apart: they are shared out by their bytes"


@dataclass
class Report:
    """One report: the cells of each device by column, and the time of day if there is one."""

    cells: dict[str, dict[str, float]] = field(default_factory=dict)
    at_s: float | None = None


def read(text: str, path: str, interval_s: float | None = None) -> dict[str, Measured]:
    """The devices of a file by name. ``interval_s`` is what the caller knows of an interval's length.

    :class:`InputError` when nothing can be read, there is only the report since boot, or the interval is not known.
    """
    reports = list(_of_json(text, path) if text.lstrip().startswith("{") else _of_text(text))
    if not any(report.cells for report in reports):
        raise InputError(f"{path} is no output of iostat", remedy="write it with `iostat -dxt 1 > FILE`")
    if len(reports) < 2:
        raise InputError(
            f"{path} has one report, which tells of the time since boot",
            remedy="let iostat go on: `iostat -dxt 1 > FILE`",
        )
    return _measured(reports, path, interval_s)


def _measured(reports: list[Report], path: str, interval_s: float | None) -> dict[str, Measured]:
    samples: dict[str, list[Sample]] = {}
    apart = True
    names = dict.fromkeys(name for report in reports for name in report.cells)
    lengths = [_length_s(before, report, path, interval_s) for before, report in pairwise(reports)]
    lengths, set_back = (lengths, False) if interval_s is not None else without_set_back(lengths)
    for report, seconds in zip(reports[1:], lengths, strict=True):
        for name in names:
            # `-z` leaves out a device that did nothing.
            one = columns.sample_of(report.cells[name], seconds) if name in report.cells else None
            if one is None and name in report.cells:
                continue
            sample, split = one or (Sample.idle(seconds), apart)
            samples.setdefault(name, []).append(sample)
            apart = apart and split
    notes = ["the first report, which tells of the time since boot, is dropped"] + ([] if apart else [SHARED_OUT])
    notes += [SET_BACK] if set_back else []
    return {name: Measured("iostat", name, tuple(found), apart, None, tuple(notes)) for name, found in samples.items()}


def _length_s(before: Report, report: Report, path: str, interval_s: float | None) -> float:
    if interval_s is not None:
        return interval_s
    if before.at_s is None or report.at_s is None:
        raise InputError(
            f"{path} has no timestamps, so the length of its intervals is not known",
            remedy="say it, `--interval 1s`, or measure with `iostat -dxt 1`",
        )
    return elapsed_s(before.at_s, report.at_s) or 1.0  # two reports within one second of the clock


def _of_text(text: str) -> Iterator[Report]:
    report, names = Report(), list[str]()
    seen: set[str] = set()
    for line in text.splitlines():
        words = line.split()
        if _STAMP.fullmatch(line.strip()) and seconds_of_day(line) is not None:
            if report.cells or seen:  # names of columns alone: no device did anything, and `-z` leaves all out
                yield report
            report, names, seen = Report(at_s=seconds_of_day(line)), [], set()
        elif columns.is_header(words):
            if seen & set(words) - {"Device", "Device:"}:  # a column again: the next report begins
                yield report
                report, seen = Report(), set()
            names, seen = words, seen | set(words)
        elif not words or words[0].startswith("avg-cpu"):
            names = []
        elif names:
            _add_row(report, names, words)
    if report.cells:  # without a device it may have been cut off
        yield report


def _add_row(report: Report, names: list[str], words: list[str]) -> None:
    """A row of a table. A line that was cut off when iostat was stopped has too few cells, and is left out."""
    if len(words) != len(names):
        return
    place = columns.device_column(names)
    pairs = [(name, word) for at, (name, word) in enumerate(zip(names, words, strict=True)) if at != place]
    try:
        cells = {name: columns.number(word, name) for name, word in pairs}
    except ValueError:
        return
    report.cells.setdefault(words[place], {}).update(cells)


def _of_json(text: str, path: str) -> Iterator[Report]:
    try:
        statistics = json.loads(text)["sysstat"]["hosts"][0]["statistics"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{path} is no JSON of iostat, or was cut off: {error}",
            remedy="end iostat by a count, `iostat -dxt -o JSON 1 60`, so that it closes its document",
        ) from error
    for one in statistics:
        at = one.get("timestamp")
        report = Report(at_s=seconds_of_day(at) if isinstance(at, str) else None)
        for disk in one.get("disk", []):
            if "disk_device" in disk:  # sadf, whose first interval is none since boot, writes `disk-device`
                report.cells[str(disk["disk_device"])] = columns.numbers(disk)
        yield report

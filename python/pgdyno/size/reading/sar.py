"""Files of ``sar -d``, and of ``sadf -j`` and ``sadf -d`` which say the same.

sar counts reads and writes together (``tps``) and their bytes apart. A row's time is the end of its interval; the table's
header has the time at which the first one began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pgdyno.errors import InputError
from pgdyno.size.measured import Measured, Sample
from pgdyno.size.reading import columns
from pgdyno.size.reading.iostat import SHARED_OUT
from pgdyno.size.reading.times import SET_BACK, elapsed_s, seconds_of_day, without_set_back

Row = tuple[str, float, dict[str, float]]
"""Device, seconds of the interval, cells by column."""
_MERIDIEM = ("AM", "PM", "am", "pm")


def read(text: str, path: str) -> dict[str, Measured]:
    """The devices of a file by name. :class:`InputError` when it has none."""
    notes = [SHARED_OUT]
    if text.lstrip().startswith("{"):
        rows = _of_json(text, path)
    elif text.startswith("# hostname;") or "\n# hostname;" in text:
        rows = _of_database(text)
    else:
        found_rows = list(_of_text(text))
        lengths, set_back = without_set_back([seconds for _, seconds, _ in found_rows])
        rows = iter([(name, seconds, cells) for (name, _, cells), seconds in zip(found_rows, lengths, strict=True)])
        notes += [SET_BACK] if set_back else []
    samples: dict[str, list[Sample]] = {}
    for name, seconds, cells in rows:
        one = columns.sample_of(cells, seconds)
        if one is not None and seconds > 0:
            samples.setdefault(name, []).append(one[0])
    if not samples:
        raise InputError(
            f"{path} has no disks of sar", remedy="write it with `sar -d 1 > FILE` or `sadf -j DATAFILE -- -d > FILE`"
        )
    return {name: Measured("sar", name, tuple(found), False, None, tuple(notes)) for name, found in samples.items()}


def _of_text(text: str) -> Iterator[Row]:
    names: list[str] = []
    stamp = before = 0.0
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
            names, stamp, before = words, at, at
        elif names and len(words) == len(names):
            if at != stamp:
                before, stamp = stamp, at
            row = _row(names, words, elapsed_s(before, stamp))
            if row is not None:
                yield row


def _of_database(text: str) -> Iterator[Row]:
    """``sadf -d``: one line of names after ``#``, then semicolons; the interval is the second field."""
    names: list[str] = []
    for line in text.splitlines():
        fields = line.removeprefix("# ").split(";")
        if line.startswith("#"):
            names = fields[3:] if columns.is_header(fields) else []
        elif names and len(fields) == len(names) + 3:
            row = _row(names, fields[3:], float(fields[1]))
            if row is not None:
                yield row


def _row(names: list[str], words: list[str], seconds: float) -> Row | None:
    place = columns.device_column(names)
    pairs = [(name, word) for at, (name, word) in enumerate(zip(names, words, strict=True)) if at != place]
    try:
        return words[place], seconds, {name: columns.number(word, name) for name, word in pairs}
    except ValueError:
        return None


def _of_json(text: str, path: str) -> Iterator[Row]:
    try:
        statistics = json.loads(text)["sysstat"]["hosts"][0]["statistics"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{path} is no JSON of sadf: {error}", remedy="write it with `sadf -j -- -d > FILE`"
        ) from error
    for one in statistics:
        # iostat's own JSON has a time alone there: its reports are not intervals that say how long they are.
        stamp = one.get("timestamp")
        seconds = float(stamp.get("interval", 0)) if isinstance(stamp, dict) else 0.0
        for disk in one.get("disk", []):
            yield str(disk.get("disk-device")), seconds, columns.numbers(disk)

"""JSON of sysstat as it was written, with the mistakes of its older releases put right.

===================  ===========================================================================================================
release              mistake
===================  ===========================================================================================================
11.6 to 12.1.4       ``iostat -y -o JSON`` writes a comma before the first report (sysstat#163, #222)
10.1 to 11.3         ``sadf -j`` writes the decimal comma of the locale, ``"tps": 2000,50`` (sysstat#128, #229)
any                  ``nan`` or ``inf`` where a counter went backwards, which JSON has no word for
===================  ===========================================================================================================
"""

from __future__ import annotations

import json
import re
from typing import Any

from ....base.errors import InputError

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


def reports(text: str, what: str, remedy: str) -> tuple[list[list[dict[str, Any]]], list[str]]:
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

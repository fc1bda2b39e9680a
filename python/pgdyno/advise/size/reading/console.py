"""What CloudWatch's console downloads: *Actions, Download as .csv* of a graph.

A column for each metric; its name, dimensions, statistic and period stand in rows above the values, whose first cell says what they
are: ``Full label``, ``Label``, ``Namespace``, a dimension such as ``VolumeId``, ``Statistic``, ``Period``. A minute without a value
has an empty cell. Times are UTC's, unless the console was set to local time, which the file does not say.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ....base.errors import InputError
from . import names
from .points import by_time
from .series import AVERAGE, SUM, MetricSeries

_TIME = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T]\d{1,2}:\d{2}.*")
_YEAR_FIRST = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})[ T](\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d+)?\s*(Z|[+-]\d{2}:?\d{2})?"
)
_PERIOD = re.compile(r"(\d+)\s*(s|sec\w*|m|min\w*|h|hour\w*)?", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_STATISTICS = {"sum": SUM, "average": AVERAGE, "avg": AVERAGE}
HEAD_MAX = 64
"""Rows above the values: a file whose values begin later is another one."""
LABELS_MAX = 6
"""Labels that an error lists."""
LOCAL = "times of the console's CSV are taken to be of UTC; it writes local ones where it was set to"


@dataclass
class Head:
    """What stands above the values, by the first cell in lower case without spaces: the cells of each column."""

    rows: dict[str, list[str]] = field(default_factory=dict)

    def cell(self, name: str, column: int) -> str:
        """Of one column; empty where there is none."""
        row = self.rows.get(name, [])
        return row[column].strip() if column < len(row) else ""

    def cells(self, column: int) -> Mapping[str, str]:
        """All of a column."""
        return {name: self.cell(name, column) for name in self.rows}


def series(text: str, path: str) -> list[MetricSeries]:
    """The metrics of a download; none where it is something else. :class:`InputError` where it has no metric of a volume."""
    rows = list(csv.reader(text.splitlines(), delimiter=_delimiter(text)))
    begin = next((place for place, row in enumerate(rows[:HEAD_MAX]) if row and _TIME.fullmatch(row[0].strip())), None)
    if not begin:
        return []
    head = Head()
    for row in rows[:begin]:
        if row:
            head.rows.setdefault(row[0].strip().lower().replace(" ", ""), row)
    width = max(len(row) for row in rows[:begin])
    columns = range(1, width)
    series = [
        metric_series
        for column in columns
        if (metric_series := _column(head, column, rows[begin:], begin, path)) is not None
    ]
    if not series and ("fulllabel" in head.rows or "label" in head.rows):
        labels = [head.cell("label", column) or head.cell("fulllabel", column) for column in columns]
        raise InputError(
            f"{path} has no metric of a volume that is known here: it has {', '.join(labels[:LABELS_MAX])}",
            remedy=names.remedy_for(labels),
            code="size.metrics.aurora" if any(names.is_aurora(label) for label in labels) else "size.metrics.none",
            data={"labels": labels[:LABELS_MAX]},
        )
    return series


def _delimiter(text: str) -> str:
    """Spreadsheets of some countries save with semicolons."""
    line = text.lstrip().partition("\n")[0]
    return ";" if line.count(";") > line.count(",") else ","


def _column(head: Head, column: int, rows: Sequence[Sequence[str]], begin: int, path: str) -> MetricSeries | None:
    """The metric of a column; ``None`` where it is none of a volume."""
    cells = head.cells(column)
    preferred = [cells.get(name, "") for name in ("metricname", "label", "fulllabel")]
    result = next((one for cell in (*preferred, *cells.values()) if (one := names.find(cell)) is not None), None)
    if result is None:
        return None
    metric, family, _ = result
    owner = names.owner_of(cells)
    if owner == "volume":
        label = next((cell for cell in preferred if names.find(cell) is not None), "")
        place = names.find(label)
        owner = names.owner(label, None if place is None else place[2])
    what = f"{path}: {metric.name}"
    pairs = [
        (_iso(row[0], f"{path}, line {begin + place + 1}"), _value(row[column], f"{path}, line {begin + place + 1}"))
        for place, row in enumerate(rows)
        if len(row) > column and row[column].strip()
    ]
    statistic = cells.get("statistic") or cells.get("stat") or ""
    statistic = _STATISTICS.get(statistic.lower(), statistic)
    return MetricSeries(
        owner, metric, family, statistic, by_time(pairs, what), LOCAL, _period_s(cells.get("period", ""))
    )


def _value(text: str, where: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise InputError(
            f"{where}: a value is `{text.strip()}`, which is not a number",
            remedy="give the file as the console wrote it, without a spreadsheet's thousands or decimal commas",
            code="size.metrics.not_a_number",
        ) from None


def _iso(text: str, where: str) -> str:
    """The time as ISO 8601 writes it. :class:`InputError` where the year does not come first, which leaves the day open."""
    match = _YEAR_FIRST.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{where}: the time is `{text.strip()}`, and the console writes 2026/11/25 09:00:00",
            remedy="give the file as the console wrote it: a spreadsheet may have changed it",
            code="size.metrics.time",
        )
    year, month, day, hour, minute, second, zone = match.groups()
    zone = "+00:00" if zone in (None, "Z") else zone
    return f"{year}-{int(month):02d}-{int(day):02d}T{int(hour):02d}:{minute}:{second or '00'}{zone}"


def _period_s(text: str) -> float | None:
    match = _PERIOD.fullmatch(text)
    return None if match is None else float(match[1]) * _SECONDS[(match[2] or "s")[0].lower()]

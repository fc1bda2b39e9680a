"""The table at the end of an experiment: at most 100 columns, fewer on a narrower terminal, plain text or with some weight."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from pgdyno.analysis.distribution import PERCENTILES
from pgdyno.analysis.verdict import dollars, figures
from pgdyno.report import binding, bulk_load, cost, trust
from pgdyno.report.effects import effect_rows, hints
from pgdyno.report.sweep import pivots
from pgdyno.report.words import LISTED_MAX, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary
    from pgdyno.analysis.compare import Comparison

WIDTH = 100
WIDTH_MIN = 40
"""What is narrower than this is a mistake of the terminal; lines wrap there."""
NAME_WIDTH_MAX = 27
"""A longer name of an arm is cut in the table and given whole below it."""

_UNKNOWN = "-"
_COST_TITLES = {
    cost.MONTH: "a month",
    cost.MILLION: "a million",
    cost.EQUAL: "equal, a month",
    cost.MILLION_EQUAL: "equal, a million",
    cost.LOSS: "lost in a year",
    cost.FRONT: "on the front",
}
"""What the figures of an arm's cost are called in few columns; a million are transactions."""


@dataclass(frozen=True)
class _Column:
    title: str
    unit: str
    spare: int = 0
    """Which columns go first on a narrow terminal: those with the largest number; 0 stays."""


_COLUMNS = (
    _Column("volume", ""),
    _Column("TPS", "95 % interval"),
    _Column("QPS", "", 7),
    _Column("p50", "ms", 5),
    _Column("p95", "ms", 6),
    _Column("p99", "ms", 1),
    _Column("IOPS", "", 3),
    _Column("MiB/s", "", 8),
    _Column("queue", "", 7),
    _Column("above", "limit", 4),
    _Column("price", "/month", 2),
    _Column("valid", ""),
)
_QPS_PLACE = 2
"""Statements per second are told of sysbench's tests alone; elsewhere the column is not there."""
_LATENCY_PLACES = (3, 4, 5)
"""Loads have no response times."""


def table(comparison: Comparison, report: Path | None = None, width: int = WIDTH) -> str:
    """The table, the verdict, the warnings and the path of the page as plain text of at most ``width`` columns."""
    width = max(WIDTH_MIN, min(width, WIDTH))
    names = _names(comparison, width)
    keys = [
        f"{name} = {full}"
        for arm, name in zip(comparison.arms, names, strict=True)
        if (full := _full(comparison, arm)) != name
    ]
    of_arms = [
        *_figures(comparison, names, width),
        *(line for key in keys for line in _wrapped(key, width, "", "    ")),
    ]
    listed = comparison.sweep is None or len(comparison.arms) <= LISTED_MAX
    lines = [
        *(of_arms if listed else _pivots(comparison, width)),
        *_effects(comparison, width),
        *_loads(comparison, width),
        *(_cost(comparison, names, width) if listed else ()),
        "",
        *_wrapped(comparison.verdict, width),
        *(line for word, text in binding.lines(comparison) for line in _wrapped(text, width, word)),
        *_remarks(comparison, width),
    ]
    if report is not None:
        lines += ["", f"report: {report}"]
    return "\n".join(lines) + "\n"


def print_table(comparison: Comparison, report: Path | None = None, stream: TextIO | None = None) -> None:
    """Print the table; on a terminal it fits its width, the heading is dim, invalid arms are red, the verdict is bold."""
    stream = stream or sys.stdout
    if not stream.isatty():
        stream.write(table(comparison, report))
        return
    width = _terminal_width(stream)
    text = table(comparison, report, width)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        stream.write(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    verdict = set(_wrapped(comparison.verdict, max(WIDTH_MIN, min(width, WIDTH))))
    for place, line in enumerate(text.splitlines()):
        style = "dim" if place < 3 else "bold" if line in verdict else ""
        style = "red" if line.endswith(" NO") or line.startswith("invalid: ") else style
        style = "yellow" if line.startswith(("warning: ", "unknown: ", "storage only: ")) else style
        console.print(Text(line, style=style))


def _terminal_width(stream: TextIO) -> int:
    """Columns of the terminal; ``COLUMNS`` goes first, as users and tests expect."""
    import shutil

    if os.environ.get("COLUMNS", "").isdigit():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return shutil.get_terminal_size((WIDTH, 24)).columns


def _names(comparison: Comparison, width: int) -> list[str]:
    """Each arm in full where that fits, else its short label, else a number."""
    most = min(NAME_WIDTH_MAX, width // 3)
    many = any(len(arm.label) > most for arm in comparison.arms)
    names = []
    for arm in comparison.arms:
        fits = [name for name in (_full(comparison, arm), arm.label) if len(name) <= most]
        # Either all arms of a factorial have their names or all have numbers: half and half cannot be read.
        numbered = not fits or (many and len(comparison.factors) > 1)
        names.append(f"{_noun(comparison)} {arm.index + 1}" if numbered else fits[0])
    return names


def _full(comparison: Comparison, arm: ArmSummary) -> str:
    """An arm of one factor as the user wrote it; one of several by the names that the effects have."""
    return arm.volume if len(comparison.factors) == 1 else arm.label


def _noun(comparison: Comparison) -> str:
    return "volume" if len(comparison.factors) == 1 and comparison.factors[0].title == "volume" else "arm"


def _figures(comparison: Comparison, names: Sequence[str], width: int) -> list[str]:
    """The table itself: without the interval, then without columns, until it is narrow enough."""
    for interval in (True, False):
        rows = [[column.title for column in _COLUMNS], [column.unit for column in _COLUMNS]]
        rows[0][:2] = _noun(comparison), comparison.unit.short
        rows[1][1] = rows[1][1] if interval else ""
        rows += [_row(arm, name, interval) for arm, name in zip(comparison.arms, names, strict=True)]
        told = any(arm.qps is not None for arm in comparison.arms)
        timed = any(arm.latency_ms.total for arm in comparison.arms)
        left_out = set(() if told else (_QPS_PLACE,)) | set(() if timed else _LATENCY_PLACES)
        places = [place for place in range(len(_COLUMNS)) if place not in left_out]
        # A little narrower than wide is worth a few columns; much narrower costs the interval first.
        while len(places) > (7 if interval else 3) and _width(rows, places) > width:
            places.remove(max(places, key=lambda place: _COLUMNS[place].spare))
        if _width(rows, places) <= width:
            break
    widths = {place: max(len(row[place]) for row in rows) for place in places}
    gap = "  " if sum(widths.values()) + 2 * (len(places) - 1) <= width else " "
    lines = [gap.join(_padded(row[place], widths[place], place) for place in places).rstrip() for row in rows]
    lines.insert(2, "-" * max(len(line) for line in lines))
    return lines


def _pivots(comparison: Comparison, width: int) -> list[str]:
    """The raw tables of a sweep; more columns than have room stand below."""
    lines: list[str] = []
    for table in pivots(comparison):
        title = f"{comparison.unit.short}, {table.rows}" + (f" by {table.columns}" if table.columns else "")
        lines += [*([""] if lines else []), *_wrapped(f"{title}: {table.title}" if table.title else title, width)]
        rows = [["", *table.heads], *([name, *cells] for name, cells in table.lines)]
        widths = [max(len(row[place]) for row in rows) + 2 for place in range(len(rows[0]))]
        start = 1
        while start < len(widths):
            end = start + 1
            while end < len(widths) and widths[0] + sum(widths[start : end + 1]) <= width:
                end += 1
            lines += [
                row[0].rjust(widths[0] - 2) + "".join(row[at].rjust(widths[at]) for at in range(start, end))
                for row in rows
            ]
            start = end
    return lines


def _width(rows: Sequence[Sequence[str]], places: Sequence[int]) -> int:
    """Columns that the table needs with single spaces between."""
    return sum(max(len(row[place]) for row in rows) for place in places) + len(places) - 1


def _row(arm: ArmSummary, name: str, interval: bool) -> list[str]:
    latency = arm.latency_ms
    tps = figures(arm.tps.mean)
    if interval and arm.tps.low is not None and arm.tps.high is not None:
        tps += f" ({figures(max(0.0, arm.tps.low))}-{figures(arm.tps.high)})"
    above = arm.above_limit_share
    return [
        name,
        tps,
        _number(None if arm.qps is None else arm.qps.mean),
        *(_number(latency.percentile(percent)) for percent in PERCENTILES),
        _number(arm.data.iops),
        _number(arm.data.mib_per_s),
        _number(arm.data.queue_length),
        _UNKNOWN if above is None else f"{above * 100:.0f} %",
        _UNKNOWN if arm.usd_per_month is None else dollars(arm.usd_per_month),
        "yes" if arm.valid else "NO",
    ]


def _effects(comparison: Comparison, width: int) -> list[str]:
    """The effect of each factor, a line each; indented where it holds at a level of another factor."""
    rows = effect_rows(comparison)
    if not rows:
        return []
    texts = []
    for row in rows:
        pair = f"  with {row.at}" if row.at else f"{row.over} against {row.under}"
        extent = "" if row.estimate is None or row.estimate.low is None else f"({row.extent.replace(' to ', '-')})"
        texts.append((pair, row.ratio, extent, "" if row.verdict in ("more", "fewer") else row.verdict))
    widths = [max(len(text[place]) for text in texts) for place in range(4)]
    lines = ["", f"effect of each factor on {comparison.unit.short}"]
    for pair, ratio, extent, verdict in texts:
        if sum(widths) + 6 <= width:
            lines.append(f"{pair:<{widths[0]}}  {ratio:>{widths[1]}}  {extent:<{widths[2]}}  {verdict}".rstrip())
        else:
            figure = " ".join(part for part in (ratio, extent, verdict) if part)
            lines += _wrapped(f"{pair.strip()}: {figure}", width, "  " if pair.startswith("  ") else "", "    ")
    return lines + [line for hint in hints(comparison) for line in _wrapped(hint, width, "depends: ")]


def _loads(comparison: Comparison, width: int) -> list[str]:
    """What each arm's load took, where loads are what was measured."""
    found = bulk_load.lines(comparison)
    return ["", "the load", *(line for text in found for line in _wrapped(text, width, "", "    "))] if found else []


def _cost(comparison: Comparison, names: Sequence[str], width: int) -> list[str]:
    """Cost and durability, a line for each arm: beside each other where that fits, else as words."""
    found = cost.numbered_rows(comparison)
    if not found:
        return []
    titles = [_COST_TITLES[which] for which, _ in found]
    lines = ["", *_wrapped("cost and durability of the volumes" + _equal_size(comparison), width)]
    every = [["", *titles], *([name, *(row.cells[place] for _, row in found)] for place, name in enumerate(names))]
    cells = [[_UNKNOWN if cell == UNKNOWN else cell for cell in row] for row in every]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return lines + [
            "  ".join(_padded(cell, widths[place], place) for place, cell in enumerate(row)).rstrip() for row in cells
        ]
    for name, *row in cells[1:]:
        words = [f"{title} {cell}" for title, cell in zip(titles, row, strict=True) if cell != _UNKNOWN]
        lines += _wrapped(f"{name}: {', '.join(words)}", width, "", "    ")
    return lines


def _equal_size(comparison: Comparison) -> str:
    """What "equal" means, where arms differ in capacity."""
    one = comparison.costs[comparison.arms[0].index]
    differ = any(each.size_bytes != each.equal_size_bytes for each in comparison.costs.values())
    return f" (equal: at {cost.gib(one.equal_size_bytes)})" if differ and one.equal_size_bytes is not None else ""


def _number(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    return "<0.001" if 0 < value < 0.001 else figures(value)


def _padded(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place == 0 else cell.rjust(width)


def _wrapped(text: str, width: int, first: str = "", further: str | None = None) -> list[str]:
    import textwrap

    indent = " " * len(first) if further is None else further
    # Long words are cut only on a terminal too narrow for them: a name that is cut cannot be searched for.
    return textwrap.wrap(first + text, width, subsequent_indent=indent, break_on_hyphens=False)


def _remarks(comparison: Comparison, width: int) -> list[str]:
    label, slowed = trust.storage_only(comparison), trust.dilation(comparison)
    remarks = [
        *(("invalid: ", reason) for reason in trust.why_invalid(comparison)),
        *([("storage only: ", label)] if label else []),
        *([("dilated: ", slowed)] if slowed else []),
        *(("unknown: ", f"{row.what}: {row.why}" if row.why else row.what) for row in trust.unseen(comparison)),
        *(("warning: ", reason) for reason in trust.warnings(comparison)),
    ]
    return [line for word, text in remarks for line in _wrapped(text, width, word)]

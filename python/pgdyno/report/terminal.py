"""The table at the end of a comparison: at most 100 columns, plain text or, on a terminal, with some weight."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from pgdyno.analysis.verdict import dollars, figures

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import ArmSummary, Comparison

WIDTH = 100
NAME_WIDTH_MAX = 27
"""A longer name of an arm is cut in the table and given whole below it."""

_UNKNOWN = "-"


@dataclass(frozen=True)
class _Column:
    title: str
    unit: str


_COLUMNS = (
    _Column("volume", ""),
    _Column("TPS", "95 % interval"),
    _Column("p50", "ms"),
    _Column("p95", "ms"),
    _Column("p99", "ms"),
    _Column("IOPS", ""),
    _Column("MiB/s", ""),
    _Column("queue", ""),
    _Column("above", "limit"),
    _Column("price", "/month"),
    _Column("valid", ""),
)


def table(comparison: Comparison, report: Path | None = None) -> str:
    """The table, the verdict, the warnings and the path of the page as plain text."""
    names = _names(comparison)
    rows = [[column.title for column in _COLUMNS], [column.unit for column in _COLUMNS]]
    rows += [_row(arm, name) for arm, name in zip(comparison.arms, names, strict=True)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else " "
    lines = [
        gap.join(_padded(cell, width, place) for place, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    lines.insert(2, "-" * max(len(line) for line in lines))
    keys = [f"{name} = {arm.volume}" for arm, name in zip(comparison.arms, names, strict=True) if name != arm.volume]
    after = [*keys, "", *_wrapped(comparison.verdict), *_remarks(comparison)]
    if report is not None:
        after += ["", f"report: {report}"]
    return "\n".join([line.rstrip() for line in lines] + after) + "\n"


def print_table(comparison: Comparison, report: Path | None = None, stream: TextIO | None = None) -> None:
    """Print the table; on a terminal the heading is dim, invalid arms are red and the verdict is bold."""
    stream = stream or sys.stdout
    text = table(comparison, report)
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        stream.write(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    verdict = set(_wrapped(comparison.verdict))
    for place, line in enumerate(text.splitlines()):
        style = "dim" if place < 3 else "bold" if line in verdict else ""
        style = "red" if line.endswith("  NO") or line.startswith("invalid: ") else style
        style = "yellow" if line.startswith("warning: ") else style
        console.print(Text(line, style=style))


def _names(comparison: Comparison) -> list[str]:
    """Each arm as the user wrote it where that fits, else its short label, else a number."""
    names = []
    for arm in comparison.arms:
        fits = [name for name in (arm.volume, arm.label) if len(name) <= NAME_WIDTH_MAX]
        names.append(fits[0] if fits else f"volume {arm.index + 1}")
    return names


def _row(arm: ArmSummary, name: str) -> list[str]:
    latency = arm.latency_ms
    tps = figures(arm.tps.mean)
    if arm.tps.low is not None and arm.tps.high is not None:
        tps += f" ({figures(arm.tps.low)}-{figures(arm.tps.high)})"
    above = max(arm.time_above_limit.values(), default=None)
    return [
        name,
        tps,
        *(_number(latency.percentile(percent)) for percent in (50, 95, 99)),
        _number(arm.iops),
        _number(arm.mib_per_s),
        _number(arm.queue_length),
        _UNKNOWN if above is None else f"{above * 100:.0f} %",
        _UNKNOWN if arm.usd_per_month is None else dollars(arm.usd_per_month),
        "yes" if arm.valid else "NO",
    ]


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else figures(value)


def _padded(cell: str, width: int, place: int) -> str:
    return cell.ljust(width) if place == 0 else cell.rjust(width)


def _wrapped(text: str, first: str = "") -> list[str]:
    import textwrap

    return textwrap.wrap(first + text, WIDTH, subsequent_indent=" " * len(first), break_on_hyphens=False)


def _remarks(comparison: Comparison) -> list[str]:
    lines: list[str] = []
    for arm in comparison.arms:
        for word, reasons in (("invalid: ", arm.why_invalid), ("warning: ", arm.warnings)):
            for reason in reasons:
                lines += _wrapped(f"{arm.label}: {reason}", word)
    for text in comparison.unreadable:
        lines += _wrapped(text, "warning: ")
    return lines

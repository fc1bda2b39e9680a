"""The table at the end of an experiment, at most 100 columns wide; and the table of several experiments."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.factors import LABEL_MAX
from pgdyno.analysis.verdict import PAIRED_SENTENCES_MAX
from pgdyno.report.binding import binding_lines
from pgdyno.report.cost import numbered_cost_rows
from pgdyno.report.events import event_lines
from pgdyno.report.queries import query_lines
from pgdyno.report.replay import replay_lines
from pgdyno.report.section import listed
from pgdyno.report.sweep import pivots
from pgdyno.report.tpcc import tpcc_lines

from ..analysis.compare import Several
from ..analysis.statistics import Estimate
from ..base.text import TOO_FEW, UNKNOWN, aligned, gib, number, printable, ratio_interval, times
from . import cost, trust
from .cost import pairs_grid, pairs_section, step_lines
from .events import power_cut_lines
from .filling import bulk_load_lines, filling_lines
from .section import record_of
from .summary import SPARE_FIRST, ArmColumn, arm_columns
from .sweep import dependence_sentences, effect_rows, undilated_lines
from .trust import host_lines
from .volumes import warming_lines

WIDTH = 100
WIDTH_MIN = 40
"""What is narrower than this is a mistake of the terminal; lines wrap there."""
NAME_WIDTH_MAX = LABEL_MAX
"""A longer name of an arm is cut in the table and given whole below it."""

_COST_TITLES = {
    cost.MONTH: "a month",
    cost.MILLION: "a million",
    cost.EQUAL: "equal, a month",
    cost.MILLION_EQUAL: "equal, a million",
    cost.LOSS: "lost in a year",
    cost.FRONT: "on the front",
}
"""What the figures of an arm's cost are called in few columns; a million are transactions."""


def table(comparison: Comparison, report: Path | None = None, width: int = WIDTH) -> str:
    """The recommendation, the table, the verdict, the warnings and the path of the page as plain text of at most ``width`` columns."""
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
    whole = listed(comparison)
    first = trust.given_up(comparison)
    lines = [
        *_wrapped(comparison.recommendation.sentence, width),
        "",
        *((*_wrapped(first, width), "") if first else ()),
        *((*_wrapped(comparison.experiment.title, width), "") if comparison.experiment.title else ()),
        *(of_arms if whole else _pivots(comparison, width)),
        *_effects(comparison, width),
        *_of_kind(comparison, width),
        *_pairs(comparison, names, width),
        *(_cost(comparison, names, width) if whole else ()),
        "",
        *_wrapped(comparison.verdict, width),
        *(line for word, text in binding_lines(comparison) for line in _wrapped(text, width, word)),
        *(line for word, text in step_lines(comparison) for line in _wrapped(text, width, word)),
        *_remarks(comparison, width),
    ]
    if report is not None:
        lines += ["", f"report: {report}"]
    return printable("\n".join(lines) + "\n")


def print_table(comparison: Comparison, report: Path | None = None, stream: IO[str] | None = None) -> None:
    """Print the table on ``stream``, which must take colours; on a terminal it fits its width, the heading is dim, invalid arms are red, the recommendation is bold."""
    stream = stream or sys.stdout
    if not stream.isatty():
        stream.write(table(comparison, report, _terminal_width(stream) if os.environ.get("COLUMNS") else WIDTH))
        return
    width = _terminal_width(stream)
    text = table(comparison, report, width)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        stream.write(text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    bold = set(_wrapped(comparison.recommendation.sentence, max(WIDTH_MIN, min(width, WIDTH))))
    lines = text.splitlines()
    ruled = next((place for place, line in enumerate(lines) if line and not line.strip("-")), -1)
    for place, line in enumerate(lines):
        style = "dim" if ruled - 2 <= place <= ruled else "bold" if line in bold else ""
        style = "red" if line.endswith(" NO") or line.startswith("invalid: ") else style
        style = "yellow" if line.startswith(("warning: ", "unknown: ", "storage only: ")) else style
        console.print(Text(line, style=style))


def _terminal_width(stream: IO[str]) -> int:
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
    if len(comparison.factors) > 1 or comparison.factors[0].title != "volume":
        return "arm"
    return "server" if record_of(comparison).world.existed else "volume"


def _figures(comparison: Comparison, names: Sequence[str], width: int) -> list[str]:
    """The table itself: without the interval, then without columns, until it is narrow enough."""
    for interval in (True, False):
        every = _columns(comparison, names, interval)
        if _width(every) + len(every) - 1 > width:
            every = [column for column in every if column.spare < SPARE_FIRST]
        # A little narrower than wide is worth a few columns; much narrower costs the interval first.
        while len(every) > (7 if interval else 3) and _width(every) > width:
            every.remove(max(every, key=lambda column: column.spare))
        if _width(every) <= width:
            break
    rows = list(zip(*((column.title, column.unit, *column.cells) for column in every), strict=True))
    lines = aligned(rows, gap="  " if _width(every) + len(every) - 1 <= width else " ")
    lines.insert(2, "-" * max(len(line) for line in lines))
    return lines


def _columns(comparison: Comparison, names: Sequence[str], interval: bool) -> list[ArmColumn]:
    arms = comparison.arms
    return [
        ArmColumn(_noun(comparison), "", 0, tuple(names)),
        ArmColumn(
            comparison.metric.short, "95 % interval" if interval else "", 0, tuple(_headline(a, interval) for a in arms)
        ),
        *arm_columns(comparison),
        ArmColumn("valid", "", 0, tuple("yes" if arm.valid else "NO" for arm in arms)),
    ]


def _width(every: Sequence[ArmColumn]) -> int:
    """Columns that the table needs with single spaces between."""
    widest = (max(len(cell) for cell in (column.title, column.unit, *column.cells)) for column in every)
    return sum(widest) + len(every) - 1


def _headline(arm: ArmSummary, interval: bool) -> str:
    low, high = arm.headline.low, arm.headline.high
    if not interval or low is None or high is None:
        return number(arm.headline.mean)
    # An interval down to nothing is one of two runs that differ: it says that, and no more.
    ends = TOO_FEW if low <= 0 < high else f"{number(low)}-{number(high)}"
    return f"{number(arm.headline.mean)} ({ends})"


def _pivots(comparison: Comparison, width: int) -> list[str]:
    """The raw tables of a sweep; more columns than have room stand below."""
    lines: list[str] = []
    for table in pivots(comparison):
        title = f"{comparison.metric.short}, {table.rows}" + (f" by {table.columns}" if table.columns else "")
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


def _effects(comparison: Comparison, width: int) -> list[str]:
    """The effect of each factor, a line each; indented where it holds at a level of another factor."""
    rows = effect_rows(comparison)
    if not rows:
        return []
    texts = []
    for row in rows:
        pair = f"  with {row.at}" if row.at else f"{row.over} against {row.under}"
        extent = "" if row.estimate is None or row.estimate.low is None else f"({row.extent.replace(' to ', '-')})"
        texts.append((pair, row.ratio, extent, "" if row.distinguishable else row.verdict))
    widths = [max(len(text[place]) for text in texts) for place in range(4)]
    lines = ["", f"effect of each factor on {comparison.metric.short}"]
    for pair, ratio, extent, verdict in texts:
        if sum(widths) + 6 <= width:
            lines.append(f"{pair:<{widths[0]}}  {ratio:>{widths[1]}}  {extent:<{widths[2]}}  {verdict}".rstrip())
        else:
            figure = " ".join(part for part in (ratio, extent, verdict) if part)
            lines += _wrapped(f"{pair.strip()}: {figure}", width, "  " if pair.startswith("  ") else "", "    ")
    return lines + [line for hint in dependence_sentences(comparison) for line in _wrapped(hint, width, "depends: ")]


def _of_kind(comparison: Comparison, width: int) -> list[str]:
    """A line for each arm of what its kind of workload has beside the headline, for each event, and for its power cuts."""
    lines: list[str] = []
    for title, item in (
        ("the tables were filled on volumes with their limits", filling_lines(comparison)),
        ("the load", bulk_load_lines(comparison)),
        ("the queries", query_lines(comparison)),
        ("the replay", replay_lines(comparison)),
        ("derived from TPC-C", tpcc_lines(comparison)),
        ("events", event_lines(comparison)),
        ("power cuts", power_cut_lines(comparison)),
        ("at dilation 1, extrapolated", undilated_lines(comparison)),
        ("hosts", host_lines(comparison)),
        ("restored", warming_lines(comparison)),
    ):
        if item:
            lines += ["", title, *(line for text in item for line in _wrapped(text, width, "", "    "))]
    return lines


def _pairs(comparison: Comparison, names: Sequence[str], width: int) -> list[str]:
    """Every arm against every other, of more arms than the verdict has sentences for; omitted where it does not fit."""
    section = pairs_section(comparison)
    if section is None or len(comparison.arms) <= PAIRED_SENTENCES_MAX:
        return []
    grid = pairs_grid(comparison)
    texts = aligned([["", *names], *([name, *row[1:]] for name, row in zip(names, grid.rows, strict=True))])
    return (
        ["", f"times as fast: {_noun(comparison)} of the row against that of the column", *texts]
        if max(map(len, texts)) <= width
        else []
    )


def _cost(comparison: Comparison, names: Sequence[str], width: int) -> list[str]:
    """Cost and durability, a line for each arm: beside each other where that fits, else as words."""
    numbered_rows = numbered_cost_rows(comparison)
    if not numbered_rows:
        return []
    titles = [_COST_TITLES[which] for which, _ in numbered_rows]
    lines = ["", *_wrapped("cost and durability of the volumes" + _equal_size(comparison), width)]
    every = [
        ["", *titles],
        *([name, *(row.cells[place] for _, row in numbered_rows)] for place, name in enumerate(names)),
    ]
    beside = aligned(every)
    if max(map(len, beside)) <= width:
        return lines + beside
    for name, *row in every[1:]:
        words = [f"{title} {cell}" for title, cell in zip(titles, row, strict=True) if cell != UNKNOWN]
        lines += _wrapped(f"{name}: {', '.join(words)}", width, "", "    ")
    return lines


def _equal_size(comparison: Comparison) -> str:
    """Meaning of "equal", where arms differ in capacity."""
    cost = comparison.costs[comparison.arms[0].index]
    differ = any(each.size_bytes != each.equal_size_bytes for each in comparison.costs.values())
    return f" (equal: at {gib(cost.equal_size_bytes)})" if differ and cost.equal_size_bytes is not None else ""


def _wrapped(text: str, width: int, first: str = "", further: str | None = None) -> list[str]:
    import textwrap

    indent = " " * len(first) if further is None else further
    # Long words are cut only on a terminal too narrow for them: a name that is cut cannot be searched for.
    return textwrap.wrap(first + text, width, subsequent_indent=indent, break_on_hyphens=False)


def _remarks(comparison: Comparison, width: int) -> list[str]:
    return [line for word, text in trust.remarks(comparison) for line in _wrapped(text, width, f"{word}: ")]


MEANING = (
    "Improvement over the first arm (more throughput, or less time); intervals are 95 %. The mean over"
    " experiments is geometric and has no interval, because it describes these loads only."
)


def several_lines(several: Several) -> list[str]:
    """The table, and what it means."""
    heads = ("arm", "figure", *several.names, "mean")
    rows = [
        (row.arm, row.figure, *map(_gain, row.gains), UNKNOWN if row.mean is None else times(row.mean))
        for row in several.rows
    ]
    texts = [f"compared with {several.first}:", *aligned([heads, *rows], left=(0, 1)), MEANING]
    return [*texts, *(f"{text} has invalid runs and is left out" for text in several.invalid)]


def _gain(gain: Estimate | None) -> str:
    if gain is None:
        return UNKNOWN
    return times(gain.mean) + ("" if gain.low is None else f" ({ratio_interval(gain.low, gain.high)})")

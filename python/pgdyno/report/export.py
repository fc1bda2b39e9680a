"""A report as text for a wiki (Markdown), as a row for each run (CSV), and its figures as pictures (PNG, SVG)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pgdyno.analysis.arm import ArmSummary, Replicate
from pgdyno.analysis.compare import Comparison
from pgdyno.report import figures, trust
from pgdyno.report.document import command_line
from pgdyno.report.render import write_whole
from pgdyno.report.section import Grid, Heading, Matrix, Part, Sentences
from pgdyno.report.sections import drawings, sections
from pgdyno.report.theme import LIGHT, PAPER, png_of, svg_of

from ..base import owner
from ..base.errors import HostError, PgdynoError
from ..base.text import printable
from .section import FigureRow

PICTURE_WIDTH_PX = 760
"""Width of a picture: a column of a document; a PNG has twice as many pixels."""


def markdown(comparison: Comparison) -> str:
    """The recommendation, the verdict, the reasons against it, and the tables, in GitHub's Markdown."""
    title, recommendation = comparison.experiment.title, comparison.recommendation
    first = trust.given_up(comparison)
    lines = [f"# {_plain(recommendation.lead)}", ""]
    lines += [_plain(recommendation.details), ""] if recommendation.details else []
    lines += [f"**{_plain(first)}**", ""] if first else []
    lines += [f"*{_plain(title)}*", ""] if title else []
    lines += [_plain(comparison.verdict), ""]
    lines += [f"- **{word}**: {_plain(text)}" for word, text in trust.remarks(comparison)]
    for section in sections(comparison):
        if section.brief:
            lines += ["", f"## {section.title}", *(line for part in section.parts for line in _part(comparison, part))]
    return printable("\n".join([*lines, "", "## Again", "", "```console", f"$ {command_line(comparison)}", "```", ""]))


def _part(comparison: Comparison, part: Part) -> list[str]:
    """A part of a section; its drawings and notes stay on the page."""
    if isinstance(part, Matrix):
        return ["", *_of_arms(comparison.arms, part.rows if part.short is None else part.short)]
    if isinstance(part, Grid):
        return ["", *_table(part.heads, part.rows)]
    if isinstance(part, Heading):
        return ["", f"{'#' * part.level} {_plain(part.text)}"]
    if isinstance(part, Sentences):
        return ["", *(f"- {_plain(text)}" for text in part.texts)]
    return []


def runs_csv(comparison: Comparison) -> str:
    """A row for each run: its levels, its figures, and whether it is valid. A figure that was not recorded is empty."""
    text = io.StringIO()
    names = [factor.name for factor in comparison.factors]
    writer = csv.DictWriter(
        text,
        [*_LEADING, *names, comparison.metric.name, *comparison.figures, "usd_per_month", "valid"],
        lineterminator="\n",
    )
    writer.writeheader()
    for arm in comparison.arms:
        levels = {
            factor.name: factor.levels[level] for factor, level in zip(comparison.factors, arm.levels, strict=True)
        }
        for replicate in arm.replicates:
            writer.writerow({**levels, **_run(comparison, arm, replicate)})
    return text.getvalue()


def pictures(comparison: Comparison, folder: Path, kind: str) -> list[Path]:
    """Every figure of the page as a ``png`` or an ``svg`` in a folder, which is made; the files' names are the figures'.

    :class:`HostError` when they cannot be written; of one that cannot be drawn :class:`PgdynoError`, when the others are there.
    """
    try:
        owner.make_directories(folder)
    except OSError as error:
        raise HostError(
            f"{folder} cannot be made: {error.strerror}", remedy="name another folder with --output"
        ) from error
    made, failed = [], list[PgdynoError]()
    with figures.unchecked():
        for drawing in drawings(comparison):
            drawn = drawing.make(PICTURE_WIDTH_PX, PAPER)
            path = folder / f"{drawing.name}.{kind}"
            try:
                content = (
                    png_of(drawn, LIGHT["panel"])
                    if kind == "png"
                    else _alone(svg_of(drawn, drawing.name, drawing.alternative)).encode()
                )
            except PgdynoError as error:
                failed.append(error)
                continue
            write_whole(path, content)
            made.append(path)
    if failed:
        raise failed[0]
    return made


_LEADING = ("experiment", "run", "arm", "replicate", "position")


def _run(comparison: Comparison, arm: ArmSummary, replicate: Replicate) -> dict[str, Any]:
    record = replicate.figures.record
    return {
        "experiment": record.experiment_id,
        "run": record.run_id,
        "arm": arm.volume,
        "replicate": record.block,
        "position": record.position,
        arm.metric.name: _number(replicate.headline),
        **{name: _number(line.metric.of(replicate.figures)) for name, line in comparison.figures.items()},
        "usd_per_month": _number(arm.usd_per_month),
        "valid": "yes" if replicate.valid else "no",
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _of_arms(arms: Sequence[ArmSummary], rows: Sequence[FigureRow]) -> list[str]:
    """Rows of figures with an arm a line."""
    return _table(
        ["arm", *(row.title for row in rows)],
        [[arm.label, *(row.cells[place] for row in rows)] for place, arm in enumerate(arms)],
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return [f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines]


def _plain(text: str) -> str:
    """Text that Markdown takes as it is."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _alone(drawn: str) -> str:
    """A drawing that was made for a page as a file of its own."""
    return drawn.replace(
        "<svg", '<svg xmlns="http://www.w3.org/2000/svg" font-family="Liberation Sans, Arial, sans-serif"', 1
    )

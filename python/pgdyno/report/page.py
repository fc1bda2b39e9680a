"""The report: one HTML file that needs nothing else, and a PNG of its main figure.

The page holds no script and asks for nothing over the network. Every figure is drawn three times (wide, medium, phone)
because text in a drawing that is scaled down cannot be read; the style sheet shows the one that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.analysis.compare import Comparison
from pgdyno.report.document import command_line
from pgdyno.report.render import drawing, moment, rendered, write_whole
from pgdyno.report.section import Drawing, listed, many
from pgdyno.report.sections import sections
from pgdyno.report.theme import LIGHT, PAPER, png_of

from ..base.errors import InputError, PgdynoError
from . import configuration, figures, trust
from .configuration import page_title
from .section import colour_index

PNG_WIDTH_PX = 760


@dataclass(frozen=True)
class ReportFiles:
    """Files that were written."""

    page: Path
    """The HTML page."""
    figure: Path | None
    """PNG of the main figure: the headline with error bars; None where it cannot be drawn, as the page says."""


def write_report(comparison: Comparison, output: Path) -> ReportFiles:
    """Write the page to ``output`` and its main figure beside it with the suffix ``.png``; both replace what was there.

    Raises :class:`InputError` for a folder and when both would be one file, :class:`OutputError` when they cannot be written.
    """
    if not output.name:  # `.` and `/`
        raise InputError(f"{output} is a folder, and the page is a file", remedy="name the page FILE.html")
    if output.exists() and not (output.is_file() or output.is_dir()):
        raise InputError(
            f"{output} is not a file, and the page's figure is written beside it", remedy="name the page FILE.html"
        )
    figure = output.with_suffix(".png")
    if figure == output:
        raise InputError(
            f"{output} would be the page and its figure at once",
            remedy="name the page FILE.html, or take --format png with a folder as --output",
        )
    with figures.unchecked():
        write_whole(output, html(comparison).encode())
        try:
            drawn = png_of(main_figure(comparison, PNG_WIDTH_PX), LIGHT["panel"])
        except PgdynoError:  # the page has a note in the place of the same figure
            figure.unlink(missing_ok=True)
            return ReportFiles(output, None)
    write_whole(figure, drawn)
    return ReportFiles(output, figure)


def main_figure(comparison: Comparison, width_px: int) -> dict[str, Any]:
    """The headline with error bars on paper; of a sweep with more arms than a page has rows for, bars grouped by its first axis."""
    if comparison.sweep is None or listed(comparison):
        return figures.headline(comparison.arms, width_px, PAPER)
    return figures.bars(comparison.sweep, comparison.arms, width_px, PAPER)


def html(comparison: Comparison) -> str:
    """The page as text."""
    arms = comparison.arms
    with figures.unchecked():
        result = sections(comparison)
        drawn = {part.name: drawing(part.name, part.alternative, part.make)
                 for section in result for part in section.parts if isinstance(part, Drawing)}  # fmt: skip
    return rendered(
        "page.html",
        comparison=comparison,
        recommendation=comparison.recommendation,
        experiment=comparison.experiment,
        moment=moment(comparison.experiment.created_unix_ns),
        title=page_title(comparison),
        context=configuration.context_line(comparison),
        sections=result,
        drawn=drawn,
        arms=arms,
        many=many(comparison),
        factors=[factor for factor in comparison.factors if len(factor.levels) > 1],
        places=[place for place, factor in enumerate(comparison.factors) if len(factor.levels) > 1],
        colour={arm.index: colour_index(arm.levels, arm.index, len(arms)) for arm in arms},
        command=command_line(comparison),
        trust=trust,
    )

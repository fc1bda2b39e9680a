"""The report: one HTML file that needs nothing else, and a PNG of its main figure.

The page holds no script and asks for nothing over the network. Every figure is drawn three times (wide, medium, phone)
because text in a drawing that is scaled down cannot be read; the style sheet shows the one that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.series import Series, series_of
from pgdyno.analysis.volume_figures import DATA
from pgdyno.errors import InputError
from pgdyno.report import (
    asked,
    binding,
    bulk_load,
    cost,
    effects,
    figures,
    loading,
    summary,
    sweep,
    transactions,
    trust,
    waits,
)
from pgdyno.report.document import command_line
from pgdyno.report.render import WIDTHS_PX, drawing, moment, rendered, write_whole
from pgdyno.report.theme import LIGHT, PAPER, Theme, png_of
from pgdyno.report.words import COLUMNS_MAX, LISTED_MAX, colour_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.distribution import Distribution

__all__ = ["WIDTHS_PX", "ReportFiles", "html", "listed", "main_figure", "paper_figures", "write_report"]

PNG_WIDTH_PX = 760
LINES_MAX = 24
"""Above so many runs only each arm's representative is drawn over time: thin lines would hide it."""


@dataclass(frozen=True)
class ReportFiles:
    """What was written."""

    page: Path
    """The HTML page."""
    figure: Path
    """PNG of the main figure: TPS with error bars."""


def write_report(comparison: Comparison, output: Path) -> ReportFiles:
    """Write the page to ``output`` and its main figure beside it with the suffix ``.png``; both replace what was there.

    Raises :class:`InputError` for a folder and when both would be one file, :class:`HostError` when they cannot be written.
    """
    if not output.name:  # `.` and `/`
        raise InputError(f"{output} is a folder, and the page is a file", remedy="name the page FILE.html")
    figure = output.with_suffix(".png")
    if figure == output:
        raise InputError(
            f"{output} would be the page and its figure at once",
            remedy="name the page FILE.html, or take --format png with a folder as --output",
        )
    write_whole(output, html(comparison).encode())
    with figures.unchecked():
        paper = main_figure(comparison, PNG_WIDTH_PX)
    write_whole(figure, png_of(paper, LIGHT["panel"]))
    return ReportFiles(output, figure)


def main_figure(comparison: Comparison, width_px: int) -> dict[str, Any]:
    """TPS with error bars on paper; of a sweep with more arms than a page has rows for, bars grouped by its first axis."""
    if comparison.sweep is None or listed(comparison):
        return figures.tps(comparison.arms, width_px, PAPER)
    return figures.bars(comparison.sweep, comparison.arms, width_px, PAPER)


def listed(comparison: Comparison) -> bool:
    """Whether each arm has a row or a panel of its own; the arms of a larger sweep are drawn along its axes alone."""
    return comparison.sweep is None or len(comparison.arms) <= LISTED_MAX


def html(comparison: Comparison) -> str:
    """The page as text."""
    different, default = asked.settings(comparison)
    with figures.unchecked():
        drawings = _drawings(comparison)
    arms = comparison.arms
    return rendered(
        "page.html",
        comparison=comparison,
        experiment=comparison.experiment,
        moment=moment(comparison.experiment.created_unix_ns),
        arms=arms,
        many=len(arms) > COLUMNS_MAX,
        listed=listed(comparison),
        factors=[factor for factor in comparison.factors if len(factor.levels) > 1],
        places=[place for place, factor in enumerate(comparison.factors) if len(factor.levels) > 1],
        colour={arm.index: colour_index(arm.levels, arm.index, len(arms)) for arm in arms},
        command=command_line(comparison),
        asked=asked,
        binding=binding,
        bulk_load=bulk_load,
        cost=cost,
        effects=effects,
        loading=loading,
        summary=summary,
        sweep=sweep,
        transactions=transactions,
        trust=trust,
        waits=waits,
        workload=arms[0].replicates[0].figures.record.workload,
        different=different,
        default=default,
        drawings=drawings,
        roles=figures.roles(comparison.arms),
    )


def _drawings(comparison: Comparison) -> dict[str, Any]:
    """Name of a figure -> its drawings as HTML; a figure without data is absent."""
    lines = _lines(comparison) if listed(comparison) else []
    makers = _makers(comparison, lines)
    drawn: dict[str, Any] = {name: drawing(name, title, make) for name, (title, make) in makers.items()}
    drawn["requests"] = {name.partition("-")[2]: drawn[name] for name in makers if name.startswith("requests-")}
    drawn["sweep"] = [
        {
            "name": one.name,
            "title": one.title,
            "caption": one.caption,
            "drawing": drawing(one.name, one.alternative, one.make),
        }
        for one in sweep.figures_of(comparison)
    ]
    bin_seconds = max((series.bin_seconds for _, _, series in lines), default=1.0)
    counted = [series.checkpoints for _, _, series in lines if series.checkpoints is not None]
    return {**drawn, "bin_seconds": bin_seconds, "checkpoints": any(counted), "checkpoints_counted": bool(counted)}


Makers = dict[str, tuple[str, "Callable[[int, Theme], dict[str, Any]]"]]
"""Name of a figure -> what a screen reader calls it, and what draws it at a width."""


def paper_figures(comparison: Comparison) -> Makers:
    """Every figure of the page, for drawing it elsewhere."""
    lines = _lines(comparison) if listed(comparison) else []
    of_sweep = {one.name: (one.alternative, one.make) for one in sweep.figures_of(comparison)}
    return _makers(comparison, lines) | of_sweep


def _makers(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    return _effects(comparison) | (_of_arms(comparison, lines) if lines else {}) | _of_loads(comparison)


def _of_loads(comparison: Comparison) -> Makers:
    loads = comparison.loads
    if not any(volume.course for one in loads for volume in one.volumes):
        return {}
    draw = partial(figures.loading, loads)
    return {"loading": ("What volumes wrote during each load", draw)}


def _of_arms(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    """What has a row, a line or a panel for each arm."""
    arms = comparison.arms
    makers: Makers = {
        "tps": (
            f"{comparison.unit.per_second.capitalize()} of each arm",
            lambda width, theme: figures.tps(arms, width, theme),
        ),
        **(_for_many(comparison, lines) if len(arms) > COLUMNS_MAX else _for_few(comparison, lines)),
    }
    if any(arm.waits for arm in arms):
        makers["waits"] = ("What sessions waited for", lambda width, theme: figures.waits(arms, width, theme))
    if any(arm.cpu_share for arm in arms):
        makers["cpu"] = ("CPU time by role", lambda width, theme: figures.cpu(arms, width, theme))
    return makers


def _effects(comparison: Comparison) -> Makers:
    rows = effects.effect_rows(comparison)
    if not any(row.estimate is not None for row in rows):
        return {}
    return {
        "effects": ("Effect of each factor", lambda width, theme: figures.effects(rows, comparison.arms, width, theme))
    }


def _for_few(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    """Lines of all arms in one figure."""
    arms = comparison.arms
    makers: Makers = {
        "timeline": ("Course of each run", lambda width, theme: figures.timeline(lines, arms, width, theme))
    }
    responses = _response_curves(comparison)
    if any(figures.percentile_points(curve[1]) for curve in responses):
        makers["response"] = (
            "Response time by percentile",
            lambda width, theme: figures.percentiles(responses, arms, width, theme),
        )
    for role in dict.fromkeys(role for arm in arms for role in arm.volumes):
        requests = _volume_curves(comparison, role)
        if any(figures.percentile_points(curve[1]) for curve in requests):
            makers[f"requests-{role}"] = (
                f"Latency of the {role} volume's requests by percentile",
                partial(figures.percentiles, requests, arms),
            )
    return makers


def _for_many(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    """A row or a panel for each arm, where the lines of one figure could not be told apart."""
    arms = comparison.arms
    makers: Makers = {
        "timeline": ("Course of each arm", lambda width, theme: figures.courses(lines, arms, width, theme))
    }
    rows = [(arm.index, arm.label, arm.latency_ms) for arm in arms]
    if any(figures.percentile_points(distribution) for _, _, distribution in rows):
        makers["response"] = (
            "Response time of each arm", lambda width, theme: figures.percentile_dots(rows, arms, width, theme),
        )  # fmt: skip
    return makers


def _lines(comparison: Comparison) -> list[tuple[int, bool, Series]]:
    several = sum(len(arm.replicates) for arm in comparison.arms) <= LINES_MAX
    return [
        (arm.index, replicate is arm.representative, series_of(replicate.figures.run))
        for arm in comparison.arms
        for replicate in arm.replicates
        if several or replicate is arm.representative
    ]


def _response_curves(comparison: Comparison) -> list[tuple[int, Distribution, str]]:
    thin = [(arm.index, r.figures.latency_ms, "thin") for arm in comparison.arms for r in arm.replicates]
    return [*thin, *((arm.index, arm.latency_ms, "main") for arm in comparison.arms)]


def _volume_curves(comparison: Comparison, role: str = DATA) -> list[tuple[int, Distribution, str]]:
    having = [(arm.index, arm.volumes[role]) for arm in comparison.arms if role in arm.volumes]
    reads = [(index, volume.read_ms, "main") for index, volume in having]
    return [*reads, *((index, volume.write_ms, "dashed") for index, volume in having)]

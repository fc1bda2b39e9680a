"""The report: one HTML file that needs nothing else, and a PNG of its main figure.

The page holds no script and asks for nothing over the network. Every figure is drawn three times (wide, medium, phone)
because text in a drawing that is scaled down cannot be read; the style sheet shows the one that fits.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.series import Series, series_of
from pgdyno.errors import HostError
from pgdyno.report import facts, figures
from pgdyno.report.document import command_line
from pgdyno.report.theme import DARK, LIGHT, PAGE, PAPER, colour_classes, custom_properties, png_of, svg_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pgdyno.analysis.compare import Comparison
    from pgdyno.analysis.distribution import Distribution

WIDTHS_PX = {"wide": 1000, "medium": 640, "narrow": 342}
"""Widths that each figure is drawn for: a desktop, a tablet, and a phone of 390 px less its margins."""
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

    Raises :class:`HostError` when they cannot be written.
    """
    figure = output.with_suffix(".png")
    paper = {**figures.tps(comparison.arms, PNG_WIDTH_PX, PAPER)}
    _write(output, html(comparison).encode())
    _write(figure, png_of(paper, LIGHT["panel"]))
    return ReportFiles(output, figure)


def html(comparison: Comparison) -> str:
    """The page as text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pgdyno.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    different, default = facts.settings(comparison)
    style, _, _ = environment.loader.get_source(environment, "page.css") if environment.loader else ("", None, None)
    return environment.get_template("page.html").render(
        comparison=comparison,
        experiment=comparison.experiment,
        moment=_moment(comparison.experiment.created_unix_ns),
        arms=comparison.arms,
        command=command_line(comparison),
        facts=facts,
        different=different,
        default=default,
        drawings=_drawings(comparison),
        light=custom_properties(LIGHT),
        dark=custom_properties(DARK),
        style=f"{colour_classes()}\n{style}",
        roles=figures.ROLES,
    )


def _drawings(comparison: Comparison) -> dict[str, Any]:
    """Name of a figure -> its drawings as HTML; a figure without data is absent."""
    arms = comparison.arms
    lines = _lines(comparison)
    bin_seconds = max(series.bin_seconds for _, _, series in lines)
    makers: dict[str, tuple[str, Callable[[int], dict[str, Any]]]] = {
        "tps": ("Transactions per second of each volume", lambda width: figures.tps(arms, width, PAGE)),
        "timeline": ("Course of each run", lambda width: figures.timeline(lines, arms, width, PAGE)),
    }
    responses = _response_curves(comparison)
    if any(figures.percentile_points(curve[1]) for curve in responses):
        makers["response"] = (
            "Response time by percentile",
            lambda width: figures.percentiles(responses, arms, width, PAGE),
        )
    requests = _volume_curves(comparison)
    if any(figures.percentile_points(curve[1]) for curve in requests):
        makers["requests"] = (
            "Latency of the volume's requests by percentile",
            lambda width: figures.percentiles(requests, arms, width, PAGE),
        )
    if any(arm.cpu_share for arm in arms):
        makers["cpu"] = ("CPU time by role", lambda width: figures.cpu(arms, width, PAGE))
    drawn: dict[str, Any] = {name: _drawing(name, title, make) for name, (title, make) in makers.items()}
    return {**drawn, "bin_seconds": bin_seconds, "checkpoints": any(series.checkpoints for _, _, series in lines)}


def _drawing(name: str, title: str, make: Callable[[int], dict[str, Any]]) -> Any:
    """The figure at each width. What users wrote is text inside the drawing, where the renderer escaped it."""
    import markupsafe

    parts = [
        f'<div class="drawing {size}">{svg_of(make(width), f"{name}-{size}", title)}</div>'
        for size, width in WIDTHS_PX.items()
    ]
    return markupsafe.Markup("".join(parts))  # noqa: S704 (drawn by vl_convert, which escapes text)


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


def _volume_curves(comparison: Comparison) -> list[tuple[int, Distribution, str]]:
    reads = [(arm.index, arm.read_ms, "main") for arm in comparison.arms]
    return [*reads, *((arm.index, arm.write_ms, "dashed") for arm in comparison.arms)]


def _moment(unix_ns: int) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_ns // 1_000_000_000))


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(partial).chmod(0o644)
            Path(partial).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(partial).unlink()
            raise
    except OSError as error:
        raise HostError(
            f"{path} cannot be written: {error.strerror}", remedy="name another file with --output"
        ) from error

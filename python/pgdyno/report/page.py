"""The report: one HTML file that needs nothing else, and a PNG of its main figure.

The page holds no script and asks for nothing over the network. Every figure is drawn three times (wide, medium, phone)
because text in a drawing that is scaled down cannot be read; the style sheet shows the one that fits.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.series import Series, series_of
from pgdyno.analysis.volume_figures import DATA
from pgdyno.errors import HostError
from pgdyno.report import asked, binding, cost, effects, figures, summary, transactions, trust, waits
from pgdyno.report.document import command_line
from pgdyno.report.theme import DARK, LIGHT, PAGE, PAPER, colour_classes, custom_properties, png_of, svg_of
from pgdyno.report.words import COLUMNS_MAX, colour_index

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
    different, default = asked.settings(comparison)
    arms = comparison.arms
    style, _, _ = environment.loader.get_source(environment, "page.css") if environment.loader else ("", None, None)
    return environment.get_template("page.html").render(
        comparison=comparison,
        experiment=comparison.experiment,
        moment=_moment(comparison.experiment.created_unix_ns),
        arms=arms,
        many=len(arms) > COLUMNS_MAX,
        factors=[factor for factor in comparison.factors if len(factor.levels) > 1],
        places=[place for place, factor in enumerate(comparison.factors) if len(factor.levels) > 1],
        colour={arm.index: colour_index(arm.levels, arm.index, len(arms)) for arm in arms},
        command=command_line(comparison),
        asked=asked,
        binding=binding,
        cost=cost,
        effects=effects,
        summary=summary,
        transactions=transactions,
        trust=trust,
        waits=waits,
        workload=arms[0].replicates[0].figures.record.workload,
        different=different,
        default=default,
        drawings=_drawings(comparison),
        light=custom_properties(LIGHT),
        dark=custom_properties(DARK),
        style=f"{colour_classes()}\n{style}",
        roles=figures.roles(comparison.arms),
    )


def _drawings(comparison: Comparison) -> dict[str, Any]:
    """Name of a figure -> its drawings as HTML; a figure without data is absent."""
    arms = comparison.arms
    lines = _lines(comparison)
    makers = {
        "tps": ("Transactions per second of each arm", lambda width: figures.tps(arms, width, PAGE)),
        **_effects(comparison),
        **(_for_many(comparison, lines) if len(arms) > COLUMNS_MAX else _for_few(comparison, lines)),
    }
    if any(arm.waits for arm in arms):
        makers["waits"] = ("What sessions waited for", lambda width: figures.waits(arms, width, PAGE))
    if any(arm.cpu_share for arm in arms):
        makers["cpu"] = ("CPU time by role", lambda width: figures.cpu(arms, width, PAGE))
    drawn: dict[str, Any] = {name: _drawing(name, title, make) for name, (title, make) in makers.items()}
    drawn["requests"] = {name.partition("-")[2]: drawn[name] for name in makers if name.startswith("requests-")}
    bin_seconds = max(series.bin_seconds for _, _, series in lines)
    return {**drawn, "bin_seconds": bin_seconds, "checkpoints": any(series.checkpoints for _, _, series in lines)}


Makers = dict[str, tuple[str, "Callable[[int], dict[str, Any]]"]]
"""Name of a figure -> what a screen reader calls it, and what draws it at a width."""


def _effects(comparison: Comparison) -> Makers:
    rows = effects.effect_rows(comparison)
    if not any(row.estimate is not None for row in rows):
        return {}
    return {"effects": ("Effect of each factor", lambda width: figures.effects(rows, comparison.arms, width, PAGE))}


def _for_few(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    """Lines of all arms in one figure."""
    arms = comparison.arms
    makers: Makers = {"timeline": ("Course of each run", lambda width: figures.timeline(lines, arms, width, PAGE))}
    responses = _response_curves(comparison)
    if any(figures.percentile_points(curve[1]) for curve in responses):
        makers["response"] = (
            "Response time by percentile",
            lambda width: figures.percentiles(responses, arms, width, PAGE),
        )
    for role in dict.fromkeys(role for arm in arms for role in arm.volumes):
        requests = _volume_curves(comparison, role)
        if any(figures.percentile_points(curve[1]) for curve in requests):
            makers[f"requests-{role}"] = (
                f"Latency of the {role} volume's requests by percentile",
                partial(figures.percentiles, requests, arms, theme=PAGE),
            )
    return makers


def _for_many(comparison: Comparison, lines: list[tuple[int, bool, Series]]) -> Makers:
    """A row or a panel for each arm, where the lines of one figure could not be told apart."""
    arms = comparison.arms
    makers: Makers = {"timeline": ("Course of each arm", lambda width: figures.courses(lines, arms, width, PAGE))}
    rows = [(arm.index, arm.label, arm.latency_ms) for arm in arms]
    if any(figures.percentile_points(distribution) for _, _, distribution in rows):
        makers["response"] = (
            "Response time of each arm", lambda width: figures.percentile_dots(rows, arms, width, PAGE),
        )  # fmt: skip
    return makers


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


def _volume_curves(comparison: Comparison, role: str = DATA) -> list[tuple[int, Distribution, str]]:
    having = [(arm.index, arm.volumes[role]) for arm in comparison.arms if role in arm.volumes]
    reads = [(index, volume.read_ms, "main") for index, volume in having]
    return [*reads, *((index, volume.write_ms, "dashed") for index, volume in having)]


def _moment(unix_ns: int) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_ns // 1_000_000_000))


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    try:
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).chmod(0o644)
            Path(unfinished).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(unfinished).unlink()
            raise
    except OSError as error:
        raise HostError(
            f"{path} cannot be written: {error.strerror}", remedy="name another file with --output"
        ) from error

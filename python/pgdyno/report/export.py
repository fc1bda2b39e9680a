"""A report as text for a wiki (Markdown), as a row for each run (CSV), and its figures as pictures (PNG, SVG)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.distribution import PERCENTILES
from pgdyno.errors import HostError
from pgdyno.report import bulk_load, cost, figures, summary, sweep, trust
from pgdyno.report.document import command_line
from pgdyno.report.effects import effect_rows
from pgdyno.report.page import paper_figures
from pgdyno.report.render import write_whole
from pgdyno.report.theme import LIGHT, PAPER, png_of, svg_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pgdyno.analysis.arm import ArmSummary, Replicate
    from pgdyno.analysis.compare import Comparison
    from pgdyno.report.words import Row

PICTURE_WIDTH_PX = 760
"""Of a picture: a column of a document; a PNG has twice as many pixels."""


def markdown(comparison: Comparison) -> str:
    """The verdict, what speaks against it, and the tables, in GitHub's Markdown."""
    parts = [f"# {_plain(comparison.verdict)}", ""]
    parts += [f"- **{word}**: {_plain(text)}" for word, text in _remarks(comparison)]
    parts += ["", "## Arms", "", *_of_arms(comparison.arms, summary.brief(comparison))]
    rows = effect_rows(comparison)
    if rows:
        told = [[f"{row.over} against {row.under}", row.at, row.ratio, row.extent, row.verdict] for row in rows]
        parts += [
            "",
            f"## Effect of each factor on {comparison.unit.short}",
            "",
            *_table(["effect", "with", "ratio", "95 % interval", ""], told),
        ]
    if loads := bulk_load.rows(comparison):
        parts += ["", "## The load", "", *_of_arms(comparison.arms, loads)]
    for table in sweep.pivots(comparison):
        head = " \\ ".join(part for part in (table.rows, table.columns) if part)
        title = f": {table.title}" if table.title else ""
        parts += ["", f"## {comparison.unit.per_second.capitalize()}{title}", ""]
        parts += _table([head, *table.heads], [[name, *cells] for name, cells in table.lines])
    sentences = sweep.law_sentences(comparison)
    parts += ["", *(f"- {_plain(sentence)}" for sentence in sentences)] if sentences else []
    prices = cost.rows(comparison)
    if prices:
        parts += ["", "## Cost and durability", "", *_of_arms(comparison.arms, prices)]
    parts += ["", "## Again", "", "```console", f"$ {command_line(comparison)}", "```", ""]
    return "\n".join(parts)


def runs_csv(comparison: Comparison) -> str:
    """A row for each run: its levels, its figures, and whether it is valid. A figure that was not recorded is empty."""
    text = io.StringIO()
    names = [factor.name for factor in comparison.factors]
    writer = csv.DictWriter(text, [*_LEADING, *names, *_FIGURES], lineterminator="\n")
    writer.writeheader()
    for arm in comparison.arms:
        levels = {
            factor.name: factor.levels[level] for factor, level in zip(comparison.factors, arm.levels, strict=True)
        }
        for replicate in arm.replicates:
            writer.writerow({**levels, **_run(arm, replicate)})
    return text.getvalue()


def pictures(comparison: Comparison, folder: Path, kind: str) -> list[Path]:
    """Every figure of the page as a ``png`` or an ``svg`` in a folder, which is made; the files' names are the figures'.

    :class:`HostError` when they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"{folder} cannot be made: {error.strerror}", remedy="name another folder with --output"
        ) from error
    made = []
    with figures.unchecked():
        for name, (title, make) in paper_figures(comparison).items():
            drawn = make(PICTURE_WIDTH_PX, PAPER)
            path = folder / f"{name}.{kind}"
            content = png_of(drawn, LIGHT["panel"]) if kind == "png" else _alone(svg_of(drawn, name, title)).encode()
            write_whole(path, content)
            made.append(path)
    return made


_LEADING = ("experiment", "run", "arm", "replicate", "position")
_FIGURES = (
    "tps", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "iops", "mib_per_s", "queue_length", "usd_per_month", "valid",
)  # fmt: skip


def _run(arm: ArmSummary, replicate: Replicate) -> dict[str, Any]:
    found, record = replicate.figures, replicate.figures.record
    return {
        "experiment": record.experiment_id,
        "run": record.run_id,
        "arm": arm.volume,
        "replicate": record.block,
        "position": record.position,
        "tps": _number(found.tps),
        **{f"latency_ms_p{percent}": _number(found.latency_ms.percentile(percent)) for percent in PERCENTILES},
        "iops": _number(found.data.iops),
        "mib_per_s": _number(found.data.mib_per_s),
        "queue_length": _number(found.data.queue_length),
        "usd_per_month": _number(arm.usd_per_month),
        "valid": "yes" if replicate.valid else "no",
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _remarks(comparison: Comparison) -> list[tuple[str, str]]:
    label, slowed = trust.storage_only(comparison), trust.dilation(comparison)
    return [
        *(("invalid", reason) for reason in trust.why_invalid(comparison)),
        *([("storage only", label)] if label else []),
        *([("dilated", slowed)] if slowed else []),
        *(("unknown", f"{row.what}: {row.why}" if row.why else row.what) for row in trust.unseen(comparison)),
        *(("warning", reason) for reason in trust.warnings(comparison)),
    ]


def _of_arms(arms: Sequence[ArmSummary], rows: Sequence[Row]) -> list[str]:
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

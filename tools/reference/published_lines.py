"""``docs/picture/published-NAME-1.svg``: the charts of the published documents, there and here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.published.chart_drawing import ARM_COLOURS, chart_svg
from pgdyno.published.judge import ChartResult, DocumentResult
from tools.reference.colours import schemes

NAMES = ("panel", "quiet", "line", *(f"arm{place}" for place in range(ARM_COLOURS)))
FONT = '\ntext { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }\n'
GROUND = '<rect x="0.5" y="0.5" width="99.8%" height="99.8%" rx="8" fill="var(--panel)" stroke="var(--line)"/>'


def pictures(documents: Sequence[DocumentResult]) -> dict[str, str]:
    """Name and text of every file."""
    return {file: drawn(chart) for document in documents for file, chart in charts(document)}


def charts(document: DocumentResult) -> Iterator[tuple[str, ChartResult]]:
    """The charts of a document, each with the name of its file."""
    for place, chart in enumerate(document.charts, 1):
        yield f"published-{document.document.name}-{place}.svg", chart


def drawn(chart: ChartResult) -> str:
    """A chart as a file of its own."""
    return chart_svg(chart, f"\n<style>\n{schemes(NAMES)}{FONT}</style>\n{GROUND}")

"""The figures of the page, as Vega-Lite specifications made with Altair. Each is drawn for a width in pixels."""

from __future__ import annotations

from pgdyno.report.figures.concurrency import bars
from pgdyno.report.figures.course import courses, timeline
from pgdyno.report.figures.effects import effects
from pgdyno.report.figures.latency import percentile_dots, percentile_points, percentiles
from pgdyno.report.figures.loading import loading
from pgdyno.report.figures.parts import unchecked
from pgdyno.report.figures.stacked import cpu, roles, waits
from pgdyno.report.figures.throughput import headline

__all__ = [
    "bars", "courses", "cpu", "effects", "headline", "loading", "percentile_dots", "percentile_points", "percentiles", "roles", "timeline",
    "unchecked", "waits",
]  # fmt: skip

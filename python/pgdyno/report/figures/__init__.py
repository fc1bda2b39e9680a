"""The figures of the page, as Vega-Lite specifications made with Altair. Each is drawn for a width in pixels."""

from __future__ import annotations

from pgdyno.report.figures.course import courses, timeline
from pgdyno.report.figures.latency import percentile_dots, percentile_points, percentiles
from pgdyno.report.figures.parts import unchecked

from .arms import cpu, headline, roles, waits
from .course import loading
from .factors import bars, effects

__all__ = [
    "bars", "courses", "cpu", "effects", "headline", "loading", "percentile_dots", "percentile_points", "percentiles", "roles", "timeline",
    "unchecked", "waits",
]  # fmt: skip

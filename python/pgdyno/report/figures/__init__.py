"""The figures of the page, as Vega-Lite specifications that Altair checks. Each is drawn for a width in pixels."""

from __future__ import annotations

from pgdyno.report.figures.course import timeline
from pgdyno.report.figures.cpu_share import ROLES, cpu
from pgdyno.report.figures.latency import percentile_points, percentiles
from pgdyno.report.figures.throughput import tps

__all__ = ["ROLES", "cpu", "percentile_points", "percentiles", "timeline", "tps"]

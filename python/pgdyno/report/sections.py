"""The sections of a report in their order: each is made by the module of its name."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.report import (
    asked,
    binding,
    bulk_load,
    cost,
    courses,
    cpu,
    effects,
    events,
    loading,
    power_cuts,
    queries,
    recommendation,
    replay,
    responses,
    server,
    spread,
    summary,
    sweep,
    tpcc,
    transactions,
    trust,
    undilated,
    volumes,
    warming,
)
from pgdyno.report.section import Drawing, Section

_MAKERS = (
    recommendation.section,
    effects.section,
    undilated.section,
    sweep.section,
    summary.section,
    recommendation.pairs,
    warming.section,
    binding.section,
    bulk_load.section,
    queries.section,
    replay.section,
    tpcc.section,
    events.section,
    power_cuts.section,
    responses.headline,
    responses.section,
    transactions.section,
    courses.section,
    volumes.section,
    cost.section,
    server.section,
    cpu.section,
    spread.section,
    loading.section,
    trust.section,
    asked.section,
)


def sections(comparison: Comparison) -> list[Section]:
    """Every section that the comparison has something for."""
    return [result for maker in _MAKERS if (result := maker(comparison)) is not None and result.parts]


def drawings(comparison: Comparison) -> list[Drawing]:
    """Every figure of the page, in its order."""
    return [part for section in sections(comparison) for part in section.parts if isinstance(part, Drawing)]

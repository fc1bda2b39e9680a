"""The sections of a report, in their order."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.report.binding import binding_section
from pgdyno.report.cost import cost_section
from pgdyno.report.events import events_section
from pgdyno.report.queries import queries_section
from pgdyno.report.replay import replay_section
from pgdyno.report.section import Drawing, Section
from pgdyno.report.server import server_section
from pgdyno.report.summary import summary_section
from pgdyno.report.sweep import sweep_section
from pgdyno.report.tpcc import tpcc_section
from pgdyno.report.trust import trust_section
from pgdyno.report.volumes import volumes_section

from .configuration import configuration_section
from .cost import pairs_section, steps_section
from .events import power_cuts_section
from .filling import bulk_load_section, filling_section
from .response import course_section, headline_section, response_section, transactions_section
from .server import cpu_section
from .sweep import effects_section, undilated_section
from .trust import hosts_section
from .volumes import warming_section

_MAKERS = (
    steps_section,
    effects_section,
    undilated_section,
    sweep_section,
    summary_section,
    pairs_section,
    warming_section,
    binding_section,
    bulk_load_section,
    queries_section,
    replay_section,
    tpcc_section,
    events_section,
    power_cuts_section,
    headline_section,
    response_section,
    transactions_section,
    course_section,
    volumes_section,
    cost_section,
    server_section,
    cpu_section,
    hosts_section,
    filling_section,
    trust_section,
    configuration_section,
)


def sections(comparison: Comparison) -> list[Section]:
    """Every section that the comparison has something for."""
    return [result for maker in _MAKERS if (result := maker(comparison)) is not None and result.parts]


def drawings(comparison: Comparison) -> list[Drawing]:
    """Every figure of the page, in its order."""
    return [part for section in sections(comparison) for part in section.parts if isinstance(part, Drawing)]

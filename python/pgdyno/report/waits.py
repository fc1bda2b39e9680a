"""What the sessions of the workload waited for, in tables."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.report.words import FigureRow

from ..base.text import UNKNOWN, number

EVENTS_MAX = 10
"""Events in the table, the most frequent of all arms; the rest is in the run directories."""
TYPES = ("CPU", "IO", "LWLock", "Lock", "Buffer", "IPC", "Client", "Timeout", "other")
"""Types of wait in the order of the figure's bars; ``waitN`` of the theme is the colour of the Nth."""
_RENAMED = {"BufferPin": "Buffer"}
"""A type's name before PostgreSQL 19, and its name since."""


def wait_rows(comparison: Comparison) -> list[FigureRow]:
    """Mean sessions by event, the most frequent first."""
    looked = [arm for arm in comparison.arms if arm.waits]
    names = dict.fromkeys(wait for arm in looked for wait in arm.waits)
    ordered = sorted(names, key=lambda wait: -max(arm.waits.get(wait, 0.0) for arm in looked))
    return [
        FigureRow(wait.label, tuple(_cell(arm.waits.get(wait)) if arm.waits else UNKNOWN for arm in comparison.arms))
        for wait in ordered[:EVENTS_MAX]
    ]


def waits_by_type(arm: ArmSummary) -> dict[str, float]:
    """Mean sessions by type of wait, in the order of :data:`TYPES`; a type that is none of them is ``other``."""
    type_ = dict.fromkeys(TYPES, 0.0)
    for wait, sessions in arm.waits.items():
        kind = _RENAMED.get(wait.type, wait.type)
        type_[kind if kind in type_ else "other"] += sessions
    return type_


def wait_types(comparison: Comparison) -> list[tuple[int, str]]:
    """(place, type) of the types that any session was seen in."""
    sums = [waits_by_type(arm) for arm in comparison.arms]
    return [(place, kind) for place, kind in enumerate(TYPES) if any(values[kind] > 0 for values in sums)]


def _cell(sessions: float | None) -> str:
    if not sessions:
        return "0"
    return "< 0.01" if sessions < 0.01 else number(sessions, 2 if sessions < 1 else 3)

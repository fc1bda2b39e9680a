"""Volumes that were degraded on purpose (``degraded=``): for how much of a run, and that its figures rest on a hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.counters import Counters
from pgdyno.analysis.finding import Finding
from pgdyno.analysis.volume_figures import of_role, volume_spec
from pgdyno.text import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.analysis.run_figures import RunFigures


def degraded(run: RunFigures) -> Iterator[Finding]:
    """For each volume that may be degraded, how long it was while measuring; nothing of any other."""
    measure = run.record.measure
    for role in run.volumes:
        asked = volume_spec(run.run, role).get("degradation")
        if asked is None:
            continue
        counters = Counters.of(of_role(run.run.table("probe/volume"), role))
        spent_ns = counters.delta("degraded_ns", measure.begin_ns, measure.end_ns)
        of = f" of {number((measure.end_ns - measure.begin_ns) / 1e9)} s"
        spent = "it was not recorded how long" if spent_ns is None else f"for {number(spent_ns / 1e9)}{of}"
        (shortest, longest), (least, most) = asked["lasts_s"], asked["left_percent"]
        whose = "its provider leaves open" if asked["promised"] else "was asked for"
        yield Finding(
            "degraded",
            "warn",
            f"the {role} volume had a part of its limits on purpose, {spent}: {number(asked['of_time_percent'])} % of the time"
            f" {whose}; {shortest} to {longest} s at a time with {number(least)} to {number(most)} % left are a hypothesis",
        )

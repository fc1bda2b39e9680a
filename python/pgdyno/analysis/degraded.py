"""Volumes that were degraded on purpose (``degraded=``): for how much of a run, and that its figures rest on a hypothesis."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.finding import CheckResult

from ..base.text import number
from .figures import CounterSamples, of_role, volume_spec
from .run import RunFigures


def degraded(run: RunFigures) -> Iterator[CheckResult]:
    """For each volume that may be degraded, how long it was while measuring; nothing of any other."""
    measure = run.record.measure
    for role in run.volumes:
        result = volume_spec(run.run, role).get("degradation")
        if result is None:
            continue
        counters = CounterSamples.of(of_role(run.run.table("probe/volume"), role))
        spent_ns = counters.delta("degraded_ns", measure.begin_ns, measure.end_ns)
        of = f" of {number((measure.end_ns - measure.begin_ns) / 1e9)} s"
        spent = "it was not recorded how long" if spent_ns is None else f"for {number(spent_ns / 1e9)}{of}"
        (shortest, longest), (least, most) = result["lasts_s"], result["left_percent"]
        whose = "its provider leaves open" if result["promised"] else "was asked for"
        yield CheckResult(
            "degraded",
            "warn",
            f"the {role} volume had a part of its limits on purpose, {spent}: {number(result['of_time_percent'])} % of the time"
            f" {whose}; {shortest} to {longest} s at a time with {number(least)} to {number(most)} % left are a hypothesis",
        )

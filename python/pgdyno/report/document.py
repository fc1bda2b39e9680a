"""The JSON that ``pgdyno compare --json`` and ``pgdyno report --json`` print. ``schema/compare.schema.json`` is made from it.

A field is added, never renamed or given another meaning. A figure that was not recorded is null.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import ArmSummary, Comparison, Ratio

Share = Annotated[float, Field(ge=0, le=1)]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tps(_Document):
    """Transactions per second over the replicates."""

    mean: float
    low: float | None
    """Lower end of the 95 % interval; null for one replicate."""
    high: float | None
    n: int
    """Replicates."""


class LatencyMs(_Document):
    """Percentiles of the response time, from the merged histograms of all replicates, milliseconds."""

    p50: float | None
    p95: float | None
    p99: float | None


class Disk(_Document):
    """What the volume did during the measure phase, means of the replicates."""

    iops: float | None
    mib_per_s: float | None
    queue_length: float | None
    read_ms_p50: float | None
    write_ms_p50: float | None


class Arm(_Document):
    """One volume."""

    volume: str
    """As it was written on the command line."""
    tps: Tps
    latency_ms: LatencyMs
    disk: Disk
    time_above_limit: dict[str, Share]
    """Limit -> share of the time in which requests waited for it."""
    usd_per_month: float | None
    valid: bool
    why_invalid: list[str]
    warnings: list[str]


class RatioOf(_Document):
    """One volume against the first."""

    volume: str
    to: str
    metric: Literal["tps"]
    ratio: float
    low: float | None
    high: float | None
    distinguishable: bool
    """Whether the 95 % interval excludes 1."""


class CompareDocument(_Document):
    """A comparison of volumes."""

    command: str
    """The command line that repeats the experiment."""
    seed: int
    verdict: str
    arms: list[Arm]
    ratios: list[RatioOf]
    report: str | None
    """Path of the HTML page; null when none was written."""


def document(comparison: Comparison, report: Path | None = None) -> CompareDocument:
    """The document of a comparison; ``report`` is the page that was written."""
    by_index = {arm.index: arm for arm in comparison.arms}
    ratios = [_ratio(ratio, by_index) for ratio in comparison.ratios]
    return CompareDocument(
        command=command_line(comparison),
        seed=comparison.experiment.seed,
        verdict=comparison.verdict,
        arms=[_arm(arm) for arm in comparison.arms],
        ratios=[ratio for ratio in ratios if ratio is not None],
        report=None if report is None else str(report),
    )


def command_line(comparison: Comparison) -> str:
    """The command that repeats the experiment, quoted for a shell."""
    return shlex.join(comparison.experiment.command)


def _arm(arm: ArmSummary) -> Arm:
    latency = arm.latency_ms
    return Arm(
        volume=arm.volume,
        tps=Tps(mean=arm.tps.mean, low=arm.tps.low, high=arm.tps.high, n=arm.tps.n),
        latency_ms=LatencyMs(p50=latency.percentile(50), p95=latency.percentile(95), p99=latency.percentile(99)),
        disk=Disk(
            iops=arm.iops,
            mib_per_s=arm.mib_per_s,
            queue_length=arm.queue_length,
            read_ms_p50=arm.read_ms.percentile(50),
            write_ms_p50=arm.write_ms.percentile(50),
        ),
        time_above_limit=arm.time_above_limit,
        usd_per_month=arm.usd_per_month,
        valid=arm.valid,
        why_invalid=list(arm.why_invalid),
        warnings=list(arm.warnings),
    )


def _ratio(ratio: Ratio, by_index: dict[int, ArmSummary]) -> RatioOf | None:
    if ratio.estimate is None:
        return None
    return RatioOf(
        volume=by_index[ratio.index].volume,
        to=by_index[ratio.to_index].volume,
        metric="tps",
        ratio=ratio.estimate.mean,
        low=ratio.estimate.low,
        high=ratio.estimate.high,
        distinguishable=ratio.distinguishable,
    )

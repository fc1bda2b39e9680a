"""The hosts over which runs were spread, in the JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.report.document_undilated import EstimateOf
from pgdyno.report.part import Part

if TYPE_CHECKING:
    from pgdyno.analysis.compare import Comparison


class SpreadHostOf(Part):
    """One host."""

    name: str
    cores: int
    memory_bytes: int
    cpu: str
    """Model; empty where the kernel does not say it."""
    kernel: str
    replicates: int
    """That it made whole."""
    ratio: EstimateOf | None
    """Its headline over that of the first host, over all arms; null for the first itself."""


class UnpairedOf(Part):
    """Runs that are not compared, because their replicate is not whole."""

    host: str
    replicate: int
    runs: int


def hosts_of(comparison: Comparison) -> list[SpreadHostOf]:
    """Every host; none where the runs were made on the machine that was asked."""
    return [
        SpreadHostOf(
            name=one.name,
            cores=one.record.cores,
            memory_bytes=one.record.memory_bytes,
            cpu=one.record.cpu or "",
            kernel=one.record.kernel,
            replicates=one.blocks,
            ratio=None if one.ratio is None else EstimateOf.model_validate(one.ratio),
        )
        for one in comparison.hosts
    ]


def unpaired_of(comparison: Comparison) -> list[UnpairedOf]:
    """Those that were left out, by their replicate."""
    return [UnpairedOf(host=one.host, replicate=one.block, runs=one.runs) for one in comparison.unpaired]

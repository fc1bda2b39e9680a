"""The hosts over which runs were spread, in the JSON document."""

from __future__ import annotations

from pgdyno.analysis.compare import Comparison
from pgdyno.report.document_undilated import FigureEstimate
from pgdyno.report.part import DocumentPart


class SpreadHostOf(DocumentPart):
    """One host."""

    name: str
    cores: int
    memory_bytes: int
    cpu: str
    """Model; empty where the kernel does not say it."""
    kernel: str
    replicates: int
    """That it made whole."""
    ratio: FigureEstimate | None
    """Its headline over that of the first host, over all arms; null for the first itself."""


class UnpairedOf(DocumentPart):
    """Runs that are not compared, because their replicate is not whole."""

    host: str
    replicate: int
    runs: int


def hosts_of(comparison: Comparison) -> list[SpreadHostOf]:
    """Every host; none where the runs were made on the machine that was asked."""
    return [
        SpreadHostOf(
            name=host.name,
            cores=host.record.cores,
            memory_bytes=host.record.memory_bytes,
            cpu=host.record.cpu or "",
            kernel=host.record.kernel,
            replicates=host.blocks,
            ratio=None if host.ratio is None else FigureEstimate.model_validate(host.ratio),
        )
        for host in comparison.hosts
    ]


def unpaired_of(comparison: Comparison) -> list[UnpairedOf]:
    """Those that were left out, by their replicate."""
    return [
        UnpairedOf(host=unpaired.host, replicate=unpaired.block, runs=unpaired.runs) for unpaired in comparison.unpaired
    ]

"""A load that was measured, in the JSON that ``run`` and ``report`` print: a part of :mod:`pgdyno.report.document`."""

from __future__ import annotations

from pgdyno.analysis.arm import ArmSummary
from pgdyno.report.part import DocumentPart, Share

from ..analysis.binding.rules import Limit
from ..analysis.loads import agrees, load_of, request_kib


class BulkLoadOf(DocumentPart):
    """The loads of an arm, of workload kind `load`; means of the replicates."""

    rows: int
    """Rows of a run."""
    seconds: float
    """From the word go to the end of the checkpoint."""
    seconds_low: float | None
    """Lower end of the 95 % interval; null for one replicate."""
    seconds_high: float | None
    input_bytes: int
    """Size of all files, uncompressed."""
    input_mib_per_s: float | None
    connections: int
    """Sessions that copied at a time."""
    steps_s: dict[str, float]
    """`transfer`, `put_back`, `vacuum`, `checkpoint` -> seconds."""
    written_per_input_byte: float | None
    """Bytes that reached the volumes for each byte of the files."""
    request_kib: float | None
    """Mean size of the requests to the data's volume."""
    limits: dict[str, Share]
    """What the loader said that bound while it copied -> share of those seconds."""
    agrees: bool | None
    """Whether that means the limit of `binding`; null where either says nothing."""


def bulk_load_of(arm: ArmSummary, limit: Limit | None) -> BulkLoadOf | None:
    """The document of an arm's loads; ``limit`` is the one of its verdict."""
    load = load_of(arm)
    if load is None:
        return None
    return BulkLoadOf(
        rows=load.rows,
        seconds=load.seconds.mean,
        seconds_low=load.seconds.low,
        seconds_high=load.seconds.high,
        input_bytes=load.runs[0].input_bytes,
        input_mib_per_s=load.input_mib_per_s,
        connections=load.connections,
        steps_s=load.steps_s,
        written_per_input_byte=load.written_per_input_byte,
        request_kib=request_kib(arm.data.iops, arm.data.mib_per_s),
        limits={name: min(1.0, share) for name, share in load.limits.items()},
        agrees=agrees(load.limit, limit),
    )

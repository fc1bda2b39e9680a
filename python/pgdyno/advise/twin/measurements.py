"""What was measured of a disk, and of a null volume in the same run."""

from __future__ import annotations

from dataclasses import dataclass

from .jobs import JobResult, Op

PAGE_KIB = 8
"""PostgreSQL's page."""


@dataclass(frozen=True)
class PathCost:
    """What the emulator's own path was measured to cost at attach; it is taken off every modelled time."""

    fixed_ns: int
    per_kib_ps: int

    def ns(self, block_kib: int) -> float:
        """For a request of ``block_kib``, as the emulator counts it."""
        return self.fixed_ns + block_kib * self.per_kib_ps / 1000


@dataclass(frozen=True)
class Measurements:
    """Every answer that a fit uses."""

    alone: dict[Op, JobResult]
    """One request at a time, at once after each other, pages: what one client sees for good."""
    light: dict[tuple[Op, int], JobResult]
    """One at a time, seldom, by size in KiB: the time that the disk itself takes."""
    many: dict[Op, JobResult]
    """Small ones, many at a time, with their course: IOPS, bucket, order."""
    large: dict[Op, JobResult]
    """Large ones, many at a time, with their course: throughput and its bucket."""
    mixed: JobResult | None
    """Small and large ones together, where IOPS by units and bytes cannot be told apart otherwise."""
    sequential: JobResult
    """Small sequential ones, many at a time."""
    null_alone: dict[Op, JobResult]
    null_light: dict[tuple[Op, int], JobResult]
    path: dict[Op, PathCost]
    written_bytes: int
    """Written to the disk in all."""

"""One arm against another: their ratio, and what its interval leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.analysis.interval import distinguishable
from pgdyno.analysis.resolution import detectable_difference, equivalent_within, replicates_needed

if TYPE_CHECKING:
    from pgdyno.analysis.interval import Estimate


@dataclass(frozen=True)
class Ratio:
    """The headline of one arm over that of another, paired by block."""

    index: int
    to_index: int
    estimate: Estimate | None
    """None when no block has a run of both."""

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return self.estimate is not None and distinguishable(self.estimate)

    @property
    def equivalent_within(self) -> float | None:
        """A difference of this or more is ruled out; None for one replicate."""
        return None if self.estimate is None else equivalent_within(self.estimate)

    @property
    def detectable(self) -> float | None:
        """The difference that replicates like these find in four experiments of five; None for one replicate."""
        return None if self.estimate is None else detectable_difference(self.estimate)

    @property
    def replicates_needed(self) -> int | None:
        """Replicates that would find :data:`~pgdyno.analysis.resolution.DIFFERENCE_OF_INTEREST` as often."""
        return None if self.estimate is None else replicates_needed(self.estimate)

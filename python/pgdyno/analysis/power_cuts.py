"""Power cuts: what a number of them shows and what it does not exclude, and what those of an experiment's arms came to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno.analysis.arm import ArmSummary

from ..results.work_record import FailedCut, PowerCutsRecord


def excluded(cuts: int, confidence: float = 0.95) -> float:
    """The N of "fewer than 1 in N" after ``cuts`` cuts without a failure: at a larger share one would have failed with this
    confidence (for 95 %, the rule of three: Hanley and Lippman-Hand, JAMA 1983).

    It is of the instants and contents that were drawn from these recordings, which are not all that a device may leave.
    """
    return 1 / (1 - math.pow(1 - confidence, 1 / cuts))


def shown(cuts: int, confidence: float = 0.99) -> float:
    """The N of "a fault of 1 in N would have been seen with 99 %"."""
    return excluded(cuts, confidence)


def in_words(cuts: int, failures: int) -> str:
    """The verdict in one line."""
    if not cuts:
        return "no cut was made"
    if failures:
        return f"{failures:,} of {cuts:,} power cuts left a database that lost an acknowledged commit or is damaged"
    return (
        f"0 of {cuts:,} power cuts lost an acknowledged commit or left damage: fewer than 1 in {excluded(cuts):,.0f} do (95 %);"
        f" a fault of 1 in {shown(cuts):,.0f} would have been seen with 99 %"
    )


@dataclass(frozen=True)
class ArmCuts:
    """The power cuts of an arm in one reading, of all its replicates together: each has a recording of its own."""

    reading: str
    runs: tuple[PowerCutsRecord, ...]

    @property
    def cuts(self) -> int:
        """Contents that were examined."""
        return sum(run.cuts for run in self.runs)

    @property
    def failed(self) -> int:
        """Those that the database did not survive."""
        return sum(run.failed for run in self.runs)

    @property
    def by_check(self) -> dict[str, int]:
        """Check -> cuts in which it found something."""
        names = dict.fromkeys(name for run in self.runs for name in run.by_check)
        return {name: sum(run.by_check.get(name, 0) for run in self.runs) for name in names}

    @property
    def first_failed(self) -> tuple[FailedCut, ...]:
        """The first that failed, in the order of the replicates."""
        return tuple(failed for run in self.runs for failed in run.first_failed)

    @property
    def verdict(self) -> str:
        """In one line."""
        return in_words(self.cuts, self.failed)


def cuts_of(arm: ArmSummary) -> tuple[ArmCuts, ...]:
    """The power cuts of an arm, an entry for each reading; nothing where none were asked for."""
    runs = [replicate.figures.record.power_cuts for replicate in arm.replicates]
    readings = dict.fromkeys(cut.reading for run in runs for cut in run)
    return tuple(
        ArmCuts(reading, tuple(cut for run in runs for cut in run if cut.reading == reading)) for reading in readings
    )

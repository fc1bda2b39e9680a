"""Loss of data: its probability within a year by published failure rates, and what a number of power cuts shows.

A provider publishes an annual failure rate: the share of volumes that fail in a year. Volumes are taken to fail one
independently of another. A RAID-0 needs all its members, so ``n`` of them last with the probability of one to the power
``n``. Copies are lost when all of them fail; how soon a failed one is replaced is not known, so both failing in the same
year counts as lost, which is far too much where an operator replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.analysis.arm import ArmSummary

from ..results.work_record import FailedCut, PowerCutsRecord

TABLESPACE = "tablespace."
_NEEDED = ("data", "wal")
"""Without these, and without a tablespace, there is no database. Temporary files and backups can be made again."""


@dataclass(frozen=True)
class Loss:
    """Probability of losing the data within a year, by both ends of the published rate; shares, not per cent."""

    low: float
    high: float


def loss_of_volume(resolved: Mapping[str, Any]) -> Loss | None:
    """Of one volume or array, as its specification was resolved; None where no rate is published."""
    array = resolved.get("array") or {}
    rates = (array.get("member") or resolved).get("annual_failure_rate_percent")
    if not rates:
        return None
    columns = int(array.get("columns", 1))
    copies = int(array.get("copies", 1)) * (1 if array.get("multi_az_ms") is None else 2)
    low, high = (loss_of_stripes(percent / 100, columns, copies) for percent in (min(rates), max(rates)))
    return Loss(low, high)


def loss_of_stripes(rate: float, columns: int, copies: int = 1) -> float:
    """Share of arrays that lose a column in a year: ``columns``, each of ``copies`` volumes, that fail at ``rate`` a year."""
    return _any_of([rate**copies] * columns)


def loss_of_volumes(by_role: Mapping[str, Mapping[str, Any]]) -> Loss | None:
    """The loss of all volumes that a database needs together, by role; None where one of them has no published rate, or there is none."""
    losses = [loss_of_volume(resolved) for role, resolved in by_role.items() if is_needed(role)]
    known = [loss for loss in losses if loss is not None]
    if not known or len(known) < len(losses):
        return None
    return Loss(_any_of([loss.low for loss in known]), _any_of([loss.high for loss in known]))


def is_needed(role: str) -> bool:
    """Whether the database is lost with the volume of that role."""
    return role in _NEEDED or role.startswith(TABLESPACE)


def ends_with_its_instance(by_role: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a volume that the database needs keeps nothing when its instance stops."""
    return any(bool(resolved.get("volatile")) for role, resolved in by_role.items() if is_needed(role))


def _any_of(rates: list[float]) -> float:
    """Probability that at least one happens. By logarithms, because 1 - (1 - 0.00001)^2 would lose its digits."""
    return -math.expm1(math.fsum(math.log1p(-rate) for rate in rates))


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

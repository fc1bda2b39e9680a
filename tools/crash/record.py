"""The records of the benches of power cuts: what was measured, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, Field

from pgdyno.durability.crash.known import defect
from tools.measured import OfServer

if TYPE_CHECKING:
    from pgdyno.durability.crash.campaign import CampaignResult
    from tools.crash.cells import Cell


class Found(BaseModel):
    """What the cuts of one cell came to."""

    name: str
    reading: str
    wanted: int
    """Cuts that were asked for, or at most for a planted bug; those that there was time for where that ended them."""
    cuts: int
    failed: int
    known: int = 0
    """Those of them that a known defect of PostgreSQL explains."""
    until_failed: int | None = None
    """Cuts until the first one failed, that one among them."""
    first_failure: str = ""
    """The checks of the first cut that failed, with what they said."""
    checks: dict[str, int] = Field(default_factory=dict)
    """For each check the cuts in which it found something."""
    alone: dict[str, int] = Field(default_factory=dict)
    """For each check the cuts in which no other one found anything."""
    audit: dict[str, int]
    cuts_per_minute: float
    cpu_s_per_cut: float
    ms_by_step: dict[str, float]
    workers: int = 2
    """Cuts that were examined at a time, at most: records that do not say it had two."""

    @classmethod
    def of(cls, cell: Cell, wanted: int, result: CampaignResult, workers: int) -> Self:
        """From the cuts."""
        failures = [outcome.failures for outcome in result.failed]
        checks: dict[str, int] = {}
        alone: dict[str, int] = {}
        for other in failures:
            for check in other:
                checks[check] = checks.get(check, 0) + 1
            if len(other) == 1:
                (check,) = other
                alone[check] = alone.get(check, 0) + 1
        first = "; ".join(f"{check}: {failure}" for check, failure in failures[0].items()) if failures else ""
        cuts = max(1, result.tried)
        return cls(
            name=cell.name,
            reading=cell.reading,
            wanted=wanted,
            cuts=result.tried,
            failed=len(failures),
            known=sum(defect(failure) is not None for failure in failures),
            until_failed=result.until_failed,
            first_failure=first[:200],
            checks=checks,
            alone=alone,
            audit=result.audit,
            cuts_per_minute=60 * result.tried / result.wall_s,
            cpu_s_per_cut=result.cpu_s / cuts,
            ms_by_step={step: 1000 * total / cuts for step, total in result.seconds.items()},
            workers=workers,
        )

    def joined(self, more: Self) -> Self:
        """With the further cuts of another call, of another recording of the same server."""
        cuts = self.cuts + more.cuts
        until_failed = self.until_failed
        if until_failed is None and more.until_failed is not None:
            until_failed = self.cuts + more.until_failed

        def added(name: str) -> dict[str, int]:
            first, second = getattr(self, name), getattr(more, name)
            return {key: first.get(key, 0) + second.get(key, 0) for key in first | second}

        def mean(first: float, second: float) -> float:
            return (first * self.cuts + second * more.cuts) / max(1, cuts)

        minutes = sum(item.cuts / item.cuts_per_minute for item in (self, more) if item.cuts_per_minute)
        return self.model_copy(
            update={
                "wanted": self.wanted + more.wanted,
                "cuts": cuts,
                "failed": self.failed + more.failed,
                "known": self.known + more.known,
                "until_failed": until_failed,
                "first_failure": self.first_failure or more.first_failure,
                "checks": added("checks"),
                "alone": added("alone"),
                "cuts_per_minute": cuts / minutes if minutes else 0.0,
                "cpu_s_per_cut": mean(self.cpu_s_per_cut, more.cpu_s_per_cut),
                "workers": max(self.workers, more.workers),
                "ms_by_step": {
                    step: mean(self.ms_by_step.get(step, 0.0), more.ms_by_step.get(step, 0.0))
                    for step in self.ms_by_step | more.ms_by_step
                },
            }
        )


class Record(OfServer):
    """A bench, as far as it was measured."""

    seed: int
    found: list[Found] = Field(default_factory=list)
    skipped: dict[str, str] = Field(default_factory=dict)
    """Cells that this machine cannot measure, with the reason."""

    def facts(self) -> dict[str, Any]:
        """With the seed of the cuts."""
        return super().facts() | {"seed": self.seed}

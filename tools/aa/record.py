"""What was measured, kept on disk after each experiment, so that an interrupted bench goes on."""

from __future__ import annotations

import math
import os
import platform
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from pgdyno.base import engine
from tools.aa.trials import digest, trials
from tools.measured import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

Outcome = Literal["found", "too small for the budget", "missed", "wrong", "no verdict"]


class Result(BaseModel):
    """One experiment: its runs, and what its report says of them."""

    model_config = ConfigDict(frozen=True)

    key: str
    kind: str
    volumes: tuple[str, str]
    change: float
    """What is true: how many more transactions the second volume does, relative."""
    workload: str
    tps: tuple[tuple[float, float], ...] = ()
    """Of each block, the second volume's run and the first's."""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    distinguishable: bool = False
    equivalent_within: float | None = None
    detectable: float | None = None
    """The difference that replicates like these find in four experiments of five."""
    replicates_needed: int | None = None
    """To find a difference of 3 % as often."""
    invalid: str | None = None
    """Why a report gives no verdict; None where it gives one."""
    broke: str | None = None
    """Why the experiment ended early; it is made again when the bench goes on."""

    @property
    def alarm(self) -> bool:
        """Whether equal volumes are called different; counted in invalid runs too, of which a report says nothing."""
        return self.change == 0 and self.distinguishable

    @property
    def outcome(self) -> Outcome:
        """What came of a true difference."""
        if self.invalid is not None or self.ratio is None:
            return "no verdict"
        if self.distinguishable:
            return "found" if (self.ratio > 1) == (self.change > 0) else "wrong"
        return "too small for the budget" if self.detectable is None or self.detectable > self.change else "missed"

    @property
    def holds_truth(self) -> bool:
        """Whether the interval holds what is true."""
        return self.low is not None and self.high is not None and self.low <= 1 + self.change <= self.high

    @property
    def scatter(self) -> float | None:
        """Standard deviation of the logarithm of a block's ratio; None for fewer than two blocks."""
        logs = [math.log(over / under) for over, under in self.tps if over > 0 and under > 0]
        return math.sqrt(variance(logs)) if len(logs) > 1 else None


class Record(Kept):
    """A bench, as far as it was measured."""

    seed: int
    asked: str
    """Digest of what was asked for."""
    build_hash: str
    kernel: str
    cores: int
    results: list[Result] = Field(default_factory=list)

    @classmethod
    def here(cls, seed: int) -> Self:
        """An empty one, of this machine and this engine."""
        return cls(
            seed=seed,
            asked=digest(trials(seed)),
            build_hash=engine.facts().build_hash,
            kernel=platform.release(),
            cores=os.cpu_count() or 1,
        )

    def goes_on(self, other: Record) -> bool:
        """Whether the results of both may stand in one table."""
        facts = {"seed", "asked", "build_hash", "kernel", "cores"}
        return self.model_dump(include=facts) == other.model_dump(include=facts)

    @property
    def whole(self) -> list[Result]:
        """Experiments that ended as they should."""
        return [result for result in self.results if result.broke is None]

    @property
    def equal(self) -> list[Result]:
        """Whole experiments of one volume twice."""
        return [result for result in self.whole if result.change == 0]

    @property
    def different(self) -> list[Result]:
        """Whole experiments of volumes that truly differ."""
        return [result for result in self.whole if result.change != 0]


def pooled(results: Sequence[Result]) -> float | None:
    """The scatter of several experiments alike: the root of the mean of their variances."""
    known = [result.scatter for result in results if result.scatter is not None]
    return math.sqrt(fmean(scatter**2 for scatter in known)) if known else None

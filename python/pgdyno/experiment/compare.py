"""The experiment behind ``pgdyno compare``: the same workload on several volumes, in interleaved replicates."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pgdyno.workload.spec import PgbenchSpec, explained


@dataclass(frozen=True)
class Cell:
    """One run of an experiment: one arm, one replicate. A cell and the experiment say everything about it."""

    position: int
    """Order in which the cells are run, from 0."""
    block: int
    """The replicate, from 1. Every arm runs once in each block, and ratios are paired within blocks."""
    arm_index: int
    arm: str


class CompareExperiment(BaseModel):
    """Volumes to compare and the workload to compare them with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    arms: Annotated[tuple[str, ...], Field(min_length=1)]
    """Volume specifications as the user wrote them; the first is what the others are compared to."""
    replicates: Annotated[int, Field(ge=1, le=1000)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    workload: PgbenchSpec = PgbenchSpec()
    warmup_s: Annotated[float, Field(ge=0)] = 15.0
    measure_s: Annotated[float, Field(ge=2)] = 30.0
    memory_bytes: Annotated[int, Field(ge=64 << 20)] = 512 << 20
    """Memory of the instance: PostgreSQL with its page cache."""
    server_cpus: str | None = None
    """CPUs of PostgreSQL as the kernel writes them; ``None`` shares all of them with the laboratory."""
    driver_cpus: str | None = None
    """CPUs of pgbench."""
    settings: Literal["tuned", "defaults"] = "tuned"
    """``tuned`` is the plain set for the instance's memory, ``defaults`` PostgreSQL's own."""
    extra_settings: dict[str, str] = Field(default_factory=dict)
    """Settings that the user named; they win."""
    full_check: bool = False
    """Whether every account's balance is added up after a run: a scan of all data through the volume."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The experiment, or an :class:`InputError` that names the field."""
        with explained():
            return cls(**values)

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if len(self.arms) < 2:
            raise ValueError("a comparison needs at least two volumes (the same one twice shows the noise)")
        return self

    def cells(self) -> list[Cell]:
        """Every run in its order: blocks one after the other, the arms of a block in a seeded order."""
        order = random.Random(f"pgdyno order {self.seed}")
        cells: list[Cell] = []
        for block in range(1, self.replicates + 1):
            arms = list(enumerate(self.arms))
            order.shuffle(arms)
            for arm_index, arm in arms:
                cells.append(Cell(len(cells), block, arm_index, arm))
        return cells

    def seed_of(self, block: int, purpose: str) -> int:
        """A seed for one purpose in one block. The arms of a block share it, so that they meet the same draws."""
        digest = hashlib.sha256(f"pgdyno {self.seed} {block} {purpose}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 2

    def identity(self) -> dict[str, Any]:
        """What can change a result. Seed, number of replicates and order cannot change what is estimated."""
        return self.model_dump(exclude={"seed", "replicates"})

    def estimate_s(self, overhead_s: float) -> float:
        """How long all cells will take, with ``overhead_s`` beside warm-up and measurement for each."""
        return len(self.arms) * self.replicates * (self.warmup_s + self.measure_s + overhead_s)

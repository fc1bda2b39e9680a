"""What was measured: loads beside COPY from ready files, the CPU of drivers, streams of queries."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, Field

from pgdyno import _engine
from pgdyno.analysis.interval import ratio_interval
from tools.driver.record import Pair
from tools.measured import Kept

if TYPE_CHECKING:
    from pgdyno.analysis.interval import Estimate


class LoadPair(BaseModel, frozen=True):
    """A load by pgdyno and one by COPY from ready files, one after the other."""

    native_s: float
    copy_s: float
    native_first: bool
    peak_kib: int
    """Resident memory of pgdyno's process at its peak."""


class Loads(BaseModel, frozen=True):
    """The loads of one set of tables."""

    tables: str
    pairs: list[LoadPair]

    def ratio(self) -> Estimate:
        """Seconds of pgdyno's load against those of COPY."""
        return ratio_interval([(pair.native_s, pair.copy_s) for pair in self.pairs])


class BeforePair(BaseModel, frozen=True):
    """A load by today's engine and one by an older one, one after the other."""

    now_s: float
    before_s: float
    now_cpu_s: float
    """User and system time of the loading process."""
    before_cpu_s: float
    now_first: bool


class BeforeLoads(BaseModel, frozen=True):
    """The loads of one set of tables by two engines."""

    tables: str
    older: str
    """The commit or the binary of the older engine."""
    pairs: list[BeforePair] = Field(default_factory=list)

    def ratio(self) -> Estimate:
        """Seconds of today's load against those before."""
        return ratio_interval([(pair.now_s, pair.before_s) for pair in self.pairs])

    def cpu_ratio(self) -> Estimate:
        """The same of the loading process's CPU."""
        return ratio_interval([(pair.now_cpu_s, pair.before_cpu_s) for pair in self.pairs])


class Queries(BaseModel, frozen=True):
    """Streams of queries, and the CPU of the process that asked them."""

    streams: int
    scale_factor: float
    queries: int
    cpu_s: float
    elapsed_s: float

    @property
    def cores(self) -> float:
        """Share of one core."""
        return self.cpu_s / self.elapsed_s


class Record(Kept):
    """All of it, kept after each step."""

    begin: datetime
    cores: int
    kernel: str
    build_hash: str
    postgres: str
    loads: dict[str, Loads] = Field(default_factory=dict)
    """By the name of the load."""
    driver: list[Pair] = Field(default_factory=list)
    driver_kib: list[int] = Field(default_factory=list)
    """Peak resident memory of each run of pgdyno's driver."""
    queries: Queries | None = None
    before: dict[str, BeforeLoads] = Field(default_factory=dict)
    """By the name of the load; empty where no older engine was named."""
    driver_minutes_kib: list[int] = Field(default_factory=list)
    """Largest resident memory of the driver in each minute of one long run; empty where there was none."""

    @classmethod
    def here(cls, postgres: str) -> Self:
        """One that begins on this machine."""
        return cls(
            begin=datetime.now(UTC).replace(microsecond=0),
            cores=os.cpu_count() or 1,
            kernel=platform.release(),
            build_hash=str(_engine.run_json(["version"])["build_hash"]),
            postgres=postgres,
        )

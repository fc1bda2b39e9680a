"""What was measured: loads beside COPY from ready files, the CPU of drivers, streams of queries."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, Field

from pgdyno.analysis.statistics import ratio_interval
from pgdyno.base import engine
from tools.driver.record import Pair
from tools.measured import Kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.analysis.statistics import Estimate

WAL_BYTES_FEW = 20.0
"""A call that only reads writes none; what is left is the server's own."""
IDS_FEW = 0.02
"""Of others: a server takes one now and then for its own."""

ALONE = ("before", "driver_minutes_kib", "hammerdb", "apart")
"""Parts of a record that are measured alone, and outlive a new engine: each says of which one it is."""


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


class Changed(BaseModel, frozen=True):
    """What a call of a routine changes, in the mean."""

    rows: dict[str, float]
    """``stock updated`` -> how many."""
    ids: float
    """Transaction ids."""
    wal_bytes: float


class TypeBeside(BaseModel, frozen=True):
    """A type of transaction by HammerDB's own routine and by ours, with the same values."""

    type: str
    calls: int
    theirs: Changed
    ours: Changed

    def both(self) -> Iterator[tuple[str, float, float]]:
        """What changes, by theirs and by ours; what neither changes is not there."""
        for what in sorted(self.theirs.rows.keys() | self.ours.rows.keys()):
            yield what, self.theirs.rows.get(what, 0.0), self.ours.rows.get(what, 0.0)
        yield "transaction ids", self.theirs.ids, self.ours.ids
        yield "bytes of WAL", self.theirs.wal_bytes, self.ours.wal_bytes

    def apart(self) -> dict[str, float]:
        """What -> by which share ours is more than theirs."""
        few = {"transaction ids": IDS_FEW, "bytes of WAL": WAL_BYTES_FEW}
        return {what: _share(ours, theirs, few.get(what, 0.0)) for what, theirs, ours in self.both()}

    def worst(self) -> str:
        """The largest of them in words, and what a call writes."""
        what, share = max(self.apart().items(), key=lambda item: abs(item[1]))
        return f"at most {share:+.2%} ({what}); {self.theirs.wal_bytes:,.0f} and {self.ours.wal_bytes:,.0f} bytes of WAL a call"


def _share(ours: float, theirs: float, few: float) -> float:
    if max(ours, theirs) <= few:
        return 0.0
    return ours / theirs - 1 if theirs else float("inf")


class NopmPair(BaseModel, frozen=True):
    """A run by HammerDB and one by our driver, one after the other."""

    bound: str
    """What bound them: ``commits``, ``CPU``."""
    theirs: float
    ours: float
    theirs_first: bool


class Beside(BaseModel):
    """An installed HammerDB beside ours."""

    version: str
    types: list[TypeBeside] = Field(default_factory=list)
    nopm: list[NopmPair] = Field(default_factory=list)


class Apart(BaseModel, frozen=True):
    """When a part was measured that is measured alone, and of which engine."""

    begin: datetime
    build_hash: str

    @classmethod
    def now(cls) -> Self:
        """It begins."""
        return cls(begin=datetime.now(UTC).replace(microsecond=0), build_hash=_hash())


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
    hammerdb: Beside | None = None
    """An installed HammerDB beside ours; None where there was none."""
    before: dict[str, BeforeLoads] = Field(default_factory=dict)
    """By the name of the load; empty where no older engine was named."""
    driver_minutes_kib: list[int] = Field(default_factory=list)
    """Largest resident memory of the driver in each minute of one long run; empty where there was none."""
    apart: dict[str, Apart] = Field(default_factory=dict)
    """The parts that are measured alone, by name."""

    @classmethod
    def here(cls, postgres: str) -> Self:
        """One that begins on this machine."""
        return cls(
            begin=datetime.now(UTC).replace(microsecond=0),
            cores=os.cpu_count() or 1,
            kernel=platform.release(),
            build_hash=_hash(),
            postgres=postgres,
        )


def _hash() -> str:
    return str(engine.run_json(["version"])["build_hash"])

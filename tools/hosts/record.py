"""The record of several hosts: each bench keeps its part as it grows, so that one that was interrupted goes on."""

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field

from pgdyno.base import engine as _engine
from tools.measured import Kept

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "hosts" / "record.json"


class Part(BaseModel):
    """When, with which engine and how busy a part was measured."""

    begin: dt.datetime
    engine: str
    """Hash of its sources."""
    load_average_max: float = 0.0
    """The largest of the last minute's, its own load in it."""

    @classmethod
    def now(cls) -> Self:
        """One that begins now."""
        return cls(begin=dt.datetime.now(dt.UTC), engine=_engine.facts().build_hash[:12])

    def look(self) -> None:
        """Note how busy the machine is."""
        self.load_average_max = max(self.load_average_max, round(os.getloadavg()[0], 2))


class Equal(Part):
    """One load on four drivers, and on one."""

    pairs: list[tuple[float, float]] = Field(default_factory=list)
    """Transactions a second of four drivers, and of one."""


class Starts(Part):
    """Drivers with clocks that are apart, which begin at one instant."""

    spread_ms: list[float] = Field(default_factory=list)
    """Between the first and the last of a start, by the true offsets of their clocks."""
    woke_late_ms: list[float] = Field(default_factory=list)
    """How late the last thread of a start woke, after its timer; empty where that was not recorded."""


class Clocks(Part):
    """Estimates of a clock whose true offset is known."""

    estimates: int = 0
    off: int = 0
    """Those that were off by more than they said."""
    uncertainty_us_max: float = 0.0
    error_us_max: float = 0.0

    def count(self, error_ns: int, uncertainty_ns: int) -> None:
        """One more."""
        self.estimates += 1
        self.off += abs(error_ns) > uncertainty_ns
        self.uncertainty_us_max = max(self.uncertainty_us_max, round(uncertainty_ns / 1e3, 1))
        self.error_us_max = max(self.error_us_max, round(abs(error_ns) / 1e3, 1))


class Kill(BaseModel):
    """What was killed, and what became of the run."""

    what: str
    became: str
    took_s: float
    """From the kill to the end of the command, or until no driver was left where that was killed; 0 where the load had ended before."""
    said: str = ""
    """The command's answer."""
    left: list[str] = Field(default_factory=list)
    """What `pgdyno doctor --clean` found on the hosts afterwards."""


class Kills(Part):
    """Kills at random moments."""

    kills: list[Kill] = Field(default_factory=list)
    tried: int = 0
    """With those where nothing was there to kill any more, or yet."""


class SpreadKills(Part):
    """Kills while one experiment is made on several hosts, and resumed."""

    kills: dict[str, int] = Field(default_factory=dict)
    """What was killed -> how often."""
    replicates: int = 0
    """That are whole at the end."""
    broken: int = 0
    """That are not."""
    left: list[str] = Field(default_factory=list)
    """As of :class:`Kill`, at the end."""


class Cost(Part):
    """What hosts take beside the load."""

    worker_share: float = 0.0
    """Of a core, beside its driver while it measures."""
    prepared_s: float = 0.0
    """Until 200 clients on two hosts are ready."""
    wire_kib_per_s: float = 0.0
    """From and to each host."""


class Record(Kept):
    """The bench, as far as it was measured."""

    kernel: str
    cores: int
    equal: dict[str, Equal] = Field(default_factory=dict)
    """By the load."""
    starts: Starts | None = None
    clocks: dict[str, Clocks] = Field(default_factory=dict)
    """By what lay between the two clocks."""
    kills: Kills | None = None
    spread_kills: dict[str, SpreadKills] = Field(default_factory=dict)
    """By where the hosts were."""
    cost: Cost | None = None

    @classmethod
    def kept(cls, path: Path = RESULTS) -> Self:
        """The one that is kept for this machine, or an empty one."""
        here = cls(kernel=platform.release(), cores=os.cpu_count() or 1)
        document = cls.load(path)
        return here if document is None or (document.kernel, document.cores) != (here.kernel, here.cores) else document

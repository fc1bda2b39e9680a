"""What was measured: a log that is read, replays beside the driver, lanes, lateness, memory, the relay."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tools.driver.record import Memory, Pair
from tools.measured import Kept

if TYPE_CHECKING:
    from tools.driver.load import Load

QUIET_CORES = 0.1
"""Cores that other processes take: with more, lateness and CPU are the machine's too (caches, turns)."""


class Reading(BaseModel, frozen=True):
    """A csvlog, read into a capture by one thread."""

    megabytes: float
    cpu_s: float
    took_s: float
    peak_kib: int

    @property
    def mb_per_cpu_s(self) -> float:
        """Megabytes for each second of CPU."""
        return self.megabytes / self.cpu_s


class Sent(BaseModel, frozen=True):
    """A replay."""

    lanes: int
    statements: int
    newly_failed: int
    cpu_s: float
    took_s: float
    late_us_p99: float
    """By which the driver itself was late, where a session waited for nothing but the time."""
    peak_kib: int
    """The engine's resident memory at most, each second."""

    @property
    def per_core_s(self) -> float:
        """Statements for each second of CPU."""
        return self.statements / self.cpu_s


class Relayed(BaseModel, frozen=True):
    """Statements that a relay recorded."""

    load: str
    statements: int
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        """For each statement."""
        return self.cpu_s * 1e6 / self.statements


class Tool(BaseModel, frozen=True):
    """What one tool made of a captured load."""

    name: str
    """With its version."""
    statements: int
    errors: int
    """Statements that failed, those that had failed in production among them."""
    orders_missing: int
    """Orders of production that are not there after it."""
    cpu_s: float
    took_s: float
    late_s_max: float
    """The latest statement, as the tool says it."""
    said: str = ""
    """Its last words, where it ended by an error."""


class Beside(BaseModel, frozen=True):
    """Another tool beside pgdyno on one log of an order shop."""

    transactions: int
    statements: int
    failed: int
    """In production."""
    seconds: float
    tools: list[Tool]


class Record(Kept):
    """All of it."""

    begin: datetime
    cores: int
    kernel: str
    build_hash: str
    versions: list[str]
    seconds: int
    """Length of each run of a pair."""
    other_cores: float
    """What other processes took before it began, and before memory was watched, the larger of both."""
    reading: Reading
    pairs: list[Pair]
    """The replay beside the driver, by statement, both with nothing to wait for but answers."""
    timed: list[Pair]
    """The replay at its recorded times, beside the driver at the rate at which it was recorded."""
    fastest: Sent
    """As fast as it can."""
    idle: Sent
    """A quarter of the captured load: the server is idle most of the time."""
    many: Sent
    """Thousands of sessions."""
    memory: Memory
    relayed: list[Relayed]
    direct_ms: float
    """Mean latency of a short statement that one client sends after the other, over the server's socket."""
    relayed_ms: float
    """The same through a relay that records."""
    beside: Beside | None = None
    """None where no other tool is installed."""

    def of(self, load: Load) -> list[Pair]:
        """The pairs of one load."""
        return [pair for pair in self.pairs if pair.load == load.name]

    @property
    def quiet(self) -> bool:
        """Whether the machine had nothing else to do."""
        return self.other_cores <= QUIET_CORES

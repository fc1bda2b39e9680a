"""What was measured, kept as one JSON file after each workload, so that an interrupted bench goes on."""

from __future__ import annotations

import math
import platform
import random
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel

from pgdyno import _engine
from tools.equivalence import drivers, pace, same
from tools.equivalence.ratio import PAIRS_MIN, at_equal_pace
from tools.equivalence.workloads import CLIENTS, Length

if TYPE_CHECKING:
    from pgdyno.analysis.interval import Estimate
    from tools.equivalence.bench import Bench
    from tools.equivalence.workloads import Workload

PAIRS_MAX = 40
"""Beyond this many the machine is too restless to tell."""
HALF_WIDTH_MAX = 0.015
"""Half of the band that is asked for: an interval this wide around 1 is inside it with room to spare."""
Turn = Literal["first", "again", "native"]
TURNS: tuple[Turn, ...] = ("first", "again", "native")


class Timed(BaseModel, frozen=True):
    """One run."""

    tps: float
    pace: float
    """Of the server's CPU meanwhile: :attr:`tools.equivalence.pace.Pace.pieces_per_s`."""


class Block(BaseModel, frozen=True):
    """Three runs one after the other, in an order that was drawn."""

    first: Timed
    again: Timed
    native: Timed

    def itself(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The original's second run, and its first."""
        return (self.again.tps, self.again.pace), (self.first.tps, self.first.pace)

    def against(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Pgdyno's run, and the mean of the original's two."""
        both = (self.first, self.again)
        mean = (math.prod(run.tps for run in both) ** 0.5, math.prod(run.pace for run in both) ** 0.5)
        return (self.native.tps, self.native.pace), mean


class Result(BaseModel, frozen=True):
    """A workload, measured."""

    workload: str
    original: str
    protocol: str
    blocks: tuple[Block, ...]
    asked_original: same.Asked
    asked_native: same.Asked

    def itself(self) -> Estimate:
        """The original against itself: what this bench can tell apart."""
        return at_equal_pace([block.itself() for block in self.blocks])

    def native(self) -> Estimate:
        """Pgdyno's driver against the original, of which each block has two runs."""
        return at_equal_pace([block.against() for block in self.blocks])


class Record(BaseModel):
    """Everything that the page shows."""

    build_hash: str
    begin: datetime
    kernel: str
    processor: str
    postgres: str
    sysbench: str | None
    seconds: int
    """Length of a run."""
    results: list[Result] = []
    missing: dict[str, str] = {}
    """Workload -> why it was not measured."""

    @classmethod
    def here(cls, postgres: str, seconds: int) -> Record:
        """An empty one, of this machine and this engine."""
        return cls(
            build_hash=_engine.facts().build_hash,
            begin=datetime.now(UTC),
            kernel=platform.release(),
            processor=_processor(),
            postgres=postgres,
            sysbench=_sysbench(),
            seconds=seconds,
        )

    def goes_on(self, other: Record) -> bool:
        """Whether ``other`` is a part of the same: same machine, same programs, same length."""
        facts = {"build_hash", "kernel", "processor", "postgres", "sysbench", "seconds"}
        return self.model_dump(include=facts) == other.model_dump(include=facts)

    def save(self, path: Path) -> None:
        """Write it whole, or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".partial")
        beside.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        beside.rename(path)

    @classmethod
    def load(cls, path: Path) -> Record | None:
        """The one that is kept, if there is one."""
        return cls.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def measure(
    bench: Bench, workload: Workload, seconds: int, over: Callable[[], bool], tell: Callable[[str], None]
) -> Result:
    """Blocks until both intervals are narrow, at least :data:`PAIRS_MIN`; none is begun once the time is ``over``."""
    original = same.asked(bench, workload, "original")
    native = same.asked(bench, workload, "native")
    order = random.Random(f"pgdyno equivalence {workload.name}")
    blocks: list[Block] = []
    while not (enough(blocks) or (over() and len(blocks) > 1)):
        blocks.append(_block(bench, workload, seconds, len(blocks) + 1, order))
        tell(f"{workload.name} {len(blocks)}: {_said(blocks)}")
    return Result(
        workload=workload.name,
        original=workload.original,
        protocol=workload.protocol,
        blocks=tuple(blocks),
        asked_original=original,
        asked_native=native,
    )


def enough(blocks: list[Block]) -> bool:
    """Whether more blocks would tell nothing more that is asked for."""
    if len(blocks) < PAIRS_MIN:
        return False
    return len(blocks) >= PAIRS_MAX or all(half_width(found) <= HALF_WIDTH_MAX for found in _estimates(blocks))


def half_width(found: Estimate) -> float:
    """Half of a ratio's interval, as a share of 1; a single pair has none, and nothing is wider."""
    if found.low is None or found.high is None:
        return float("inf")
    return (found.high - found.low) / 2


def _estimates(blocks: list[Block]) -> tuple[Estimate, Estimate]:
    return at_equal_pace([block.itself() for block in blocks]), at_equal_pace([block.against() for block in blocks])


def _block(bench: Bench, workload: Workload, seconds: int, number: int, order: random.Random) -> Block:
    """The three runs, each on a fresh clone and with the same seed."""
    turns = list(TURNS)
    order.shuffle(turns)
    timed = {}
    for turn in turns:
        bench.restore(workload)
        side: drivers.Side = "native" if turn == "native" else "original"
        with pace.kept(min(bench.server_cpus)) as found:
            tps = drivers.run(bench, workload, side, number, Length(CLIENTS, seconds=seconds)).tps
        timed[turn] = Timed(tps=tps, pace=found.pieces_per_s)
    return Block(**timed)


def _said(blocks: list[Block]) -> str:
    last = blocks[-1]
    itself, native = _estimates(blocks)
    widths = ", ".join(f"{found.mean:.4f} ± {half_width(found):.4f}" for found in (itself, native))
    runs = ", ".join(f"{run.tps:,.0f} ({run.pace:,.0f})" for run in (last.first, last.again, last.native))
    return f"{runs} TPS (pace); again and native against first: {widths}"


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return found[1] if found else platform.machine()


def _sysbench() -> str | None:
    try:
        said = subprocess.run(["sysbench", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.strip() or None

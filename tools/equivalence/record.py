"""What was measured, kept as one JSON file after each workload, so that an interrupted bench goes on."""

from __future__ import annotations

import platform
import random
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from pgdyno.analysis.statistics import ratio_interval
from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from tools.equivalence import drivers, same, turns
from tools.equivalence.workloads import CLIENTS, Length
from tools.measured import Kept

if TYPE_CHECKING:
    from pgdyno.analysis.statistics import Estimate
    from tools.equivalence.bench import Bench
    from tools.equivalence.workloads import Workload

PAIRS_MIN = 6
"""Fewer say too little of the spread."""
PAIRS_MAX = 40
"""Beyond this many the machine is too restless to tell."""
HALF_WIDTH_MAX = 0.015
"""Half of the band that is asked for: an interval this wide around 1 is inside it with room to spare."""
BAND = (0.97, 1.03)
"""Ratios that count as equal: two runs of one driver on one server differ by three per cent on an ordinary day."""
_END_S = 0.2
"""From a driver's last transaction to its end."""
Turn = Literal["first", "again", "native"]
TURNS: tuple[Turn, ...] = ("first", "again", "native")


class Block(BaseModel, frozen=True):
    """Transactions a second of three runs that took turns."""

    first: float
    again: float
    native: float

    def itself(self) -> tuple[float, float]:
        """The original's second run, and its first."""
        return self.again, self.first

    def against(self) -> tuple[float, float]:
        """Pgdyno's run, and the mean of the original's two."""
        return self.native, (self.first * self.again) ** 0.5


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
        return ratio_interval([block.itself() for block in self.blocks])

    def native(self) -> Estimate:
        """Pgdyno's driver against the original, of which each block has two runs."""
        return ratio_interval([block.against() for block in self.blocks])


class Record(Kept):
    """Everything that the page shows."""

    build_hash: str
    begin: datetime
    kernel: str
    processor: str
    postgres: str
    sysbench: str | None
    seconds: int
    """How long a run works, without what it waits for its turns."""
    awake: bool
    """Whether idle CPUs polled for work instead of sleeping."""
    results: list[Result] = Field(default_factory=list)
    missing: dict[str, str] = Field(default_factory=dict)
    """Workload -> why it was not measured."""

    @classmethod
    def here(cls, postgres: str, seconds: int, *, awake: bool) -> Record:
        """An empty one, of this machine and this engine."""
        return cls(
            build_hash=engine.facts().build_hash,
            begin=datetime.now(UTC),
            kernel=platform.release(),
            processor=_processor(),
            postgres=postgres,
            sysbench=_sysbench(),
            seconds=seconds,
            awake=awake,
        )

    def put(self, result: Result) -> None:
        """Add a workload, or replace what was measured of it; the order stays."""
        names = [other.workload for other in self.results]
        if result.workload in names:
            self.results[names.index(result.workload)] = result
        else:
            self.results.append(result)

    def goes_on(self, other: Record) -> bool:
        """Whether ``other`` is a part of the same: same machine, same programs, same length."""
        facts = {"build_hash", "kernel", "processor", "postgres", "sysbench", "seconds", "awake"}
        return self.model_dump(include=facts) == other.model_dump(include=facts)


def measure(
    bench: Bench,
    workload: Workload,
    seconds: int,
    over: Callable[[], bool],
    tell: Callable[[str], None],
    kept: Result | None = None,
) -> Result:
    """Blocks until there are :func:`enough`, with those of a part that was ``kept``; none is begun once the time is ``over``."""
    original = same.asked(bench, workload, "original") if kept is None else kept.asked_original
    native = same.asked(bench, workload, "native") if kept is None else kept.asked_native
    blocks = list(kept.blocks) if kept else []
    order = random.Random(f"pgdyno equivalence {workload.name} {len(blocks)}")
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


def enough(blocks: Sequence[Block]) -> bool:
    """Whether more blocks would tell nothing more that is asked for: at least :data:`PAIRS_MIN`, and both intervals decide."""
    if len(blocks) < PAIRS_MIN:
        return False
    return len(blocks) >= PAIRS_MAX or all(_decides(estimate) for estimate in _estimates(blocks))


def inside(estimate: Estimate) -> bool:
    """Whether a ratio's whole interval is within :data:`BAND`."""
    return (
        estimate.low is not None and estimate.high is not None and BAND[0] <= estimate.low and estimate.high <= BAND[1]
    )


def _decides(estimate: Estimate) -> bool:
    """Whether the interval is narrow, and neither edge of the band is within it: a narrow one across an edge says nothing yet."""
    if estimate.low is None or estimate.high is None or half_width(estimate) > HALF_WIDTH_MAX:
        return False
    return inside(estimate) or estimate.high < BAND[0] or estimate.low > BAND[1]


def half_width(estimate: Estimate) -> float:
    """Half of a ratio's interval, as a share of 1; a single pair has none, and nothing is wider."""
    if estimate.low is None or estimate.high is None:
        return float("inf")
    return (estimate.high - estimate.low) / 2


def _estimates(blocks: Sequence[Block]) -> tuple[Estimate, Estimate]:
    return ratio_interval([block.itself() for block in blocks]), ratio_interval([block.against() for block in blocks])


def _block(bench: Bench, workload: Workload, seconds: int, number: int, order: random.Random) -> Block:
    """Three runs with the same seed, in turns: as often as there are runs, so that each has had each of the clones.

    Where in memory a clone lies makes a difference of some per cent, and it is the same from one block to the next.
    """
    transactions, worked_s = dict.fromkeys(TURNS, 0), dict.fromkeys(TURNS, 0.0)
    clones = [replace(bench, database=f"{bench.database}_{place}") for place in range(len(TURNS))]
    for part in range(len(TURNS)):
        for clone in clones:
            clone.restore(workload)
        given = {turn: clones[(place + part) % len(TURNS)] for place, turn in enumerate(TURNS)}
        # Each works a third of the time in each of three parts.
        turns = _in_turns(given, workload, number, Length(CLIENTS, seconds=seconds), order)
        for turn, (count, second) in turns.items():
            transactions[turn] += count
            worked_s[turn] += second
    return Block(**{turn: transactions[turn] / worked_s[turn] for turn in TURNS})


def _in_turns(
    given: dict[Turn, Bench], workload: Workload, seed: int, length: Length, order: random.Random
) -> dict[Turn, tuple[int, float]]:
    """Transactions of each run, and the seconds that it worked: by its own measure, less what it was stopped for."""
    document: dict[Turn, tuple[int, float]] = {}
    with ExitStack() as stack:
        started: dict[Turn, drivers.Driver] = {}
        for turn, clone in given.items():
            side: drivers.Side = "native" if turn == "native" else "original"
            started[turn] = stack.enter_context(drivers.ready(clone, workload, side, seed, length))
        taken = turns.take({turn: driver.begin for turn, driver in started.items()}, order)
        for turn, driver in started.items():
            run = driver.said()
            own_s = run.transactions / run.tps
            if own_s < taken[turn].after_first_s - _END_S:
                raise PgdynoError(
                    f"a driver of {workload.name} was stopped while it connected",
                    remedy="run it when the machine is quieter",
                )
            document[turn] = (run.transactions, own_s - taken[turn].stopped_s)
    return document


def _said(blocks: Sequence[Block]) -> str:
    last = blocks[-1]
    itself, native = _estimates(blocks)
    widths = ", ".join(f"{estimate.mean:.4f} ± {half_width(estimate):.4f}" for estimate in (itself, native))
    runs = ", ".join(f"{tps:,.0f}" for tps in (last.first, last.again, last.native))
    return f"{runs} TPS; again and native against first: {widths}"


def _processor() -> str:
    match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return match[1] if match else platform.machine()


def _sysbench() -> str | None:
    try:
        stdout = subprocess.run(["sysbench", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return stdout.strip() or None

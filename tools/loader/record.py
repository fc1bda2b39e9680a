"""What was measured: each way of loading the same file, several times in turns."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median, stdev

from pydantic import BaseModel

from tools.measured import Dated

MEMORY_BYTES_MAX = 256 << 20
"""What the engine may take for any input (the issue's)."""


class Run(BaseModel, frozen=True):
    """One load of one file, into an empty table."""

    arm: str
    round: int
    megabytes: float
    """Of uncompressed input, 10^6 bytes."""
    loaded_s: float
    """Until everything is committed and the client has ended."""
    checkpoint_s: float
    """The CHECKPOINT after it."""
    server_cpu_s: float
    """Of all processes of the server, without the CHECKPOINT."""
    client_cpu_s: float
    """0 where the server reads the file itself."""
    rss_bytes_max: int | None = None
    """Of the engine."""

    @property
    def seconds(self) -> float:
        """Until everything is on disk."""
        return self.loaded_s + self.checkpoint_s


class Record(Dated, frozen=True):
    """All of it."""

    runs: list[Run]
    left_out: list[str]
    """Arms that this machine could not measure, and why."""

    def of(self, arm: str) -> list[Run]:
        """The runs of one arm, in the order of rounds."""
        return sorted((run for run in self.runs if run.arm == arm), key=lambda run: run.round)

    @property
    def arms(self) -> list[str]:
        """Those that have runs, as they were first met."""
        return list(dict.fromkeys(run.arm for run in self.runs))


class Ratio(BaseModel, frozen=True):
    """A ratio from pairs of one round each, with what it is uncertain by: 95 %, of Student's t on logarithms."""

    value: float
    low: float
    high: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(values: list[float]) -> Ratio:
    """The geometric mean of ratios."""
    from scipy import stats

    logs = [math.log(value) for value in values]
    middle = fmean(logs)
    half = float(stats.t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return Ratio(
        value=math.exp(middle), low=math.exp(middle - half), high=math.exp(min(middle + half, 700.0)), pairs=len(logs)
    )


def rate(runs: list[Run], seconds: Callable[[Run], float] = lambda run: run.seconds) -> float:
    """Megabytes a second, half of the runs at least."""
    return median(run.megabytes / seconds(run) for run in runs)


def beside(record: Record, arm: str, other: str) -> Ratio:
    """How many times the rate of ``other`` the rate of ``arm`` is, round by round."""
    others = {run.round: run for run in record.of(other)}
    return ratio(
        [
            (run.megabytes / run.seconds) / (others[run.round].megabytes / others[run.round].seconds)
            for run in record.of(arm)
            if run.round in others
        ]
    )


def client_share(record: Record, arm: str) -> Ratio:
    """CPU of the client as a part of the server's."""
    return ratio([run.client_cpu_s / run.server_cpu_s for run in record.of(arm)])


class Bound(BaseModel, frozen=True):
    """What a packed file could reach in one round, by CPU alone."""

    unpack_s: float
    """D: CPU seconds to decompress one megabyte."""
    copy_s: float
    """C: CPU seconds of client and server to load one that is not compressed."""
    per_s: float
    """min(1/D, cores/(D + C)): megabytes a second."""
    reached_per_s: float
    """Until everything was committed: what the formula knows nothing of, the CHECKPOINT behind it, is left out of both."""


def bounds(record: Record, packed: str, plain: str) -> list[Bound]:
    """The bound of each round, from the plain file's run in it."""
    others = {run.round: run for run in record.of(plain)}
    bounds = []
    for run in record.of(packed):
        other = others.get(run.round)
        if other is None:
            continue
        unpack_s = max(run.client_cpu_s - other.client_cpu_s, 1e-6) / run.megabytes
        copy_s = (other.server_cpu_s + other.client_cpu_s) / other.megabytes
        per_s = min(1 / unpack_s, record.cores / (unpack_s + copy_s))
        reached = run.megabytes / run.loaded_s
        bounds.append(Bound(unpack_s=unpack_s, copy_s=copy_s, per_s=per_s, reached_per_s=reached))
    return bounds

"""Measurements of a disk with fio: jobs, their answers, and distributions of latencies.

Between two probabilities of a table the model draws a straight line. A tail of rare large values between the last two
would then weigh far too much, so the last value is not the largest that was seen but the one that keeps the tail's mean.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...base import engine
from ...base.errors import HostError

if TYPE_CHECKING:
    import numpy as np


PROBABILITIES_PPM = (
    *(0, 10_000, 50_000, 100_000, 250_000, 500_000, 750_000, 900_000, 950_000, 980_000),
    *(990_000, 995_000, 999_000, 1_000_000),
)
"""Probabilities of a service time's table. The body is narrow and the tail long, so the points are denser above the median."""
TAIL_SAMPLES = 5
"""A probability above which fewer samples lie than this says nothing that the one below it does not."""


@dataclass(frozen=True)
class LatencyDistribution:
    """Nanoseconds in ascending order, each with how often it occurred."""

    values_ns: np.ndarray[Any, Any]
    counts: np.ndarray[Any, Any]

    @classmethod
    def of_bins(cls, bins: Mapping[str, int]) -> LatencyDistribution:
        """From fio's ``bins``: the middle of each bin, which is 1/64 of its power of two wide, and its count."""
        import numpy as np

        pairs = sorted((int(value), count) for value, count in bins.items() if count)
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.sum())

    @property
    def mean_ns(self) -> float:
        """The mean, in nanoseconds."""
        return float((self.values_ns * self.counts).sum() / self.counts.sum())

    def quantile_ns(self, share: float) -> float:
        """The value that ``share`` (0 to 1) of the requests do not exceed, to the width of a bin."""
        import numpy as np

        reached = np.cumsum(self.counts)
        # Half of a request less: 0.99 of 100 requests must not be the hundredth for a rounding of the product.
        at = int(np.searchsorted(reached, share * reached[-1] - 0.5, side="left"))
        return float(self.values_ns[min(at, len(self.values_ns) - 1)])

    def plus(self, other: LatencyDistribution) -> LatencyDistribution:
        """The distribution of the sum of two independent times (a write and the flush after it)."""
        import numpy as np

        values = np.add.outer(self.values_ns, other.values_ns).ravel()
        weights = np.multiply.outer(self.counts, other.counts / other.counts.sum()).ravel()
        order = np.argsort(values, kind="stable")
        return LatencyDistribution(values[order], weights[order])

    def mean_above_ns(self, share: float) -> float:
        """Mean of the values above a quantile, the value at the quantile counted by its part above it."""
        import numpy as np

        reached = np.cumsum(self.counts) / self.counts.sum()
        weight = np.clip(reached - share, 0.0, self.counts / self.counts.sum())
        return float((self.values_ns * weight).sum() / weight.sum())


def table_ns(distribution: LatencyDistribution, less_ns: float, probabilities_ppm: Sequence[int]) -> list[int]:
    """Quantiles at ``probabilities_ppm``, all less ``less_ns`` and never below 0, ascending whole nanoseconds."""
    points = [distribution.quantile_ns(ppm / 1e6) for ppm in probabilities_ppm[:-1]]
    tail_ns = distribution.mean_above_ns(probabilities_ppm[-2] / 1e6)
    points.append(max(points[-1], 2 * tail_ns - points[-1]))
    table: list[int] = []
    for point in points:
        table.append(max(round(point - less_ns), table[-1] if table else 0, 0))
    return table


def probabilities_ppm(samples: int) -> tuple[int, ...]:
    """Those of :data:`PROBABILITIES_PPM` of which ``samples`` values can tell something; up to the median always."""
    kept = [ppm for ppm in PROBABILITIES_PPM[:-1] if ppm <= 500_000 or (1e6 - ppm) * samples >= TAIL_SAMPLES * 1e6]
    return (*kept, PROBABILITIES_PPM[-1])


def table_mean_ns(table: Sequence[int], ppm: Sequence[int]) -> float:
    """Mean of a quantile table with straight lines between its points, as the model draws from it."""
    parts = zip(ppm, ppm[1:], table, table[1:], strict=False)
    return sum((high - low) * (below + above) / 2 for low, high, below, above in parts) / 1e6


Op = Literal["read", "write"]
PATIENCE_S = 60.0
"""What fio may take beyond its time: a slow disk with many requests outstanding answers the last ones late."""
_KILLED_S = 10.0
"""What fio may take to be gone once it is killed: one that waits for a disk that does not answer stays until it does."""
_START_S = 0.5
"""What fio takes to begin and to end, for the estimate of what is left."""


@dataclass(frozen=True)
class FioJob:
    """One job: requests of one operation, direct, for a time."""

    op: Op
    block_kib: int
    depth: int
    seconds: int
    random: bool = True
    rate_per_s: int | None = None
    """Requests a second at most; the job then sleeps between them, as a server with little to do."""
    synced: bool = False
    """A write is followed by ``fdatasync``, which counts with it: what a commit waits for."""
    large_kib: int | None = None
    """Size of some of the requests, instead."""
    large_percent: int = 0
    """Share of these requests, in per cent."""
    logged: bool = False
    """Keep every completion with its time."""
    most_mib: int = 256
    """A write job ends when it has written so much, though its time be not over."""

    @property
    def takes_s(self) -> float:
        """About how long it runs."""
        return self.seconds + _START_S

    def words(self, path: str, region_bytes: int, log: Path | None) -> list[str]:
        """The command line of fio."""
        kind = {("read", True): "randread", ("write", True): "randwrite"}.get((self.op, self.random), self.op)
        words = [
            *("fio", "--name=fit", f"--filename={path}", f"--size={region_bytes}", "--direct=1"),
            # A process for the job would have its own session, too, and continue when fio is killed.
            "--thread",
            # One at a time by system calls, as PostgreSQL writes its WAL. fio counts its own sleep between requests into
            # an fdatasync that it asked for by libaio.
            f"--ioengine={'psync' if self.depth == 1 else 'libaio'}",
            *(f"--rw={kind}", f"--iodepth={self.depth}", f"--runtime={self.seconds}", "--norandommap"),
            *("--randrepeat=0", "--randseed=1", "--lat_percentiles=1", "--output-format=json+", "--fallocate=none"),
        ]
        if self.large_kib is None:
            words.append(f"--bs={self.block_kib}k")
        else:
            small = 100 - self.large_percent
            words.append(f"--bssplit={self.block_kib}k/{small}:{self.large_kib}k/{self.large_percent}")
        words += ["--time_based"] if self.op == "read" else [f"--io_size={self.most_mib}m"]
        words += [f"--rate_iops={self.rate_per_s}"] if self.rate_per_s else []
        words += ["--fdatasync=1"] if self.synced else []
        words += [f"--write_lat_log={log}", "--disable_clat=1", "--disable_slat=1"] if log else []
        return words


@dataclass(frozen=True)
class Course:
    """Every completion of a job: when, in seconds since the job began, and how long it took."""

    done_s: np.ndarray[Any, Any]
    latency_ns: np.ndarray[Any, Any]


@dataclass(frozen=True)
class JobResult:
    """What fio saw of one job."""

    job: FioJob
    per_s: float
    """Completions a second."""
    bytes_per_s: float
    written_bytes: int
    latency: LatencyDistribution
    """From before the submission to after the completion; with the flush, where the job asked for one."""
    course: Course | None = None


def require_fio() -> str:
    """Version of fio. :class:`HostError` when it is not installed."""
    if shutil.which("fio") is None:
        raise HostError("this machine has no fio, which measures the disk", remedy="install it (apt install fio)")
    return subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()


def ask(path: str, region_bytes: int, job: FioJob, scratch: Path) -> JobResult:
    """Run one job. ``scratch`` is where fio writes down what it sees; it must not be on the disk that is measured."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        log = Path(folder) / "course" if job.logged else None
        fio = _fio(job.words(path, region_bytes, log), job.seconds + PATIENCE_S, Path(folder), path)
        result = json.loads(fio[fio.index("{") :])["jobs"][0]
        side = result[job.op]
        # Before the log is read: of a disk that completed nothing it is empty.
        if not side["total_ios"]:
            raise HostError(f"{path} completed no {job.op} in {job.seconds} s", remedy="see whether the disk works")
        course = _course(Path(f"{log}_lat.1.log")) if log else None
    latency = LatencyDistribution.of_bins(side["lat_ns"]["bins"])
    if job.synced:
        latency = latency.plus(LatencyDistribution.of_bins(result["sync"]["lat_ns"]["bins"]))
    seconds = side["runtime"] / 1000
    moved = int(side["io_bytes"])
    return JobResult(
        job=job,
        per_s=LatencyDistribution.of_bins(side["lat_ns"]["bins"]).total / seconds,
        bytes_per_s=moved / seconds,
        written_bytes=moved if job.op == "write" else 0,
        latency=latency,
        course=course,
    )


def _fio(command: Sequence[str], timeout_s: float, folder: Path, path: str) -> str:
    process = subprocess.Popen(
        engine.child(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    try:
        answer, complaint = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise HostError(
            f"fio did not end on {path} within {timeout_s:.0f} s", remedy="see whether the disk answers at all"
        ) from None
    except BaseException:
        _kill(process)
        raise
    if process.returncode != 0:
        raise HostError(f"fio failed on {path}: {(complaint or answer).strip()[-500:]}", remedy="see what fio says")
    return answer


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_KILLED_S)


def _course(log: Path) -> Course:
    """A log of fio: milliseconds since the job began, nanoseconds, direction, size, ... on each line."""
    import numpy as np

    table = np.loadtxt(log, delimiter=",", usecols=(0, 1), ndmin=2)
    return Course(table[:, 0] / 1000, table[:, 1])

"""Questions to a disk, asked with fio: what is asked, and what came back.

fio is the judge because it knows nothing of pgdyno: both sides of a comparison are what it sees.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...base import engine
from ...base.errors import HostError
from .distribution import LatencyDistribution

if TYPE_CHECKING:
    import numpy as np

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

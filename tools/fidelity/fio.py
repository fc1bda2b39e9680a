"""fio as the judge: it knows nothing of the volume behind the device."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pgdyno.base.errors import HostError
from tools.fidelity.cell import REGION_MIB, Job
from tools.fidelity.latency import Latency

if TYPE_CHECKING:
    from pathlib import Path

PERCENTILES = (1.0, 50.0, 99.0)


@dataclass(frozen=True)
class Measured:
    """What fio saw of one job, reads and writes together."""

    iops: float
    mib_per_s: float
    latency: Latency
    """From before the submission to after the completion (fio's ``lat``): what the application waits for."""

    @property
    def latency_ms(self) -> dict[float, float]:
        """:data:`PERCENTILES` in milliseconds."""
        return {percent: self.latency.percentile_ns(percent) / 1e6 for percent in PERCENTILES}

    def __str__(self) -> str:
        shape = ", ".join(f"p{percent:g} {value:.3f}" for percent, value in self.latency_ms.items())
        return f"{self.iops:.1f} IOPS, {self.mib_per_s:.1f} MiB/s, mean {self.latency.mean_ns / 1e6:.3f} ms ({shape})"


class Logged(NamedTuple):
    """One request as fio logs it."""

    at_ms: int
    """When it was completed, since the job began."""
    latency_ns: int
    offset: int
    """In bytes."""


def require() -> None:
    """:class:`HostError` when fio is not installed."""
    if shutil.which("fio") is None:
        raise HostError("fio is not installed", remedy="apt install fio")


def run(device: str, job: Job, *, seed: int = 1, launcher: Sequence[str] = (), log: Path | None = None) -> Measured:
    """Run a job on a block device, in front of it the words of ``launcher``. The same seed asks for the same blocks.

    ``log`` gets a line for each request, for :func:`read_log`.
    """
    command = [
        *(*launcher, "fio", "--name=judge", f"--filename={device}", f"--size={REGION_MIB}m", "--direct=1"),
        *("--ioengine=libaio", f"--rw={job.rw}", "--rwmixread=70", f"--bs={job.block_kib}k", f"--iodepth={job.depth}"),
        *(f"--runtime={job.seconds}", "--time_based", f"--ramp_time={job.ramp_s}", "--norandommap"),
        *("--randrepeat=0", f"--randseed={seed}", "--lat_percentiles=1", "--output-format=json+"),
        *((f"--write_lat_log={log}", "--log_offset=1") if log is not None else ()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostError(f"fio failed on {device}: {done.stderr.strip()[-500:]}", remedy="see what fio says")
    result = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    sides = [_side(side) for side in (result["read"], result["write"]) if side["total_ios"]]
    latency = sides[0][1] if len(sides) == 1 else sides[0][1].merged(sides[1][1])
    iops = sum(rate for rate, _ in sides)
    return Measured(iops, iops * job.block_kib / 1024, latency)


def _side(side: dict[str, Any]) -> tuple[float, Latency]:
    """Completions a second, and their latency.

    fio's own ``iops`` counts what was issued, but over a time that includes the end, when it waits for the last
    requests and issues none: at depth 128 and 500 IOPS that is 5 % too little in 5 s.
    """
    latency = Latency.of_bins((int(value), count) for value, count in side["lat_ns"]["bins"].items())
    return latency.total / side["runtime"] * 1000, latency


def read_log(log: Path) -> list[Logged]:
    """Each request of one job, in the order in which they were completed; the files are removed."""
    kinds = [log.with_name(f"{log.name}_{kind}.1.log") for kind in ("lat", "clat", "slat")]
    lines = [line.split(", ") for line in kinds[0].read_text(encoding="ascii").splitlines()]
    for file in kinds:
        file.unlink(missing_ok=True)
    return [Logged(at_ms=int(line[0]), latency_ns=int(line[1]), offset=int(line[4])) for line in lines]


def fill(device: str) -> None:
    """Write the whole region once, as fast as it goes."""
    command = [
        *("fio", "--name=fill", f"--filename={device}", f"--size={REGION_MIB}m", "--direct=1", "--ioengine=libaio"),
        *("--rw=write", "--bs=256k", "--iodepth=8", "--output=/dev/null"),
    ]
    subprocess.run(command, capture_output=True, check=True)

"""fio as the judge of an emulated volume."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """What fio saw of one job."""

    iops: float
    mib_per_s: float
    latency_ms: dict[float, float]
    """Percentile -> completion latency."""
    mean_ms: float

    def __str__(self) -> str:
        """For the message of a failed test."""
        shape = ", ".join(f"p{percent:g} {value:.3f}" for percent, value in self.latency_ms.items())
        return f"{self.iops:.1f} IOPS, {self.mib_per_s:.1f} MiB/s, mean {self.mean_ms:.3f} ms ({shape})"


def run(device: str, *, rw: str, block_kib: int, depth: int, seconds: int, ramp_s: int = 1) -> Measured:
    """Run one job on a block device with direct I/O; ``ramp_s`` at its beginning does not count."""
    command = [
        *("fio", "--name=judge", f"--filename={device}", "--direct=1", "--ioengine=libaio", f"--rw={rw}"),
        *(f"--bs={block_kib}k", f"--iodepth={depth}", f"--runtime={seconds}", "--time_based", f"--ramp_time={ramp_s}"),
        *("--norandommap", "--randrepeat=0", "--percentile_list=1:50:99", "--output-format=json"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    side = job["write" if "write" in rw else "read"]
    latency = side["clat_ns"]
    percentiles = {float(name): value / 1e6 for name, value in latency["percentile"].items()}
    return Measured(side["iops"], side["bw_bytes"] / 2**20, percentiles, latency["mean"] / 1e6)

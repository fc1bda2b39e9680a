"""What the model says of a job: the recorded requests put through it again, as an ideal host would submit them.

An ideal host keeps the job's depth outstanding and takes no time itself, so its rate and latencies are the model's
alone. The recording gives the requests (operation, place, size) and their order; the random values of the model follow
from seed and order, so at depth 1 both are the same requests with the same service times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from tools.fidelity import submit_log
from tools.fidelity.latency import Latency

if TYPE_CHECKING:
    from pathlib import Path

    from tools.fidelity.cell import Job

REPLAY_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Modelled:
    """Rate and latency of the ideal host, over the same part of the job as fio's."""

    iops: float
    mib_per_s: float
    latency: Latency
    exact_ns: dict[float, float]
    """Percentiles from every single value."""


def predict(log: Path, job: Job, percentiles: tuple[float, ...], dilation: int = 1) -> Modelled:
    """Put the requests of ``log`` through the model; the result is beside the log while it is read.

    The job's seconds are real ones: a dilated volume lived through fewer.
    """
    import numpy as np

    ideal = log.with_suffix(".ideal")
    command = ["replay", str(log), "--ideal", str(ideal), "--depth", str(job.depth)]
    engine.run_json(command, timeout_s=REPLAY_TIMEOUT_S)
    requests = submit_log.read(ideal)
    ideal.unlink()
    # An ideal host that is much faster than this one is through the recording before the ramp is over.
    span_ns = int(requests.submitted_ns[-1] - requests.submitted_ns[0])
    begin_ns = requests.submitted_ns[0] + min(job.ramp_s * 10**9 // dilation, span_ns // 2)
    # The recording may hold fewer requests than the ideal host would have had time for.
    end_ns = min(begin_ns + job.seconds * 10**9 // dilation, requests.submitted_ns[-1])
    counted = (requests.done_ns > begin_ns) & (requests.done_ns <= end_ns)
    if not counted.any():
        raise PgdynoError(f"{log} holds no request after the ramp", remedy="measure for longer")
    latency_ns = requests.latency_ns[counted]
    iops = int(counted.sum()) / (end_ns - begin_ns) * 1e9
    exact = {percent: float(np.percentile(latency_ns, percent)) for percent in percentiles}
    return Modelled(float(iops), float(iops) * job.block_kib / 1024, Latency.of_values(latency_ns), exact)


def identical(log: Path) -> tuple[int, int]:
    """How many completions a replay of the recorded arrivals gives to the nanosecond, and how many there are."""
    result = engine.run_json(["replay", str(log)], timeout_s=REPLAY_TIMEOUT_S)
    if not result["complete"]:
        raise PgdynoError(f"{log} is incomplete: its writer could not keep up", remedy="measure on a quieter machine")
    return int(result["identical"]), int(result["grants"])

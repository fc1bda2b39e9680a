"""Under its limit a volume delivers its rate, and the latency that queue depth, rate and order demand.

What the model says of the requests that fio sent is judged as from an ideal host, so a busy machine changes nothing. What
fio itself measured is held to what holds on any machine; how close it comes is measured by ``make bench ONLY=fidelity``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fidelity.conftest import off
from tools.fidelity import fio, model
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fidelity.conftest import Attach

pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio]

SHAPES = {"fifo": {1: 1.0, 50: 1.0, 99: 1.0}, "gamma": {50: 0.84, 90: 1.94, 99: 3.32}}
"""Percentiles of latency, in means: a constant, and a gamma law of shape 2."""
SHAPE_TOLERANCE = {"fifo": 0.01, "gamma": 0.10}
"""A gamma law's own scatter in 4 s is below 10 % at its 99th percentile."""
PERCENTILES = (1.0, 50.0, 90.0, 99.0)
SAVED_S = 1.0
"""Seconds of its rate that a bucket saves while this host is too busy to ask: they may fall into any stretch of time."""


def run(attach: Attach, spec: str, job: Job, log: Path) -> tuple[fio.Measured, model.Modelled]:
    """What fio measured, and what the model says of the same requests when an ideal host sends them."""
    result = attach(spec, submit_log=log)
    measured = fio.run(result.block_device, job)
    result.detach()
    identical, grants = model.identical(log)
    assert identical == grants > 0, "a replay of the recorded arrivals gives other completions"
    return measured, model.predict(log, job, PERCENTILES)


@pytest.mark.parametrize("order", SHAPES)
def test_random_reads_at_depth_32_have_the_rate_and_the_shape_of_a_3000_iops_volume(
    order: str, attach: Attach, tmp_path: Path
) -> None:
    """The rate, the mean by Little's law, and the order's shape."""
    job = Job("random", "read", 4, 32, 4)
    measured, modelled = run(attach, f"gp3:iops=3000,order={order}", job, tmp_path / "log")
    mean_ns = 32 / 3000 * 1e9
    faults = off("IOPS", modelled.iops, 3000, 0.005) + off("mean", modelled.latency.mean_ns, mean_ns, 0.01)
    for percent, means in SHAPES[order].items():
        faults += off(f"p{percent}", modelled.exact_ns[percent], means * mean_ns, SHAPE_TOLERANCE[order])
    assert not faults
    assert measured.iops <= 3000 * (1 + SAVED_S / job.seconds) * 1.01


def test_large_writes_have_the_throughput_and_not_the_iops_of_their_volume(attach: Attach, tmp_path: Path) -> None:
    job = Job("random", "write", 256, 8, 4)
    measured, modelled = run(attach, "gp3:iops=3000,throughput=125", job, tmp_path / "log")
    assert not off("MiB/s", modelled.mib_per_s, 125, 0.01)
    assert measured.mib_per_s <= 125 * (1 + SAVED_S / job.seconds) * 1.01


def test_the_burst_is_one_second_of_the_rate(attach: Attach, tmp_path: Path) -> None:
    """A volume at rest has one second's worth of IOPS saved: in 4 s it delivers five seconds' worth."""
    job = Job("random", "read", 4, 32, 4, ramp_s=0)
    measured, modelled = run(attach, "gp3:iops=3000", job, tmp_path / "log")
    assert not off("IOPS", modelled.iops, 3000 * 5 / 4, 0.03)
    assert measured.iops <= 3000 * 5 / 4 * 1.01

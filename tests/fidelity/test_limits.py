"""Under its limit a volume delivers its rate, and the latency that queue depth and rate demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fidelity import fio
from tests.fidelity.conftest import empty_buckets, in_tries, off

if TYPE_CHECKING:
    from tests.fidelity.conftest import Attach

pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.slow]


def test_random_reads_at_depth_32_have_the_rate_and_the_shape_of_a_3000_iops_volume(attach: Attach) -> None:
    """30 s after the bucket is empty: the rate within 0.3 %, p1 to p99 within 6 % of depth / IOPS."""
    found = attach("gp3:iops=3000,order=fifo")
    ideal_ms = 32 / 3000 * 1000

    def measure() -> fio.Measured:
        empty_buckets(found)
        return fio.run(found.block_device, rw="randread", block_kib=4, depth=32, seconds=30)

    def faults(measured: object) -> list[str]:
        assert isinstance(measured, fio.Measured)
        shape = [off(f"p{p:g}", ms, ideal_ms, 0.06) for p, ms in measured.latency_ms.items()]
        return off("IOPS", measured.iops, 3000, 0.003) + [fault for part in shape for fault in part]

    in_tries(measure, faults)


def test_large_writes_have_the_throughput_and_not_the_iops_of_their_volume(attach: Attach) -> None:
    found = attach("gp3:iops=3000,throughput=125")

    def measure() -> fio.Measured:
        empty_buckets(found)
        return fio.run(found.block_device, rw="randwrite", block_kib=256, depth=8, seconds=8)

    def faults(measured: object) -> list[str]:
        assert isinstance(measured, fio.Measured)
        return off("MiB/s", measured.mib_per_s, 125, 0.01)

    in_tries(measure, faults)


def test_the_burst_is_one_second_of_the_rate(attach: Attach) -> None:
    """A volume at rest has one second's worth of IOPS saved: in 4 s it delivers five seconds' worth."""
    found = attach("gp3:iops=3000")

    def measure() -> fio.Measured:
        command = ["volume", "credit", found.name, "--percent", "100", "--state-dir", str(found.state_dir)]
        from pgdyno import _engine

        _engine.run_json(command)
        return fio.run(found.block_device, rw="randread", block_kib=4, depth=32, seconds=4, ramp_s=0)

    def faults(measured: object) -> list[str]:
        assert isinstance(measured, fio.Measured)
        return off("IOPS", measured.iops, 3000 * 5 / 4, 0.03)

    in_tries(measure, faults)

"""A volume without a limit beside a plain loop device and QEMU's storage daemon, in one run, in turn.

All stand on memory. The plain loop device is served by the kernel and is there to show what is possible; QEMU's daemon
serves a file by FUSE under a loop device, as pgdyno does.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.fidelity.conftest import in_tries
from tests.speed.conftest import Speed, emulated, of_device, of_volume
from tools.fidelity import device
from tools.fidelity.cell import Job, Limits, Mix

if TYPE_CHECKING:
    from tools.fidelity.device import Bench

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.needs_fio, pytest.mark.needs_qemu]

ROUNDS = 3
SECONDS = 3
NO_LIMIT = Limits(None, None, 256 << 10)
IOPS_RATIO = 1.25
MEDIAN_RATIO = 0.75
"""Beside QEMU's daemon: at least this much more at depth 32, at most this share of the time at depth 1."""
DAEMON_US = 10.0
SERVICE_US = 500
SERVICE_IOPS = 55_000
"""With 500 us each, 32 at a time are 64,000 a second where a path takes no time at all."""


def in_turn(bench: Bench, job: Job) -> dict[str, list[Speed]]:
    """Rounds of the three devices."""
    turn: dict[str, list[Speed]] = {"null": [], "qemu": [], "loop": []}
    for _ in range(ROUNDS):
        with emulated(bench, "null") as volume:
            turn["null"].append(of_volume(volume, job))
        with device.qemu(bench, NO_LIMIT) as opened:
            turn["qemu"].append(of_device("qemu", opened.path, job))
        with device.plain_loop(bench) as opened:
            turn["loop"].append(of_device("loop", opened.path, job))
    print(f"\n{job}", *(f"  {speed}" for speeds in zip(*turn.values(), strict=True) for speed in speeds), sep="\n")
    return turn


@pytest.mark.parametrize("mix", ["read", "write"])
def test_at_depth_32_a_null_volume_has_a_quarter_more_iops_than_qemus_daemon(mix: Mix, bench: Bench) -> None:
    def faults(speeds: dict[str, list[Speed]]) -> list[str]:
        ratio = median(speed.iops for speed in speeds["null"]) / median(speed.iops for speed in speeds["qemu"])
        cpu_us = median(speed.daemon_us or 0.0 for speed in speeds["null"])
        results = [] if ratio >= IOPS_RATIO else [f"{ratio:.2f} times QEMU's IOPS, should be {IOPS_RATIO} at least"]
        return results + (
            [] if cpu_us <= DAEMON_US else [f"{cpu_us:.1f} us of daemon CPU, should be {DAEMON_US} at most"]
        )

    in_tries(lambda: in_turn(bench, Job("random", mix, 4, 32, SECONDS)), faults)


@pytest.mark.parametrize("mix", ["read", "write"])
def test_at_depth_1_a_null_volume_takes_three_quarters_of_the_time_of_qemus_daemon(mix: Mix, bench: Bench) -> None:
    def faults(speeds: dict[str, list[Speed]]) -> list[str]:
        ratio = median(speed.median_us for speed in speeds["null"]) / median(
            speed.median_us for speed in speeds["qemu"]
        )
        return [] if ratio <= MEDIAN_RATIO else [f"{ratio:.2f} of QEMU's median, should be {MEDIAN_RATIO} at most"]

    in_tries(lambda: in_turn(bench, Job("random", mix, 4, 1, SECONDS)), faults)


@pytest.mark.parametrize("mix", ["read", "write"])
def test_500_us_of_service_do_not_cost_the_concurrency(mix: Mix, bench: Bench) -> None:
    """A daemon that loses concurrency on the way shows here: QEMU's gave 16,000 with the same delay."""

    def measure() -> Speed:
        with emulated(bench, f"null:service_us={SERVICE_US}") as volume:
            result = of_volume(volume, Job("random", mix, 4, 32, 5, ramp_s=3))
        print(f"\nrandom {mix}, 4 KiB, depth 32\n  {result}")
        return result

    def faults(speed: Speed) -> list[str]:
        slow = [] if speed.iops >= SERVICE_IOPS else [f"should be {SERVICE_IOPS:,} IOPS at least"]
        return slow + ([] if (speed.daemon_us or 0.0) <= DAEMON_US else [f"should be {DAEMON_US} us of CPU at most"])

    in_tries(measure, faults)

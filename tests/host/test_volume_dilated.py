"""A dilated volume takes so many times longer, counts in its own time, and shares its clock with its instance."""

from __future__ import annotations

import os
import re
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.machine import dirty_limits, volume
from pgdyno.machine.file_system import dilated_options
from pgdyno.machine.instance import InstanceGroup

from .needs import needs_cgroups, needs_fuse
from .test_instance import the_limits_are_free
from .test_volume_instance import read_directly

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.machine.file_system import FileSystem

DILATION = 8
ROUNDS, READS = 5, 20


@needs_fuse
def test_it_is_slower_for_the_host_and_the_same_for_itself(state: Path) -> None:
    with volume.attached("gp3", mount=None, name="v", dilation=DILATION) as attached:
        shown = [attached.stats()]
        host_ns = []
        for _ in range(ROUNDS):
            begin_ns = time.monotonic_ns()
            read_directly(attached.block_device, READS)
            host_ns.append(time.monotonic_ns() - begin_ns)
            shown.append(attached.stats())
        minutes = attached.minutes()
    assert shown[-1]["dilation"] == attached.facts["dilation"] == DILATION
    counts = [(document["counters"]["read_ops"], document["counters"]["read_time_ns"]) for document in shown]
    ops, time_ns = counts[-1][0] - counts[0][0], counts[-1][1] - counts[0][1]
    assert ops >= ROUNDS * READS
    assert 300_000 < time_ns / ops < 900_000, "gp3's service time, in the volume's own time"
    # One read after the other: the host waited for each of them, so many times longer. A host that stops for a moment
    # makes a round longer, and not all of them.
    ratios = [
        took / (DILATION * (after - before))
        for took, ((_, before), (_, after)) in zip(host_ns, pairwise(counts), strict=True)
    ]
    assert all(ratio > 0.9 for ratio in ratios)
    assert min(ratios) < 1.3
    elapsed_ns = minutes["anchor"]["monotonic_ns"] - attached.facts["started_monotonic_ns"]
    assert elapsed_ns < (time.monotonic_ns() - attached.facts["started_monotonic_ns"]) / DILATION


@needs_fuse
def test_a_volume_that_joins_has_the_instances_clock(state: Path) -> None:
    with (
        volume.attached("gp3", mount=None, name="v", instance="db", dilation=2),
        pytest.raises(PgdynoError, match="dilation 2"),
    ):
        volume.attach("gp3", mount=None, name="w", instance="db")


@needs_fuse
def test_what_is_no_dilation_is_refused(state: Path) -> None:
    with pytest.raises(PgdynoError, match="whole number from 1 to 1000"):
        volume.attach("gp3", mount=None, name="v", dilation=1001)


@pytest.mark.sets_limits
@needs_cgroups
def test_the_kernels_times_follow_and_return(state: Path) -> None:
    if not the_limits_are_free():
        pytest.skip("another run on this machine holds the kernel's dirty limits")
    before = dirty_limits.current_timers()
    with InstanceGroup(f"test-{os.getpid()}", 128 << 20, dilation=DILATION) as instance:
        assert dirty_limits.current_timers() == {name: value * DILATION for name, value in before.items()}
        assert instance.facts["sysctls"]["vm.dirty_expire_centisecs"]["old"] == before["vm.dirty_expire_centisecs"]
    assert dirty_limits.current_timers() == before


@pytest.mark.parametrize(
    ("file_system", "options", "dilation", "wanted"),
    [
        ("ext4", "", 1, ""),
        ("ext4", "", 8, "commit=40"),
        ("ext4", "noatime,commit=30", 2, "noatime,commit=60"),
        ("xfs", "noatime", 8, "noatime"),
    ],
)
def test_the_file_systems_own_timer(file_system: FileSystem, options: str, dilation: int, wanted: str) -> None:
    assert dilated_options(file_system, options, dilation) == wanted


@needs_fuse
def test_when_it_may_be_modified_again_is_said_in_real_minutes(state: Path) -> None:
    with volume.attached("gp3:size=10GiB", mount=None, name="v", dilation=DILATION) as attached:
        attached.modify("gp3:size=10GiB,iops=4000", optimizing_s=3600)
        with pytest.raises(PgdynoError) as caught:
            attached.modify("gp3:size=10GiB,iops=5000")
    match = re.search(r"again in (\d+) min", caught.value.remedy)
    assert match is not None
    # An hour of the volume's, less the minutes that a slow host has taken by now.
    assert 60 * DILATION - 60 < int(match[1]) <= 60 * DILATION + 1

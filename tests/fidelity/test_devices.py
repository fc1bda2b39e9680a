"""Each kind of volume is what it says, is measured, and leaves nothing (the leak check looks)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import HostError
from tests.fidelity.conftest import EARLY
from tools.fidelity import device, fio, measure
from tools.fidelity.cell import Cell, Job, Limits, World

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio]

SHORT = Job("random", "read", 4, 32, 2)
VOLUME = "gp3:iops=3000,order=fifo"


@pytest.fixture(scope="module")
def bench() -> Iterator[device.Bench]:
    """Filled once: nothing that is measured here depends on what is in it."""
    with tempfile.TemporaryDirectory(prefix="s-") as folder, device.bench(Path(folder).resolve() / "state") as made:
        yield made


OTHERS: tuple[World, ...] = ("blk-throttle", "qemu")
"""What fidelity is compared with."""


@pytest.mark.parametrize("world", ["pgdyno", *(pytest.param(world, marks=pytest.mark.bench) for world in OTHERS)])
def test_a_limit_is_kept_by_whoever_promises_it(world: World, bench: device.Bench) -> None:
    """No more than 5 % above it in 2 s, and a busy machine may get less: without a limit it would be 30 times as much."""
    if reason := device.missing(world):
        pytest.skip(reason)
    point = measure.measure(Cell("test", world, VOLUME, SHORT), bench, os.cpu_count() or 1)
    assert 300 < point.measured.iops <= 3000 * 1.05
    assert point.asked_iops == 3000
    assert sum(second.requests for second in point.seconds) >= point.measured.iops * SHORT.seconds * 0.95
    if world == "pgdyno":
        assert point.modelled is not None
        assert point.daemon is not None
        assert point.modelled.iops == pytest.approx(3000, rel=0.01)
        assert point.modelled.percentile_ns(50) == pytest.approx(32 / 3000 * 1e9, rel=0.01)
        assert point.daemon.replay_identical == point.daemon.replay_grants >= point.measured.iops * SHORT.seconds * 0.95


def test_one_request_at_a_time_is_never_faster_than_the_model_says_of_the_same_draws(bench: device.Bench) -> None:
    """Not at once, at the median; `make bench` has how close it comes."""
    point = measure.measure(Cell("test", "pgdyno", "gp3", Job("random", "write", 4, 1, 3)), bench, os.cpu_count() or 1)
    assert point.modelled is not None
    assert point.measured.percentile_ns(50) >= point.modelled.percentile_ns(50) * EARLY


def test_what_is_read_was_written_before(bench: device.Bench) -> None:
    """Reads of a hole move nothing: the region of every device is filled."""
    with device.plain_loop(bench) as loop, device.pgdyno(bench, "null", seed=1, submit_log=None) as volume:
        for path in (loop.path, volume.path):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                assert any(os.pread(descriptor, 4096, 100 << 20))
            finally:
                os.close(descriptor)


def test_a_device_on_another_file_than_asked_for_is_refused(bench: device.Bench) -> None:
    """A mount that came late would leave a plain file: nothing is measured on it."""
    with pytest.raises(HostError, match="not what was asked for"), device._loop(bench.file, fstype="fuse"):
        pass


def test_a_throttle_without_limits_throttles_nothing(bench: device.Bench) -> None:
    if reason := device.missing("blk-throttle"):
        pytest.skip(reason)
    with device.blk_throttle(bench, Limits(None, None, 1), read_share=1.0) as blk_throttle:
        # More than the limits above let through; a quiet machine does ten times as much.
        assert fio.run(blk_throttle.path, Job("random", "read", 4, 8, 1), launcher=blk_throttle.launcher).iops > 4000

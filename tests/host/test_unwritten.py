"""An instance's limit of dirty memory follows the machine's backlog down: no writer is stopped by it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import HostError
from pgdyno.machine import unwritten, volume
from pgdyno.machine.cgroup import find_hierarchy
from pgdyno.machine.dirty_limits import current_limits
from pgdyno.machine.instance import InstanceGroup
from pgdyno.machine.unwritten import lower_limit

from .needs import needs_cgroups, needs_fuse
from .test_instance import the_limits_are_free

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20
LIMIT = 20 * MIB


class Disk:
    """A backlog, and what becomes of it in each pause."""

    def __init__(self, backlog: int, after_a_pause: Callable[[int, int], int]) -> None:
        self.backlog = backlog
        self.limits: list[int] = []
        self.pauses = self.pauses_below = 0
        self._after_a_pause = after_a_pause

    def set_limit(self, limit: int) -> None:
        """The kernel's."""
        assert limit == LIMIT or limit > self.backlog or limit in self.limits, "every writer of the machine would stop"
        self.limits.append(limit)

    def pause(self, _seconds: float) -> None:
        """The disk writes meanwhile."""
        self.pauses += 1
        self.pauses_below += self.limits[-1] < self.backlog
        self.backlog = self._after_a_pause(self.backlog, self.limits[-1])


def lowered(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The limits that were set."""
    monkeypatch.setattr(unwritten, "unwritten_bytes", lambda: disk.backlog)
    lower_limit(LIMIT, disk.set_limit, waits=disk.pause)
    return disk.limits


def test_without_a_backlog_the_limit_is_set_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lowered(Disk(MIB, lambda backlog, _: backlog), monkeypatch) == [LIMIT]


def test_the_limit_stays_above_a_backlog_that_drains(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = lowered(Disk(4096 * MIB, lambda backlog, _: backlog - 64 * MIB), monkeypatch)
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == 2 * 4096 * MIB, "no writer waits below half of it"
    assert limits[-1] == LIMIT
    assert len(limits) > 50


def test_beside_a_writer_without_end_the_limit_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel holds a writer half way between the background limit and the limit."""
    disk = Disk(4096 * MIB, lambda _, limit: (LIMIT // 2 + limit) // 2)
    assert lowered(disk, monkeypatch)[-1] == LIMIT


@pytest.mark.parametrize(("a_pause_drains", "seconds_max"), [(MIB // 8, 180), (8 * MIB, 10)])
def test_a_writer_that_stays_just_below_each_limit_is_held_until_the_limit_is_reached(
    a_pause_drains: int, seconds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(64 * MIB, lambda backlog, limit: max(backlog - a_pause_drains, limit * 19 // 20))
    assert lowered(disk, monkeypatch)[-1] == LIMIT
    assert disk.pauses * unwritten.PAUSE_S < seconds_max


def test_a_backlog_that_stays_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(100 * MIB, lambda backlog, _: backlog)
    with pytest.raises(HostError, match=r"100 MiB of written data wait .* limit of 20 MiB") as caught:
        lowered(disk, monkeypatch)
    assert "paused volume" in caught.value.remedy
    assert disk.limits[-1] > disk.backlog
    assert disk.pauses_below < disk.pauses / 5, "others can write while it is waited for"


@pytest.mark.sets_limits
@needs_fuse
@needs_cgroups
def test_beside_a_paused_volume_no_instance_begins_and_after_it_one_does(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not the_limits_are_free():
        pytest.skip("another run on this machine holds the kernel's dirty limits")
    if find_hierarchy().version == 2:
        pytest.skip("with version 2 of control groups the machine's own limit stays at 20 % of its memory")
    before = current_limits()
    name, mount = f"test-{os.getpid()}", state.parent / "mnt"
    with volume.attached("null:size=1GiB", mount=mount, name="paused") as paused:
        paused.fail({"kind": "pause"})
        try:
            (mount / "dirty").write_bytes(bytes(64 * MIB))
            with monkeypatch.context() as impatient:
                impatient.setattr(unwritten, "PATIENCE_S", 1.0)
                with pytest.raises(HostError, match="wait for a disk"), InstanceGroup(name, 128 * MIB):
                    pass
            assert current_limits() == before
        finally:
            paused.heal()
        os.sync()  # a slow disk takes its time, and is not what is tested
        with InstanceGroup(name, 128 * MIB):
            assert 25 * MIB < current_limits()["dirty_bytes"] < 26 * MIB
    assert current_limits() == before

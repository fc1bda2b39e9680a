"""What fio is asked, and what is made of its answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgdyno.advise.twin import fio
from pgdyno.advise.twin.fio import FioJob, ask
from pgdyno.advise.twin.measure import MIB, OPS, SIZES_KIB, JobSchedule, opened
from pgdyno.base.errors import HostError
from pgdyno.machine.process import working_below
from pgdyno.machine.waiting import wait_until

REGION = 16 * MIB


def test_writes_are_bounded_by_bytes_and_reads_by_time(tmp_path: Path) -> None:
    write = FioJob("write", 8, 1, 3, synced=True, rate_per_s=50, most_mib=7).words("/d", REGION, None)
    assert "--io_size=7m" in write and "--fdatasync=1" in write and "--rate_iops=50" in write
    assert "--rw=randwrite" in write and "--time_based" not in write
    read = FioJob("read", 16, 32, 3, random=False, logged=True).words("/d", REGION, tmp_path / "log")
    assert "--rw=read" in read and "--time_based" in read and f"--write_lat_log={tmp_path / 'log'}" in read


def test_the_plan_keeps_its_promises() -> None:
    plan = JobSchedule().plan(1024)
    assert {f"light {op} {size}" for op in OPS for size in SIZES_KIB} <= plan.keys()
    assert all(job.synced for name, job in plan.items() if job.op == "write" and name.startswith(("alone", "light")))
    # Five minutes with the whole time for filling, which the estimate takes at half.
    assert JobSchedule().takes_s(1024) + JobSchedule().fill / 2 <= 300
    assert JobSchedule().most_written_mib(2048) - JobSchedule().most_written_mib(1024) == 1024


@pytest.mark.needs_fio
def test_a_disk_answers(tmp_path: Path) -> None:
    """Seconds of real fio: the figures are this machine's, but they must agree with each other."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with opened(tmp_path, REGION, overwrite=False) as disk:
        filled = ask(disk.path, REGION, FioJob("write", 1024, 4, 20, random=False, most_mib=16), scratch)
        assert filled.written_bytes == REGION
        synced = ask(disk.path, REGION, FioJob("write", 8, 1, 1, synced=True, rate_per_s=100), scratch)
        assert 0 < synced.per_s <= 110
        assert synced.latency.mean_ns > 0
        course = ask(disk.path, REGION, FioJob("read", 4, 8, 1, logged=True), scratch)
        assert course.course is not None
        assert len(course.course.done_s) == course.latency.total
        assert course.course.done_s.max() <= 1.5
        assert course.course.latency_ns.mean() == pytest.approx(course.latency.mean_ns, rel=0.05)
        # By Little's law, less what fio does between requests.
        assert course.per_s * course.latency.mean_ns / 1e9 <= 8.5
    assert [each.name for each in tmp_path.iterdir()] == ["scratch"] and not list(scratch.iterdir())


@pytest.mark.needs_fio
def test_a_disk_that_fails_is_said_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="fio failed on"):
        ask(str(tmp_path), REGION, FioJob("read", 4, 1, 1), tmp_path)


@pytest.mark.parametrize("logged", [False, True])
def test_a_disk_that_completes_nothing_is_said(logged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log is empty, and numpy has nothing to say about disks."""

    def nothing(*_: object) -> str:
        return json.dumps({"jobs": [{"read": {"total_ios": 0}}]})

    monkeypatch.setattr(fio, "_fio", nothing)
    with pytest.raises(HostError, match="/dev/dead completed no read in 3 s"):
        ask("/dev/dead", REGION, FioJob("read", 4, 1, 3, logged=logged), tmp_path)


@pytest.mark.needs_fio
def test_an_fio_that_is_too_late_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job asks for an hour: who gives up on it after a second must not leave it at the disk."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(fio, "PATIENCE_S", -3599.0)
    with opened(tmp_path, REGION, overwrite=False) as disk:
        job = FioJob("write", 8, 1, 3600, rate_per_s=10)
        with pytest.raises(HostError, match=r"did not end on .* within 1 s"):
            ask(disk.path, REGION, job, scratch)
        assert wait_until(lambda: not working_below(scratch), 60.0)

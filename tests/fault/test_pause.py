"""A paused volume: what a run and CloudWatch's check say of it, and that it can always be removed."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.series import events_of
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_experiment

from ..experiment.documents import ONE_ARM
from ..host.needs import expect, needs_fuse
from ..support.commands import pgdyno
from ..support.pauses import assert_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = needs_fuse
TIMES = 20
STALLED = "VolumeStalledIOCheck"
PAUSE_S = 70
RUN_S = 150
PAUSED_AT_S = 55
"""A whole minute of the measure phase, its second, is in the pause: CloudWatch's check is of whole minutes."""


def write_page(path: Path) -> None:
    """One synchronous write."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    try:
        os.write(file, b"x" * 8192)
    finally:
        os.close(file)


def uninterruptible() -> set[str]:
    """Threads of this machine in state D at this moment (proc(5))."""
    uninterruptible = set()
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if stat.read_text(errors="replace").rpartition(")")[2].split()[0] == "D":
                uninterruptible.add(stat.parent.name)
    return uninterruptible


def assert_nothing_hangs() -> None:
    """Each thread that is in state D now is seen in another one soon; those of other programs are never there for long."""
    stuck = uninterruptible()

    def none_is_left() -> bool:
        stuck.intersection_update(uninterruptible())
        return not stuck

    assert wait_until(none_is_left, 10.0), f"threads in state D: {sorted(stuck)}"


def blocked(state: Path, end: Callable[[volume.AttachedVolume], None]) -> None:
    """Pause a volume under a write, and ``end`` it; the writer ends, with an error or without, and nothing is left."""
    mount = state.parent / "mnt"
    with (
        volume.attached("gp3:size=1GiB", mount=mount, name="data", calibrate=False) as data,
        ThreadPoolExecutor(1) as writer,
    ):
        data.fail({"kind": "pause"})
        try:
            written = writer.submit(write_page, mount / "page")
            expect(lambda: data.stats()["counters"]["queue_length"] > 0, "the write waits")
        finally:
            end(data)
        assert isinstance(written.exception(60), OSError | None)
        if data.alive:
            data.detach()
    clean(state)
    assert volume.list_volumes(state) == []
    # Its mount point may be busy for a moment; a process that hangs would keep it so.
    assert wait_until(lambda: not os.path.ismount(mount), 10.0)
    assert_nothing_hangs()


def heal(data: volume.AttachedVolume) -> None:
    """The orderly end."""
    data.heal()


def kill(data: volume.AttachedVolume) -> None:
    """The other one."""
    os.kill(data.daemon.pid, 9)


@pytest.mark.bench
@pytest.mark.parametrize("end", [heal, kill])
def test_a_paused_volume_is_removed_every_time(state: Path, end: Callable[[volume.AttachedVolume], None]) -> None:
    for _ in range(TIMES):
        blocked(state, end)


@pytest.mark.bench
def test_a_pause_of_seventy_seconds_is_a_stalled_check(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check is of a whole minute of the wall clock, so the pause begins some seconds before one and ends after it."""
    with volume.attached("gp3:size=1GiB", mount=state.parent / "mnt", name="data") as data:
        assert wait_until(lambda: 53 <= time.time() % 60 < 55, 90.0)
        began = time.monotonic()
        data.fail({"kind": "pause", "for_ns": 70 * 10**9})
        assert volume.states()["data"]["status"] == "impaired"
        write_page(state.parent / "mnt" / "page")
        assert time.monotonic() - began >= 69
        assert run(["metrics", "cloudwatch", "data", "--metric", STALLED, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        (result,) = [
            MetricDataResult
            for MetricDataResult in document["MetricDataResults"]
            if MetricDataResult["Label"].endswith(STALLED)
        ]
        assert max(result["Values"]) == 1.0
    clean(state)


@contextlib.contextmanager
def statuses() -> Iterator[list[str]]:
    """The status of volumes once a second, as far as it changes; a daemon that begins or ends has none."""
    seen: list[str] = []
    end = threading.Event()

    def watch() -> None:
        while not end.wait(1.0):
            for state in volume.states().values():
                if state["status"] not in (*seen[-1:], "insufficient-data"):
                    seen.append(state["status"])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()


@pytest.mark.bench
@pytest.mark.sets_limits
def test_a_run_whose_volume_pauses_for_seventy_seconds_says_so_everywhere(state: Path, tmp_path: Path) -> None:
    """Its driver, the metrics of its volume, its report, and the status of the volume meanwhile."""
    file = tmp_path / "paused.toml"
    happens = f'[[event]]\nat = "{PAUSED_AT_S}s"\ndo = "fail"\nfault = "pause"\nfor = "{PAUSE_S}s"\n'
    file.write_text(ONE_ARM.format(kind="emulated", seconds=RUN_S) + happens)
    with statuses() as seen:
        pgdyno("run", file, "--results", tmp_path, "--keep-invalid", code=0)
    assert seen == ["ok", "impaired", "ok"]
    (run,) = open_experiment(next(tmp_path.glob("*-paused-*"))).runs
    (pause,) = events_of(run)
    assert_paused(run, pause, PAUSE_S)
    assert all(check.ok for check in run.record.checks), run.record.checks
    document = json.loads(pgdyno("metrics", "cloudwatch", run.path, "--measured", "--json", code=0).out)
    values = {
        MetricDataResult["Label"]: [
            value for _, value in sorted(zip(MetricDataResult["Timestamps"], MetricDataResult["Values"], strict=True))
        ]
        for MetricDataResult in document["MetricDataResults"]
    }
    assert values[STALLED] == [0.0, 1.0], "the third minute is not a whole one"
    assert (values["VolumeReadOps"][1], values["VolumeWriteOps"][1]) == (0, 0)
    assert values["VolumeQueueLength"][1] >= 1
    assert min(values["VolumeWriteOps"][0], values["VolumeWriteOps"][2]) > 0

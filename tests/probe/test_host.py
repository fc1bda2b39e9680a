"""The engine's probe, as a process."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine as _engine
from pgdyno.base.errors import EngineMissing
from pgdyno.machine.waiting import wait_until
from pgdyno.probe.host import HostProbe, Role, read_samples

if TYPE_CHECKING:
    from pathlib import Path

INTERVAL_MS = 50


@pytest.fixture(autouse=True)
def engine() -> None:
    """These tests need the engine."""
    try:
        _engine.checked()
    except EngineMissing as error:
        pytest.skip(f"{error.message}: {error.remedy}")


def sampled(probe: HostProbe, count: int) -> bool:
    """Wait until the probe has written so many samples."""
    return wait_until(lambda: probe.lines.exists() and probe.lines.read_bytes().count(b"\n") >= count, 60.0)


def test_samples_lie_on_a_grid_and_cpu_never_goes_back(tmp_path: Path) -> None:
    probe = HostProbe(tmp_path, {"driver": Role(pids=(os.getpid(),))}, interval_ms=INTERVAL_MS).start()
    assert sampled(probe, 10)
    samples = probe.stop()
    rows = samples.tables["probe/cpu"].to_pylist()
    assert {row["role"] for row in rows} == {"driver", "probe", "host_busy", "host_steal", "host_idle"}
    driver = [row for row in rows if row["role"] == "driver"]
    for before, after in itertools.pairwise(driver):
        assert after["t_ns"] > before["t_ns"]
        assert after["cpu_ns"] >= before["cpu_ns"]
    # Ten samples take nine intervals: one that is late does not push the others back.
    assert driver[9]["t_ns"] - driver[0]["t_ns"] < 30 * INTERVAL_MS * 1_000_000
    own = [row["cpu_ns"] for row in rows if row["role"] == "probe"]
    assert (own[-1] - own[0]) / len(own) < 5_000_000, "a sample costs a fraction of a millisecond"


def test_a_process_that_ends_is_a_gap_and_keeps_its_share(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        probe = HostProbe(tmp_path, {"driver": Role(pids=(busy.pid,))}, interval_ms=INTERVAL_MS).start()
        assert sampled(probe, 5)
    finally:
        busy.kill()
        busy.wait()
    assert sampled(probe, probe.lines.read_bytes().count(b"\n") + 3)
    samples = probe.stop()
    # On a busy machine a deadline may be missed as well.
    assert [gap.what for gap in samples.gaps if gap.what != "host.samples"] == [f"driver.pid.{busy.pid}"]
    used = [row["cpu_ns"] for row in samples.tables["probe/cpu"].to_pylist() if row["role"] == "driver"]
    assert used == sorted(used)
    assert used[-1] > 0


def test_what_is_not_there_is_a_gap(tmp_path: Path) -> None:
    roles = {"server": Role(cgroup_cpu=tmp_path / "none", cgroup_memory=tmp_path / "none")}
    probe = HostProbe(
        tmp_path,
        roles,
        devices={"data": "/dev/none", "wal": "none"},
        volumes={"data": ("none", tmp_path)},
        interval_ms=INTERVAL_MS,
    )
    probe.start()
    samples = probe.stop()
    volumes = {"disk.data", "disk.wal", "volume.data"}
    texts = {gap.what for gap in samples.gaps} - {"host.samples"}
    assert texts == volumes | {"server.cgroup_cpu", "server.cgroup_memory"}
    assert "probe/disk" not in samples.tables


def test_a_probe_that_is_killed_is_a_gap(tmp_path: Path) -> None:
    probe = HostProbe(tmp_path, {}, interval_ms=INTERVAL_MS).start()
    assert sampled(probe, 2)
    os.kill(pid_of(probe), signal.SIGKILL)
    samples = probe.stop()
    assert samples.gaps[-1].what == "host.samples"
    assert "-9" in samples.gaps[-1].why
    assert samples.tables["probe/cpu"].num_rows > 0


def test_a_term_signal_ends_it_with_a_last_sample(tmp_path: Path) -> None:
    probe = HostProbe(tmp_path, {}, interval_ms=3_600_000).start()
    os.kill(pid_of(probe), signal.SIGTERM)
    samples = probe.stop()
    assert samples.gaps == ()
    assert len({row["t_ns"] for row in samples.tables["probe/cpu"].to_pylist()}) == 2


def test_leaving_the_block_ends_the_probe(tmp_path: Path) -> None:
    with HostProbe(tmp_path, {}, interval_ms=INTERVAL_MS) as probe:
        pid = pid_of(probe)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_volumes_tell_of_their_instance_is_told_once(tmp_path: Path) -> None:
    counters = {"read_ops": 3, "instance_ops": 9, "instance_exceeded_iops_ns": 5, "instance_iops_balance_ppm": None}
    volumes = [{"volume": role, "t_ns": t_ns, "counters": counters} for role, t_ns in (("data", 7), ("wal", 8))]
    free = [{"volume": "data", "t_ns": 9, "counters": {"read_ops": 4, "instance_ops": None}}]
    rest = {"t_begin_ns": 6, "t_end_ns": 9, "missed": 0, "disks": [], "cpu": {"cpu_ns": {}}, "memory": {"bytes": {}}}
    lines = tmp_path / "probe.jsonl"
    lines.write_text("".join(json.dumps({**rest, "volumes": item}) + "\n" for item in (volumes, free)))
    tables = read_samples(lines).tables
    instance = tables["probe/instance"].to_pylist()
    assert [(row["t_ns"], row["ops"], row["exceeded_iops_ns"], row["iops_balance_ppm"]) for row in instance] == [
        (7, 9, 5, None)
    ]
    assert tables["probe/volume"]["read_ops"].to_pylist() == [3, 3, 4]
    assert not [name for name in tables["probe/volume"].column_names if name.startswith("instance")]


def pid_of(probe: HostProbe) -> int:
    """The probe's process."""
    assert probe.pid is not None
    return probe.pid

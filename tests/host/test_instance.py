"""An instance bounds memory, page cache and CPUs of what is started in it, and undoes itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_USAGE, HostError, InputError
from pgdyno.machine import cgroup, dirty_limits, paths
from pgdyno.machine import clean as clean_module
from pgdyno.machine.clean import clean
from pgdyno.machine.dirty_limits import DirtyLimits, current_limits, wanted_limits
from pgdyno.machine.instance import InstanceGroup, parse_cpus
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.machine_record import MachineRecord

from .needs import expect, first_cpu, needs_cgroups, needs_root

MIB = 1 << 20
HOLD_AND_DIE = """
import os, signal, subprocess, sys
from pathlib import Path
from pgdyno.machine import paths
from pgdyno.machine.instance import InstanceGroup
from pgdyno.machine.waiting import wait_until
paths.MACHINE_DIR = Path(sys.argv[3])
with InstanceGroup("killed-" + sys.argv[1], 128 << 20, sys.argv[2] or None) as instance:
    child = subprocess.Popen(instance.join_args(["sleep", "1000"]), start_new_session=True, stdout=subprocess.DEVNULL)
    wait_until(lambda: all(str(child.pid) in file.read_text().split() for file in instance.join_files), 60.0)
    print(child.pid, *instance.join_files, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def the_limits_are_free() -> bool:
    """Whether no other run on this machine has set the kernel's dirty limits."""
    probe = DirtyLimits(256 * MIB, 1)
    try:
        probe.acquire()
    except HostError:
        return False
    probe.release()
    return True


@needs_cgroups
def test_processes_inside_are_bounded(state: Path) -> None:
    cpus = first_cpu()
    with InstanceGroup(f"test-{os.getpid()}", 128 * MIB, cpus, dirty_limits=False) as instance:
        show = "cat /proc/self/cgroup; grep Cpus_allowed_list /proc/self/status"
        lines = subprocess.check_output(instance.join_args(["sh", "-c", show]), text=True).splitlines()
        groups = sum(f"/pgdyno/{instance.name}" in line for line in lines)
        assert groups == len(instance.join_files) >= (1 if instance.facts["cgroup_version"] == 2 else 2)
        assert cpus is None or f"Cpus_allowed_list:\t{cpus}" in lines
        hungry = [sys.executable, "-c", f"bytearray(b'x') * {200 * MIB}"]
        assert subprocess.run(instance.join_args(hungry), check=False).returncode == -signal.SIGKILL
        folders = [file.parent for file in instance.join_files]
        weights = [file.read_text().strip() for group in folders for file in group.parent.glob("cpu.[sw][he]*")]
        assert set(weights) & {"2", "1"}, "the test harness comes first"
        assert Path(instance.paths["cgroup_memory"] or "") in folders
        assert instance.facts["memory_bytes"] == 128 * MIB
    assert not any(folder.exists() for folder in folders)


COMPUTES = """
import time
begin, used = time.monotonic(), time.process_time()
while time.monotonic() < begin + 0.5:
    pass
print((time.process_time() - used) / (time.monotonic() - begin))
"""


@needs_cgroups
@pytest.mark.parametrize(("dilation", "period_us"), [(1, 100_000), (4, 400_000), (30, 1_000_000)])
def test_processes_inside_get_a_share_of_the_cpus_time(state: Path, dilation: int, period_us: int) -> None:
    if not cgroup.find_hierarchy().offers("cpu"):
        pytest.skip("this kernel offers no cpu control group")
    group = InstanceGroup(
        f"test-{os.getpid()}", 128 * MIB, first_cpu(), cpu_share=0.25, dirty_limits=False, dilation=dilation
    )
    with group as instance:
        cores = 1 if instance.cpus is not None else len(os.sched_getaffinity(0))
        files = [
            file.parent / name
            for name in ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
            for file in instance.join_files
        ]
        set_to = [int(word) for file in files if file.exists() for word in file.read_text().split()]
        assert set_to == [cores * period_us // 4, period_us]
        assert instance.facts["cpu_share"] == 0.25
        if dilation == 1:
            got = float(subprocess.check_output(instance.join_args([sys.executable, "-c", COMPUTES]), text=True))
            # Parts of six periods lie in half a second; neighbours take time, and add none.
            assert got <= 0.25 * cores + 0.2


@needs_cgroups
def test_leaving_waits_for_the_last_process_and_says_who_stays(state: Path) -> None:
    instance = InstanceGroup(f"test-{os.getpid()}", 128 * MIB, dirty_limits=False, timeout_s=0.2)
    child = None
    try:
        with pytest.raises(HostError, match="still in the control groups"), instance:
            child = subprocess.Popen(instance.join_args([sys.executable, "-c", "import signal; signal.pause()"]))
            pid = str(child.pid)
            expect(lambda: all(pid in file.read_text().split() for file in instance.join_files), "the child is inside")
    finally:
        assert child is not None
        child.kill()
        child.wait()
    assert instance.close() == []


@needs_cgroups
def test_one_name_is_one_instance(state: Path) -> None:
    name = f"test-{os.getpid()}"
    with InstanceGroup(name, 128 * MIB, dirty_limits=False):
        with pytest.raises(HostError, match="already"), InstanceGroup(name, 128 * MIB, dirty_limits=False):
            pass
        assert clean(state) == [], "an instance in use is left alone"


@needs_cgroups
def test_a_group_that_cannot_be_made_leaves_no_entry(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise HostError("nothing is handed down", remedy="run it outside")

    monkeypatch.setattr(type(cgroup.find_hierarchy()), "prepare", refuse)
    with (
        pytest.raises(HostError, match="handed down"),
        InstanceGroup(f"test-{os.getpid()}", 128 * MIB, dirty_limits=False),
    ):
        pass
    assert HostJournal(state).entries() == []


@needs_cgroups
@pytest.mark.sets_limits
def test_the_dirty_limits_follow_the_instance_and_return(state: Path) -> None:
    if not the_limits_are_free():
        pytest.skip("another run on this machine holds the kernel's dirty limits")
    before = current_limits()
    with InstanceGroup(f"test-{os.getpid()}", 256 * MIB) as instance:
        version = instance.facts["cgroup_version"]
        now = current_limits()
        assert {name: now[name] for name in wanted_limits(256 * MIB, version)} == wanted_limits(256 * MIB, version)
        with pytest.raises(HostError, match=f"process {os.getpid()}"), InstanceGroup("another", 128 * MIB):
            pass
    assert current_limits() == before


@needs_cgroups
@pytest.mark.sets_limits
def test_dirty_memory_stays_below_a_quarter(state: Path) -> None:
    """Without the limits beside it, nearly the whole group became dirty before anything was written."""
    if not the_limits_are_free():
        pytest.skip("another run on this machine holds the kernel's dirty limits")
    with (
        tempfile.NamedTemporaryFile(dir="/var/tmp") as file,
        InstanceGroup(f"test-{os.getpid()}", 256 * MIB) as instance,
    ):
        stat = Path(instance.paths["cgroup_memory"] or "") / "memory.stat"
        command = ["dd", "if=/dev/zero", f"of={file.name}", "bs=64k", "count=8192", "conv=notrunc"]
        writer = subprocess.Popen(instance.join_args(command), stderr=subprocess.DEVNULL)
        seen: list[int] = []

        def ended() -> bool:
            facts = dict(line.split() for line in stat.read_text().splitlines())
            seen.append(int(facts.get("dirty", facts.get("file_dirty", "0"))))
            return writer.poll() is not None

        expect(ended, "512 MiB are written", 120.0)
        assert writer.returncode == 0
        assert max(seen) > 0
        assert max(seen) < 0.25 * 256 * MIB


@needs_cgroups
@pytest.mark.sets_limits
def test_a_killed_run_is_undone(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not the_limits_are_free():
        pytest.skip("another run on this machine holds the kernel's dirty limits")
    before = current_limits()
    # A record of its own: any clean-up of the machine would put back what the machine's says.
    monkeypatch.setattr(paths, "MACHINE_DIR", tmp_path)
    command = [sys.executable, "-c", HOLD_AND_DIE, str(os.getpid()), first_cpu() or "", str(tmp_path)]
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    pid, *files = killed.stdout.split()
    wanted = wanted_limits(128 * MIB, cgroup.find_hierarchy().version)
    assert {name: current_limits()[name] for name in wanted} == wanted
    assert dirty_limits.record().abandoned()
    done = clean(state)
    assert any(f"ended process {pid}" in line for line in done)
    assert not any(Path(file).exists() for file in files)
    assert current_limits() == before
    assert clean(state) == []


def test_limits_by_version_of_control_groups() -> None:
    assert wanted_limits(1 << 30, 1) == {"dirty_bytes": 214745088, "dirty_background_bytes": 107372544}
    assert wanted_limits(1 << 30, 2) == {"dirty_ratio": 20, "dirty_background_ratio": 10}


@needs_root
@pytest.mark.parametrize(
    ("name", "memory_bytes", "cpus"),
    [("Upper", 128 * MIB, None), ("a/b", 128 * MIB, None), ("small", MIB, None), ("cpu", 128 * MIB, "0,4000")],
)
def test_illegal_figures_are_refused(state: Path, name: str, memory_bytes: int, cpus: str | None) -> None:
    with pytest.raises(InputError) as caught, InstanceGroup(name, memory_bytes, cpus, dirty_limits=False):
        pass
    assert caught.value.exit_code == EXIT_USAGE
    assert caught.value.remedy


def test_lists_of_cpus() -> None:
    assert parse_cpus("0-2,5") == {0, 1, 2, 5}
    for wrong in ("", "a", "3-1", "1-", "-1"):
        with pytest.raises(InputError):
            parse_cpus(wrong)


@needs_root
def test_settings_that_another_command_leaves_meanwhile_do_not_fail_a_clean_up(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = MachineRecord(tmp_path / "limits.json", lambda _: ["set the limits back"], "the limits of a killed run")
    monkeypatch.setattr(clean_module, "_machine_records", lambda: (record,))

    def leave() -> None:
        handle = record.take()
        assert handle is not None
        record.write(handle, old={})
        os.close(handle)

    leave()
    recover = MachineRecord.recover

    def recover_and_leave(self: MachineRecord) -> list[str]:
        done = recover(self)
        leave()
        return done

    monkeypatch.setattr(MachineRecord, "recover", recover_and_leave)
    assert clean(state) == ["set the limits back"]
    assert record.abandoned(), "the next clean-up finds it"

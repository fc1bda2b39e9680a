"""Both versions of control groups are found, and version 2 is written as its manual says."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError
from pgdyno.machine import cgroup

from .needs import needs_root


def line(target: Path | str, fstype: str, options: str) -> str:
    return f"36 35 98:0 / {target} rw,relatime - {fstype} {fstype} {options}\n"


def test_version_1_with_controllers_mounted_together(tmp_path: Path) -> None:
    info = tmp_path / "mountinfo"
    text = line("/c/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct") + line("/c/memory", "cgroup", "rw,memory")
    info.write_text(text + line("/c/unified", "cgroup2", "rw"))
    hierarchy = cgroup.find_hierarchy(info)
    assert hierarchy.version == 1
    assert str(hierarchy.group("cpuacct", "x")) == "/c/cpu,cpuacct/pgdyno/x"
    assert str(hierarchy.group("memory", "x")) == "/c/memory/pgdyno/x"


def test_version_2(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu memory\n")
    info = tmp_path / "mountinfo"
    info.write_text(line(root, "cgroup2", "rw"))
    hierarchy = cgroup.find_hierarchy(info)
    assert hierarchy.version == 2
    group = hierarchy.group("memory", "x")
    assert group == hierarchy.group("cpuset", "x") == root / "pgdyno" / "x"
    hierarchy.prepare(group, "memory")
    group.mkdir()
    hierarchy.limit_memory(group, 1 << 30)
    assert (root / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"
    assert (root / "pgdyno" / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"
    assert (group / "memory.max").read_text() == str(1 << 30)
    hierarchy.limit_cpu(group, 50_000, 100_000)
    assert (group / "cpu.max").read_text() == "50000 100000"
    hierarchy.give_way(group.parent)
    assert (root / "pgdyno" / "cpu.weight").read_text() == "1"


def test_version_2_without_cpuset_hands_down_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io memory pids\n")
    info = tmp_path / "mountinfo"
    info.write_text(line(tmp_path, "cgroup2", "rw"))
    hierarchy = cgroup.find_hierarchy(info)
    assert [name for name in cgroup.CONTROLLERS if not hierarchy.offers(name)] == ["cpuset"]
    hierarchy.prepare(hierarchy.group("memory", "x"), "memory")
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"


def test_a_containers_own_group_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Version 2 hands nothing down from a group that has processes, unless it is the kernel's own root."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "cgroup.subtree_control").touch()
    info = tmp_path / "mountinfo"
    info.write_text(line(tmp_path, "cgroup2", "rw"))
    hierarchy = cgroup.find_hierarchy(info)
    hierarchy.require_groups()
    (tmp_path / "cgroup.type").write_text("domain\n")
    with pytest.raises(HostError, match="hands no controllers down") as caught:
        hierarchy.require_groups()
    assert "--cgroupns=host" in caught.value.remedy
    (tmp_path / "cgroup.procs").write_text("")
    hierarchy.require_groups()
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu memory\n")
    hierarchy.require_groups()


@pytest.mark.parametrize(
    ("own_group", "said", "remedy"),
    [(False, "have no memory controller", "cgroup_enable=memory"), (True, "not handed down to it", "Delegate=")],
)
def test_version_2_without_memory_is_refused_with_what_to_do(
    tmp_path: Path, own_group: bool, said: str, remedy: str
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    if own_group:
        (tmp_path / "cgroup.type").write_text("domain\n")
    info = tmp_path / "mountinfo"
    info.write_text(line(tmp_path, "cgroup2", "rw"))
    with pytest.raises(HostError, match=said) as caught:
        cgroup.find_hierarchy(info)
    assert remedy in caught.value.remedy
    memory = tmp_path / "memory"
    info.write_text(info.read_text() + line(memory, "cgroup", "rw,memory"))
    assert cgroup.find_hierarchy(info).group("memory", "x").is_relative_to(memory), "version 1 has it"


def test_what_is_not_offered_has_a_remedy_for_each_kind_of_root(tmp_path: Path) -> None:
    assert "mount -t cgroup -o cpuset" in cgroup.V1({"memory": tmp_path}).how_to_offer(["cpuset"])
    v2 = cgroup.V2(tmp_path, frozenset({"memory"}))
    assert "cgroup_disable=" in v2.how_to_offer(["cpuset"])
    (tmp_path / "cgroup.type").write_text("domain\n")
    assert "Delegate=cpu cpuset memory" in v2.how_to_offer(["cpuset"])


@pytest.mark.parametrize(
    ("code", "said", "remedy"),
    [
        (errno.EBUSY, "and has processes", "--cgroupns=host"),
        (errno.EINVAL, "real-time process", "ps -eo"),
        (errno.EACCES, "Permission denied", "--privileged"),
    ],
)
def test_why_nothing_is_handed_down_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str, remedy: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "write_text", refuse)
    v2 = cgroup.V2(tmp_path, frozenset({"memory", "cpu"}))
    with pytest.raises(HostError, match=said) as caught:
        v2.prepare(v2.group("memory", "x"), "memory")
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("times", [1, 1000])
def test_controllers_that_systemd_takes_back_are_handed_down_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It does so between our two writes when it starts a session: the parent then lacks what it is to hand on."""
    written: list[str] = []
    write = Path.write_text

    def taken_back(path: Path, text: str) -> int:
        written.append(path.parent.name)
        if path.parent.name == cgroup.PARENT and written.count(cgroup.PARENT) <= times:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", taken_back)
    v2 = cgroup.V2(tmp_path, frozenset({"memory", "cpu"}))
    if times == 1:
        v2.prepare(v2.group("memory", "x"), "memory")
        assert written == [tmp_path.name, cgroup.PARENT] * 2
    else:
        with pytest.raises(HostError, match="No such file"):
            v2.prepare(v2.group("memory", "x"), "memory")


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_has_the_memory_that_its_groups_leave(tmp_path: Path, version: int) -> None:
    """The least of its own group and of those above it; pages of files that nobody uses are as good as free."""
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    info, own = tmp_path / "mountinfo", tmp_path / "own"
    tree = tmp_path / "tree"
    inner = tree / "outer" / "inner"
    inner.mkdir(parents=True)
    (tree / "cgroup.controllers").write_text("cpu memory\n")
    info.write_text(line(tree, "cgroup2" if version == 2 else "cgroup", "rw" if version == 2 else "rw,memory"))
    own.write_text("0::/outer/inner\n" if version == 2 else "4:memory:/outer/inner\n3:cpu,cpuacct:/\n")
    assert cgroup.memory_left_bytes(own, info) is None
    for group, limit, used, idle in ((tree / "outer", 1000, 800, 100), (inner, 900, 100, 0)):
        (group / names[0]).write_text(f"{limit}\n")
        (group / names[1]).write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 5\ninactive_file {idle}\ntotal_inactive_file {idle}\n")
    assert cgroup.memory_left_bytes(own, info) == 300
    (inner / names[0]).write_text("200\n")
    assert cgroup.memory_left_bytes(own, info) == 100
    own.write_text("0::/somewhere/else\n" if version == 2 else "4:memory:/somewhere/else\n")
    assert cgroup.memory_left_bytes(own, info) is None
    own.unlink()
    assert cgroup.memory_left_bytes(own, info) is None


@needs_root
def test_version_2_in_the_kernel(tmp_path: Path) -> None:
    """Where version 1 holds memory and CPUs the tree of version 2 still obeys its rules, with what is left to it."""
    root = tmp_path / "cgroup2"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "cgroup2", "none", root], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("this kernel has no control groups of version 2")
    try:
        offered = set((root / "cgroup.controllers").read_text().split())
        if not offered:
            pytest.skip("version 1 holds every controller of this kernel")
        v2 = cgroup.V2(root, frozenset({"memory", "cpu", "cpuset", "hugetlb"} & offered))
        group = v2.group("cpuacct", f"test-{os.getpid()}")
        v2.prepare(group, "cpuacct")
        group.mkdir()
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        try:
            (group / "cgroup.procs").write_text(str(child.pid))
            assert [process.pid for process in cgroup.members(group)] == [child.pid]
            assert "usage_usec" in (group / "cpu.stat").read_text()
            assert not cgroup.remove(group, 0.1), "a process is inside"
            with pytest.raises(HostError, match="hands no controllers down"):
                v2.prepare(group / "below" / "it", "cpuacct")
        finally:
            child.kill()
            child.wait()
        (group / "below").rmdir()
        assert cgroup.remove(group)
        assert not group.exists()
    finally:
        subprocess.run(["umount", root], check=True)


def test_none(tmp_path: Path) -> None:
    info = tmp_path / "mountinfo"
    info.write_text(line("/sys", "sysfs", "rw"))
    with pytest.raises(HostError) as caught:
        cgroup.find_hierarchy(info)
    assert caught.value.remedy


def test_removing_waits_for_nothing_when_there_is_nothing(tmp_path: Path) -> None:
    group = tmp_path / "parent" / "child"
    (group / "grandchild").mkdir(parents=True)
    assert cgroup.remove(group)
    assert not group.parent.exists()
    assert cgroup.remove(group)
    assert cgroup.members(group) == []

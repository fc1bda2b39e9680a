"""Both versions of control groups are found, and version 2 is written as its manual says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.errors import HostError
from pgdyno.world import cgroup

if TYPE_CHECKING:
    from pathlib import Path


def line(target: Path | str, fstype: str, options: str) -> str:
    return f"36 35 98:0 / {target} rw,relatime - {fstype} {fstype} {options}\n"


def test_version_1_with_controllers_mounted_together(tmp_path: Path) -> None:
    info = tmp_path / "mountinfo"
    text = line("/c/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct") + line("/c/memory", "cgroup", "rw,memory")
    info.write_text(text + line("/c/unified", "cgroup2", "rw"))
    found = cgroup.find_hierarchy(info)
    assert found.version == 1
    assert str(found.group("cpuacct", "x")) == "/c/cpu,cpuacct/pgdyno/x"
    assert str(found.group("memory", "x")) == "/c/memory/pgdyno/x"


def test_version_2(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu memory\n")
    info = tmp_path / "mountinfo"
    info.write_text(line(root, "cgroup2", "rw"))
    found = cgroup.find_hierarchy(info)
    assert found.version == 2
    group = found.group("memory", "x")
    assert group == found.group("cpuset", "x") == root / "pgdyno" / "x"
    found.prepare(group, "memory")
    group.mkdir()
    found.limit_memory(group, 1 << 30)
    assert (root / "cgroup.subtree_control").read_text() == "+memory +cpu +cpuset"
    assert (root / "pgdyno" / "cgroup.subtree_control").read_text() == "+memory +cpu +cpuset"
    assert (group / "memory.max").read_text() == str(1 << 30)


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

"""Mount options are judged by the kernel that will mount the volume, before there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.machine import mount_options
from pgdyno.machine.mount_options import require_known_options

if TYPE_CHECKING:
    from pgdyno.machine.file_system import FileSystem

pytestmark = pytest.mark.needs_root


@pytest.mark.parametrize(
    ("file_system", "options"),
    [
        ("ext4", ""),
        ("ext4", "noatime,commit=30,data=ordered,nodelalloc"),
        ("ext4", "lazytime,nosuid,nodev,noexec,nodiratime,sync"),
        pytest.param("xfs", "noatime,logbsize=64k,logbufs=8", marks=pytest.mark.needs_xfs),
    ],
)
def test_options_of_the_file_system_and_of_every_mount_are_known(file_system: FileSystem, options: str) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    require_known_options(file_system, options)
    assert Path("/proc/self/mountinfo").read_text() == before


@pytest.mark.parametrize(
    ("file_system", "options", "said"),
    [
        ("ext4", "noatime,bogus", "`bogus` is refused: ext4: Unknown parameter"),
        ("ext4", "commit=soon", "`commit=soon` is refused"),
        ("ext4", "data=nonsense", "`data=nonsense` is refused"),
        pytest.param("xfs", "commit=30", "`commit=30` is refused: xfs: Unknown parameter", marks=pytest.mark.needs_xfs),
    ],
)
def test_an_option_that_the_kernel_does_not_take_is_named(file_system: FileSystem, options: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        require_known_options(file_system, options)
    assert f"{file_system}(5)" in caught.value.remedy


def test_a_file_system_that_the_kernel_lacks_is_said() -> None:
    with pytest.raises(HostError, match="this kernel has no nofs"):
        require_known_options("nofs", "")  # type: ignore[arg-type]  # no such file system, which is the point


def test_a_kernel_that_cannot_be_asked_leaves_it_to_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount_options, "_FSOPEN", 9999)
    require_known_options("ext4", "bogus")

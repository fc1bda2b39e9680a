"""What is measured on: nothing of the user's is overwritten, nothing is left behind."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pgdyno.advise.twin import measure
from pgdyno.advise.twin.measure import MIB, opened
from pgdyno.base.errors import HostError, InputError


def test_a_file_is_made_that_nobody_sees_and_that_is_gone_afterwards(tmp_path: Path) -> None:
    before = shutil.disk_usage(tmp_path).free
    with opened(tmp_path, 64 * MIB, overwrite=False) as result:
        assert list(tmp_path.iterdir()) == []
        assert Path(result.path).stat().st_size == 64 * MIB
        assert Path(result.path).stat().st_nlink == 0
        assert result.disk_bytes == shutil.disk_usage(tmp_path).total // MIB * MIB
        assert shutil.disk_usage(tmp_path).free <= before - 60 * MIB
    assert not Path(result.path).exists()


def test_a_new_file_stands_for_its_directory(tmp_path: Path) -> None:
    with opened(tmp_path / "probe", 4 * MIB, overwrite=False) as result:
        assert result.shown == str(tmp_path / "probe")
        assert result.file_system is not None
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("kept")
    with pytest.raises(InputError, match="already exists"), opened(mine, MIB, overwrite=True):
        pass
    assert mine.read_text() == "kept"


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no directory"), opened(tmp_path / "a" / "b", MIB, overwrite=False):
        pass


def test_too_little_room_is_refused_with_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(measure.shutil, "disk_usage", lambda _: usage._replace(total=1000 * MIB, free=150 * MIB))
    with (
        pytest.raises(HostError, match=r"128 MiB .* 150 MiB free of 1,000"),
        opened(tmp_path, 128 * MIB, overwrite=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def loop_device(tmp_path: Path) -> str:
    """A block device of 64 MiB that goes with its last user."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True)
    return made.stdout.strip()


@pytest.mark.needs_root
def test_a_block_device_is_had_only_by_its_flag_and_only_alone(loop_device: str, tmp_path: Path) -> None:
    try:
        with (
            pytest.raises(InputError, match="is a block device") as refused,
            opened(Path(loop_device), 16 * MIB, overwrite=False),
        ):
            pass
        assert "--overwrite-device" in refused.value.remedy
        with opened(Path(loop_device), 16 * MIB, overwrite=True) as result:
            assert (result.path, result.file_system, result.disk_bytes) == (loop_device, None, 64 * MIB)
        with pytest.raises(HostError, match="were to be measured"), opened(Path(loop_device), 65 * MIB, overwrite=True):
            pass
        subprocess.run(["mkfs.ext4", "-q", loop_device], check=True)
        mount = tmp_path / "mnt"
        mount.mkdir()
        subprocess.run(["mount", loop_device, mount], check=True)
        try:
            with (
                pytest.raises(HostError, match="cannot be had alone"),
                opened(Path(loop_device), 16 * MIB, overwrite=True),
            ):
                pass
        finally:
            subprocess.run(["umount", mount], check=True)
    finally:
        subprocess.run(["losetup", "-d", loop_device], check=True)

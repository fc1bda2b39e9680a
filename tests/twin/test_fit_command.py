"""``pgdyno volume fit`` from end to end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pgdyno.machine import volume
from pgdyno.machine.waiting import wait_until
from tests.support.commands import pgdyno
from tests.twin.box import hidden_limits, mounted_box
from tools.fidelity import device

pytestmark = [pytest.mark.needs_fuse, pytest.mark.needs_fio]
SEED = 20_261_121


@pytest.mark.bench
def test_a_disk_in_memory_is_refused_with_both_figures(tmp_path: Path, image_dir: Path, state_dir: Path) -> None:
    twin, disk = tmp_path / "twin.toml", image_dir / "disk"
    disk.mkdir()
    code, _, err, _ = pgdyno("volume", "fit", disk, "-o", twin, "--region", "64MiB", "--quick")
    assert code == 3
    assert "too fast to be emulated here" in err and err.count(" us ") >= 2
    assert not twin.exists() and not list(disk.iterdir())


@pytest.mark.slow
@pytest.mark.needs_qemu
def test_a_box_is_fitted_and_its_twin_is_attached(tmp_path: Path, state_dir: Path) -> None:
    """The whole command. A busy machine gets less out of the box, and never more; how exact limits are, `make bench` measures."""
    limits = hidden_limits(SEED)
    twin = tmp_path / "twin.toml"
    with device.bench(state_dir) as bench, mounted_box(bench, limits) as box:
        code, out, err, _ = pgdyno("volume", "fit", box, "-o", twin, "--region", "128MiB", "--quick", "--json")
        if "too fast to be emulated here" in err:
            pytest.skip(f"this machine was busy with other things: {err.splitlines()[-2]}")
        assert code == 0, err
        assert [each.name for each in box.iterdir()] == ["lost+found"]
    assert "a file of 128 MiB in" in err and "MiB in total" in err and "s left)" in err
    document = json.loads(out)
    assert 0 < document["spec"]["limits"]["iops"] <= limits.iops * 1.1
    assert 0 < document["spec"]["limits"]["throughput_mib_per_s"] <= (limits.bytes_per_s or 0) / 2**20 * 1.1
    assert tomllib.loads(twin.read_text())["schema_version"] == 1
    with volume.attached(str(twin), mount=None, state_dir=state_dir) as attached:
        assert attached.spec["model_hash"] == document["spec"]["model_hash"]


@pytest.mark.slow
def test_interrupted_it_leaves_nothing(tmp_path: Path, state_dir: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pgdyno",
        "volume",
        "fit",
        tmp_path,
        "-o",
        tmp_path / "t.toml",
        "--region",
        "64MiB",
        "--quick",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "probe" in line:
                break
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []
    assert wait_until(lambda: not _fio_below(process.pid), 60.0)


def _fio_below(session: int) -> list[str]:
    done = subprocess.run(["ps", "-o", "comm=", "-s", str(session)], capture_output=True, text=True, check=False)
    return done.stdout.split()

"""A volume's daemon killed while it is put up or taken down: whoever waits gets an error, and nothing stays."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from pgdyno import _engine
from pgdyno.host import transport, volume
from pgdyno.host.clean import clean
from pgdyno.host.waiting import wait_until

pytestmark = [pytest.mark.needs_fuse, pytest.mark.slow]

KILLS = [4, pytest.param(40, marks=pytest.mark.bench)]
GONE_S = 60.0
"""A killed daemon that waits for its own device would never be gone."""


@pytest.mark.parametrize("kills", KILLS)
def test_killed_while_it_attaches(state: Path, kills: int) -> None:
    moments = random.Random(1)
    state.mkdir(parents=True)
    mount = state.parent / "mount"
    mount.mkdir()
    for number in range(kills):
        request = {"name": f"v{number}", "spec": "gp3", "mount": str(mount), "state_dir": str(state)}
        request["transport"] = transport.asked()
        with transport.offered(transport.asked()):
            daemon = subprocess.Popen(
                [_engine.checked(), "volume", "serve"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
            assert daemon.stdin is not None
            daemon.stdin.write(json.dumps(request) + "\n")
            daemon.stdin.flush()
            try:
                daemon.wait(moments.uniform(0.0, 0.8))
            except subprocess.TimeoutExpired:
                daemon.kill()
            daemon.wait(GONE_S)
        daemon.stdin.close()
        subprocess.run(["umount", "--lazy", mount], stderr=subprocess.DEVNULL, check=False)
        clean(state)
        assert not list((state / "volumes").glob("*")), "killed before it made the folder, there is none"


@pytest.mark.usefixtures("state", "way")
def test_killed_while_its_device_has_unwritten_pages() -> None:
    """As while mkfs writes. What closes the device last waits for them, so /dev/fuse must be closed before it."""
    found = volume.attach("null:size=1GiB", mount=None, name="v", calibrate=False)
    with Path(found.block_device).open("wb", buffering=0) as device:
        device.write(bytes(32 << 20))
    os.kill(found.daemon.pid, signal.SIGKILL)
    tasks = Path(f"/proc/{found.daemon.pid}/task")
    try:
        assert wait_until(lambda: not tasks.exists() or len(list(tasks.iterdir())) <= 1, GONE_S)
    finally:
        found.detach()


@pytest.mark.parametrize("kills", KILLS)
def test_killed_while_it_detaches(state: Path, kills: int) -> None:
    moments = random.Random(2)
    mount = state.parent / "mount"
    for number in range(kills):
        found = volume.attach("gp3:iops=3000", mount=mount, name=f"v{number}")
        for file in range(20):
            (mount / f"file{file}").write_bytes(bytes(500_000))
        command = [_engine.checked(), "volume", "detach", found.name, "--state-dir", str(state)]
        asking = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            asking.wait(moments.uniform(0.0, 0.1))
        except subprocess.TimeoutExpired:
            subprocess.run(["kill", "-KILL", str(found.daemon.pid)], check=False)
        asking.wait(GONE_S)
        found.detach()
        assert not found.alive

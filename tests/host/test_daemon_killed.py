"""A volume's daemon killed while it is put up or taken down: whoever waits gets an error, and nothing stays."""

from __future__ import annotations

import errno
import json
import mmap
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgdyno.base import engine
from pgdyno.machine import volume
from pgdyno.machine.clean import clean
from pgdyno.machine.waiting import wait_until
from tests.host.needs import expect

pytestmark = [pytest.mark.needs_fuse, pytest.mark.slow]

READERS = 16
EIO_S = 1.0
"""A request of a dead daemon ends with an error in this time."""
BLOCK_BYTES = 4096
KILLS = [4, pytest.param(40, marks=pytest.mark.bench)]
GONE_S = 60.0
"""A killed daemon that waits for its own device would never be gone."""


def read_until_an_error(device: str, seed: int) -> tuple[float, int]:
    """Read blocks until a read fails: when that was, and with which error."""
    draw = random.Random(seed)
    file, block = os.open(device, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK_BYTES)
    try:
        while True:
            os.preadv(file, [block], draw.randrange(1 << 18) * BLOCK_BYTES)
    except OSError as error:
        return time.monotonic(), error.errno or 0
    finally:
        os.close(file)


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.bench)])
def test_requests_of_a_killed_daemon_end_within_a_second(state: Path, kills: int) -> None:
    took_s = []
    for number in range(kills):
        attached = volume.attach("null:service_us=500", mount=None, name=f"v{number}", calibrate=False)
        with ThreadPoolExecutor(READERS) as pool:
            ends = [pool.submit(read_until_an_error, attached.block_device, reader) for reader in range(READERS)]
            expect(lambda attached=attached: attached.stats()["counters"]["read_ops"] > 1_000, "they read")
            killed = time.monotonic()
            os.kill(attached.daemon.pid, signal.SIGKILL)
            ended = [end.result(60) for end in ends]
        assert {error for _, error in ended} == {errno.EIO}
        took_s.append(max(at for at, _ in ended) - killed)
        attached.detach()
        clean(state)
    print(f"\nthe last of {READERS} requests ended {max(took_s):.3f} s after the kill at most")
    assert max(took_s) <= EIO_S


@pytest.mark.parametrize("kills", KILLS)
def test_killed_while_it_attaches(state: Path, kills: int) -> None:
    moments = random.Random(1)
    state.mkdir(parents=True)
    mount = state.parent / "mount"
    mount.mkdir()
    for number in range(kills):
        request = {"name": f"v{number}", "spec": "gp3", "mount": str(mount), "state_dir": str(state)}
        daemon = subprocess.Popen(
            [engine.checked(), "volume", "serve"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
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


@pytest.mark.usefixtures("state")
def test_killed_while_its_device_has_unwritten_pages() -> None:
    """As while mkfs writes. What closes the device last waits for them, so /dev/fuse must be closed before it."""
    document = volume.attach("null:size=1GiB", mount=None, name="v", calibrate=False)
    with Path(document.block_device).open("wb", buffering=0) as device:
        device.write(bytes(32 << 20))
    os.kill(document.daemon.pid, signal.SIGKILL)
    tasks = Path(f"/proc/{document.daemon.pid}/task")
    try:
        assert wait_until(lambda: not tasks.exists() or len(list(tasks.iterdir())) <= 1, GONE_S)
    finally:
        document.detach()


@pytest.mark.parametrize("kills", KILLS)
def test_killed_while_it_detaches(state: Path, kills: int) -> None:
    moments = random.Random(2)
    mount = state.parent / "mount"
    for number in range(kills):
        document = volume.attach("gp3:iops=3000", mount=mount, name=f"v{number}")
        for file in range(20):
            (mount / f"file{file}").write_bytes(bytes(500_000))
        command = [engine.checked(), "volume", "detach", document.name, "--state-dir", str(state)]
        asking = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            asking.wait(moments.uniform(0.0, 0.1))
        except subprocess.TimeoutExpired:
            subprocess.run(["kill", "-KILL", str(document.daemon.pid)], check=False)
        asking.wait(GONE_S)
        document.detach()
        assert not document.alive

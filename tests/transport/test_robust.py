"""Kills under load, a million requests replayed, data that is verified, and detaches: by /dev/fuse and over io_uring."""

from __future__ import annotations

import errno
import mmap
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pgdyno import _engine
from pgdyno.errors import InputError
from pgdyno.host import volume
from pgdyno.host.clean import clean
from tests.fault.server import faulty_server
from tests.host.needs import expect
from tests.host.test_volume import nothing_is_left
from tests.host.test_volume import test_a_killed_command_is_cleaned as command_is_killed
from tests.transport.conftest import uses
from tools.fidelity import fio
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

KILLS = 10
READERS = 16
EIO_S = 1.0
"""A request of a dead daemon ends with an error in this time."""
BLOCK_BYTES = 4096
REQUESTS = 10**6


def read_on(device: str, seed: int) -> tuple[float, int]:
    """Read blocks until one fails: when that was, and with which error."""
    draw = random.Random(seed)
    file, block = os.open(device, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, BLOCK_BYTES)
    try:
        while True:
            os.preadv(file, [block], draw.randrange(1 << 18) * BLOCK_BYTES)
    except OSError as error:
        return time.monotonic(), error.errno or 0
    finally:
        os.close(file)


def test_requests_of_a_killed_daemon_end_within_a_second(state: Path, way: str) -> None:
    took_s = []
    for number in range(KILLS):
        found = volume.attach("null:service_us=500", mount=None, name=f"v{number}")
        assert uses(found) == way
        with ThreadPoolExecutor(READERS) as pool:
            ends = [pool.submit(read_on, found.block_device, reader) for reader in range(READERS)]
            expect(lambda found=found: found.stats()["counters"]["read_ops"] > 1_000, "they read")
            killed = time.monotonic()
            os.kill(found.daemon.pid, signal.SIGKILL)
            ended = [end.result(60) for end in ends]
        assert {error for _, error in ended} == {errno.EIO}
        took_s.append(max(at for at, _ in ended) - killed)
        found.detach()
        clean(state)
        nothing_is_left(state)
    print(f"\n{way}: the last of {READERS} requests ended {max(took_s):.3f} s after the kill at most")
    assert max(took_s) <= EIO_S


@pytest.mark.parametrize("number", range(KILLS))
def test_what_a_killed_command_left_is_removed(state: Path, way: str, number: int) -> None:
    """Its volumes come by this way, as commands inherit it."""
    assert os.environ["PGDYNO_TRANSPORT"] == way
    command_is_killed(state, number)


def test_a_killed_server_has_every_row_that_it_acknowledged(state: Path, way: str) -> None:
    draw = random.Random(1)
    with faulty_server(state, "ext4") as server:
        assert {uses(one) for one in server.volumes.values()} == {way}
        for _ in range(KILLS):
            server.insert(draw.randrange(1, 50))
            os.kill(server.cluster.pid, signal.SIGKILL)
            server.recover()
            assert server.lost() == []


@pytest.mark.needs_fio
def test_a_million_requests_are_decided_again_to_the_nanosecond(state: Path, way: str) -> None:
    log = state.parent / "submit.log"
    with volume.attached("null:service_us=500", mount=None, submit_log=log, seed=3) as found:
        assert uses(found) == way
        while found.stats()["counters"]["read_ops"] + found.stats()["counters"]["write_ops"] < REQUESTS:
            fio.run(found.block_device, Job("random", "70/30", 4, 64, 5, ramp_s=0))
    replayed = _engine.run_json(["replay", str(log)], timeout_s=300)
    log.unlink()
    assert replayed["complete"]
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["grants"] == replayed["submits"] >= REQUESTS


@pytest.mark.needs_fio
@pytest.mark.parametrize("spec", ["null:size=1GiB", "io2bx:size=100GiB,iops=20000", "4xgp3:size=4GiB,chunk=64KiB"])
def test_what_was_written_is_what_is_read(state: Path, way: str, spec: str) -> None:
    """Requests of all sizes, which the kernel splits and an array divides."""
    with volume.attached(spec, mount=None) as found:
        assert uses(found) == way
        command = [
            *("fio", "--name=verify", f"--filename={found.block_device}", "--size=512m", "--direct=1"),
            *("--ioengine=libaio", "--rw=randwrite", "--bsrange=4k-1m", "--iodepth=32"),
            *("--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--randseed=5", "--output=/dev/null"),
            "--verify_state_save=0",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert found.stats()["counters"]["read_bytes"] >= 512 << 20


def test_a_volume_is_detached_under_load_every_time(state: Path, way: str) -> None:
    """While a program writes into it it stays; when that is killed, its pages are written and the volume goes."""
    mount = state.parent / "mnt"
    for number in range(KILLS):
        found = volume.attach("gp3:size=2GiB", mount=mount, name=f"v{number}", calibrate=False)
        assert uses(found) == way
        command = ["dd", "if=/dev/zero", f"of={mount}/file", "bs=1M", "count=20000"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=mount) as writer:
            expect(lambda found=found: found.stats()["counters"]["write_bytes"] > 8 << 20, "it writes")
            with pytest.raises(InputError):
                found.detach()
            assert found.alive
            assert writer.poll() is None
            writer.kill()
        found.detach()
        nothing_is_left(state)

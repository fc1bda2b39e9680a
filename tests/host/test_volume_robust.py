"""Killed servers, a million requests replayed, data that is verified, and detaches under load, by ``make bench ONLY=host``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from pgdyno.base import engine
from pgdyno.base.errors import InputError
from pgdyno.machine import volume
from tests.fault.server import faulty_server
from tests.host.needs import expect
from tests.host.test_volume import nothing_is_left
from tools.fidelity import fio
from tools.fidelity.cell import Job

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

KILLS = 10
REQUESTS = 10**6


def test_a_killed_server_has_every_row_that_it_acknowledged(state: Path) -> None:
    draw = random.Random(1)
    with faulty_server(state, "ext4") as server:
        for _ in range(KILLS):
            server.insert(draw.randrange(1, 50))
            os.kill(server.cluster.pid, signal.SIGKILL)
            server.recover()
            assert server.lost() == []


@pytest.mark.needs_fio
def test_a_million_requests_are_decided_again_to_the_nanosecond(state: Path) -> None:
    log = state.parent / "submit.log"
    with volume.attached("null:service_us=500", mount=None, submit_log=log, seed=3) as result:
        while result.stats()["counters"]["read_ops"] + result.stats()["counters"]["write_ops"] < REQUESTS:
            fio.run(result.block_device, Job("random", "70/30", 4, 64, 5, ramp_s=0))
    replayed = engine.run_json(["replay", str(log)], timeout_s=300)
    log.unlink()
    assert replayed["complete"]
    assert replayed["first_difference"] is None
    assert replayed["identical"] == replayed["grants"] == replayed["submits"] >= REQUESTS


@pytest.mark.needs_fio
@pytest.mark.parametrize("spec", ["null:size=1GiB", "io2bx:size=100GiB,iops=20000", "4xgp3:size=4GiB,chunk=64KiB"])
def test_what_was_written_is_what_is_read(state: Path, spec: str) -> None:
    """Requests of all sizes, which the kernel splits and an array divides."""
    with volume.attached(spec, mount=None) as result:
        command = [
            *("fio", "--name=verify", f"--filename={result.block_device}", "--size=512m", "--direct=1"),
            *("--ioengine=libaio", "--rw=randwrite", "--bsrange=4k-1m", "--iodepth=32"),
            *("--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--randseed=5", "--output=/dev/null"),
            "--verify_state_save=0",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert result.stats()["counters"]["read_bytes"] >= 512 << 20


def test_a_volume_is_detached_under_load_every_time(state: Path) -> None:
    """While a program writes into it it stays; when that is killed, its pages are written and the volume goes."""
    mount = state.parent / "mnt"
    for number in range(KILLS):
        document = volume.attach("gp3:size=2GiB", mount=mount, name=f"v{number}", calibrate=False)
        command = ["dd", "if=/dev/zero", f"of={mount}/file", "bs=1M", "count=20000"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=mount) as writer:
            expect(lambda item=document: item.stats()["counters"]["write_bytes"] > 8 << 20, "it writes")
            with pytest.raises(InputError):
                document.detach()
            assert document.alive
            assert writer.poll() is None
            writer.kill()
        document.detach()
        nothing_is_left(state)

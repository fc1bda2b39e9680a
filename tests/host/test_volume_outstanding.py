"""More requests at a time than a volume has room for wait, and an I/O error is counted before it is answered."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import volume
from tests.support.control import answer_of, connected

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs_fuse

DEPTH = 600
"""More than the 256 slots of a volume."""
EACH = 20
BLOCK = 4096
ERRORS = 3_000


@pytest.mark.parametrize("write", [False, True], ids=["reads", "writes"])
def test_600_requests_at_a_time_all_succeed(state: Path, write: bool) -> None:
    """On the exported file: a loop device keeps 128 in flight."""
    with volume.attached("gp3:size=16GiB,iops=8000", mount=None) as attached:
        file = os.open(attached.facts["backing_file"], os.O_RDWR)
        together = threading.Barrier(DEPTH)

        def work(number: int) -> None:
            together.wait(60)
            for turn in range(EACH):
                place = (number * EACH + turn) * BLOCK
                if write:
                    assert os.pwrite(file, bytes(BLOCK), place) == BLOCK
                else:
                    assert len(os.pread(file, BLOCK, place)) == BLOCK

        try:
            with ThreadPoolExecutor(DEPTH) as pool:
                for future in [pool.submit(work, number) for number in range(DEPTH)]:
                    future.result(120)
        finally:
            os.close(file)
        counters = attached.stats()["counters"]
        assert counters["write_ops" if write else "read_ops"] >= DEPTH * EACH
        assert (counters["refused_ops"], counters["failed_ops"]) == (0, 0)


def test_who_has_seen_an_error_finds_it_counted(state: Path) -> None:
    with volume.attached("null:size=64MiB", mount=None) as attached:
        attached.fail({"kind": {"error": {}}})
        file = os.open(attached.facts["backing_file"], os.O_RDWR)
        before = attached.stats()["counters"]["failed_ops"]
        try:
            with connected(attached) as connection:
                for number in range(1, ERRORS + 1):
                    with pytest.raises(OSError) as caught:
                        os.pwrite(file, bytes(BLOCK), 0)
                    assert caught.value.errno == errno.EIO
                    connection.sendall(b'{"command": "stats", "histograms": false}\n')
                    answer = answer_of(connection)
                    assert f'"failed_ops":{before + number},'.encode() in answer
        finally:
            os.close(file)
        attached.heal()

"""Volumes whose content is in a directory: PostgreSQL on one, and what a store that is full does to it."""

from __future__ import annotations

import errno
import json
import mmap
import os
import random
import re
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

from ..support.direct import moved
from ..support.disk import small_disk
from .needs import needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs_fuse

ROOM_MIB = 320
"""An attach refuses less than 256 MiB."""
BLOCK = 64 << 10


@pytest.fixture
def small(state: Path) -> Iterator[Path]:
    """A disk of :data:`ROOM_MIB`, for a store that fills."""
    with small_disk(state.parent / "store", ROOM_MIB) as folder:
        try:
            yield folder
        finally:
            for left in volume.list_volumes(state):
                left.detach()
            clean(state)


def fill(device: str, blocks: int) -> tuple[int, int]:
    """Write so many blocks, one after the other, past the page cache; how many were written, and how many failed."""
    written = failed = 0
    handle = os.open(device, os.O_WRONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, BLOCK) as content:
            content.write(b"x" * BLOCK)
            for number in range(blocks):
                try:
                    os.pwrite(handle, content, (1 << 30) + number * BLOCK)
                    written += 1
                except OSError as error:
                    assert error.errno in (errno.EIO, errno.ENOSPC)
                    failed += 1
    finally:
        os.close(handle)
    return written, failed


STRIDE = 256 << 10
"""Between two pages, so that none is read ahead with another."""
COLD, HOT = 96, 300
"""Pages of the image, and reads of one that is in memory."""
SLOWNESS = 32
"""By which a gp3 answers after 20 ms and more."""


def test_a_slow_disk_below_a_clone_delays_what_is_on_it_alone(state: Path) -> None:
    """Reads of an image on a slow disk are late and counted as such; a page that is in memory is there when it is due."""
    cold = [number * STRIDE for number in range(COLD)]
    hot = (COLD + 1) * STRIDE
    random.Random(3).shuffle(cold)
    disk = state.parent / "disk"
    with volume.attached("gp3:size=1GiB", mount=disk, name="disk", dilation=SLOWNESS):
        with volume.attached("null:size=1GiB", mount=None, name="source", store=str(disk)) as source:
            moved(source.block_device, cold, write=True)
            source.detach(save_image=disk / "image")
        with (
            volume.attached("io2bx:size=4GiB", mount=None, name="clone", image=disk / "image") as clone,
            ThreadPoolExecutor() as pool,
        ):
            moved(clone.block_device, [hot], write=True)
            before = clone.stats()["counters"]
            readers = [pool.submit(moved, clone.block_device, cold[first::4]) for first in range(4)]
            beside = moved(clone.block_device, [hot] * HOT)
            waited = [second for reader in readers for second in reader.result()]
            counters = clone.stats()["counters"]
    assert counters["failed_ops"] == 0
    assert statistics.quantiles(beside, n=10)[8] < statistics.median(waited) / 4, "they waited for others' data"
    # Workers of a busy machine may come late for the others too.
    assert counters["overrun_ops"] - before["overrun_ops"] >= 0.9 * COLD


def test_a_store_that_is_full_says_so(state: Path, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Failed writes are counted as failed; list, stats and the daemon's log say since when the store is full."""
    assert run(["volume", "attach", "null:size=5GiB", "--no-mount", "--name", "v", "--store", str(small)]) == 0
    noted = re.search(rf"may need up to 5\.0 GiB in {small}, where (\d+) MiB are free", capsys.readouterr().err)
    assert noted is not None
    assert ROOM_MIB - 40 < int(noted[1]) < ROOM_MIB, "an empty file system takes little"
    attached = volume.find("v", state)
    before = attached.stats()
    assert before["store_failure"] is None
    assert before["counters"]["failed_ops"] == 0
    written, failed = fill(attached.block_device, ROOM_MIB * 16 + 200)
    assert written > 0
    assert failed > 0
    stats = attached.stats()
    counters = stats["counters"]
    assert counters["failed_ops"] >= failed
    assert counters["write_ops"] - before["counters"]["write_ops"] <= written
    assert counters["write_bytes"] - before["counters"]["write_bytes"] <= written * BLOCK
    assert stats["store_failure"]["full"] is True
    assert "No space left" in stats["store_failure"]["error"]
    assert run(["volume", "list"]) == 0
    assert "store full since 20" in capsys.readouterr().out
    assert run(["volume", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["volumes"][0]["store_failure"] == stats["store_failure"]
    assert run(["volume", "stats", "v"]) == 0
    readouterr = capsys.readouterr()
    assert "store full since" in readouterr.err
    assert "failed_ops" in readouterr.out
    assert f"the store {attached.facts['layer']} failed" in (state / "claims" / "v" / "daemon.log").read_text()
    assert run(["volume", "detach", "v"]) == 0
    assert list(small.iterdir()) == []


def test_postgres_on_a_store_in_a_directory(state: Path, tmp_path: Path) -> None:
    """Its files are in the store's directory, survive a restart, and go with the volume."""
    store, mount = tmp_path / "store", state.parent / "mnt"
    store.mkdir()
    with volume.attached("gp3:size=2GiB", mount=mount, store=str(store)) as attached:
        cluster = Cluster(find_binaries(), mount / "data")
        cluster.initdb()
        with cluster.running(), psycopg.connect(cluster.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 100000) AS id")
            connection.execute("CHECKPOINT")
        with cluster.running(), psycopg.connect(cluster.dsn) as connection:
            assert connection.execute("SELECT count(*), sum(id) FROM kept").fetchone() == (100_000, 5_000_050_000)
        layer = Path(attached.facts["layer"])
        assert layer.parent == store
        assert (layer / "data").stat().st_blocks * 512 > 30 << 20, "a cluster has 30 MiB at least"
        assert attached.stats()["counters"]["failed_ops"] == 0
    assert list(store.iterdir()) == []


def test_postgres_on_a_store_that_fills_gets_an_error_and_the_volume_says_why(state: Path, small: Path) -> None:
    mount = state.parent / "mnt"
    with volume.attached("null:size=5GiB", mount=mount, store=str(small)) as attached:
        cluster = Cluster(find_binaries(), mount / "data")
        cluster.initdb()
        with (
            pytest.raises(psycopg.Error),
            cluster.running(),
            psycopg.connect(cluster.dsn, autocommit=True) as connection,
        ):
            connection.execute("CREATE TABLE much AS SELECT repeat('x', 100) AS a FROM generate_series(1, 6000000)")
            connection.execute("CHECKPOINT")
        stats = attached.stats()
        assert stats["counters"]["failed_ops"] > 0
        assert stats["store_failure"]["full"] is True


@pytest.mark.parametrize(("store", "words"), [("", "has no name"), ("/dev/null", "not a directory")])
def test_what_is_no_store_is_refused(state: Path, capsys: pytest.CaptureFixture[str], store: str, words: str) -> None:
    assert run(["volume", "attach", "gp3", "--no-mount", "--store", store]) == 2
    assert words in capsys.readouterr().err


def test_too_little_room_is_said_in_figures_that_differ(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_disk(state.parent / "tiny", 230) as folder:
        assert run(["volume", "attach", "gp3", "--no-mount", "--store", str(folder)]) == 3
    assert f"needs 256 MiB in {folder}, and 230 MiB are free" in capsys.readouterr().err

"""PostgreSQL for tests that need a server and no volume: on a plain directory in memory, gone afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.machine import preflight
from pgdyno.machine.journal import HostJournal
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

# These tests are about counting; what commits cost on a test machine's disk is of no interest to them.
_SETTINGS = {"shared_buffers": "64MB", "synchronous_commit": "off"}


_IMAGES = os.environ.get("PGDYNO_IMAGE_DIR")
"""Those of the whole run: a test may have others."""


def _folder(place: str | None = _IMAGES) -> Path:
    """A new directory in memory, as images are, which PostgreSQL's user can walk through.

    On a disk most of a test is the syncs of CREATE and DROP DATABASE.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=place))
    folder.chmod(0o755)
    return folder


CLUSTERS = "PGDYNO_TEST_CLUSTERS"
"""Environment variable that names a folder of data directories for all processes of one run of the tests."""


@functools.cache
def made_once(pg_bin: Path | None) -> Path:
    """A data directory of these programs that nobody has started; it goes with the run's images, or with that folder."""
    shared = os.environ.get(CLUSTERS)
    if shared is None:
        return _made(_folder(), pg_bin)
    folder = Path(shared) / hashlib.sha256(str(pg_bin).encode()).hexdigest()[:16]
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel's: it ends with its owner
        if not folder.is_dir():
            unfinished = _folder(shared)
            _made(unfinished, pg_bin)
            unfinished.rename(folder)
    return folder / "data"


def _made(folder: Path, pg_bin: Path | None) -> Path:
    cluster = Cluster(find_binaries(pg_bin), folder / "data", journal=HostJournal(folder / "state"))
    try:
        cluster.initdb()
    finally:
        cluster.close()
    return cluster.data_dir


def initialise(data_dir: Path, pg_bin: Path | None = None) -> None:
    """What `Cluster.initdb` makes, copied from one that was made before."""
    subprocess.run(["cp", "--archive", made_once(pg_bin), data_dir], check=True)


@contextlib.contextmanager
def throwaway_cluster(
    pg_bin: Path | None = None, settings: dict[str, str] | None = None, tcp: str | None = None
) -> Iterator[Cluster]:
    """Yield a started server, the embedded one or that of ``pg_bin``; ``settings`` are more or others than those of all.

    ``tcp`` is an address on which it listens too, with a password.
    """
    directory = _folder()
    initialise(directory / "data", pg_bin)
    at: dict[str, Any] = {} if tcp is None else {"tcp": tcp, "port": preflight.free_port(tcp)}
    cluster = Cluster(find_binaries(pg_bin), directory / "data", journal=HostJournal(directory / "state"), **at)
    try:
        with cluster.running(_SETTINGS | (settings or {})):
            yield cluster
    finally:
        cluster.close()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server of the embedded PostgreSQL for all tests of a folder."""
    with throwaway_cluster() as started:
        yield started


OTHERS = "PGDYNO_TEST_POSTGRES"
"""Environment variable with folders of further PostgreSQL programs, separated by colons, for versions that the system has no package of."""


def _others() -> list[Path]:
    named = os.environ.get(OTHERS, "").split(":")
    return [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, filter(None, named))]


@pytest.fixture(scope="session", params=_others() or [None], ids=str)
def older_server(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Each PostgreSQL that the system has packages of, or that is named."""
    if request.param is None:
        pytest.skip(f"no other PostgreSQL below /usr/lib/postgresql, and {OTHERS} names none")
    with throwaway_cluster(request.param) as started:
        yield started

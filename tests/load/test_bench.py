"""How fast it is beside COPY itself, on this machine. Run by `make bench ONLY=load`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow
import pytest

from tests.drive.driven import environment

from ..servers import throwaway_cluster
from .loaded import LEDGER, Target, load, order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.postgres.cluster import Cluster

MEGABYTES = int(os.environ.get("PGDYNO_LOAD_MEGABYTES", "300"))
SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
TABLE = "CREATE TABLE t (id bigint, amount numeric, at timestamptz, note text, tag text)"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BESIDE_COPY_MIN = 0.95
BESIDE_PSQL_MIN = 1.6
CLIENT_CPU_MAX = 0.10
GZIP_MIN = 0.9
RSS_BYTES_MAX = 256 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A server with memory, for these measurements alone."""
    with throwaway_cluster() as started:
        started.stop()
        started.start(SETTINGS)
        yield started


@pytest.fixture(scope="module")
def files(server: Cluster) -> list[Path]:
    """Two halves of a file, and the whole: tab-separated, about a hundred bytes a row."""
    folder = server.data_dir.parent / "files"  # where the server may read
    folder.mkdir()
    row = "{n}\t{a}.{b:02}\t2026-01-02 03:04:05+00\tthe note of row {n} and what else there is\ttag{c}\n"
    halves = []
    for half in range(2):
        path = folder / f"half{half}.tsv"
        with path.open("w") as file:
            count = MEGABYTES * 5_000
            for n in range(half * count, (half + 1) * count):
                file.write(row.format(n=n, a=n * 7919 % 100_003, b=n % 100, c=n % 977))
        path.chmod(0o644)
        halves.append(path)
    whole = folder / "whole.tsv"
    with whole.open("wb") as file:
        for path in halves:
            file.write(path.read_bytes())
    folder.chmod(0o755)
    return [*halves, whole]


def server_cpu_s(server: Cluster) -> float:
    """CPU of the server with all of its processes, also those that have ended."""

    def of(pid: str, fields: slice) -> float:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in stat[fields]) / TICKS_PER_S

    while True:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
        # One that ends meanwhile counts among those that the server has waited for: look again.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return of(str(server.pid), slice(11, 15)) + sum(of(child, slice(11, 13)) for child in children)


def timed(server: Cluster, what: Callable[[], float | None]) -> tuple[float, float, float]:
    """Seconds until everything is on disk, CPU seconds of the server, and what ``what`` returns."""
    target = Target(server.dsn)
    target.run("DROP TABLE IF EXISTS t", "DROP SCHEMA IF EXISTS pgdyno_load CASCADE", LEDGER, TABLE, "CHECKPOINT")
    cpu, begun = server_cpu_s(server), time.monotonic()
    returned = what()
    target.run("CHECKPOINT")
    return time.monotonic() - begun, server_cpu_s(server) - cpu, returned or 0.0


def server_side(server: Cluster, halves: list[Path]) -> None:
    """Two sessions, each with a COPY FROM a file that the server reads itself."""

    def copy(path: Path) -> None:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"COPY t FROM '{path}'".encode())

    with ThreadPoolExecutor() as threads:
        list(threads.map(copy, halves))


def psql(server: Cluster, path: Path) -> None:
    """``\\copy`` of psql where there is one, else the same by libpq."""
    program = server.binaries.bin_dir / "psql"
    if program.exists():
        command = [program, "-qc", f"\\copy t FROM '{path}'"]
        subprocess.run(command, env=environment(server.dsn), check=True)
        return
    with (
        psycopg.connect(server.dsn, autocommit=True) as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY t FROM STDIN") as copy,
        path.open("rb") as file,
    ):
        while block := file.read(65_536):
            copy.write(block)


def engine(server: Cluster, path: Path, connections: int = 2) -> float:
    """The engine; returns its CPU seconds."""
    ledger = {"table": "pgdyno_load.chunk", "job": 1}
    settings = {"synchronous_commit": "off"}
    done = load(server.dsn, order(path, format={"text": {}}, connections=connections, ledger=ledger, settings=settings))
    print(f"\n{path.name}: {done.end['rss_bytes_max'] / 1e6:.0f} MB of memory")
    assert done.end["rss_bytes_max"] < RSS_BYTES_MAX
    return float(done.end["cpu_ms"]["user"] + done.end["cpu_ms"]["system"]) / 1000


@pytest.mark.bench
def test_a_plain_file_is_as_fast_as_the_server_reads_it_itself(server: Cluster, files: list[Path]) -> None:
    *halves, whole = files
    megabytes = whole.stat().st_size / 1e6
    best: dict[str, float] = {}
    shares = []
    for _ in range(3):
        for name, what in {
            "server": lambda: server_side(server, halves),
            "psql": lambda: psql(server, whole),
            "engine": lambda: engine(server, whole),
        }.items():
            seconds, cpu_s, own_cpu_s = timed(server, what)
            best[name] = max(best.get(name, 0.0), megabytes / seconds)
            if name == "engine":
                shares.append(own_cpu_s / cpu_s)
    print(f"\nMB/s: {', '.join(f'{name} {rate:.0f}' for name, rate in best.items())}; client CPU {min(shares):.1%}")
    assert best["engine"] >= BESIDE_COPY_MIN * best["server"]
    assert best["engine"] >= BESIDE_PSQL_MIN * best["psql"]
    assert min(shares) <= CLIENT_CPU_MAX


@pytest.mark.bench
def test_a_packed_file_is_as_fast_as_the_cores_allow(server: Cluster, files: list[Path]) -> None:
    whole = files[-1]
    packed = whole.with_suffix(".tsv.gz")
    with packed.open("wb") as file:
        subprocess.run(["gzip", "-6c", whole], stdout=file, check=True)
    megabytes = whole.stat().st_size / 1e6
    _, copy_cpu_s, plain_cpu_s = timed(server, lambda: engine(server, whole))
    seconds, _, packed_cpu_s = timed(server, lambda: engine(server, packed))
    unpack_s, copy_s = (packed_cpu_s - plain_cpu_s) / megabytes, (copy_cpu_s + plain_cpu_s) / megabytes
    cores = os.cpu_count() or 1
    bound = min(1 / unpack_s, cores / (unpack_s + copy_s))
    print(f"\nMB/s: {megabytes / seconds:.0f}, the bound is {bound:.0f} (unpack {1e3 * unpack_s:.1f} ms/MB)")
    assert megabytes / seconds >= GZIP_MIN * bound


@pytest.mark.bench
@pytest.mark.parametrize("kind", ["plain", "zstd"])
def test_memory_is_bounded_with_many_sessions(server: Cluster, files: list[Path], kind: str) -> None:
    path = files[-1]
    if kind == "zstd":
        path = path.with_suffix(".tsv.zst")
        path.write_bytes(pyarrow.Codec("zstd").compress(files[-1].read_bytes(), asbytes=True))
    timed(server, lambda: engine(server, path, connections=8))

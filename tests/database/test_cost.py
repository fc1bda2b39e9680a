"""What restoring costs beside pg_restore by hand, on a volume without limits, and how soon a kept database is there (issue 21, "Restore")."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine.journal import HostJournal
from pgdyno.machine.placement import AttachedPlacement, Placement, attach_placement
from pgdyno.results import open_loads
from pgdyno.server import layout, settings
from pgdyno.server import restore as programs
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from pgdyno.server.restore import Restorer
from pgdyno.server.throwaway import throwaway
from pgdyno.world.dataset import dataset_keys, loaded
from pgdyno.world.resolved import emulated_arms
from pgdyno.world.restored import Site, restore
from tools.captured.application import ROLES
from tools.captured.logged import dumped
from tools.captured.production import DATABASE, build

from ..support.commands import pgdyno
from .shop import own
from .test_kept import experiment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.binaries import PgBinaries

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

SIZE = float(os.environ.get("PGDYNO_BENCH_SHOP_SIZE", "12"))
"""0.6 GB."""
JOBS = 2
PAIRS = 3
RATIO_MOST = 1.1
KEPT_S_MOST = 3.0
VOLUME = "null:size=8GiB"
SETTINGS = settings.tuned(1 << 30, 18) | programs.SETTINGS


@contextlib.contextmanager
def attached(journal: HostJournal, name: str) -> Iterator[AttachedPlacement]:
    """An empty volume without limits, with a file system."""
    with attach_placement(Placement({"data": VOLUME}, "ext4"), name=name, journal=journal) as placement:
        yield placement


def by_hand(dump: Path, roles: Path, binaries: PgBinaries, journal: HostJournal, folder: Path) -> float:
    """Seconds of pg_restore alone."""
    with attached(journal, "by-hand") as place:
        cluster = Cluster(binaries, layout.data_dir(place.mounts), journal=journal)
        layout.initdb(cluster, place.mounts)
        with cluster.running(SETTINGS):
            Restorer(cluster, folder / "by-hand.log").psql([roles.read_bytes()], "postgres")
            where = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres", "-d", "postgres"]
            command = [binaries.program("pg_restore"), *where, "-C", "-j", str(JOBS), dump]
            begin = time.monotonic()
            subprocess.run(command, env=binaries.environment, check=True, timeout=600)
            took_s = time.monotonic() - begin
        cluster.close()
    return took_s


def by_pgdyno(dump: Path, roles: Path, binaries: PgBinaries, journal: HostJournal, directory: Path) -> float:
    """Seconds of the same step of a restore, as its record has them."""
    with attached(journal, "restored") as place:
        site = Site(
            binaries=binaries,
            attached=place,
            instance=None,
            journal=journal,
            directory=directory,
            title="a bench",
            settings=SETTINGS,
            world=None,
            progress=lambda _share, _text: None,
        )
        restore(own(dump, globals=roles, jobs=JOBS), site)
    (load,) = open_loads(directory)
    return load.record.seconds["restore"]


def test_restoring_takes_no_longer_than_by_hand_and_a_kept_database_is_there_at_once(
    databases: Path, state_dir: Path, image_dir: Path, tmp_path: Path
) -> None:
    del databases, image_dir
    journal = HostJournal(state_dir)
    pairs = []
    binaries = find_binaries(None)
    with throwaway(binaries, {"synchronous_commit": "off", "max_wal_size": "4GB"}) as cluster:
        build(cluster, tmp_path / "build.log", SIZE)
        dump, roles = dumped(cluster, DATABASE, tmp_path)
    for number in range(PAIRS):
        pair = [by_hand, by_pgdyno]
        document = {
            item: item(dump, roles, binaries, journal, tmp_path / f"{number}")
            for item in (pair if number % 2 else pair[::-1])
        }
        pairs.append(document[by_pgdyno] / document[by_hand])
        print(f"\npg_restore by hand {document[by_hand]:.1f} s, by pgdyno {document[by_pgdyno]:.1f} s, {pairs[-1]:.3f}")
    pgdyno("data", "add", dump, "--globals", roles, "--name", "shop", "--user", ROLES[0], code=0)
    result = experiment(tmp_path, "shop")
    arms = emulated_arms(result, to_run=False)
    key = dataset_keys(result, arms)[0]
    begin = time.monotonic()
    with loaded({key: arms[0].binaries}, lambda _: lambda _share, _text: None, tmp_path, lambda _: None):
        kept_s = time.monotonic() - begin
    print(f"a kept database is there after {kept_s:.2f} s")
    assert statistics.median(pairs) <= RATIO_MOST
    assert kept_s <= KEPT_S_MOST

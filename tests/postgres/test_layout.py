"""A cluster's parts lie on the volumes asked for, also when these are clones mounted elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.machine.waiting import wait_until
from pgdyno.server import layout
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from tests.conftest import find_system_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

ROLES = ("data", "wal", "temp", "backup", "tablespace.fast")
VERSIONS = ["embedded", pytest.param("system", marks=pytest.mark.needs_system_postgres)]


def folders(state: Path, name: str, roles: tuple[str, ...] = ROLES) -> dict[str, Path]:
    """Directories that stand for mounts."""
    made = {role: state.parent / name / role for role in roles}
    for folder in made.values():
        folder.mkdir(parents=True)
    return made


@pytest.fixture(params=VERSIONS)
def loaded(state: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A stopped cluster with a table in a tablespace, then moved away from where it was made."""
    mounts = folders(state, "first")
    binaries = find_binaries(find_system_postgres() if request.param == "system" else None)
    cluster = Cluster(binaries, layout.data_dir(mounts))
    try:
        layout.initdb(cluster, mounts)
        with cluster.running():
            layout.create_tablespaces(cluster, mounts)
            with cluster.connect() as connection:
                connection.execute("CREATE TABLE kept TABLESPACE fast AS SELECT generate_series(1, 1000) AS n")
        cluster.close()
        (state.parent / "first").rename(state.parent / "second")
        moved = Cluster(binaries, state.parent / "second" / "data" / layout.DATA_FOLDER)
        yield moved
        moved.close()
    finally:
        cluster.close()


def test_a_clone_finds_its_parts_on_its_own_volumes(loaded: Cluster, state: Path) -> None:
    mounts = {role: state.parent / "second" / role for role in ROLES}
    layout.arrange(loaded, mounts)
    assert Path(os.readlink(loaded.data_dir / "pg_wal")) == mounts["wal"] / "pg_wal"
    with loaded.running({"work_mem": "64kB"} | layout.settings(mounts)), loaded.connect(autocommit=False) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)
        connection.execute("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 200000) AS n ORDER BY -n")
        connection.execute("FETCH 1 FROM c")
        assert list((mounts["temp"] / "temp").rglob("pgsql_tmp*/*")), "the sort spills to the temporary tablespace"
        connection.commit()
        connection.execute("CREATE TABLE written AS SELECT 1")
        connection.execute("SELECT pg_switch_wal()")
        connection.commit()
        archive = mounts["backup"] / layout.ARCHIVE_FOLDER
        assert wait_until(lambda: any(len(file.name) == 24 for file in archive.iterdir()), 20.0), "WAL is archived"


def test_other_volumes_than_it_was_made_for_are_refused(loaded: Cluster, state: Path) -> None:
    mounts = {role: state.parent / "second" / role for role in ROLES if role != "wal"}
    with pytest.raises(InputError, match="temp, wal, and there are"):
        layout.arrange(loaded, mounts)
    mounts["wal"] = folders(state, "empty", ("wal",))["wal"]
    with pytest.raises(InputError, match="there is no"):
        layout.arrange(loaded, mounts)


def test_data_alone_needs_no_arrangement(state: Path) -> None:
    mounts = folders(state, "only", ("data",))
    assert layout.settings(mounts) == {}
    assert layout.tablespaces(mounts) == {}
    cluster = Cluster(find_binaries(), layout.data_dir(mounts))
    try:
        layout.initdb(cluster, mounts)
        layout.arrange(cluster, mounts)
        assert (cluster.data_dir / "pg_wal").is_dir()
        assert not (cluster.data_dir / "pg_wal").is_symlink()
    finally:
        cluster.close()

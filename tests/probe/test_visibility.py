"""What can be seen of a server that exists already: its device, its processes; what cannot be seen is said."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.conninfo import make_conninfo

from pgdyno.base.errors import PgdynoError
from pgdyno.machine.instance import InstanceGroup
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.process import working_below
from pgdyno.machine.waiting import wait_until
from pgdyno.probe import sampler, visibility
from pgdyno.probe.host import HostProbe
from pgdyno.probe.sampler import START_PATIENCE_S
from pgdyno.probe.sql import SqlProbe
from pgdyno.probe.visibility import View, look
from pgdyno.results.tables import conform
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster
from tests.support.machine import own_mounts

from ..host.needs import needs_cgroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1 << 20
BURN = "SELECT sum(i) FROM generate_series(1, 2000000) AS i"


def seen(view: View) -> dict[str, bool]:
    """Whether each thing was seen."""
    return {visibility.what: visibility.seen for visibility in view.visibility}


def why(view: View, what: str) -> str:
    """The reason for one thing."""
    (why,) = (visibility.why for visibility in view.visibility if visibility.what == what)
    return why


def device_of(folder: Path) -> str | None:
    """The block device below a directory, as sysfs has it; None for a file system in memory and the like."""
    number = folder.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return node.resolve().name if node.exists() else None


@contextlib.contextmanager
def folder_of_the_servers(cluster: Cluster, parent: Path) -> Iterator[Path]:
    """A new directory below ``parent`` that belongs to the server's user."""
    folder = Path(tempfile.mkdtemp(prefix="pgdt-", dir=parent))
    try:
        if cluster.user is not None:
            os.chown(folder, cluster.user.uid, cluster.user.gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def tablespace(cluster: Cluster, name: str, folder: Path) -> Iterator[None]:
    """A tablespace in ``folder``."""
    with cluster.connect() as connection:
        connection.execute(f"CREATE TABLESPACE {name} LOCATION '{folder}'".encode())
        try:
            yield
        finally:
            connection.execute(f"DROP TABLESPACE {name}".encode())


def find_processes_and_device(server: Cluster, tmp_path: Path) -> None:
    view = look(server.dsn)
    assert view.roles["server"].parents == (server.pid,)
    assert seen(view)["the server's processes"]
    device = device_of(server.data_dir)
    if device is None:
        assert view.devices == {}
        assert "has no block device here" in why(view, "the data directory's device")
    else:
        assert view.devices == {"data": device}, "the WAL is on the same device and has no rows of its own"
        assert why(view, "the WAL's device").endswith("which is the data volume's")
        assert view.file_system
    with HostProbe(tmp_path, view.roles, devices=view.devices, interval_ms=50) as probe:
        with server.connect() as connection:
            connection.execute(BURN)
        samples = probe.stop()
    # The statement may keep the probe from its CPU for longer than an interval.
    assert [gap for gap in samples.gaps if gap.what != "host.samples"] == []
    rows = samples.tables["probe/cpu"].to_pylist()
    used = [row["cpu_ns"] for row in rows if row["role"] == "server"]
    assert used == sorted(used)
    # The session has ended by the last sample: what it used is the server's all the same.
    assert used[-1] - used[0] >= 20_000_000, "two million rows take longer than two ticks of the clock"
    if view.devices:
        assert {row["volume"] for row in samples.tables["probe/disk"].to_pylist()} == {"data"}


def test_a_server_on_this_host_is_found_with_its_processes_and_its_device(
    cluster: Cluster, engine: Path, tmp_path: Path
) -> None:
    find_processes_and_device(cluster, tmp_path)


def test_other_versions_are_found_the_same(older_server: Cluster, engine: Path, tmp_path: Path) -> None:
    find_processes_and_device(older_server, tmp_path)


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="needs /dev/shm")
def test_a_tablespace_in_memory_has_no_device_and_that_is_said(cluster: Cluster) -> None:
    with folder_of_the_servers(cluster, Path("/dev/shm")) as folder, tablespace(cluster, "quick", folder):
        view = look(cluster.dsn)
    assert "tablespace.quick" not in view.devices
    assert why(view, "the device of the tablespace quick") == "it is on tmpfs, which has no block device here"


@pytest.mark.needs_root
def test_a_tablespace_on_a_device_of_its_own_has_its_own_rows(cluster: Cluster, tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    mount = Path(tempfile.mkdtemp(prefix="pgdt-"))
    mount.chmod(0o755)
    device = subprocess.check_output(["losetup", "--find", "--show", image], text=True).strip()
    try:
        subprocess.run(["mount", "-o", "noatime", device, mount], check=True)
        with folder_of_the_servers(cluster, mount) as folder, tablespace(cluster, "own", folder):
            view = look(cluster.dsn)
    finally:
        subprocess.run(["umount", mount], check=False)
        subprocess.run(["losetup", "--detach", device], check=True)
        mount.rmdir()
    assert view.devices["tablespace.own"] == Path(device).name
    assert why(view, "the device of the tablespace own") == f"{Path(device).name} with ext4"


def test_a_wal_that_was_moved_is_looked_for_where_it_is(cluster: Cluster, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    link, plain = tmp_path / "pg_wal", tmp_path / "plain"
    link.symlink_to(moved)
    plain.mkdir()
    root = Path(f"/proc/{os.getpid()}/root")
    assert visibility._linked(link, root) == root / moved.relative_to("/")
    assert visibility._linked(plain, root) == plain


def test_a_server_on_another_host_leaves_only_what_sql_shows(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "_AGE_TOLERANCE_S", -1.0)  # no process here is the session's
    view = look(cluster.dsn)
    assert (view.roles, view.devices) == ({}, {})
    assert not seen(view)["the server's processes"]
    assert not seen(view)["the data directory's device"]
    assert seen(view)["wait events"]


def look_with_few_rights(server: Cluster) -> None:
    with server.connect() as connection:
        connection.execute("CREATE ROLE watcher LOGIN")
        try:
            dsn = server.dsn.replace("user=postgres", "user=watcher")
            view = look(dsn)
            other = server.connect()
            other.execute("BEGIN")
            samples = SqlProbe(dsn, 0.1, 0.05).start().stop()
            other.close()
            connection.execute("GRANT pg_monitor TO watcher")
            monitor = look(dsn)
        finally:
            connection.execute("DROP ROLE watcher")
    what = "wait events of other roles' sessions and of the server's own processes"
    assert not seen(view)[what]
    assert "pg_monitor" in why(view, what)
    assert seen(monitor)[what]
    assert not seen(view)["time of reads and writes of data"]
    assert "track_io_timing is off" in why(view, "time of reads and writes of data")
    refused = [gap for gap in samples.gaps if not gap.why.endswith("deadlines were missed")]
    assert refused == [], "every query is allowed to every role"
    for name, table in samples.tables.items():
        assert conform(name, table).num_rows > 0
    assert {row["count"] for row in samples.tables["probe/wait_events"].to_pylist()} == {0}, "others' are hidden"


def test_a_role_with_few_rights_is_told_what_it_cannot_see(cluster: Cluster) -> None:
    look_with_few_rights(cluster)


def test_a_role_with_few_rights_on_other_versions(older_server: Cluster) -> None:
    look_with_few_rights(older_server)


@needs_cgroups
@pytest.mark.needs_root
def test_the_memory_of_a_server_is_that_of_its_own_control_group(state_dir: Path) -> None:
    journal = HostJournal(state_dir)
    folder = Path(tempfile.mkdtemp(prefix="pgdt-"))
    folder.chmod(0o755)
    cluster = Cluster(find_binaries(), folder / "data", journal=journal)
    try:
        cluster.initdb()
        with (
            InstanceGroup(f"test-{os.getpid()}", 256 * MIB, journal=journal, dirty_limits=False) as instance,
            cluster.running({}, instance),
        ):
            assert sampler.memory_group(cluster.pid) == Path(instance.paths["cgroup_memory"] or "")
            assert sampler.memory_group(os.getpid()) is None, "this process shares its group with others"
    finally:
        cluster.close()
        shutil.rmtree(folder)


@pytest.mark.needs_root
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare (apt install util-linux)")
def test_a_server_with_process_ids_and_mounts_of_its_own_is_found_as_in_a_container(state_dir: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="pgdt-"))
    folder.chmod(0o755)
    cluster = Cluster(find_binaries(), folder / "data", journal=HostJournal(state_dir))
    cluster.initdb()
    cluster.write_configuration({})
    assert cluster.user is not None, "root starts it as another user"
    become = ["setpriv", f"--reuid={cluster.user.uid}", f"--regid={cluster.user.gid}", "--clear-groups"]
    server = [str(cluster.binaries.program("postgres")), "-D", str(cluster.data_dir)]
    with (folder / "log").open("wb") as log:
        container = subprocess.Popen([*own_mounts("--pid", "--fork"), *become, *server], stdout=log, stderr=log)
    try:
        assert wait_until(cluster.socket_dir.joinpath(f".s.PGSQL.{cluster.port}").exists, 30.0)
        assert wait_until(lambda: "ready" in (cluster.data_dir / "postmaster.pid").read_text(), 30.0)
        view = look(cluster.dsn)
        (number,) = view.roles["server"].parents
        assert sampler.parent(number) == container.pid
        assert sampler.in_container(number)
        device = device_of(cluster.data_dir)
        assert view.devices == ({} if device is None else {"data": device})
    finally:
        for server_pid in Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split():
            os.kill(int(server_pid), signal.SIGQUIT)  # as `pg_ctl stop -m immediate`; unshare ends with it
        container.wait(30.0)
        assert wait_until(lambda: not working_below(cluster.data_dir), 60.0)
        cluster.close()
        shutil.rmtree(folder)


@pytest.mark.needs_root
def test_a_user_who_may_not_look_into_the_server_is_told_so(cluster: Cluster) -> None:
    cluster.socket_dir.chmod(0o755)
    try:
        view = as_nobody(lambda: vars_of(look(cluster.dsn)))
    finally:
        cluster.socket_dir.chmod(0o700)
    document = {item["what"]: item for item in view["visibility"]}
    assert document["the server's processes"]["seen"], "processes are public"
    # The superuser's session knows the path; its last directory need not be entered to know its device.
    device = device_of(cluster.data_dir)
    assert view["devices"] == ({} if device is None else {"data": device})
    assert document["the WAL's device"] == {
        "what": "the WAL's device",
        "seen": False,
        "why": "this user may not look into the data directory",
    }


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="cannot be looked at"):
        look(f"host={tmp_path} user=x dbname=y")


def vars_of(view: View) -> dict[str, Any]:
    """What can pass through a pipe."""
    return {"devices": view.devices, "visibility": [visibility.model_dump() for visibility in view.visibility]}


def as_nobody(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``work`` returns to the user nobody."""
    nobody = pwd.getpwnam("nobody")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(nobody.pw_gid, nobody.pw_gid, nobody.pw_gid)
            os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)
            os.write(writing, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as fdopen:
        text = fdopen.read()
    assert wait_until(lambda: os.waitpid(child, os.WNOHANG)[0] == child, 60.0)
    assert text, "the child failed: its traceback is above"
    document: dict[str, Any] = json.loads(text)
    return document


def test_a_database_without_an_encoding_is_looked_at_as_any_other(cluster: Cluster) -> None:
    with cluster.connect() as connection:
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
        try:
            with folder_of_the_servers(cluster, Path("/dev/shm")) as folder, tablespace(cluster, "quick", folder):
                view = look(make_conninfo(cluster.dsn, dbname="plain"))
        finally:
            connection.execute("DROP DATABASE plain WITH (FORCE)")
    assert why(view, "the device of the tablespace quick") == "it is on tmpfs, which has no block device here"


def test_a_process_whose_name_is_cut_inside_a_letter_hides_no_other(tmp_path: Path) -> None:
    script = tmp_path / "ääääääää"  # 16 bytes, of which the kernel keeps 15
    script.write_text("#!/bin/sh\nread -r line\n", encoding="utf-8")
    script.chmod(0o755)
    with subprocess.Popen([script], stdin=subprocess.PIPE) as process:
        comm = Path(f"/proc/{process.pid}/comm")
        try:
            assert wait_until(lambda: comm.read_bytes().startswith(b"\xc3\xa4"), 60.0)
            assert list(sampler._candidates(0)) == []
        finally:
            process.kill()


def test_a_server_that_answers_late_is_waited_for_as_long_as_by_the_probes(timeouts_asked: list[object]) -> None:
    """It took a connection already, perhaps after more than a few seconds: its experiment must not end here."""
    with pytest.raises(PgdynoError, match="cannot be looked at: connection timeout expired"):
        look("host=nowhere")
    assert timeouts_asked == [START_PATIENCE_S]

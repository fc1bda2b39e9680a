"""A cluster from initdb to the end, also when the end comes unasked."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import HostError, InputError
from pgdyno.machine import preflight
from pgdyno.machine.instance import InstanceGroup
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.process import working_below
from pgdyno.server.binaries import find_binaries
from pgdyno.server.cluster import Cluster

from ..host.needs import expect, first_cpu, needs_cgroups, needs_root
from ..support.servers import initialise

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLS = (*range(3), *(pytest.param(number, marks=pytest.mark.bench) for number in range(3, 10)))
"""Seeds of the moments; `make test` has the first."""


@pytest.fixture
def cluster(state: Path) -> Iterator[Cluster]:
    """A cluster on a plain directory, not started; nothing of it is left at the end."""
    before = shared_memory()
    made = Cluster(find_binaries(), state.parent / "data")
    try:
        initialise(made.data_dir)
        yield made
    finally:
        made.close()
    assert working_below(made.data_dir) == []
    assert HostJournal(state).entries() == []
    assert not made.run_dir.exists()
    # Servers of other programs on this machine come and go, too.
    expect(lambda: shared_memory() <= before, "no shared memory is left")


def shared_memory() -> set[str]:
    """Segments of servers whose processes are all dead, named as the kernel names them."""
    posix = {f"/dev/shm/{file.name}" for file in Path("/dev/shm").glob("PostgreSQL.*")}
    used = "".join(_maps(entry) for entry in Path("/proc").glob("[0-9]*/maps"))
    segments = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {name for name in posix if name not in used} | {fields[1] for fields in segments if fields[6] == "0"}


def _maps(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def test_start_settings_stop(cluster: Cluster) -> None:
    with cluster.running({"shared_buffers": "32MB"}):
        rows = {row["name"]: row for row in cluster.settings()}
        assert rows["shared_buffers"]["setting"] == str(32 * 128)
        assert rows["shared_buffers"]["source"] == "configuration file"
        assert rows["data_checksums"]["setting"] == "on"
        assert rows["listen_addresses"]["setting"] == ""
        assert rows["fsync"]["setting"] == "on"
        assert Path(str(rows["unix_socket_directories"]["setting"])).stat().st_mode & 0o777 == 0o700
        with cluster.connect() as connection:
            row = connection.execute("SHOW server_version").fetchone()
        assert row is not None
        assert row[0] == cluster.version
    assert not cluster.alive
    assert "database system is shut down" in cluster.log_tail()
    with cluster.running():
        rows = {row["name"]: row for row in cluster.settings()}
        assert rows["shared_buffers"]["setting"] == str(128 * 128), "settings do not outlast a start"


@needs_root
def test_it_runs_without_privileges(cluster: Cluster) -> None:
    assert cluster.user is not None
    with cluster.running():
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{cluster.pid}/status").read_text().splitlines()
            if ":\t" in line
        )
        assert status["Uid"].split() == [str(cluster.user.uid)] * 4
        assert status["Groups"].strip() == ""
        assert (status["CapEff"], status["NoNewPrivs"]) == ("0" * 16, "1")


@needs_root
def test_a_strict_umask_does_not_bar_the_servers_way(state: Path) -> None:
    """As hardened machines have it: what is made for the server is made for its user to walk through."""
    made = Cluster(find_binaries(), state.parent / "data")
    before = os.umask(0o077)
    try:
        made.initdb()
    finally:
        os.umask(before)
        made.close()


@needs_cgroups
def test_all_its_processes_are_in_the_instance(cluster: Cluster) -> None:
    with (
        InstanceGroup(f"pg-{os.getpid()}", 256 << 20, first_cpu(), dirty_limits=False) as instance,
        cluster.running({}, instance),
    ):
        processes = {str(process.pid) for process in working_below(cluster.data_dir)}
        assert len(processes) > 4
        for file in instance.join_files:
            assert processes <= set(file.read_text().split()), file


def test_a_server_that_does_not_start_shows_its_log(cluster: Cluster) -> None:
    with pytest.raises(HostError, match=r"did not start(.|\n)*shared_bufers") as caught:
        cluster.start({"shared_bufers": "1GB"})
    assert str(cluster.log_path) in caught.value.remedy
    assert not cluster.alive
    cluster.start()


def test_a_taken_port_is_refused(cluster: Cluster) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        cluster.port = listener.getsockname()[1]
        cluster.tcp = "127.0.0.1"
        with pytest.raises(HostError, match="taken by another program"):
            cluster.start()


def test_a_tcp_port_needs_its_password(cluster: Cluster) -> None:
    import psycopg

    cluster.port = preflight.free_port()
    cluster.tcp = "127.0.0.1"
    with cluster.running():
        address = f"host=127.0.0.1 port={cluster.port} user=postgres dbname=postgres"
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(address)
        assert cluster.password is not None
        psycopg.connect(address, password=cluster.password).close()
        assert cluster.password not in cluster.log_path.read_text()


def test_a_server_that_logs_every_statement_does_not_log_the_password(cluster: Cluster) -> None:
    import psycopg

    cluster.port = preflight.free_port()
    cluster.tcp = "127.0.0.1"
    with cluster.running({"log_min_duration_statement": "0"}):
        address = f"host=127.0.0.1 port={cluster.port} user=postgres dbname=postgres"
        assert cluster.password is not None
        psycopg.connect(address, password=cluster.password).close()
        text = cluster.log_path.read_text()
    assert "ALTER ROLE" in text
    assert cluster.password not in text


def test_names_with_spaces_are_names(state: Path) -> None:
    """Of the state directory, and of where temporary files are."""
    made = Cluster(find_binaries(), state.parent / "my data", run_dir=state.parent / "my run")
    try:
        made.initdb()
        with made.running(), made.connect() as connection:
            assert connection.info.host == str(made.socket_dir)
    finally:
        made.close()


def test_a_used_directory_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="not empty"):
        cluster.initdb()


def test_a_long_path_is_refused(state: Path) -> None:
    with pytest.raises(InputError, match="socket"):
        Cluster(find_binaries(), state.parent / "data", run_dir=state.parent / ("x" * 90)).initdb()


@pytest.mark.parametrize("number", KILLS)
def test_a_killed_server_leaves_nothing(cluster: Cluster, number: int) -> None:
    """No process and no shared memory, killed at a random moment under load; its data is there again."""
    cluster.start()
    env = os.environ | {"PGHOST": str(cluster.socket_dir), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    command = [str(cluster.binaries.program("pgbench")), "-i", "-s", "20", "-q"]
    load = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pytest.raises(subprocess.TimeoutExpired):
        load.wait(random.Random(number).uniform(0.0, 0.5))
    os.kill(cluster.pid, signal.SIGKILL)
    load.wait(30)
    expect(lambda: not cluster.alive, "the server is seen as dead")
    cluster.stop()
    assert working_below(cluster.data_dir) == []
    with cluster.running(), cluster.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_death_is_known_before_it_can_be_waited_for(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process gives up its connections first: a client's error would be told in place of its cause."""
    cluster.start()
    assert cluster.death() is None
    assert cluster._server is not None
    process, too_early = cluster._server.process, [None]
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    poll = process.poll
    monkeypatch.setattr(process, "poll", lambda: too_early.pop() if too_early else poll())
    died = cluster.death()
    assert died is not None
    assert died.message.startswith("PostgreSQL was killed by signal 9 after ")
    cluster.stop()


def test_an_error_inside_stops_the_server(cluster: Cluster) -> None:
    with pytest.raises(KeyboardInterrupt), cluster.running():
        raise KeyboardInterrupt
    assert not cluster.alive

"""``pgdyno run`` on a server that exists already: by an ordinary role, saying what it could not see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pgdyno.results import open_experiment
from pgdyno.server.remote import RemoteServer
from pgdyno.workload.fill import fill
from pgdyno.workload.tables import PgbenchTables
from tests.experiment.test_run_command import ROOT, run
from tests.support.pooler import CLEAN, pgbouncer
from tests.support.servers import throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster

EXAMPLE = str(ROOT / "experiments" / "real-server.toml")
SHORT = ("--set", "workload.scale=1", "--set", "workload.warmup=1s", "--set", "workload.duration=2s")
PACED = (*SHORT, "--set", "workload.think_ms=5")
SECRET = "hush-hush"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Somebody's server, with a database of an ordinary role, named by the service that the example names."""
    with throwaway_cluster() as cluster:
        with cluster.connect() as connection:
            connection.execute("CREATE ROLE bench LOGIN")
            connection.execute("CREATE DATABASE app OWNER bench")
        services = tmp_path / "services"
        where = f"host={cluster.socket_dir}\nport={cluster.port}"
        services.write_text(f"[pgdyno]\n{where}\ndbname=app\nuser=bench\npassword={SECRET}\n")
        monkeypatch.setenv("PGSERVICEFILE", str(services))
        yield cluster


@pytest.mark.slow
def test_an_ordinary_role_measures_a_server_and_its_password_is_nowhere(server: Cluster, tmp_path: Path) -> None:
    results = tmp_path / "results"
    arguments = [EXAMPLE, *PACED, "--results", str(results), "--keep-invalid"]
    refused = run(*arguments, code=2)
    assert "does not create them without --yes-create" in refused.err
    assert not results.exists()

    run(*arguments, "--yes-create", "--replicates", "1", "--json", "--only", "1", "--only", "3")
    (directory,) = results.iterdir()
    experiment = open_experiment(directory)
    assert [run.record.arm_index for run in experiment.runs] in ([0, 2], [2, 0])
    for stored_run in experiment.runs:
        world = stored_run.record.world
        assert (world.kind, world.volumes, world.instance.memory_bytes) == ("real", {}, None)
        assert world.server is not None
        assert (world.server.dbname, world.server.user) == ("app", "bench")
        assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
        assert stored_run.record.account.succeeded > 0
        assert {"probe/database", "probe/wait_events", "probe/cpu"} <= {
            str(path.relative_to(stored_run.path).with_suffix("")) for path in stored_run.path.rglob("*.parquet")
        }
        assert any(not view.seen and view.why for view in stored_run.record.visibility), (
            "an ordinary role does not see it all"
        )
    for path in (entry for entry in directory.rglob("*") if entry.is_file()):
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        # The name of a service is recorded, as another one is another server; nothing else of its file is.
        assert b"passfile" not in content and b"servicefile" not in content, path

    unnamed = run("--resume", str(directory), code=2)
    assert "the connection string is not recorded" in unnamed.err
    run(*arguments, "--replicates", "1", "--resume", str(directory))
    assert len(open_experiment(directory).runs) == 3


def test_writes_are_counted_against_what_was_there_before(server: Cluster, tmp_path: Path) -> None:
    dsn = f"host={server.socket_dir} port={server.port} dbname=app user=bench"
    arguments = [EXAMPLE, *PACED, "--dsn", dsn, "--set", 'workload.script="tpcb-like"', "--yes-create"]
    arguments += ["--set", "factors.workload.clients=[2]", "--results", str(tmp_path / "results"), "--keep-invalid"]
    done = run(*arguments, "--replicates", "2", "--set", "workload.full_check=true", "--json")
    assert json.loads(done.out)["arms"][0]["tps"]["n"] == 2
    (directory,) = (tmp_path / "results").iterdir()
    for stored_run in open_experiment(directory).runs:
        assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
        assert {"history_rows", "balances", "accounts_balance"} <= {check.name for check in stored_run.record.checks}
        assert stored_run.record.command[0] == "pgdyno"


def test_sysbenchs_tables_are_made_when_asked_and_used_again(server: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "sysbench.toml"
    file.write_text(
        'schema_version = 1\nreplicates = 1\n[world]\nkind = "real"\ndsn = "service=pgdyno"\n[workload]\nkind = "sysbench"\ntest = "legacy"\n'
        'tables = 2\nrows = 500\nclients = 2\nthink_ms = 5\nwarmup = "0s"\nduration = "2s"\n'
    )
    arguments = [str(file), "--results", str(tmp_path / "results"), "--keep-invalid"]
    refused = run(*arguments, code=2)
    assert (
        "the database app has no sysbench tables, and pgdyno does not create them without --yes-create" in refused.err
    )
    run(*arguments, "--yes-create")
    (directory,) = (tmp_path / "results").iterdir()
    (stored_run,) = open_experiment(directory).runs
    assert stored_run.record.account.succeeded > 0
    assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
    assert "sysbench_rows" in {check.name for check in stored_run.record.checks}
    with server.connect(dbname="app") as connection:
        assert connection.execute("SELECT count(*) FROM sbtest2").fetchone() == (500,)
        connection.execute("DROP TABLE sbtest1")
    refused = run(*arguments, "--yes-create", code=2)
    assert "the database has sbtest2 but not the others of sysbench's tables" in refused.err
    with server.connect(dbname="app") as connection:
        connection.execute("DROP TABLE sbtest2")
    done = run(*arguments, "--yes-create", "--yes-drop")
    assert "removed the 2 tables of sysbench that were created for these runs" in done.err
    with server.connect(dbname="app") as connection:
        assert connection.execute("SELECT to_regclass('sbtest1'), to_regclass('sbtest2')").fetchone() == (None, None)


def test_tables_that_were_there_are_not_dropped(server: Cluster, tmp_path: Path) -> None:
    dsn = f"host={server.socket_dir} port={server.port} dbname=app user=bench"
    fill(RemoteServer.open(dsn), PgbenchTables(scale=1), replace=False)
    arguments = [EXAMPLE, *SHORT, "--dsn", dsn, "--results", str(tmp_path / "results"), "--keep-invalid", "--only", "1"]
    refused = run(*arguments, "--yes-drop", code=2)
    assert "--yes-drop removes the tables that --yes-create creates" in refused.err
    run(*arguments, "--yes-create", "--yes-drop", "--replicates", "1")
    with server.connect(dbname="app") as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_branches").fetchone() == (1,)


@pytest.mark.needs_pgbouncer
def test_through_a_pooler_nothing_that_a_run_needs_stays(server: Cluster, tmp_path: Path) -> None:
    with pgbouncer(server) as pooler:
        arguments = [
            EXAMPLE,
            *SHORT,
            "--dsn",
            pooler.dsn("app"),
            "--results",
            str(tmp_path / "results"),
            "--keep-invalid",
        ]
        refused = run(*arguments, "--yes-create", code=2)
        assert "does not keep clients' prepared statements apart" in refused.err
        assert "workload.protocol" in refused.err
        arguments += [
            "--set",
            'workload.protocol="simple"',
            "--set",
            "factors.workload.clients=[2]",
            "--replicates",
            "1",
        ]
        refused = run(*arguments, "--yes-create", code=2)
        assert "making tables needs its own sessions" in refused.err
        with server.connect(dbname="app") as connection:
            assert connection.execute("SELECT to_regclass('pgbench_accounts') IS NULL").fetchone() == (True,)
        direct = f"host={server.socket_dir} port={server.port} dbname=app user=postgres"
        fill(RemoteServer.open(direct), PgbenchTables(scale=1), replace=False)
        for engine in ("native", "pgbench"):
            run(*arguments, "--set", f'workload.engine="{engine}"', "--set", 'workload.script="tpcb-like"')
        assert pooler.leftovers("app") == [CLEAN] * pooler.pool_size
    for directory in (tmp_path / "results").iterdir():
        for stored_run in open_experiment(directory).runs:
            assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
            assert "the CPU time of the probes' own sessions" in {
                row.what for row in stored_run.record.visibility if not row.seen
            }

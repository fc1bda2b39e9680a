"""``pgdyno drive``: what it drives, what it says, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base.errors import InputError
from pgdyno.cli.main import run
from pgdyno.kinds.pgbench import Pgbench
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.script import Script
from pgdyno.results.record import DriverRecord, Lateness
from pgdyno.workload.fill import load
from pgdyno.workload.tables import PgbenchTables

from ..drive.driven import PAUSE_MS
from ..support.commands import Ended, pgdyno
from ..support.pooler import CLEAN, pgbouncer
from ..support.servers import cluster, throwaway_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.clients import Clients

__all__ = ["cluster"]

ROOT = Path(__file__).resolve().parents[2]
SHORT = ("--clients", "2", "--warmup", "0s", "--duration", "1s", "--keep-invalid")
OWN = "\\set aid random(1, 100000 * :scale)\nSELECT abalance\n  FROM pgbench_accounts WHERE aid = :aid;\n"


@pytest.fixture(scope="module")
def dsn(cluster: Cluster) -> str:
    """A server with pgbench's tables of scale 2."""
    load(cluster, PgbenchTables(2))
    return cluster.dsn


def drive(*arguments: str, code: int = 0) -> Ended:
    """``pgdyno drive``, which ends with that code."""
    return pgdyno("drive", *arguments, code=code)


def driven(*arguments: str) -> dict[str, Any]:
    """Its document. Clients of a closed loop pause, so that other tests have the machine, too."""
    paced = () if "--rate" in arguments else ("--think-ms", f"{PAUSE_MS:g}")
    driven: dict[str, Any] = json.loads(drive(*arguments, *SHORT, *paced, "--json").out)
    return driven


def test_the_tables_say_what_scripts_and_statements_took(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(OWN)
    (tmp_path / "other.sql").write_text("SELECT 1;\n")
    texts = drive(f"{tmp_path}/own.sql@3", f"{tmp_path}/other.sql", "--dsn", dsn, *SHORT).out.splitlines()
    assert texts[0].split()[:5] == ["SCRIPT", "TPS", "SUCCEEDED", "FAILED", "SKIPPED"]
    assert [line.split()[0].rpartition("/")[2] for line in texts[1:4]] == ["own.sql", "other.sql", "all"]
    counts = [int(line.split()[2].replace(",", "")) for line in texts[1:4]]
    assert counts[0] + counts[1] == counts[2]
    # Weights 3 and 1: five standard deviations of as many draws as a machine makes in a second.
    assert abs(counts[0] - 0.75 * counts[2]) < 5 * (counts[2] * 0.75 * 0.25) ** 0.5
    assert texts[5].startswith("STATEMENT")
    assert texts[6].startswith("SELECT abalance FROM pgbench_accounts WHERE aid = $1 ")
    assert "2 clients in a closed loop for 1.0 s, PostgreSQL 18" in "\n".join(texts)
    assert "driver: its thread computed" in texts[-1] or "driver: its thread computed" in texts[-2]


def test_the_document_has_it_too_and_no_text_of_a_script(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(OWN)
    document = driven(f"{tmp_path}/own.sql", "--dsn", dsn, "--rate", "200", "--arrivals", "fixed", "--seed", "5")
    assert document["succeeded"] + document["failed"] + document["skipped"] == pytest.approx(200, abs=2)
    assert document["workload"]["scale"] == 2, "as it is on the server"
    assert document["workload"]["seed"] == 5
    assert "abalance" not in json.dumps(document["workload"])
    assert {"p50", "p95", "p99"} == document["response_ms"].keys() == document["scripts"][0]["service_ms"].keys()
    assert document["driver"]["engine"] == "native"
    assert {finding["check"] for finding in document["findings"]} >= {"driver", "schedule"}


def test_built_in_scripts_take_the_scale_of_the_server(dsn: str) -> None:
    document = driven("select-only@3", "simple-update@1", "--dsn", dsn)
    assert document["workload"]["scale"] == 2
    assert [part["weight"] for part in document["scripts"]] == [3, 1]
    refused = drive("select-only", "--dsn", dsn, "--scale", "7", code=2)
    assert "have scale 2, not 7" in refused.err


def test_a_server_of_its_own_is_made_and_taken_away(tmp_path: Path) -> None:
    before = set(Path(tempfile.gettempdir()).iterdir())
    document = driven("tpcb-like", "--scale", "1")
    assert document["succeeded"] > 0
    assert document["server_version"].startswith("18")
    left = {path.name for path in set(Path(tempfile.gettempdir()).iterdir()) - before}
    assert not [name for name in left if name.startswith("pgdyno-")]


def test_a_users_own_tables_are_made_by_the_setup(tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_text("CREATE TABLE item (id int PRIMARY KEY);\nINSERT INTO item VALUES (1);\n")
    (tmp_path / "own.sql").write_text("SELECT * FROM item WHERE id = 1;\n")
    document = driven(f"{tmp_path}/own.sql", "--setup", f"{tmp_path}/tables.sql")
    assert document["succeeded"] > 0
    assert document["statements"][0]["statement"] == "SELECT * FROM item WHERE id = 1"


def test_a_variable_has_the_value_that_it_is_given_as_in_pgbench(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("\\set more :rows + 1\nINSERT INTO given VALUES (:more, :name, 2);\n")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE given (more int, name text, two int)")
        try:
            words = ("-D", "rows=7", "-D", "rows=1000", "-D", "name=bolt", "-c", "1")
            document = driven(f"{tmp_path}/own.sql", "--dsn", dsn, *words)
            rows = connection.execute("SELECT DISTINCT more, name, two FROM given").fetchall()
        finally:
            connection.execute("DROP TABLE given")
    assert document["succeeded"] > 0
    assert rows == [(1001, "bolt", 2)]


def test_a_variable_of_an_experiment_is_given_to_both_drivers(tmp_path: Path) -> None:
    files = [{"name": "a.sql", "text": "SELECT :rows;"}]
    workload = workload_of(kind="script", files=files, scale=1, variables={"rows": 1000, "name": "a b"})
    assert isinstance(workload, Script)
    assert workload.native()["pgbench"]["variables"] == {"rows": "1000", "name": "a b"}
    assert workload.pgbench_words(tmp_path)[2:6] == ["-D", "rows=1000", "-D", "name=a b"]


@pytest.mark.parametrize("definition", ["rows", "=1", "two words=1", "1=1"])
def test_a_malformed_definition_is_refused(definition: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("SELECT 1;\n")
    error = pgdyno("drive", tmp_path / "own.sql", "-D", definition, code=2).error
    assert error is not None
    assert (error.code, error.data) == ("drive.define.malformed", {"definition": definition})


def test_idle_clients_measure_the_driver_without_a_server() -> None:
    document = driven("idle", "--rate", "20000", "--arrivals", "fixed")
    assert document["succeeded"] + document["skipped"] == pytest.approx(20_000, rel=0.05)
    assert document["succeeded"] > 1_000
    assert document["server_version"] is None
    assert document["statements"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent.sql",), "absent.sql cannot be read"),
        (("tpcb-like", "own.sql"), "built-in scripts and your own files cannot be mixed"),
        (("tpcb-like@0",), "not a whole number"),
        (("select-only", "-D", "a=1"), "--define would have no effect"),
        (("idle", "--rate", "5", "-D", "a=1"), "--define would have no effect"),
        (("tpcc", "-D", "a=1"), "--define would have no effect"),
        (("idle",), "would never pause"),
        (("idle", "--rate", "5", "--scale", "3"), "idle clients have no server, so --scale would have no effect"),
        (("idle", "--rate", "5", "--setup", "a.sql", "--pg-bin", "/b"), "so --setup and --pg-bin would have"),
        (("idle", "--rate", "5", "--dsn", "host=db password=hush"), "so --dsn would have no effect"),
        (("select-only", "--rate", "5", "--think-ms", "3"), "do not think"),
        (("select-only", "--threads", "9"), "9 threads for 8 clients"),
        (("select-only", "--duration", "5 parsecs"), "--duration"),
        (("select-only", "--dsn", "host=db password=hush"), "--dsn: a password does not belong"),
    ],
)
def test_what_is_illegal_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = pgdyno("drive", *arguments, code=2).err
    assert said in refused
    assert "remedy:" in refused
    assert "hush" not in refused


@pytest.mark.parametrize(
    ("arguments", "code", "data"),
    [
        (("--rate", "1e9"), "drive.rate.too_high", {"key": "rate_per_s", "value": 1e9, "most": 1e6}),
        (("--rate", "1e300"), "drive.rate.too_high", {"key": "rate_per_s", "value": 1e300, "most": 1e6}),
        (("--rate", "3e6", "--threads", "2"), "drive.rate.too_high", {"key": "rate_per_s", "value": 3e6, "most": 2e6}),
        (("--think-ms", "1e300"), "drive.time.too_long", {"key": "think.ms", "value": 1e300, "most": 8.64e10}),
        (("--rate", "1", "--duration", "0s"), "drive.duration.zero", {}),
    ],
)
def test_what_no_schedule_can_have_is_refused_at_once(
    arguments: tuple[str, ...], code: str, data: dict[str, Any]
) -> None:
    error = pgdyno("drive", "idle", *arguments, code=2).error
    assert error is not None
    assert (error.code, error.data) == (code, data)


@pytest.mark.parametrize("rate_per_s", [1e9, 1e300])
def test_a_rate_of_an_experiment_that_no_schedule_can_have_is_refused_before_a_run(rate_per_s: float) -> None:
    workload = workload_of(kind="pgbench", script="select-only", scale=1, rate_per_s=rate_per_s)
    assert isinstance(workload, Pgbench)
    with pytest.raises(InputError) as caught:
        workload.require()
    assert caught.value.code == "drive.rate.too_high"


def test_a_malformed_script_names_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("SELECT 1;\n\\set x 1 +\n")
    assert "own.sql:2:" in pgdyno("drive", tmp_path / "own.sql", code=2).err


def test_what_the_server_refuses_is_one_sentence(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("SELECT * FROM nowhere;\n")
    done = drive(f"{tmp_path}/own.sql", "--dsn", dsn, *SHORT, code=1)
    assert done.error is not None
    assert (done.error.code, done.error.data["sqlstate"]) == ("drive.statement.refused", "42P01")
    assert "own.sql:1 (SELECT * FROM nowhere): " in done.err
    assert 'relation "nowhere" does not exist' in done.err


@pytest.fixture
def keys(cluster: Cluster) -> Iterator[None]:
    """A table into which a drawn key goes once."""
    with cluster.connect() as connection:
        connection.execute("CREATE TABLE keys (n int PRIMARY KEY)")
        yield
        connection.execute("DROP TABLE keys")


DRAWS = "\\set n random(1, 400)\nINSERT INTO keys VALUES (:n);\n"


def committed(cluster: Cluster) -> int:
    with cluster.connect() as connection:
        row = connection.execute("SELECT count(*) FROM keys").fetchone()
    assert row is not None
    return int(row[0])


def test_a_refused_statement_throws_no_figures_away(dsn: str, keys: None, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(DRAWS)
    arguments = (f"{tmp_path}/own.sql", "--dsn", dsn, "--warmup", "0s", "--duration", "30s", "--keep-invalid")
    document = json.loads(drive(*arguments, "--json", code=1).out)
    assert document["succeeded"] == committed(cluster) > 0
    assert (document["valid"], document["ended_by"]["line"], document["ended_by"]["sqlstate"]) == (False, 2, "23505")
    with cluster.connect() as connection:
        connection.execute("TRUNCATE keys")
    done = drive(*arguments, code=1)
    assert done.out.startswith("SCRIPT")
    assert "invalid: incomplete: ended by " in done.out
    assert "own.sql:2 (INSERT INTO keys VALUES ($1)): " in done.err
    assert "the figures above are incomplete" in done.err


def test_errors_are_counted_when_it_is_asked_for(dsn: str, keys: None, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text(DRAWS)
    document = driven(f"{tmp_path}/own.sql", "--dsn", dsn, "--continue-on-error")
    assert document["succeeded"] == committed(cluster) > 0
    assert document["driver"]["errors"] == {"23505": document["failed"]}
    assert document["ended_by"] is None


def test_a_drive_of_which_nothing_succeeded_is_invalid(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("SELECT pg_terminate_backend(pg_backend_pid());\n")
    arguments = (f"{tmp_path}/own.sql", "--dsn", dsn, "--warmup", "0s", "--duration", "1s")
    done = drive(*arguments, code=4)
    assert "transactions succeeded" in done.err
    assert "invalid: transactions: none of" in done.out
    (tmp_path / "own.sql").write_text("SELECT 1 / 0;\n")
    done = drive(*arguments, "--continue-on-error", code=4)
    assert "22012" in done.out


def test_a_drive_whose_server_is_gone_at_the_end_is_invalid() -> None:
    with throwaway_cluster() as own:
        load(own, PgbenchTables(1))
        command = [sys.executable, "-m", "pgdyno", "drive", "select-only", "--dsn", own.dsn, "--warmup", "0s"]
        command += ["--duration", "4s", "--clients", "2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.startswith("measure"):
                    own.stop("immediate")
                    break
            out, err = process.communicate(timeout=60)
    assert process.returncode == 4, err
    assert "invalid: connections: 2 of 2 clients had no connection at the end" in out
    assert "check that the server runs" in err


@pytest.mark.parametrize("text", ["", "-- only a remark\n"])
def test_a_script_without_a_command_is_refused(dsn: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "own.sql").write_text(text)
    done = drive(f"{tmp_path}/own.sql", "--dsn", dsn, code=2)
    assert "own.sql:1:1: the script has neither a statement nor a command" in done.err


def test_an_interruption_prints_the_figures_until_then(dsn: str) -> None:
    command = [sys.executable, "-m", "pgdyno", "drive", "select-only", "--dsn", dsn, "--warmup", "0s"]
    command += ["--duration", "100s", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("measure"):
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    document = json.loads(out)
    assert document["interrupted"] is True
    assert document["succeeded"] > 0
    assert document["seconds"] < 60
    assert "the figures above cover the time until then" in err


def test_a_driver_that_was_the_limit_is_said_and_ends_with_4(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    from pgdyno.cli import drive as command
    from pgdyno.cli.main import run
    from pgdyno.workload import native_record

    def busy(*_: object) -> DriverRecord:
        wake = Lateness(count=9, mean_us=1.0, p50_us=1.0, p99_us=9_000.0, max_us=9_000.0)
        return DriverRecord(engine="native", cpu_ns=99 * 10**7, elapsed_ns=10**9, transactions=5, wake=wake)

    monkeypatch.setattr(native_record, "driver_record", busy)
    words = ["drive", "select-only", "--dsn", dsn, "--warmup", "0s", "--duration", "1s"]
    assert command.command.name == "drive"
    assert run(words) == 4
    assert run([*words, "--keep-invalid"]) == 0


def test_a_password_is_nowhere(dsn: str, cluster: Cluster, tmp_path: Path) -> None:
    """The role has a password, and a service file says it; the command line and the output do not."""
    with cluster.connect() as connection:
        connection.execute("CREATE ROLE shy LOGIN PASSWORD 'hush-hush'")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO shy")
    services = tmp_path / "services"
    where = f"host={cluster.socket_dir}\nport={cluster.port}"
    services.write_text(f"[shy]\n{where}\ndbname=postgres\nuser=shy\npassword=hush-hush\n")
    services.chmod(0o600)
    command = [sys.executable, "-m", "pgdyno", "drive", "select-only", "--dsn", "service=shy", *SHORT, "--json"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PGSERVICEFILE": str(services)},
    )
    assert done.returncode == 0, done.stderr
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.needs_pgbouncer
def test_through_a_pooler_nothing_stays_and_prepared_statements_are_refused_at_once(
    dsn: str, cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "own.sql").write_text("BEGIN;\nSELECT 1;\nEND;\n")
    with pgbouncer(cluster) as pooler:
        done = drive("select-only", "--dsn", pooler.dsn(), code=2)
        assert "does not keep clients' prepared statements apart" in done.err
        assert "--protocol simple or extended" in done.err
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
        for protocol in ("simple", "extended"):
            document = driven("tpcb-like", "--dsn", pooler.dsn(), "--protocol", protocol)
            assert (document["succeeded"] > 0, document["failed"]) == (True, 0)
        document = driven(f"{tmp_path}/own.sql", "--dsn", pooler.dsn(), "--protocol", "extended", "--clients", "8")
        assert (document["succeeded"] > 0, document["failed"]) == (True, 0)
        assert pooler.leftovers() == [CLEAN] * pooler.pool_size
    with pgbouncer(cluster, "session") as pooler:
        assert driven("select-only", "--dsn", pooler.dsn(), "--protocol", "prepared")["succeeded"] > 0


@pytest.mark.parametrize(
    ("arguments", "tries_max"),
    [
        (("tpcb-like",), 1),
        (("tpcc", "--warehouses", "1"), 10),
        (("tpcc", "--warehouses", "1", "--tries-max", "3"), 3),
    ],
    ids=["pgbench", "tpcc", "asked"],
)
def test_a_transaction_is_tried_as_often_as_in_an_experiment(
    arguments: tuple[str, ...], tries_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[Clients] = []

    def refuse(spec: Clients, _: object) -> None:
        clients.append(spec)
        raise InputError("seen", remedy="none")

    monkeypatch.setattr("pgdyno.cli.drive._drive", refuse)
    assert run(["drive", *arguments]) == 2
    assert [spec.tries_max for spec in clients] == [tries_max]

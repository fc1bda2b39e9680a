"""``engine = "hammerdb"``: what it is told, what is made of what it says, and that a run which went wrong is an invalid one."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.cli.main import run as pgdyno
from pgdyno.kinds.hammerdb import runner
from pgdyno.kinds.hammerdb.script import Login
from pgdyno.machine import doctor
from pgdyno.results import RunWriter
from pgdyno.workload.outcome import RunRequest
from pgdyno.workload.tables import TpccRoutines

from ..support.hammerdb import as_left, stands_in
from .built import as_hammerdb
from .hammerdb_standin import ASKED, FAULT, MINUTE, installed
from .test_public import REAL
from .test_runs import tpcc, wrong

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.workload.outcome import Outcome

    from ..fill.filled import Database

MINUTE_S = 1.5
"""Of the program that stands in."""
SECRET = "sw0rdfish:of-the-test"
home = stands_in(installed, {MINUTE: str(MINUTE_S)})
built = as_left(as_hammerdb, "module")


def asked(**more: Any) -> Any:
    return tpcc(**({"engine": "hammerdb", "schema": "public", "warmup": "1min", "duration": "1min"} | more))


def drive(server: Any, folder: Path, *, minutes: int = 1, **more: Any) -> Outcome:
    request = RunRequest(minutes * MINUTE_S, folder, warmup_s=MINUTE_S, **more)
    return runner.run(server, request, asked(), minute_s=MINUTE_S)


def test_a_run_fills_the_tables_that_every_driver_fills_and_is_proven(
    built: Database, home: Path, tmp_path: Path
) -> None:
    edges: list[str] = []
    workload, baseline = asked(), asked().baseline(built)
    outcome = drive(
        built,
        tmp_path / "driver",
        minutes=2,
        on_measure_begin=lambda: edges.append("begin"),
        on_measure_end=lambda: edges.append("end"),
    )
    assert wrong((*outcome.checks, *workload.proofs(built, outcome, baseline, full=True))) == []
    assert edges == ["begin", "end"]
    warmup, measure = outcome.phases
    assert warmup.end_ns == measure.begin_ns
    assert warmup.seconds == pytest.approx(MINUTE_S, abs=0.2)
    assert measure.seconds == pytest.approx(2 * MINUTE_S, abs=0.2)
    figures = next(check.figures for check in outcome.checks if check.name == "hammerdb_result")
    assert outcome.succeeded_by_type["new_order"] == 2 * figures["hammerdb_nopm"] > 0
    assert outcome.account.succeeded == sum(outcome.succeeded_by_type.values())
    assert all(0 < outcome.succeeded_by_type[name] < outcome.succeeded_by_type_total[name] for name, _ in workload.mix)
    assert (outcome.driver.engine, outcome.driver.version, outcome.driver.threads) == ("hammerdb", "6.0", 4)
    rows = [row for row in outcome.throughput.to_pylist() if row["t_begin_ns"] >= measure.begin_ns]
    assert sum(row["transactions"] for row in rows) == outcome.account.succeeded
    assert rows[0]["t_begin_ns"] == measure.begin_ns and rows[-1]["t_end_ns"] == measure.end_ns
    assert len({row["t_begin_ns"] for row in rows}) > 20, "the transaction counter spreads them"
    assert sum(outcome.latency["count"].to_pylist()) == outcome.account.succeeded
    writer = RunWriter(tmp_path, "experiment", "run")
    outcome.write(writer)
    assert writer.file("workload/latency.hdr.json").is_file()
    assert (tmp_path / "driver" / "hammerdb_profile.log").is_file()


@pytest.mark.parametrize("routines", ["functions", "procedures"])
def test_it_is_told_by_a_private_script_that_is_gone_afterwards(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, routines: TpccRoutines
) -> None:
    monkeypatch.setenv(FAULT, "no server")
    login = Login.of(built)
    secret = Login(login.host, login.port, login.user, login.dbname, "prefer", SECRET)
    monkeypatch.setattr(Login, "of", lambda _server: secret)
    workload = asked(routines=routines, clients=7, all_warehouses=True, keying=True, warehouses=3)
    request = RunRequest(180.0, tmp_path / "driver", warmup_s=120.0, env={"PGPASSWORD": SECRET})
    with pytest.raises(PgdynoError, match="HammerDB ended before it measured: Error in Virtual User 1"):
        runner.run(built, request, workload)
    document = json.loads((home / ASKED).read_text())
    assert document["argv"][1:3] == ["tcl", "auto"]
    assert SECRET not in " ".join(document["argv"]), "a command line is public"
    assert "PGPASSWORD" not in document["environment"]
    assert (document["mode"], document["folder_mode"], document["temporary"]) == ("600", "700", document["folder"])
    assert not os.path.exists(document["folder"])  # noqa: PTH110 - a name from a document
    kept = (tmp_path / "driver" / "hammerdb.log").read_text()
    assert SECRET not in kept and "pg_user" in kept
    assert SECRET not in repr(secret)
    settings = document["settings"]
    assert settings["pg_pass"] == settings["pg_superuserpass"] == SECRET
    assert document["users"] == 7
    expected = {
        "pg_host": login.host, "pg_port": str(login.port), "pg_user": login.user, "pg_dbase": login.dbname,
        "pg_superuser": login.user, "pg_defaultdbase": login.dbname, "pg_count_ware": "3", "pg_driver": "timed",
        "pg_rampup": "2", "pg_duration": "3", "pg_allwarehouse": "true", "pg_keyandthink": "true",
        "pg_timeprofile": "true", "pg_storedprocs": "true" if routines == "procedures" else "false",
        "pg_raiseerror": "false", "pg_vacuum": "false", "pg_connect_pool": "false", "pg_async_scale": "false",
    }  # fmt: skip
    assert {key: settings[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("fault", "broken"),
    [
        ("ends early", {"hammerdb_result", "measured_under_load"}),
        ("no result", {"hammerdb_result", "measured_under_load", "clients_lasted"}),
        ("half the time", {"measured_under_load"}),
        ("no profile", {"hammerdb_time_profile", "hammerdb_result"}),
        ("counts wrongly", {"hammerdb_result"}),
        ("loses a user", {"clients_lasted"}),
        ("mixes badly", {"hammerdb_time_profile", "tpcc_mix"}),
        ("hides orders", {"hammerdb_time_profile", "hammerdb_result", "tpcc_new_orders"}),
    ],
)
def test_a_run_that_went_wrong_is_invalid(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, broken: set[str]
) -> None:
    monkeypatch.setenv(FAULT, fault)
    baseline = asked().baseline(built)
    outcome = drive(built, tmp_path)
    texts = {check.name for check in (*outcome.checks, *asked().proofs(built, outcome, baseline)) if not check.ok}
    assert broken - {"clients_lasted"} <= texts, texts
    assert texts, "a check failed, so the run is invalid"


def test_what_the_server_refused_is_counted_as_failed(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "is refused")
    baseline = asked().baseline(built)
    outcome = drive(built, tmp_path)
    assert 0 < outcome.account.failed < outcome.account_total.failed
    assert "tpcc_mix" in {proof.name for proof in asked().proofs(built, outcome, baseline) if not proof.ok}
    proofs = {proof.name: proof.ok for proof in asked().proofs(built, outcome, baseline)}
    assert proofs["tpcc_new_orders"], "what was refused is not among what succeeded"


def test_an_older_profile_has_fewer_percentiles(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "is old")
    baseline = asked().baseline(built)
    outcome = drive(built, tmp_path)
    assert wrong((*outcome.checks, *asked().proofs(built, outcome, baseline))) == []


def test_an_interrupted_run_leaves_neither_script_nor_program(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "hangs")
    started: list[int] = []

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        drive(built, tmp_path, on_start=started.append, on_measure_begin=interrupt)
    assert not os.path.exists(json.loads((home / ASKED).read_text())["folder"])  # noqa: PTH110 - a name from a document
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


def test_a_program_that_is_killed_is_an_invalid_run(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "hangs")
    started: list[int] = []
    outcome = drive(
        built, tmp_path, on_start=started.append, on_measure_begin=lambda: os.kill(started[0], signal.SIGKILL)
    )
    assert "hammerdb_result" in {check.name for check in outcome.checks if not check.ok}
    assert outcome.account.succeeded == 0
    assert threading.active_count() >= 1


@pytest.mark.usefixtures("engine")
def test_one_that_is_not_installed_is_said_with_the_remedy(
    built: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(REAL.format(built.dsn) + 'engine = "hammerdb"\nwarmup = "1min"\nduration = "2min"\n')
    monkeypatch.delenv("HAMMERDB_HOME", raising=False)
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert re.search(r"trial\.toml:\d+: workload\.engine: HammerDB is not part of pgdyno, and HAMMERDB_HOME", text), (
        text
    )
    assert "set HAMMERDB_HOME to the folder of an unpacked release" in text
    check = {item.name: item for item in doctor.examine(tmp_path)}["HammerDB"]
    assert check.status == "ok" and "not named" in check.found
    monkeypatch.setenv("HAMMERDB_HOME", str(tmp_path))
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    assert "there is no hammerdbcli in it" in " ".join(capsys.readouterr().err.split())
    result = {item.name: item for item in doctor.examine(tmp_path)}["HammerDB"]
    assert result.status == "warn" and result.remedy
    installed(tmp_path)
    assert pgdyno(["run", str(path), "--dry-run"]) == 0


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('warmup = "90s"', "workload.warmup: HammerDB runs for whole minutes"),
        ('duration = "30s"', "workload.duration: HammerDB runs for whole minutes"),
        ('profile = "spec"', "workload.schema: tables built by HammerDB need the profile hammerdb"),
        ("names_match = true", "workload.names_match: HammerDB's functions get no names"),
        ("rate_per_s = 10", "workload.rate_per_s: HammerDB's users run a closed loop"),
        ("think_ms = 10", "workload.think_ms: clients of hammerdb do not think"),
        ("tries_max = 3", "workload.tries_max: HammerDB does not try a transaction again"),
        ("threads = 2", "workload.threads: HammerDB has a thread for each"),
        ('protocol = "simple"', "workload.protocol: HammerDB calls functions by the protocol prepared"),
        ("transactions = 5", "workload.transactions: hammerdb runs for a time"),
        ('schema = "pgdyno_tpcc"', "workload.engine: HammerDB drives the tables and routines that it has built"),
    ],
)
def test_what_it_cannot_do_is_refused_with_key_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, said: str
) -> None:
    keys = {"engine": '"hammerdb"', "warmup": '"1min"', "duration": '"1min"', "schema": '"public"'}
    key, _, value = written.partition(" = ")
    path = tmp_path / "trial.toml"
    table = "".join(f"{name} = {text}\n" for name, text in (keys | {key: value}).items())
    document = REAL.format("host=db.example").replace('schema = "public"\n', "")
    path.write_text(document + table)
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    result = " ".join(capsys.readouterr().err.split())
    assert re.search(r"trial\.toml:\d+: " + re.escape(said), result), result


def test_only_tpcc_can_be_driven_by_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trial.toml"
    path.write_text('schema_version = 1\n[world]\nkind = "fake"\n[workload]\nkind = "pgbench"\nengine = "hammerdb"\n')
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    assert 'hammerdb cannot run kind = "pgbench"' in capsys.readouterr().err


@pytest.mark.parametrize("password", ["two words", "brace{", "dollar$", 'quote"', "back\\slash", "[bracket]"])
def test_a_password_that_it_would_garble_is_refused_and_not_repeated(password: str) -> None:
    document = {"host": "/tmp", "port": 5432, "user": "bench", "dbname": "app", "password": password}
    server = SimpleNamespace(dsn="host=/tmp user=bench dbname=app", endpoint=SimpleNamespace(document=document))
    with pytest.raises(InputError, match="HammerDB cannot pass on the password") as caught:
        Login.of(server)
    assert password not in caught.value.message


def test_a_dilated_world_has_other_minutes() -> None:
    (refused, *_) = asked().refusals_in_time(4)
    assert refused.key == "engine" and "minutes of the clock" in refused.message
    assert list(asked().refusals_in_time(1)) == []

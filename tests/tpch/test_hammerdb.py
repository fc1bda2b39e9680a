"""``engine = "hammerdb"`` of kind `tpch`: what HammerDB is told, what is made of what it says, and that a run which went wrong is invalid."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base.errors import PgdynoError
from pgdyno.cli.main import run as pgdyno
from pgdyno.kinds.hammerdb.script import Login
from pgdyno.kinds.tpch.queries import order_of
from pgdyno.report.page import html
from pgdyno.results import open_experiment
from pgdyno.workload.outcome import RunRequest

from ..support.hammerdb import as_left, stands_in
from ..tpcc.hammerdb_standin import ASKED, FAULT
from .hammerdb_standin import SLOW, installed
from .test_public import BUILT as TRIAL
from .test_public import as_hammerdb
from .test_runs import rows, tpch, wrong

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.kinds.tpch.kind import Tpch
    from pgdyno.workload.outcome import Outcome

    from ..fill.filled import Database

SECRET = "sw0rdfish:of-the-test"
home = stands_in(installed)
built = as_left(as_hammerdb)


def asked(**more: Any) -> Tpch:
    return tpch(**({"engine": "hammerdb", "schema": "public", "profile": "hammerdb", "scale_factor": 1.0} | more))


def run(workload: Tpch, database: Database, folder: Path, limit_s: float = 120.0, **more: Any) -> Outcome:
    return workload.runner()(database, RunRequest(limit_s, folder / "driver", **more))


def failed(outcome: Outcome) -> set[str]:
    return {check.name for check in outcome.checks if not check.ok}


def test_a_power_run_fills_the_tables_that_our_streams_fill(built: Database, home: Path, tmp_path: Path) -> None:
    edges: list[str] = []
    outcome = run(
        asked(query_sets=2),
        built,
        tmp_path,
        on_measure_begin=lambda: edges.append("begin"),
        on_measure_end=lambda: edges.append("end"),
    )
    assert wrong(outcome) == []
    assert edges == ["begin", "end"]
    result = rows(outcome)
    assert [row["query"] for row in result] == [*order_of(0), *order_of(0)]
    assert [(row["stream"], row["query_set"], row["place"]) for row in result[21:23]] == [(0, 1, 22), (0, 2, 1)]
    assert all(row["t_begin_ns"] < row["t_end_ns"] and row["error"] == "" for row in result)
    # What it does not tell is not known, and not zero.
    for name in ("parameters", "rows", "rows_hash", "temp_bytes", "plan"):
        assert {row[name] for row in result} == {None}, name
    assert (outcome.account.succeeded, outcome.account.scheduled) == (44, 44)
    assert (outcome.driver.engine, outcome.driver.version, outcome.driver.threads) == ("hammerdb", "6.0", 1)
    assert outcome.streams is not None
    assert outcome.streams.query_s.keys() == {str(query) for query in range(1, 23)}
    assert outcome.streams.temp_unseen == "HammerDB's sessions are its own"
    (printed,) = (check for check in outcome.checks if check.name == "hammerdb_result")
    # As it prints it, with five decimals for each of the two sets.
    assert printed.figures["hammerdb_geomean_s"] == pytest.approx(outcome.streams.geometric_mean_s, abs=1e-5)
    assert "for set 1 of stream 0, the geometric mean of 22 times" in printed.detail
    text = (tmp_path / "driver" / "hammerdb.log").read_text()
    assert "query 14 completed in" in text and "pg_tpch_pass" not in text


def test_several_users_are_streams_and_the_first_refreshes_beside_them(
    built: Database, home: Path, tmp_path: Path
) -> None:
    workload = asked(clients=2, refresh="stream", degree=0)
    outcome = run(workload, built, tmp_path)
    assert wrong(outcome) == []
    assert json.loads((home / ASKED).read_text())["users"] == 3
    result = rows(outcome)
    for stream in (1, 2):
        assert [row["query"] for row in result if row["stream"] == stream] == list(order_of(stream))
    assert outcome.streams is not None
    assert [(record.function, record.refresh_set, record.orders) for record in outcome.streams.refresh] == [
        ("insert", 1, 1500), ("delete", 1, 1500), ("insert", 2, 1500), ("delete", 2, 1500),
    ]  # fmt: skip
    assert [(record.lines, record.transactions) for record in outcome.streams.refresh] == [(None, None)] * 4
    assert all(record.seconds > 0 for record in outcome.streams.refresh)
    checks = workload.proofs(built, outcome)
    assert [check.detail for check in checks if not check.ok] == []
    assert "tpch_refresh" in {check.name for check in checks}
    with pytest.raises(PgdynoError, match="the tables were refreshed before") as caught:
        run(workload, built, tmp_path)
    assert caught.value.remedy == "build them with HammerDB again"
    built.run("DELETE FROM lineitem WHERE l_orderkey = 9; DELETE FROM orders WHERE o_orderkey = 9")
    (check,) = (proof for proof in workload.proofs(built, outcome) if proof.name == "tpch_refresh")
    assert not check.ok and "2,999" in check.detail


def test_one_user_refreshes_around_its_queries(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "loses orders")
    workload = asked(refresh="power")
    outcome = run(workload, built, tmp_path)
    assert wrong(outcome) == []
    assert outcome.streams is not None
    insert, delete = outcome.streams.refresh
    queries = rows(outcome)
    # Begins and ends alone: a begin is an end that was heard less a time that was printed, and so not exact to a millisecond.
    assert insert.begin_ns < queries[0]["t_begin_ns"] and queries[-1]["t_end_ns"] < delete.end_ns
    assert insert.end_ns < delete.begin_ns
    # An order that it did not insert is missed.
    (check,) = (proof for proof in workload.proofs(built, outcome) if proof.name == "tpch_refresh")
    assert not check.ok and "1,500 orders" in check.detail and "1,499" in check.detail


def test_it_is_told_by_a_private_script_that_is_gone_afterwards(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "no server")
    login = Login.of(built)
    secret = Login(login.host, login.port, login.user, login.dbname, "prefer", SECRET)
    monkeypatch.setattr(Login, "of", lambda _server: secret)
    with pytest.raises(PgdynoError, match="HammerDB ended before a query returned its rows: Error in Virtual User"):
        run(asked(clients=7, query_sets=3, degree=4), built, tmp_path, env={"PGPASSWORD": SECRET})
    document = json.loads((home / ASKED).read_text())
    assert SECRET not in " ".join(document["argv"]), "a command line is public"
    assert "PGPASSWORD" not in document["environment"]
    assert (document["mode"], document["folder_mode"], document["temporary"]) == ("600", "700", document["folder"])
    assert not os.path.exists(document["folder"])  # noqa: PTH110 - a name from a document
    kept = (tmp_path / "driver" / "hammerdb.log").read_text()
    assert SECRET not in kept and "pg_tpch_user" in kept
    expected = {
        "pg_host": login.host, "pg_port": str(login.port), "pg_tpch_user": login.user, "pg_tpch_dbase": login.dbname,
        "pg_tpch_pass": SECRET, "pg_scale_fact": "1", "pg_total_querysets": "3", "pg_degree_of_parallel": "4",
        "pg_refresh_on": "false", "pg_trickle_refresh": "0", "pg_raise_query_error": "false", "pg_cloud_query": "false",
    }  # fmt: skip
    assert {key: document["settings"][key] for key in expected} == expected
    assert document["users"] == 7


@pytest.mark.parametrize(
    ("fault", "broken", "said"),
    [
        ("fails", {"queries"}, 'query 6 of stream 1: ERROR:  relation "no_such_table" does not exist'),
        ("loses a user", {"queries", "streams", "clients_lasted", "hammerdb_result"}, "1 of 2 users ended well"),
        ("other scale", {"clients_lasted"}, "is different from the scale factor of the existing schema (3)"),
        ("no mean", {"hammerdb_result"}, "HammerDB printed the geometric mean of 0 of 2 sets"),
        ("wrong mean", {"hammerdb_result"}, "the times of set 1 of user 1 have the geometric mean"),
        ("says little", {"queries"}, "query 6 of stream 1: no line reported its end"),
    ],
)
def test_a_run_that_went_wrong_is_invalid(
    built: Database,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    broken: set[str],
    said: str,
) -> None:
    monkeypatch.setenv(FAULT, fault)
    outcome = run(asked(clients=2), built, tmp_path)
    assert failed(outcome) == broken, wrong(outcome)
    assert said in "; ".join(wrong(outcome))


def _sleeping(database: Database) -> list[tuple[Any, ...]]:
    return database.rows(f"SELECT pid FROM pg_stat_activity WHERE query = '{SLOW}' AND state = 'active'")


def test_a_query_that_outlasts_the_run_is_cancelled_on_the_server_and_named(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "hangs")
    outcome = run(asked(), built, tmp_path, limit_s=3.0)
    third = order_of(0)[2]
    (reason,) = (text for text in wrong(outcome) if text.startswith("queries:"))
    assert f"query {third} of stream 0: cancelled" in reason
    assert "19 of 22 queries were not asked" in reason and "longer than workload.duration" in reason
    assert (outcome.account.succeeded, outcome.account.failed, outcome.account.skipped) == (2, 1, 19)
    assert _sleeping(built) == []


def test_an_interrupted_run_leaves_neither_script_nor_program_nor_session(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "hangs")
    started: list[int] = []

    def interrupt(share: float, words: str) -> None:
        if words.startswith("2 of 22 queries, Q") and _sleeping(built):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(asked(), built, tmp_path, on_start=started.append, progress=interrupt)
    assert not os.path.exists(json.loads((home / ASKED).read_text())["folder"])  # noqa: PTH110 - a name from a document
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
    assert _sleeping(built) == []


def test_a_program_that_is_killed_is_an_invalid_run(
    built: Database, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULT, "hangs")
    started: list[int] = []

    def kill(share: float, words: str) -> None:
        if words.startswith("2 of 22"):
            os.kill(started[0], signal.SIGKILL)

    outcome = run(asked(), built, tmp_path, on_start=started.append, progress=kill)
    assert failed(outcome) == {"queries", "clients_lasted", "hammerdb_result"}
    assert f"query {order_of(0)[2]} of stream 0: its user ended before it" in "; ".join(wrong(outcome))


@pytest.mark.usefixtures("engine")
def test_an_experiment_has_both_engines_and_says_what_hammerdb_does_not_tell(
    built: Database, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # HammerDB has whole scale factors: so many suppliers make it one.
    built.run(
        "INSERT INTO supplier (s_suppkey, s_nationkey, s_comment, s_name, s_address, s_phone, s_acctbal)"
        " SELECT n, s_nationkey, s_comment, s_name, s_address, s_phone, s_acctbal FROM supplier, generate_series(101, 10000) n"
        " WHERE s_suppkey = 1"
    )
    path = tmp_path / "trial.toml"
    path.write_text(
        TRIAL.format(built.dsn) + 'duration = "2min"\n[factors]\n"workload.engine" = ["native", "hammerdb"]\n'
    )
    texts = ["run", str(path), "--results", str(tmp_path / "results"), "-n", "1", "--keep-invalid", "--json"]
    assert pgdyno(texts) == 0
    document = json.loads(capsys.readouterr().out)
    ours, its = document["arms"]
    assert (ours["metric"], its["metric"]) == ("geomean_s", "geomean_s")
    assert its["queries"]["query_s"].keys() == ours["queries"]["query_s"].keys()
    (directory,) = (tmp_path / "results").iterdir()
    for run in open_experiment(directory).runs:
        assert [check for check in run.record.checks if not check.ok] == []
    assert {run.record.workload.get("engine") for run in open_experiment(directory).runs} == {None, "hammerdb"}
    page = " ".join(html(summarise(directory)).split())
    assert "geometric mean as HammerDB printed it, s" in page
    assert "no parameters, rows, plans or temporary files" in page
    assert "HammerDB tells neither the parameters nor the rows of its queries" in page


@pytest.mark.usefixtures("engine")
def test_one_that_is_not_installed_is_said_with_the_remedy(
    built: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL.format(built.dsn) + 'engine = "hammerdb"\n')
    monkeypatch.delenv("HAMMERDB_HOME", raising=False)
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    text = " ".join(capsys.readouterr().err.split())
    assert re.search(r"trial\.toml:\d+: workload\.engine: HammerDB is not part of pgdyno, and HAMMERDB_HOME", text), (
        text
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("scale_factor = 0.5", "workload.scale_factor: HammerDB takes whole scale factors only, not 0.5"),
        ("queries = [1, 6]", "workload.queries: HammerDB asks all 22 queries of a set"),
        ('profile = "spec"', "workload.schema: tables built by HammerDB need the profile hammerdb"),
        ('schema = "pgdyno_tpch"', "workload.engine: HammerDB asks the tables that it has built"),
        ('refresh = "power"\nquery_sets = 2', "workload.refresh: HammerDB refreshes once around all sets"),
        (
            'refresh = "stream"\nclients = 10\nquery_sets = 10',
            "workload.refresh: from set 100 on HammerDB inserts other",
        ),
        ('engine = "pgbench"', "workload.engine: "),
    ],
)
def test_what_it_cannot_do_is_refused_with_key_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, said: str
) -> None:
    key = written.partition(" = ")[0]
    keys = {"engine": '"hammerdb"', "schema": '"public"'}
    table = "".join(f"{name} = {text}\n" for name, text in keys.items() if name != key)
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL.format("host=db.example").replace('schema = "public"\n', "") + table + written + "\n")
    assert pgdyno(["run", str(path), "--dry-run"]) == 2
    result = " ".join(capsys.readouterr().err.split())
    assert re.search(r"trial\.toml:\d+: " + re.escape(said), result), result


def test_a_dilated_world_has_other_seconds() -> None:
    (refused,) = asked().refusals_in_time(4)
    assert refused.key == "engine" and "seconds of the clock" in refused.message
    assert list(asked().refusals_in_time(1)) == []

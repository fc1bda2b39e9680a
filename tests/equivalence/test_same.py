"""Statements as the server logs them, and the drivers' command lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from pgdyno.kinds.tpcc.audit import MIX
from tools.equivalence import drivers
from tools.equivalence.same import Asked, differences, plain, statements
from tools.equivalence.workloads import (
    LEGACY_OWN,
    LEGACY_VARIABLE,
    ROWS,
    TPCC,
    TPCC_SCRIPTS,
    WORKLOADS,
    Length,
    Workload,
    legacy_script,
)

PREFIX = "2026-11-22 03:00:00.000 UTC [42] "
LOG = [
    f"{PREFIX}LOG:  execute P0_0: BEGIN;",
    f"{PREFIX}DETAIL:  Parameters: $1 = '7'",
    f"{PREFIX}LOG:  execute P0_1: UPDATE t SET a = a + $1 WHERE b = $2;",
    f"{PREFIX}LOG:  execute <unnamed>: SELECT c FROM sbtest3 WHERE id=$1",
    f"{PREFIX}LOG:  execute <unnamed>: SELECT c FROM sbtest12 WHERE id=$1",
]
ONCE = f"{PREFIX}LOG:  statement: select count(*) from pgbench_branches"


def test_statements_are_counted_for_each_transaction() -> None:
    result = statements([ONCE, *LOG, *LOG, *LOG], 3)
    assert result == {"BEGIN": 1, "UPDATE t SET a = a + ? WHERE b = ?": 1, "SELECT c FROM sbtest? WHERE id=?": 2}


def test_pgbenchs_scripts_of_tpcc_send_what_the_driver_sends() -> None:
    (workload,) = (item for item in WORKLOADS if item.name == TPCC)
    json = engine.run_json(["drive", "--check"], workload.native(1, Length(2, transactions=1)))
    sent = {name: plain(text) for name, text in zip(json["scripts"], json["statements"], strict=False)}
    for name, _ in MIX:
        (statement,) = (line for line in (TPCC_SCRIPTS / f"{name}.sql").read_text().splitlines() if line.endswith(";"))
        named = re.sub(r"(?<!:):\w+", "?", statement)
        assert plain(named) == sent[name]


def test_a_drawn_mix_may_differ_by_chance_and_no_further() -> None:
    result = Asked(statements={"a": 0.5, "b": 0.04}, commits=1, wal_bytes=4_000, drawn=1_000, weighed=40_000)
    # Four standard errors of the difference: 8.9 points of the first, 3.5 of the second, 2.8 % of the WAL.
    near = result.model_copy(update={"statements": {"a": 0.58, "b": 0.02}, "wal_bytes": 4_100})
    assert differences(result, near) == []
    assert len(differences(result, result.model_copy(update={"statements": {"a": 0.6, "b": 0.04}}))) == 1
    assert len(differences(result, result.model_copy(update={"statements": {"a": 0.5}}))) == 1
    assert len(differences(result, result.model_copy(update={"wal_bytes": 4_150}))) == 1
    assert len(differences(result.model_copy(update={"drawn": 0}), near)) == 2


def said(failed: int, errors: dict[str, int], lost: int = 0) -> str:
    summary = {"failed": failed, "errors": errors, "connections_lost": lost, "succeeded": 9, "tps": 3.0}
    return json.dumps({"summary": summary})


def test_what_the_end_of_a_run_cuts_off_is_not_lost_and_everything_else_is() -> None:
    assert drivers.native(said(0, {}), "pgbench").transactions == 9
    assert drivers.native(said(1, {"deadlock": 1}), "pgbench").transactions == 9
    assert drivers.native(said(1, {"23505": 1}), "sysbench").transactions == 9, "two clients inserted the same key"
    for failed, errors, lost in ((1, {"42P01": 1}, 0), (5, {"deadlock": 5}, 0), (0, {}, 1), (1, {"23505": 1}, 0)):
        with pytest.raises(PgdynoError, match="lost transactions"):
            drivers.native(said(failed, errors, lost), "pgbench")


@given(st.integers(-(10**9), 10**9), st.text(alphabet="abc 0123-", max_size=20))
def test_values_do_not_make_a_statement_another(number: int, text: str) -> None:
    with_values = f"INSERT INTO sbtest4 (k, c)  VALUES ({number}, '{text}');"
    assert plain(with_values) == plain("INSERT INTO sbtest1 (k, c) VALUES ($1, $2)")


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda item: item.name)
def test_both_drivers_are_told_the_same_length(
    workload: Workload, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "oltp.lua").touch()
    monkeypatch.setenv(LEGACY_VARIABLE, str(tmp_path / "oltp.lua"))
    timed, counted = Length(8, seconds=10), Length(2, transactions=50)
    words = workload.command(Path("pgbench"), 3, timed)
    assert ("-T" in words and "10" in words) or "--time=10" in words
    words = workload.command(Path("pgbench"), 3, counted)
    assert ("-t" in words and "50" in words) or "--events=100" in words
    assert workload.native(3, timed)["duration_ms"] == 10_000
    assert workload.native(3, counted)["transactions_max"] == 50
    assert workload.native(3, counted)["protocol"] == workload.protocol


def test_the_old_script_is_where_it_is_named_or_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(LEGACY_VARIABLE, str(tmp_path / "oltp.lua"))
    legacy = WORKLOADS[-1]
    assert legacy_script() == LEGACY_OWN
    assert legacy.tables() == [str(LEGACY_OWN), "--tables=4", f"--table-size={ROWS}"]
    (tmp_path / "oltp.lua").touch()
    assert legacy_script() == tmp_path / "oltp.lua"
    assert "--oltp-tables-count=4" in legacy.tables()


def test_what_the_originals_print_is_read() -> None:
    printed = "number of transactions actually processed: 1234\nlatency average = 1 ms\ntps = 98.5 (without initial"
    assert drivers._pgbench(printed) == drivers.Run(transactions=1234, tps=98.5)
    printed = "    queries:    20\n    transactions:                        600    (59.87 per sec.)\n"
    assert drivers._sysbench(printed) == drivers.Run(transactions=600, tps=59.87)
    with pytest.raises(PgdynoError, match="in what the driver printed"):
        drivers._pgbench("something else")

"""What is not production's makes a replay invalid and is named: 18 mutants of its database or its log; others are in `test_likeness.py`, `test_keys.py` and `test_replay.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.replay import likeness_reasons, unlike
from pgdyno.analysis.replay import reasons as reasons_of
from pgdyno.results.work_record import LikenessRecord

from .mutants import (
    CALLS,
    CUT,
    IN_DATABASE,
    LOST,
    QUIET,
    STRANGER,
    SWAPPED,
    TWICE,
    UNCOMMITTED,
    Mutants,
    captured_mutants,
    mutated,
    table,
)
from .test_replay import RECORD

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster


@pytest.fixture(scope="module")
def mutants(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Mutants:
    """The database with its capture."""
    return captured_mutants(embedded_server, tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def on_another_database(mutants: Mutants) -> dict[str, Any]:
    """One replay with every mutant of the database."""
    return mutants.replay(*(mutant.change.format(t=table(name)) for name, mutant in IN_DATABASE.items()))


@pytest.fixture(scope="module")
def of_another_log(mutants: Mutants, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One replay with every mutant of the log."""
    capture, account = mutants.read(tmp_path_factory.mktemp("log"), mutated(mutants.rows()))
    assert account["missing"] == 0, "nothing in the log itself tells"
    return mutants.replay(capture=capture)


def alone(document: dict[str, Any], statement: str) -> list[str]:
    """Why it would be no replay of production if this statement and the quiet one were all."""
    whole = LikenessRecord.model_validate(document["likeness"])
    few = [
        compared_statement
        for compared_statement in whole.statements
        if statement in compared_statement.statement or table(QUIET) in compared_statement.statement
    ]
    assert len(few) >= 2, f"{statement} is not compared"
    return list(likeness_reasons(whole.model_copy(update={"statements": tuple(few)})))


def test_without_a_mutant_nothing_is_said(mutants: Mutants) -> None:
    replay = mutants.replay()
    assert (replay["valid"], replay["reasons"], replay["newly_failed"]) == (True, [], 0)
    beyond = unlike(LikenessRecord.model_validate(replay["likeness"]))
    assert [unlike for unlike in beyond if unlike.is_other] == []


@pytest.mark.parametrize("name", IN_DATABASE)
def test_another_database_is_named(on_another_database: dict[str, Any], name: str) -> None:
    (reason,) = alone(on_another_database, table(name))
    assert table(name) in reason and table(QUIET) not in reason
    failed = {
        error["sqlstate"]: error["count"]
        for error in on_another_database["errors"]
        if table(name) in error["statement"]
    }
    sqlstate = IN_DATABASE[name].sqlstate
    assert failed == ({sqlstate: CALLS} if sqlstate else {})


@pytest.mark.parametrize(
    ("name", "statement", "said"),
    [
        (SWAPPED, table(SWAPPED), "0.00 times the calls"),
        (LOST, table(LOST), "0.00 times the calls"),
        (UNCOMMITTED, "COMMIT", "0.00 times the calls"),
        (TWICE, table(TWICE), "2.00 times the calls"),
        (STRANGER, table(STRANGER), "0.00 times the calls"),
    ],
)
def test_another_log_is_named(of_another_log: dict[str, Any], name: str, statement: str, said: str) -> None:
    (reason,) = alone(of_another_log, statement)
    assert statement in reason and said in reason, name


def test_values_that_are_cut_are_left_out_and_named(of_another_log: dict[str, Any]) -> None:
    assert of_another_log["left_out"] == {"its text or values are cut": CALLS}
    (shape,) = of_another_log["left_out_statements"]
    assert table(CUT) in shape
    assert any("of the statements were left out" in reason for reason in of_another_log["reasons"])


def test_every_thousandth_line_gone_is_counted(mutants: Mutants, tmp_path: Path) -> None:
    rows = mutants.rows()
    kept = [row for number, row in enumerate(rows) if number % 1000 != 500]
    _, account = mutants.read(tmp_path, kept)
    gone, missing = len(rows) - len(kept), account["missing"]
    # The last line of a session is not missed.
    assert gone - 1 <= missing <= gone
    (reason,) = reasons_of(RECORD.model_copy(update={"log_entries": account["entries"], "log_lost": missing}))
    assert f"{missing:,} of {account['entries']:,} lines of the log are missing" in reason

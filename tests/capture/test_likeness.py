"""Whether the statements of a replay did production's work: by pg_stat_statements of both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.replay import likeness_reasons, unlike
from pgdyno.base.errors import InputError
from pgdyno.kinds.replay.capture import fallen, grown, shape_of
from pgdyno.kinds.replay.production import production
from pgdyno.results.work_record import ComparedStatement, LikenessRecord, StatementWork

from .things import ROUNDS, SESSIONS, Things, captured_things, document

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

CALLS = SESSIONS * ROUNDS


@pytest.fixture(scope="module")
def things(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Things:
    """The database with its capture."""
    return captured_things(embedded_server, tmp_path_factory.mktemp("things"))


def test_a_replay_on_the_same_database_did_the_work_of_production(things: Things) -> None:
    result = document(things.replay("same"))
    assert (result["valid"], result["reasons"]) == (True, [])
    each = {statement["statement"]: statement for statement in result["likeness"]["statements"]}
    for shape in (
        "SELECT note FROM things WHERE owner = ?",
        "UPDATE things SET note = ? WHERE id = ?",
        "SELECT count(*) FROM things WHERE id IN (?)",
    ):
        there, here = each[shape]["production"], each[shape]["here"]
        assert (here["calls"], here["rows"]) == (there["calls"], there["rows"]), shape
        assert there["calls"] == CALLS
    assert each["SELECT note FROM things WHERE owner = ?"]["production"]["rows"] == 20 * CALLS
    assert result["likeness"]["whole"]


@pytest.mark.parametrize(
    ("change", "figure", "statement"),
    [
        pytest.param("DROP INDEX things_owner", "blocks", "SELECT note", id="an index is missing"),
        pytest.param(
            "UPDATE things SET owner = owner + 5000", "rows", "SELECT note", id="one column's values are others"
        ),
        pytest.param("UPDATE things SET id = id + 50000", "rows", "UPDATE things", id="one table's rows are shifted"),
        pytest.param("CREATE INDEX ON things (note)", "WAL records", "UPDATE things", id="an index too many"),
    ],
)
def test_other_work_than_in_production_makes_a_replay_invalid_and_is_named(
    things: Things, change: str, figure: str, statement: str
) -> None:
    ended = things.replay("other", change=change)
    result = document(ended)
    assert (ended.code, result["newly_failed"]) == (4, 0), "no statement failed: nothing else tells"
    (reason,) = result["reasons"]
    assert "did other work than in production" in reason
    assert statement in reason and f"times the {figure}" in reason


def test_a_session_that_is_not_in_the_log_is_missed(things: Things, tmp_path: Path) -> None:
    lost = things.session_id("worker 1")
    result = document(things.replay("lost", capture=things.without(tmp_path, lambda _, row: row[5] == lost)))
    (reason,) = result["reasons"]
    assert "(0.80 times the calls)" in reason


def test_lines_that_are_not_in_the_log_are_missed(things: Things, tmp_path: Path) -> None:
    capture = things.without(tmp_path, lambda number, _: number % 500 == 250)
    result = document(things.replay("holes", capture=capture))
    assert result["log_lost"] >= 2
    assert any("lines of the log are missing" in reason for reason in result["reasons"]), result["reasons"]


def test_counters_are_compared_with_a_server_that_has_some(things: Things) -> None:
    ended = things.replay("none", change="DROP EXTENSION pg_stat_statements")
    assert ended.code == 2
    assert "has no pg_stat_statements" in ended.err


def work_of(calls: int = 1000, rows: int = 1000, wal: int = 0, blocks: int = 4000) -> StatementWork:
    """What a statement did."""
    return StatementWork(
        calls=calls, rows=rows, exec_ms=calls / 10, wal_records=wal, wal_images=0, wal_bytes=100 * wal, blocks=blocks
    )


def likeness(there: StatementWork, here: StatementWork, *, whole: bool = True) -> LikenessRecord:
    """One statement beside production."""
    statement = ComparedStatement(statement="SELECT ?", production=there, here=here)
    return LikenessRecord(whole=whole, statements=(statement,))


@pytest.mark.parametrize(
    ("there", "here", "beyond"),
    [
        (work_of(), work_of(), {}),
        (work_of(), work_of(calls=960, rows=960, blocks=3840), {}),
        (work_of(), work_of(calls=900, rows=900, blocks=3600), {"calls": 0.9}),
        (work_of(), work_of(rows=940), {"rows": 0.94}),
        (work_of(), work_of(rows=0), {"rows": 0}),
        (work_of(rows=0), work_of(rows=50), {"rows": 50}),
        (work_of(), work_of(blocks=4700), {}),
        (work_of(), work_of(blocks=5000), {"blocks": 1.25}),
        # Of so few one is more than the limit.
        (work_of(calls=10, rows=10, blocks=40), work_of(calls=12, rows=15, blocks=60), {}),
        (work_of(wal=3000), work_of(wal=3100), {}),
        # It reads: how many pages it prunes follows from the snapshots that are open.
        (work_of(wal=3000), work_of(wal=4000), {}),
        (work_of(wal=3000), work_of(wal=4600), {"WAL records": 4600 / 3000}),
        # Chance has it so: pages that were split or pruned.
        (work_of(calls=100, rows=100, wal=100, blocks=400), work_of(calls=100, rows=100, wal=120, blocks=400), {}),
        # It reads: what it writes follows from vacuum.
        (work_of(wal=30), work_of(wal=300), {}),
        (work_of(), work_of(calls=0, rows=0, blocks=0), {"calls": 0}),
    ],
)
def test_figures_beyond_their_limits_are_told(
    there: StatementWork, here: StatementWork, beyond: dict[str, float]
) -> None:
    unlikes = unlike(likeness(there, here))
    assert {name: pytest.approx(ratio) for unlike in unlikes for name, ratio in unlike.ratios.items()} == beyond


def test_a_select_may_prune_more_pages_and_a_statement_that_writes_has_its_records() -> None:
    there, here = work_of(wal=3000), work_of(wal=3400)
    assert unlike(likeness(there, here)) == []
    written = ComparedStatement(statement="UPDATE t SET a = ?", production=there, here=here)
    (result,) = unlike(LikenessRecord(whole=True, statements=(written,)))
    assert result.ratios.keys() == {"WAL records"}


def test_calls_of_a_part_are_not_compared_and_what_a_call_does_is() -> None:
    half = work_of(calls=500, rows=500, blocks=2000)
    assert unlike(likeness(work_of(), half, whole=False)) == []
    (result,) = unlike(likeness(work_of(), half.model_copy(update={"rows": 0}), whole=False))
    assert dict(result.ratios) == {"rows": 0}


def test_bloat_is_told_and_another_plan_is_a_reason() -> None:
    bloat, plan = likeness(work_of(), work_of(blocks=2600)), likeness(work_of(), work_of(blocks=400_000))
    assert len(unlike(bloat)) == 1 and list(likeness_reasons(bloat)) == []
    assert len(list(likeness_reasons(plan))) == 1


def test_what_takes_less_than_a_hundredth_is_told_and_is_no_reason() -> None:
    rare = ComparedStatement(statement="a", production=work_of(calls=50), here=work_of(calls=50, rows=0))
    often = ComparedStatement(statement="b", production=work_of(calls=100_000), here=work_of(calls=100_000))
    record = LikenessRecord(whole=True, statements=(rare, often))
    assert [other.statement for other in unlike(record)] == ["a"]
    assert list(likeness_reasons(record)) == []


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT $1 FROM t  WHERE a = $2 -- why\n", "SELECT ? FROM t WHERE a = ?"),
        ("SELECT a FROM t WHERE b IN ($1, $2,$3)", "SELECT a FROM t WHERE b IN (?)"),
        ("SELECT a FROM t WHERE b IN ($1 /*, ... */)", "SELECT a FROM t WHERE b IN (?)"),
        ("COMMIT;", "COMMIT"),
    ],
)
def test_texts_of_several_servers_are_one_shape(text: str, shape: str) -> None:
    assert shape_of(text) == shape


def counted_of(calls: int, query: str = "SELECT $1", role: str = "app", queryid: int = 1) -> dict[str, Any]:
    """A row of pg_stat_statements."""
    names = ("rows", "total_exec_time", "shared_blks_hit", "shared_blks_read", "shared_blks_dirtied")
    more = ("shared_blks_written", "wal_records", "wal_fpi", "wal_bytes")
    first = {"role": role, "queryid": queryid, "toplevel": True, "query": query, "calls": calls}
    return first | dict.fromkeys((*names, *more), calls)


def test_what_was_done_between_two_readings() -> None:
    before, after = (
        [counted_of(10)],
        [counted_of(25), counted_of(7, "SELECT ?", queryid=2), counted_of(9, role="other")],
    )
    result = grown(before, after, {"app"})
    # Two texts of one shape are one; a role that is not asked for does not count.
    assert {shape: item.calls for shape, item in result.items()} == {"SELECT ?": 15 + 7}
    assert result["SELECT ?"].blocks == 2 * (15 + 7)
    # One that was evicted meanwhile counts from zero.
    assert grown([counted_of(100)], [counted_of(25)], set())["SELECT ?"].calls == 25
    assert fallen([counted_of(10)], [counted_of(25)]) == 0
    assert fallen([counted_of(10)], []) == fallen([counted_of(30)], [counted_of(25)]) == 1


def test_two_files_that_are_not_of_one_capture_are_refused(tmp_path: Path) -> None:
    def written(name: str, **keys: Any) -> str:
        first = {"stats_version": 1, "database": "shop", "server_time_us": 1, "statements": [counted_of(10)]}
        (tmp_path / name).write_text(json.dumps(first | {"settings": []} | keys))
        return str(tmp_path / name)

    before, after = written("before"), written("after", server_time_us=2)
    assert production((before, after)).database == "shop"
    (tmp_path / "text").write_text("{")
    wrong = {
        "was not made before": (after, before),
        "is of the database shop": (before, written("other", database="x", server_time_us=2)),
        "was reset between": (before, written("reset", statements=[counted_of(1)], server_time_us=2)),
        "is not a document of": (before, written("version", stats_version=2)),
        "is not JSON": (before, str(tmp_path / "text")),
        "cannot be read": (before, str(tmp_path / "nothing")),
    }
    for item, files in wrong.items():
        with pytest.raises(InputError) as caught:
            production(files)
        assert item in caught.value.message

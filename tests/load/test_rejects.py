"""Rows that the table does not take: which they are, what is kept of them, and that the others are loaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from .loaded import Target, load, order, refused

if TYPE_CHECKING:
    from pathlib import Path

TABLE = """
    CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL, code varchar(4), age int CHECK (age >= 0),
        parent int REFERENCES p {deferred})
"""
GOOD = 400
BAD = {
    "many,x,ab,1,1": ("22P02", "id"),
    "901,,ab,1,1": ("23502", "name"),
    "902,x,abcde,1,1": ("22001", "code"),
    "903,x,ab,-1,1": ("23514", None),
    "904,x,ab,1,77": ("23503", None),
    "5,again,ab,1,1": ("23505", None),
    "905,x,ab,1": ("22P04", None),
    "906,x,ab,1,1,more": ("22P04", None),
    '907,"two\nlines",ab,old,1': ("22P02", "age"),
    "908,\udcff,ab,1,1": ("22021", None),
}
"""Rows, with the state of each and the column that it names."""


def written(path: Path, *, header: str = "") -> None:
    """A file with each of :data:`BAD` somewhere among good rows."""
    rows = [f'{n},"a\nb",ab,{n},1' if n % 5 == 0 else f"{n},x,ab,{n},1" for n in range(1, GOOD + 1)]
    for number, bad in enumerate(BAD):
        rows.insert(20 + number * 37, bad)
    text = "".join(f"{row}\n" for row in [*([header] if header else []), *rows])
    path.write_bytes(text.encode(errors="surrogateescape"))


@pytest.mark.parametrize("deferred", ["", "DEFERRABLE INITIALLY DEFERRED"])
@pytest.mark.parametrize(("chunk_bytes", "connections"), [(1 << 20, 1), (500, 4)])
def test_bad_rows_of_every_sort_are_kept_as_they_are_and_the_others_loaded(
    each_target: Target, tmp_path: Path, deferred: str, chunk_bytes: int, connections: int
) -> None:
    each_target.run("CREATE TABLE p (id int PRIMARY KEY)", "INSERT INTO p VALUES (1)", TABLE.format(deferred=deferred))
    path, rejected = tmp_path / "a.csv", tmp_path / "rejected.csv"
    written(path, header="id,name,code,age,parent")
    result = order(path, header=True, chunk_bytes=chunk_bytes, connections=connections, ledger=each_target.ledger())
    done = load(each_target.dsn, result | {"rejects": {"path": str(rejected), "max": len(BAD)}})
    assert done.rows == (GOOD, len(BAD))
    assert done.end["reject_files"] == [str(rejected), f"{rejected}.jsonl"]
    assert each_target.rows("SELECT count(*), sum(id) FROM t") == [(GOOD, GOOD * (GOOD + 1) // 2)]
    kept = rejected.read_bytes().decode(errors="surrogateescape")
    reasons = [json.loads(line) for line in (tmp_path / "rejected.csv.jsonl").read_text().splitlines()]
    again = [row for row in BAD if row.startswith("5,")]
    bad = [row for row in BAD if connections == 1 or row not in again]
    # With several sessions either row with the same key may be the first.
    assert [row for row in bad if f"{row}\n" not in kept] == []
    assert kept.startswith("id,name,code,age,parent\n")
    content, by_place = path.read_bytes(), {reason["byte"]: reason for reason in reasons}
    for row in bad:
        place = content.index(row.encode(errors="surrogateescape") + b"\n")
        reason, (sqlstate, column) = by_place[place], BAD[row]
        assert (reason["source"], reason["sqlstate"]) == ("a.csv", sqlstate), reason
        assert reason["line"] == content[:place].count(b"\n") + 1
        assert column is None or reason["column"] == column
    assert not (tmp_path / "rejected.csv.parts").exists()
    # Reloadable as it is: every row of it is rejected again, for the same reasons.
    second = tmp_path / "second.csv"
    answer = order(rejected, header=True, rejects={"path": str(second), "max": len(BAD)})
    assert load(each_target.dsn, answer).rows == (0, len(BAD))
    assert second.read_bytes() == rejected.read_bytes()


def test_rows_that_copy_cannot_cut_are_rejected_too(target: Target, tmp_path: Path) -> None:
    target.run("CREATE TABLE t (a text, b text)")
    path, rejected = tmp_path / "a.csv", tmp_path / "r"
    path.write_bytes(b'1,x\n2,y\r\n3,"\n",z\n4,"never\n5,ends')
    done = load(target.dsn, order(path, chunk_bytes=1, rejects={"path": str(rejected), "max": 9}))
    assert done.rows == (1, 3)
    assert target.content("t") == ["(1,x)"]
    assert rejected.read_bytes() == b'2,y\r\n3,"\n",z\n4,"never\n5,ends\n'
    reasons = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(reason["line"], reason["byte"]) for reason in reasons] == [(2, 4), (3, 9), (5, 17)]
    assert "unquoted carriage return" in reasons[0]["reason"]
    assert "unterminated" in reasons[2]["reason"]


def test_more_than_are_allowed_end_the_load_and_a_second_run_goes_on(target: Target, tmp_path: Path) -> None:
    target.run("CREATE TABLE p (id int PRIMARY KEY)", "INSERT INTO p VALUES (1)", TABLE.format(deferred=""))
    path, rejected = tmp_path / "a.csv", tmp_path / "r"
    written(path)
    result = order(path, chunk_bytes=500, ledger=target.ledger())
    error = refused(target.dsn, result | {"rejects": {"path": str(rejected), "max": 4}})
    assert error["message"].startswith("more than 4 rows were rejected; the last one is a.csv line ")
    ledger = "SELECT sum(rows_loaded)::bigint, sum(rows_rejected)::bigint FROM pgdyno_load.chunk"
    loaded, aside = target.rows(ledger)[0]
    assert target.one("SELECT count(*) FROM t") == loaded
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == aside <= 4
    done = load(target.dsn, result | {"rejects": {"path": str(rejected), "max": 100}})
    assert done.rows == (GOOD, len(BAD))
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == len(BAD)


def test_a_table_that_takes_nothing_rejects_everything_and_nothing_else_is_blamed_on_rows(
    target: Target, tmp_path: Path
) -> None:
    target.run("CREATE TABLE t (a int)")
    path, rejects = tmp_path / "a.csv", {"path": str(tmp_path / "r"), "max": 10_000}
    path.write_text("".join(f"x{n}\n" for n in range(300)))
    assert load(target.dsn, order(path, rejects=rejects)).rows == (0, 300)
    assert (tmp_path / "r").read_bytes() == path.read_bytes()
    for broken in ({"encoding": "klingon"}, {"table": "absent"}, {"columns": ["b"]}):
        document: dict[str, Any] = order(path, rejects=rejects) | broken
        refused(target.dsn, document)


def test_rows_of_files_whose_lines_end_in_different_ways_do_not_go_into_one_file(
    target: Target, tmp_path: Path
) -> None:
    target.run("CREATE TABLE t (a int)")
    newline, both, rejected = tmp_path / "newline.csv", tmp_path / "both.csv", tmp_path / "r"
    newline.write_bytes(b"1\nx\n")
    both.write_bytes(b"2\r\ny\r\n")
    rejects = {"path": str(rejected), "max": 9}
    error = refused(target.dsn, order(newline, both, rejects=rejects, ledger=target.ledger()))
    assert "different line ends" in error["message"]
    assert "separately" in error["remedy"]
    assert rejected.read_bytes() in (b"x\n", b"y\r\n"), "of one of them"
    both.write_bytes(b"2\r\n3\r\n")
    done = load(target.dsn, order(newline, both, rejects=rejects))
    assert done.rows == (3, 1), "where nothing is rejected of the other, nothing is refused"

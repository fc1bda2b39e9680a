"""Statements without their literals, however they are written, and in time that grows with their length."""

from __future__ import annotations

import time

import pytest

from pgdyno.probe.sql import without_literals


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT $1 FROM t1 WHERE c2 = $2", "SELECT $1 FROM t1 WHERE c2 = $2"),
        ("CREATE TABLE x AS SELECT 'se''cret', 42, 1.5e-3", "CREATE TABLE x AS SELECT ?, ?, ?"),
        ("DO $$ BEGIN PERFORM 'x'; END $$ LANGUAGE plpgsql", "DO ? LANGUAGE plpgsql"),
        ("DO $body$ a $$ b $body$", "DO ?"),
        ("SELECT 'cut off, as the first 200 characters are", "SELECT ?"),
        ("DO $$ cut off", "DO ?"),
        ("SELECT /* it's */ 'secret'", "SELECT   ?"),
        ("SELECT \"it's\" FROM t WHERE a = 'secret'", 'SELECT "it\'s" FROM t WHERE a = ?'),
        ("SELECT 1 -- it's\n, 'secret'", "SELECT ?  \n, ?"),
        ("SELECT foo$a$, 'b' FROM t", "SELECT foo$a$, ? FROM t"),
        (r"SELECT E'it\'s', 'secret'", "SELECT …"),
        ("SELECT /* /* */ it's */ 'secret'", "SELECT …"),
        ("", ""),
    ],
)
def test_literals_are_question_marks(text: str, kept: str) -> None:
    assert without_literals(text) == kept


@pytest.mark.parametrize("part", ["'", "$a$", "/*", "\"'", "1.", "a$", "--\n", "$", "e'"])
def test_twice_the_text_takes_no_more_than_three_times(part: str) -> None:
    def cpu_s(count: int) -> float:
        times = []
        for _ in range(3):
            begin = time.process_time()
            without_literals(part * count)
            times.append(time.process_time() - begin)
        return min(times)

    once = cpu_s(20_000)
    assert cpu_s(40_000) < 3 * once + 0.05

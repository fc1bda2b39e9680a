"""A file that is written to while it is loaded, and a ledger that loses lines: the load stops, and says what is in the table."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.machine.waiting import wait_until

from .loaded import LEDGER_TABLE, Target, ended, loading, order
from .test_load import wait_for_chunks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 20_000
TABLE = "CREATE TABLE t (id int, version text)"
GATE = (
    "CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END'",
    "CREATE TRIGGER gate BEFORE INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION gate()",
)
"""Each COPY waits until the test opens the gate, and has then been sent from the file."""
WAIT_S = 20.0


def content(version: str, rows: int = ROWS) -> bytes:
    return b"".join(f"{n:08d},{version * 8}\n".encode() for n in range(rows))


def in_place(path: Path) -> None:
    """Other content of the same length, with the time of modification put back."""
    before = path.stat()
    stored = gzip.compress(content("B"), mtime=0) if path.suffix == ".gz" else content("B")
    with path.open("r+b") as file:
        file.write(stored[: before.st_size])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"99999999,grown\n")


def replaced(path: Path) -> None:
    """Another file of the same size and time of modification takes its name."""
    before, other = path.stat(), path.with_suffix(".other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(path)


def shortened(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 3)


def removed(path: Path) -> None:
    path.unlink()


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "in place": (in_place, "ctime"),
    "grown": (grown, "bytes"),
    "replaced": (replaced, "inode"),
    "shortened": (shortened, "bytes"),
    "removed": (removed, "removed"),
}


def waiting(target: Target) -> bool:
    return bool(
        target.one(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
        )
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_file_that_changes_after_it_was_cut_is_found_out_before_its_chunk_is_committed(
    target: Target, tmp_path: Path, name: str, way: str
) -> None:
    target.run(TABLE, *GATE)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content("A"), mtime=0) if name.endswith(".gz") else content("A"))
    change, found_by = WAYS[way]
    # One chunk: it is cut to its end, and is sent as soon as the gate opens.
    result = order(path, ledger=target.ledger(), chunk_bytes=1 << 20, connections=1)
    with psycopg.connect(target.dsn, autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(7)")
        with loading(target.dsn, result) as process:
            assert wait_until(lambda: waiting(target), WAIT_S)
            change(path)
            gate.execute("SELECT pg_advisory_unlock(7)")
            error: Any = ended(process)
    assert isinstance(error, dict), "it must not be called done"
    assert error["code"] == "load.source.changed"
    assert error["data"]["source"] == name
    assert found_by in error["data"]["changed"]
    assert error["data"]["before"]["bytes"] > 0
    assert (error["data"]["now"] is None) == (way == "removed")
    assert target.one("SELECT count(*) FROM t") == 0, "nothing of a changed file is committed"
    assert target.one("SELECT count(*) FROM pgdyno_load.chunk") == 0


@pytest.mark.parametrize("ledger", [True, False])
def test_what_was_committed_before_a_change_is_of_the_file_as_it_was(
    target: Target, tmp_path: Path, ledger: bool
) -> None:
    target.run(TABLE)
    path = tmp_path / "a.csv"
    path.write_bytes(content("A"))
    result = order(path, chunk_bytes=16_384, connections=2, rate_bytes_per_s=300_000, interval_ms=20)
    result |= {"ledger": target.ledger()} if ledger else {}
    with loading(target.dsn, result) as process:
        wait_for_chunks(process, 2)
        in_place(path)
        error: Any = ended(process)
    assert isinstance(error, dict)
    assert error["code"] == "load.source.changed"
    rows = target.rows("SELECT version, count(*) FROM t GROUP BY 1")
    assert [row[0] for row in rows] == ["AAAAAAAA"]
    assert 0 < rows[0][1] < ROWS
    if ledger:
        assert target.one("SELECT sum(rows_loaded) FROM pgdyno_load.chunk") == rows[0][1]


def test_a_second_file_that_changes_after_its_last_chunk_was_committed_is_said(target: Target, tmp_path: Path) -> None:
    """Its chunks are committed, and the load is not done yet: another file is still being sent."""
    target.run(TABLE, "CREATE TABLE seen (n int)")
    short, path = tmp_path / "short.csv", tmp_path / "a.csv"
    short.write_bytes(b"1,short\n")
    path.write_bytes(content("A"))
    result = order(short, path, ledger=target.ledger(), chunk_bytes=16_384, rate_bytes_per_s=300_000, interval_ms=20)
    with loading(target.dsn, result) as process:
        assert wait_until(lambda: bool(target.one("SELECT count(*) FROM pgdyno_load.chunk WHERE source = 0")), WAIT_S)
        grown(short)
        error: Any = ended(process)
    assert isinstance(error, dict)
    assert (error["code"], error["data"]["source"]) == ("load.source.changed", "short.csv")


def test_a_file_is_held_to_what_was_seen_of_it_before_the_engine_began(target: Target, tmp_path: Path) -> None:
    target.run(TABLE)
    path = tmp_path / "a.csv"
    path.write_bytes(content("A", 100))
    facts = path.stat()
    seen = {
        "path": str(path),
        "bytes": facts.st_size,
        "mtime": divmod(facts.st_mtime_ns, 10**9),
        "ctime": divmod(facts.st_ctime_ns, 10**9),
        "device": facts.st_dev,
        "inode": facts.st_ino,
    }
    result = order(path)
    result["sources"][0]["file"] = seen
    with loading(target.dsn, result) as process:
        assert not isinstance(ended(process), dict)
    grown(path)
    with loading(target.dsn, result) as process:
        error: Any = ended(process)
    assert error["code"] == "load.source.changed"
    assert error["data"]["changed"] == ["bytes", "mtime", "ctime"]
    assert target.one("SELECT count(*) FROM t") == 100


@pytest.mark.parametrize("terminated", [False, True])
def test_lines_of_the_ledger_that_vanish_stop_the_load(target: Target, tmp_path: Path, terminated: bool) -> None:
    """Their chunks are in the table: they must not be loaded a second time, whether the sessions were lost or not."""
    target.run(TABLE)
    path = tmp_path / "a.csv"
    path.write_bytes(content("A"))
    result = order(path, ledger=target.ledger(), chunk_bytes=16_384, rate_bytes_per_s=400_000, interval_ms=20)
    with loading(target.dsn, result | {"reconnect_s": 20}) as process:
        wait_for_chunks(process, 2)
        target.run("DELETE FROM pgdyno_load.chunk WHERE chunk = 0")
        if terminated:
            target.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid()"
            )
        error: Any = ended(process)
    assert isinstance(error, dict), "it must not be called done"
    assert error["code"] == "load.ledger.lines_lost"
    assert error["data"]["lines"] == [[0, 0]]
    assert error["data"]["rows"] > 0
    assert target.one("SELECT count(*) = count(DISTINCT id) FROM t"), "no chunk is loaded twice"


@pytest.mark.parametrize(
    "line",
    [
        "0, 0, -5, 10, 1, 0",
        "0, 0, 10, 5, 1, 0",
        "0, 0, 0, 9223372036854775807, 9223372036854775807, 9223372036854775807",
    ],
)
def test_a_line_that_no_load_writes_is_refused_and_not_passed_over(target: Target, tmp_path: Path, line: str) -> None:
    """A chunk whose line cannot be understood would be loaded a second time."""
    target.run(TABLE)
    path = tmp_path / "a.csv"
    path.write_bytes(content("A", 100))
    result = order(path, ledger=target.ledger())
    target.run(f"INSERT INTO {LEDGER_TABLE} VALUES (1, {line})")
    with loading(target.dsn, result) as process:
        error: Any = ended(process)
    assert isinstance(error, dict)
    assert error["code"] == "load.ledger.damaged"
    assert error["data"] == {"job": 1, "source": 0, "chunk": 0}
    assert target.one("SELECT count(*) FROM t") == 0

"""``pgdyno load`` of files that are written to meanwhile, and with a ledger that loses lines: what it says, and what it does next."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import EXIT_FAILURE, InputError, PgdynoError
from pgdyno.loader import source, transfer

from .database import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 20_000
RATE = 400_000


def written(path: Path, version: str = "A") -> Path:
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.table({"id": list(range(ROWS)), "version": [version * 8] * ROWS})
        parquet.write_table(table, path, compression="none", row_group_size=500)
        return path
    text = "id,version\n" + "".join(f"{n:08d},{version * 8}\n" for n in range(ROWS))
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text.encode())
    return path


def rewritten(path: Path) -> None:
    """Other content in place, of the same length where it is text, with the time of modification put back."""
    before = path.stat()
    other = written(path.with_name(f"other-{path.name}"), "B").read_bytes()[: before.st_size]
    with path.open("r+b") as file:
        file.write(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"90000001,grown\n")


class Meanwhile:
    """Does something once, as soon as rows are known to be in the table."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.what, self.done = what, False

    def __call__(self, event: Any) -> None:
        if event["event"] == "progress" and event["rows_loaded"] > 0 and not self.done:
            self.done = True
            self.what()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress comes often, so that what is done meanwhile is done soon."""
    monkeypatch.setattr(transfer, "INTERVAL_MS", 20)


def load(words: Any, database: Database, **options: Any) -> Any:
    return pgdyno.load(words, database.dsn, **({"chunk_bytes": 16_384, "table": "t", "connections_max": 2} | options))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.csv", rewritten),
        ("a.csv", grown),
        ("a.csv.gz", rewritten),
        ("a.parquet", rewritten),
        ("-", rewritten),
    ],
    ids=["in place", "grown", "gzip", "parquet", "standard input"],
)
def test_a_file_that_changes_during_a_load_ends_it_and_is_not_gone_on_with(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Path], None]
) -> None:
    database.run("CREATE TABLE t (id int, version text); CREATE INDEX t_id ON t (id)")
    path = written(tmp_path / ("stdin.csv" if name == "-" else name))
    before, other = database.shape("t"), written(tmp_path / f"again-{path.name}")
    options = {"format": "csv"} if name == "-" else {}
    # The load closes a descriptor that is not the process's own standard input.
    with os.fdopen(os.open(path, os.O_RDONLY), closefd=name != "-") as stream:
        monkeypatch.setattr(source, "standard_input", lambda: stream)
        word = name if name == "-" else path
        meanwhile = Meanwhile(lambda: change(path))
        with pytest.raises(PgdynoError) as caught:
            load(word, database, rate_bytes_per_s=RATE, tell=meanwhile, indexes="rebuild", **options)
    error = caught.value
    assert (error.code, error.exit_code) == ("load.source.changed", EXIT_FAILURE)
    assert "bug" not in error.message + error.remedy
    assert error.data["source"] == ("standard input" if name == "-" else str(path))
    assert "ctime" in error.data["changed"]
    assert error.data["before"] != error.data["now"]
    rows = database.one("SELECT count(*) FROM t")
    assert 0 < rows < ROWS
    assert (error.data["rows_loaded"], error.data["job"]) == (rows, 1)
    assert database.rows("SELECT DISTINCT version FROM t") == [("AAAAAAAA",)], "those of the file as it was"
    assert database.one("SELECT ended IS NULL FROM pgdyno_load.job"), "the ledger does not say that it is complete"
    assert (database.left_to_undo(), database.shape("t")) == (0, before), "its index is back"
    # Not with the file as it is now, nor with what may have been put in its place; only from the beginning.
    if name != "-":
        with pytest.raises(InputError) as refused:
            load(path, database)
        assert refused.value.code == "load.job.unfit"
    delete = next(text for text in error.remedy.split("`") if text.startswith("DELETE"))
    database.run(delete)
    assert database.one("SELECT count(*) FROM t") == 0, "what the remedy names removes the rows of this load"
    assert load(other, database, abandon=True).rows_loaded == ROWS


def test_a_change_before_the_first_chunk_leaves_nothing(database: Database, tmp_path: Path) -> None:
    database.run("CREATE TABLE t (id int, version text)")
    path = written(tmp_path / "a.csv")

    def tell(event: Any) -> None:
        if event["event"] == "plan":
            grown(path)

    with pytest.raises(PgdynoError) as caught:
        load(path, database, tell=tell)
    assert caught.value.code == "load.source.changed"
    assert caught.value.data["rows_loaded"] == 0
    assert database.one("SELECT count(*) FROM pgdyno_load.job") == 0, "it ends itself"
    assert load(path, database).rows_loaded == ROWS + 1


@pytest.mark.parametrize("keep", [False, True], ids=["all", "some"])
def test_lines_of_the_ledger_that_vanish_end_the_load_and_no_row_comes_twice(
    database: Database, tmp_path: Path, keep: bool
) -> None:
    database.run("CREATE TABLE t (id int, version text)")
    path = written(tmp_path / "a.csv")
    delete = "DELETE FROM pgdyno_load.chunk" + (" WHERE chunk = 0" if keep else "")
    with pytest.raises(PgdynoError) as caught:
        load(path, database, rate_bytes_per_s=RATE, tell=Meanwhile(lambda: database.run(delete)))
    assert caught.value.code == "load.ledger.lines_lost"
    assert [0, 0] in caught.value.data["lines"]
    assert database.one("SELECT count(*) = count(DISTINCT id) AND count(*) > 0 FROM t")
    with pytest.raises(InputError) as refused:
        load(path, database)
    assert refused.value.code == "load.job.unfit", "it would load them once more"
    assert load(path, database, abandon=True, truncate=True).rows_loaded == ROWS
    assert database.one("SELECT count(*) FROM t") == ROWS


def test_a_ledger_that_loses_lines_between_the_last_chunk_and_the_end_is_no_bug(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int, version text)")
    path = written(tmp_path / "a.csv")
    whole = transfer.follow

    def follow(*arguments: Any) -> Any:
        done = whole(*arguments)
        database.run("DELETE FROM pgdyno_load.chunk WHERE chunk = 1")
        return done

    monkeypatch.setattr(transfer, "follow", follow)
    with pytest.raises(PgdynoError) as caught:
        load(path, database)
    assert caught.value.code == "load.ledger.incomplete"
    assert caught.value.data["source"] == str(path)
    assert "bug" not in caught.value.message
    with pytest.raises(InputError) as refused:
        load(path, database)
    assert refused.value.code == "load.job.unfit"

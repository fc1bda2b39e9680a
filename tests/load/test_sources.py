"""Where files come from and how they are packed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow
import pytest

from .loaded import Loaded, Target, load, order, outcome, refused
from .test_load import ROWS, TABLE, written

if TYPE_CHECKING:
    from pathlib import Path


def zstd(content: bytes) -> bytes:
    """One frame."""
    return bytes(pyarrow.Codec("zstd").compress(content, asbytes=True))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_of_several_members_are_whole_and_passed_over_when_done(
    target: Target, tmp_path: Path, kind: str
) -> None:
    target.run(TABLE)
    content = written(tmp_path / "plain.csv").read_bytes()
    cut = content.index(b"\n", len(content) // 3) - 4
    path = tmp_path / "packed"
    path.write_bytes(PACKERS[kind](content[:cut]) + PACKERS[kind](content[cut:]))
    result = order(path, ledger=target.ledger(), chunk_bytes=50_000, connections=3)
    done = load(target.dsn, result)
    assert (done.begin["sources"][0]["compression"], done.rows) == (kind, (ROWS, 0))
    assert done.progress[-1]["bytes_read_stored"] == done.progress[-1]["bytes_stored_total"] == path.stat().st_size
    again = load(target.dsn, result)
    assert (again.begin["chunks_done"], again.rows) == (done.end["chunks"], (ROWS, 0))
    assert target.one("SELECT count(DISTINCT id) FROM t") == ROWS


@pytest.mark.parametrize("kind", PACKERS)
def test_a_packed_file_that_ends_too_early_is_an_error(target: Target, tmp_path: Path, kind: str) -> None:
    target.run(TABLE)
    packed = PACKERS[kind](written(tmp_path / "plain.csv").read_bytes())
    path = tmp_path / "cut.csv"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    error = refused(target.dsn, order(path, ledger=target.ledger(), chunk_bytes=20_000))
    assert error["message"].startswith("cut.csv ")
    assert "after" in error["message"]
    assert target.one("SELECT count(*) FROM t") == target.one(
        "SELECT coalesce(sum(rows_loaded), 0) FROM pgdyno_load.chunk"
    )


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_a_pipe_is_loaded_as_it_comes(target: Target, tmp_path: Path, kind: str) -> None:
    target.run(TABLE)
    content = written(tmp_path / "plain.csv").read_bytes()
    stored = PACKERS[kind](content) if kind in PACKERS else content
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as file:
            file.write(stored)

    thread = threading.Thread(target=write)
    thread.start()
    result = order(chunk_bytes=30_000, connections=2)
    result["sources"] = [{"path": f"/dev/fd/{reader}", "name": "standard input"}]
    done = load(target.dsn, result, pass_fds=[reader])
    thread.join()
    os.close(reader)
    assert done.rows == (ROWS, 0)
    assert done.begin["sources"] == [{"name": "standard input", "bytes_stored": None, "compression": "auto"}]
    assert target.one("SELECT count(DISTINCT id) FROM t") == ROWS


@pytest.mark.parametrize("told", [True, False])
def test_a_pipe_ends_when_its_writer_says_so_and_not_when_it_is_closed(
    target: Target, tmp_path: Path, told: bool
) -> None:
    """The kernel closes the pipes of a process that is killed: the last row may be a part of one, which COPY takes."""
    target.run(TABLE)
    content = written(tmp_path / "plain.csv").read_bytes()
    (reader, writer), (end, telling) = os.pipe(), os.pipe()

    def write() -> None:
        with os.fdopen(telling, "wb") as word, os.fdopen(writer, "wb") as file:
            file.write(content)
            if told:
                file.flush()
                word.write(b".")

    thread = threading.Thread(target=write)
    thread.start()
    result = order(ledger=target.ledger(), chunk_bytes=len(content) // 2, connections=1)
    result["sources"] = [{"path": f"/dev/fd/{reader}", "name": "standard input", "end": f"/dev/fd/{end}"}]
    answer = outcome(target.dsn, result, pass_fds=[reader, end])
    thread.join()
    os.close(reader)
    os.close(end)
    if told:
        assert isinstance(answer, Loaded), answer
        assert answer.rows == (ROWS, 0)
        return
    assert isinstance(answer, dict), answer.end
    assert "standard input broke off" in answer["message"]
    assert target.one("SELECT count(*) FROM t") < ROWS, "the last chunk is not in"

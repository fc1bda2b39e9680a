"""How bytes of a file get to the server: from the file itself over a socket, or read first where that cannot be."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import psycopg
import pytest

from .loaded import Target, copied, ended, load, loading, order, refused
from .test_load import ROWS, TABLE, wait_for_chunks, written

if TYPE_CHECKING:
    from pathlib import Path

    from ..drive.secured import Encrypted


def sum_of(dsn: str) -> tuple[int, int]:
    """How many rows there are, and what their keys add up to."""
    with psycopg.connect(dsn) as connection:
        result = connection.execute("SELECT count(*), sum(id)::bigint FROM t").fetchone()
    assert result is not None
    return result


@pytest.mark.needs_system_postgres
@pytest.mark.parametrize("mode", ["disable", "require"])
def test_a_file_comes_over_tcp_and_tls_as_over_a_unix_socket(
    target: Target, encrypted: Encrypted, tmp_path: Path, mode: str
) -> None:
    """The kernel hands a file on to a socket; what is to be encrypted has to be read."""
    password = encrypted.password["PGPASSWORD"]
    remote = Target(psycopg.conninfo.make_conninfo("", **encrypted.server, sslmode=mode, password=password))
    path = written(tmp_path / "a.csv")
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    lengths = {"usual": 100_000, "most": 10_000_000, "last": 100_000}
    for source in (path, packed):
        for there in (target, remote):
            there.run("DROP TABLE IF EXISTS t", TABLE)
            done = load(there.dsn, order(source, chunk_bytes=lengths, connections=2))
            assert done.rows == (ROWS, 0)
        assert sum_of(remote.dsn) == sum_of(target.dsn)
    remote.run("DROP TABLE t")


@pytest.mark.parametrize("rows", [b"", b"1,x,2\n"])
def test_a_header_that_is_no_text_is_refused_as_copy_refuses_it(target: Target, tmp_path: Path, rows: bytes) -> None:
    """It is not sent, so the server does not see it."""
    target.run(TABLE)
    path = tmp_path / "a.csv"
    for header, encoding, is_refused in (
        (b"id,n\xffame,number\n", "UTF8", True),
        (b"id,n\xffame,number\n", "utf-8", True),
        (b"id,n\xffame,number\n", "LATIN1", False),
        (b"id,n\0ame,number\n", "LATIN1", True),
        ("id,näme,number\n".encode(), "UTF8", False),
    ):
        path.write_bytes(header + rows)
        with psycopg.connect(target.dsn) as connection:
            options = f"FORMAT csv, HEADER, ENCODING '{encoding}'"
            assert (copied(connection, "t", options, path.read_bytes()) is not None) is is_refused
            connection.rollback()
        result = order(path, header=True, encoding=encoding)
        if is_refused:
            assert "line 1: byte 4 of the header is not text" in refused(target.dsn, result)["message"]
        else:
            assert load(target.dsn, result).rows == (rows.count(b"\n"), 0)


def test_a_file_that_is_cut_while_it_is_sent_leaves_no_half_chunk(target: Target, tmp_path: Path) -> None:
    """It was cut into chunks before. What was announced of a message goes out, and nothing of the chunk is committed."""
    target.run(TABLE)
    path = written(tmp_path / "a.csv")
    content = path.read_bytes()
    ledger = target.ledger()
    result = order(path, ledger=ledger, chunk_bytes=len(content) // 4, interval_ms=20)
    with loading(target.dsn, result | {"rate_bytes_per_s": len(content) // 3}) as process:
        wait_for_chunks(process, 1)
        # In place: who replaces a file by another one leaves the open one as it is.
        os.truncate(path, len(content) * 3 // 4 - 1000)
        error = ended(process)
    assert isinstance(error, dict) and error["code"] == "load.source.changed", error
    loaded = target.one("SELECT sum(rows_loaded) FROM pgdyno_load.chunk")
    assert 0 < target.one("SELECT count(*) FROM t") == loaded < ROWS
    path.write_bytes(content)
    assert load(target.dsn, result).rows == (ROWS, 0)
    assert target.one("SELECT count(DISTINCT id) FROM t") == ROWS

"""What the engine makes of hostile files, held against COPY of the whole file."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from .hostile import Hostile, drawn
from .loaded import Loaded, Target, copied, order, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Session = psycopg.Connection[Any]

FILES = 60
"""On each server, in `make test`. `make bench` takes 2,000 others."""
SEED = 20_260
BENCH_FILES = int(os.environ.get("PGDYNO_LOAD_FILES", "2000"))


def compare(target: Target, session: Session, folder: Path, seed: int) -> bool:
    """Load a file both ways and compare. Returns whether COPY took it."""
    result = drawn(seed)
    session.execute("TRUNCATE whole, chunked")
    header = ", HEADER" if result.header else ""
    refusal = copied(session, "whole", f"{result.dialect.options}{header}", result.content)
    path = folder / f"{seed}"
    path.write_bytes(result.content)
    done = outcome(target.dsn, order_of(result, path, target))
    path.unlink()
    if refusal is None:
        assert isinstance(done, Loaded), f"seed {seed}: COPY takes it, and we say {done}"
        whole, chunked = (content(session, table) for table in ("whole", "chunked"))
        assert chunked == whole, f"seed {seed}"
        assert done.rows == (len(whole), 0), f"seed {seed}"
    else:
        assert isinstance(done, dict), f"seed {seed}: COPY says {refusal}, and we load {done.rows}"
    return refusal is None


def order_of(hostile: Hostile, path: Path, target: Target) -> dict[str, object]:
    """How to load such a file."""
    return order(
        path,
        table="chunked",
        format=hostile.dialect.document,
        header=hostile.header,
        chunk_bytes={
            "usual": hostile.chunk_bytes,
            "most": 8 * hostile.chunk_bytes,
            "last": max(1, hostile.chunk_bytes // 8),
        },
        connections=hostile.connections,
        ledger=target.ledger(),
        settings={"synchronous_commit": "off"},
    )


def content(session: Session, table: str) -> list[str]:
    """Every row of a table as text, sorted."""
    return sorted(row[0] for row in session.execute(f"SELECT x::text FROM {table} x".encode()))


@contextlib.contextmanager
def tables(target: Target) -> Iterator[Session]:
    """The two tables, and one session for all that is asked of them."""
    with psycopg.connect(target.dsn, autocommit=True) as session:
        for name in ("whole", "chunked"):
            session.execute(f"CREATE TABLE {name} (a text, b text, c text)".encode())
        yield session


def test_chunks_become_what_copy_makes_of_the_whole(each_target: Target, tmp_path: Path) -> None:
    with tables(each_target) as session:
        taken = sum(compare(each_target, session, tmp_path, SEED + seed) for seed in range(FILES))
    assert FILES // 4 < taken < FILES, "some of both"


@pytest.mark.bench
def test_chunks_become_what_copy_makes_of_the_whole_for_many_files(each_target: Target, tmp_path: Path) -> None:
    taken = 0
    with tables(each_target) as session:
        for seed in range(BENCH_FILES):
            taken += compare(each_target, session, tmp_path, 10 * SEED + seed)
            if seed % 500 == 499:
                session.execute("TRUNCATE pgdyno_load.chunk")
    print(f"\n{taken} of {BENCH_FILES} files were taken, the others refused, by COPY and by us alike")

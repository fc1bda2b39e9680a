"""What the engine makes of hostile files, held against COPY of the whole file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from .hostile import Hostile, drawn
from .loaded import Loaded, Target, copied, order, outcome

if TYPE_CHECKING:
    from pathlib import Path

FILES = 60
"""On each server, in `make test`. `make bench` takes 2,000 others."""
SEED = 20_260
BENCH_FILES = int(os.environ.get("PGDYNO_LOAD_FILES", "2000"))


def compare(target: Target, folder: Path, seed: int) -> bool:
    """Load a file both ways and compare. Returns whether COPY took it."""
    asked = drawn(seed)
    target.run("TRUNCATE whole, chunked")
    header = ", HEADER" if asked.header else ""
    refusal = copied(target.dsn, "whole", f"{asked.dialect.options}{header}", asked.content)
    path = folder / f"{seed}"
    path.write_bytes(asked.content)
    done = outcome(target.dsn, order_of(asked, path, target))
    path.unlink()
    if refusal is None:
        assert isinstance(done, Loaded), f"seed {seed}: COPY takes it, and we say {done}"
        whole = target.content("whole")
        assert target.content("chunked") == whole, f"seed {seed}"
        assert done.rows == (len(whole), 0), f"seed {seed}"
    else:
        assert isinstance(done, dict), f"seed {seed}: COPY says {refusal}, and we load {done.rows}"
    return refusal is None


def order_of(asked: Hostile, path: Path, target: Target) -> dict[str, object]:
    """How to load such a file."""
    return order(
        path,
        table="chunked",
        format=asked.dialect.document,
        header=asked.header,
        chunk_bytes=asked.chunk_bytes,
        connections=asked.connections,
        ledger=target.ledger(),
        settings={"synchronous_commit": "off"},
    )


def create(target: Target) -> None:
    """The two tables."""
    target.run(*(f"CREATE TABLE {name} (a text, b text, c text)" for name in ("whole", "chunked")))


def test_chunks_become_what_copy_makes_of_the_whole(each_target: Target, tmp_path: Path) -> None:
    create(each_target)
    taken = sum(compare(each_target, tmp_path, SEED + seed) for seed in range(FILES))
    assert FILES // 4 < taken < FILES, "some of both"


@pytest.mark.bench
def test_chunks_become_what_copy_makes_of_the_whole_for_many_files(each_target: Target, tmp_path: Path) -> None:
    create(each_target)
    taken = 0
    for seed in range(BENCH_FILES):
        taken += compare(each_target, tmp_path, 10 * SEED + seed)
        if seed % 500 == 499:
            each_target.run("TRUNCATE pgdyno_load.chunk")
    print(f"\n{taken} of {BENCH_FILES} files were taken, the others refused, by COPY and by us alike")

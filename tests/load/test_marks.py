"""A mark that ends the data where a block of the reader ends: COPY and the engine take the same rows, and refuse the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from .loaded import Loaded, Target, copied, order, outcome

if TYPE_CHECKING:
    from pathlib import Path

BLOCK_BYTES = 256 << 10
"""What the engine reads at a time."""
FORMATS: dict[str, dict[str, Any]] = {"csv": {"csv": {}}, "text": {"text": {}}}


def marked(end: bytes, offset: int, behind: bytes) -> bytes:
    """Rows, and a mark whose last byte is ``offset`` bytes before the end of a block."""
    row = b"x" * 63 + end
    begin = BLOCK_BYTES - offset - len(b"\\.")
    rows = row * (begin // len(row) - 1)
    return rows + b"y" * (begin - len(rows) - len(end)) + end + b"\\." + behind


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_a_mark_at_any_place_around_a_blocks_end_is_what_copy_makes_of_it(
    each_target: Target, tmp_path: Path, end: bytes
) -> None:
    each_target.run("CREATE TABLE t (a text)", "CREATE TABLE by_copy (a text)")
    path = tmp_path / "marked"
    with psycopg.connect(each_target.dsn, autocommit=True) as session:
        for kind, formatted in FORMATS.items():
            for offset in range(-1, 3):
                for behind in (end, end + b"z" * 70 + end, b"z" + end):
                    content = marked(end, offset, behind)
                    path.write_bytes(content)
                    session.execute("TRUNCATE t, by_copy")
                    refusal = copied(session, "by_copy", f"FORMAT {kind}", content)
                    done = outcome(each_target.dsn, order(path, format=formatted, chunk_bytes=1 << 20))
                    place = (kind, offset, behind[:4], refusal, done)
                    assert isinstance(done, Loaded) == (refusal is None), place
                    if refusal is None:
                        assert each_target.content("t") == each_target.content("by_copy"), place

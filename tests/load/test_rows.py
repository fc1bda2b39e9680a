"""How a file is cut into rows, held against COPY itself: every short file of the bytes that matter, on every server here."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from pgdyno.base import engine

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

ALPHABET = b'a"\\\n\r.'
LONGEST = 5
"""9,331 files: everything that two lines, a quote and a marker can do to each other."""
ONE_COLUMN = "DELIMITER E'\\x01'"
MARKER_IS_DATA = 180000
"""From this version on a line of ``\\.`` in CSV is data (release notes of PostgreSQL 18)."""
MOST = 2**63 - 1

FILES = [bytes(some) for length in range(LONGEST + 1) for some in itertools.product(ALPHABET, repeat=length)]


def plan(**spec: Any) -> list[dict[str, Any]]:
    """What the engine says of files."""
    done = subprocess.run(
        [engine.checked(), "plan"], input=json.dumps(spec), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Planned(NamedTuple):
    """What the plan of a file says."""

    rows: int | None
    """None where a rule is broken."""
    ended: bool
    """A marker ended the data. Whether it may stand there is the server's to say: it gets all that follows too."""


def planned(folder: Path, formatted: dict[str, Any] | str) -> list[Planned]:
    """The plan of each of :data:`FILES`."""
    paths = [folder / str(number) for number in range(len(FILES))]
    for path, content in zip(paths, FILES, strict=True):
        path.write_bytes(content)
    plans: dict[str, Planned] = {}
    chunks: list[dict[str, Any]] = []
    for document in plan(sources=[str(path) for path in paths], format=formatted, chunk_bytes=MOST):
        if "chunk" in document:
            chunks.append(document["chunk"])
            continue
        assert len(chunks) == (1 if document["source"]["bytes"] else 0), "one chunk holds it"
        refused = any(chunk["rows_broken"] for chunk in chunks)
        rows = None if refused else sum(chunk["rows"] for chunk in chunks)
        plans[document["source"]["path"]] = Planned(rows, document["source"]["ended"])
        chunks.clear()
    return [plans[str(path)] for path in paths]


def copied_rows(server: Cluster, options: str) -> list[int | None]:
    """What COPY makes of each of :data:`FILES`."""
    copied_rows: list[int | None] = []
    with psycopg.connect(server.dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE line (content text)")
        for content in FILES:
            try:
                with cursor.copy(f"COPY line FROM STDIN ({options})") as copy:
                    copy.write(content)
                copied_rows.append(cursor.rowcount)
            except psycopg.Error:
                copied_rows.append(None)
    return copied_rows


@pytest.mark.parametrize("kind", ["csv", "text"])
def test_every_short_file_has_the_rows_that_copy_makes_of_it(server: Cluster, tmp_path: Path, kind: str) -> None:
    with psycopg.connect(server.dsn) as connection:
        marker = connection.info.server_version < MARKER_IS_DATA
    ours = planned(tmp_path, "text" if kind == "text" else {"csv": {"marker": marker}})
    theirs = copied_rows(server, f"FORMAT {kind}, {ONE_COLUMN}")
    different: defaultdict[tuple[int | None, int | None], list[bytes]] = defaultdict(list)
    for content, mine, copy in zip(FILES, ours, theirs, strict=True):
        if mine.rows != copy and not (mine.ended and copy is None):
            different[mine.rows, copy].append(content)
    assert not different, {rows: (len(files), sorted(files, key=len)[:8]) for rows, files in different.items()}


def test_what_cannot_be_read_or_cut_is_refused(tmp_path: Path) -> None:
    for spec, item in (
        ({"sources": [str(tmp_path / "absent")], "format": "text", "chunk_bytes": 1}, "absent"),
        ({"sources": [], "format": {"csv": {"quote": "ä"}}, "chunk_bytes": 1}, "quote must be"),
        ({"sources": [], "format": "text", "chunk_bytes": 0}, "chunk_bytes"),
    ):
        done = subprocess.run(
            [engine.checked(), "plan"], input=json.dumps(spec), capture_output=True, text=True, check=False
        )
        error = json.loads(done.stderr)["error"]
        assert done.returncode == 2
        assert item in error["message"]
        assert error["remedy"]

"""Files of rows as programs write them: types that return every value, refusals by name, notes, and what a few loads leave."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from typing import TYPE_CHECKING, Any

import pytest

import pgdyno
from pgdyno.base.errors import InputError, PgdynoError
from pgdyno.loader import column_types, columns, server
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.format import CSV
from pgdyno.loader.ready import get_ready, typed
from pgdyno.loader.sample import whole_rows

from ..loader.conftest import cluster, database
from . import cases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.loader.ready import PreparedLoad
    from pgdyno.loader.server import Connection
    from pgdyno.server.cluster import Cluster

    from ..loader.database import Database
    from . import Case

__all__ = ["cluster", "database"]

ALL = cases("rows")
LOADED = [item for item in ALL if item.values[0].expected.get("loaded")]
TABLE = "corpus"


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Iterator[Connection]:
    """A session like the loader's. What a case makes is rolled back."""
    with contextlib.closing(server.connect(cluster.dsn)) as opened:
        server.run(opened, "SET timezone = 'UTC'")
        yield opened


def looked_at(connection: Connection, case: Case, dsn: str) -> tuple[PreparedLoad, list[str]]:
    """A case as a load sees it before the first row goes, and the codes of its notes."""
    keys = case.expected
    made = re.match(r"CREATE TABLE (\w+)", keys.get("table", ""))
    name = made[1] if made else TABLE
    if made:
        server.run(connection, f"SET LOCAL search_path = public; {keys['table']}; SET LOCAL search_path = pg_catalog")
    options = LoadOptions((str(case.path(keys["input"])),), dsn, table=name, create=not made, **keys.get("load", {}))
    ready = get_ready(connection, options)
    notes = list(ready.notes)
    if ready.definition is not None:
        ready = typed(ready, lambda _: None)
        notes += [] if ready.types is None else column_types.notes(connection, ready.types)
    return ready, [note.code for note in notes if note.code]


@pytest.mark.parametrize("case", ALL)
def test_a_file_is_read_as_its_program_meant_it_or_refused(
    connection: Connection, cluster: Cluster, case: Case
) -> None:
    keys = case.expected
    with connection.transaction(force_rollback=True):
        if "error" in keys:
            with pytest.raises(InputError) as error:
                looked_at(connection, case, cluster.dsn)
            assert error.value.code == keys["error"]
            assert keys.get("remedy", "") in error.value.remedy
            return
        ready, notes = looked_at(connection, case, cluster.dsn)
        if "notes" in keys:
            assert notes == keys["notes"]
        if "types" in keys:
            assert keys["types"].items() <= types_of(ready).items()
        if ready.definition is not None and not keys.get("loaded"):
            texts, written = returned(connection, ready)
            assert texts == written or ready.is_columnar
            assert texts == keys.get("rows", texts)


def types_of(ready: PreparedLoad) -> dict[str, str]:
    assert ready.definition is not None
    return dict(re.findall(r'^    "(.*)" ([^"]*?),?$', ready.definition, re.MULTILINE))


def returned(connection: Connection, ready: PreparedLoad) -> tuple[list[list[str]], list[list[str]]]:
    """The rows of the beginning as the server returns them, and as they are written."""
    assert ready.definition is not None
    first = ready.first
    server.run(connection, columns.with_name(ready.definition, ready.name, "public.returned"))
    data = first.data if first.is_whole else whole_rows(first.data, ready.format, header=False)
    options = [*ready.format.copy_options(ready.encoding), f"HEADER {ready.header}"]
    with connection.cursor().copy(f"COPY public.returned FROM STDIN ({', '.join(options)})".encode()) as copying:
        copying.write(data.removeprefix("\ufeff".encode()))
    return texts(connection, "public.returned"), [
        [written(value, kind) for value, kind in zip(row, types_of(ready).values(), strict=True)]
        for row in rows_of(ready, data)
    ]


def texts(connection: Connection, table: str) -> list[list[str]]:
    """All values of a table as text, NULL as nothing."""
    names = [
        row[0]
        for row in server.many(
            connection,
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
            (table,),
        )
    ]
    listed = ", ".join(f"coalesce({name}::text, '')" for name in names)
    return [list(row) for row in server.many(connection, f"SELECT {listed} FROM {table} ORDER BY ctid")]


def rows_of(ready: PreparedLoad, data: bytes) -> list[list[str]]:
    """By Python's own reader, not by the code under test."""
    text = data.decode().removeprefix("\ufeff")
    if ready.format.kind == "text":
        unescaped = [line.split("\t") for line in text.splitlines()]
        return [
            ["" if value == "\\N" else value.replace("\\t", "\t").replace("\\\\", "\\") for value in row]
            for row in unescaped
        ]
    options: dict[str, Any] = {"delimiter": ready.format.delimiter}
    if ready.format.escape != ready.format.quote:
        options |= {"doublequote": False, "escapechar": ready.format.escape}
    rows = list(csv.reader(io.StringIO(text, newline=""), **options))
    null = ready.format.null
    return [["" if value == null else value for value in row] for row in rows[1 if ready.header else 0 :]]


def written(value: str, kind: str) -> str:
    """How PostgreSQL writes what a file may write otherwise: `t` and `f`, and ISO 8601 for times."""
    if kind == "boolean":
        return {"t": "true", "f": "false"}.get(value, value)
    if not kind.startswith("timestamp") or not value:
        return value
    value = value.replace("T", " ")
    value = re.sub(r"(Z|\+0000|\+00:00)$", "+00", value)
    value = re.sub(r"^(\S+ \d\d:\d\d)(\+00)?$", r"\1:00\2", value)
    return re.sub(r"(\.\d*?)0+(?=\+|$)", lambda match: match[1].rstrip("."), value)


NARROW = [
    "1",
    "1.5",
    "1e-05",
    "true",
    "t",
    "2026-01-01",
    "2026-01-01 10:00:00",
    "2026-01-01T10:00:00Z",
    "5c0ffe00-0000-4000-8000-000000000000",
]
ODD = [
    "0", "00", "007", "-0", "-0.0", "+5", "5.", ".5", "1.0", "1.50", "1e5", "1E5", "1e+15", "1e+22", "1e+23", "5e+22", "1e-5", "1.5e-07",
    "1e-04", "1e+290", "123456789012345", "1234567890123456", "0.0001", "0.00001", "0.1234567890123456", "0.30000000000000004",
    "9007199254740993", "9007199254740992.5", "99999999999999.9", "100000000000000.25", "2.2250738585072014e-308", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", "1" * 60, "NaN", "nan", "Infinity", "-Infinity", "inf", "1,5", "1_0", "0x1F", " 1", "1 ",
    "true", "false", "t", "f", "TRUE", "yes", "NO", "on", "1", "2026-02-28", "2024-02-29", "2026-02-29", "0001-01-01", "9999-12-31",
    "2026-1-1", "01/02/2026", "20260101", "2026-01-01 24:00:00", "2026-01-01 23:59:60", "2026-01-01 10:00:00.1", "2026-01-01 10:00:00.10",
    "2026-01-01 10:00:00.123456", "2026-01-01 10:00:00.1234567", "2026-01-01T10:00:00", "2026-01-01T10:00:00.120Z", "2026-01-01T10:00:00+01:00",
    "2026-01-01 10:00", "2026-01-01 10:00:00 UTC", "now", "infinity", "epoch", "5C0FFE00-0000-4000-8000-000000000000",
    "{5c0ffe00-0000-4000-8000-000000000000}", "5c0ffe0000004000800000000000000f", "NULL", "\\N", "-", "",
]  # fmt: skip


def test_the_server_returns_every_value_in_the_type_that_is_chosen_for_it(
    connection: Connection, cluster: Cluster, tmp_path: Path
) -> None:
    """Each odd value below each narrow one, a column each: whatever type comes of it, nothing is lost."""
    pairs = [(first, odd) for first in NARROW for odd in ODD]
    file = tmp_path / "pairs.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        names = [f"c{number}" for number in range(len(pairs))]
        csv.writer(out, lineterminator="\n").writerow(names)
        for row in zip(*pairs, strict=True):
            csv.writer(out, lineterminator="\n").writerow(row)
    with connection.transaction(force_rollback=True):
        ready = typed(
            get_ready(connection, LoadOptions((str(file),), cluster.dsn, table=TABLE, create=True)), lambda _: None
        )
        texts, expected = returned(connection, ready)
        assert texts == expected
        kinds = set(types_of(ready).values())
    assert kinds == {
        "bigint",
        "numeric",
        "double precision",
        "boolean",
        "date",
        "timestamp",
        "timestamptz",
        "uuid",
        "text",
    }


@pytest.mark.parametrize("case", LOADED)
def test_a_load_leaves_what_the_file_says_and_names_what_it_does_not(database: Database, case: Case) -> None:
    keys = case.expected
    options = dict(keys.get("load", {}))
    name = TABLE
    if "table" in keys:
        database.run(keys["table"])
        name = keys["table"].split()[2]
    file = case.path(keys["input"])

    def load() -> Any:
        return pgdyno.load(
            file, database.dsn, table=name, create="table" not in keys, vacuum=False, checkpoint=False, **options
        )

    if "failure" in keys:
        with pytest.raises(PgdynoError) as error:
            load()
        assert error.value.code == keys["failure"]["code"]
        assert keys["failure"]["remedy"] in error.value.remedy
        return
    loaded, expected = load(), keys["expect"]
    if "skipped" in expected:
        assert (loaded.rows_skipped, loaded.rows_rejected) == (expected["skipped"], 0)
        assert load().already
    if "query" in expected:
        assert [list(row) for row in database.rows(expected["query"])] == expected["rows"]
    if "sequence" in expected:
        (line,) = loaded.sequences_behind
        assert (line["sequence"], line["next"], line["loaded"]) == (
            expected["sequence"],
            expected["next"],
            expected["most"],
        )
        database.run(line["statement"])
        database.run(expected["after"])


def test_a_stream_is_held_to_the_types_of_its_beginning(database: Database, tmp_path: Path) -> None:
    """A pipe cannot be read twice: what comes after its first 64 KiB ends the load before it is sent."""
    import os
    import threading

    fifo = tmp_path / "zip.csv"
    os.mkfifo(fifo)
    rows = "".join(f"{number},{10000 + number}\n" for number in range(20_000)) + "7,00013\n"
    thread = threading.Thread(target=fifo.write_text, args=("id,zip\n" + rows,), daemon=True)
    thread.start()
    with pytest.raises(PgdynoError) as error:
        pgdyno.load(fifo, database.dsn, create=True, vacuum=False, checkpoint=False, chunk_bytes=64 << 10)
    thread.join()
    assert error.value.code == "load.type.lost"
    assert error.value.data == {
        "source": str(fifo),
        "line": 20_002,
        "column": "zip",
        "type": "bigint",
        "value": "00013",
    }
    assert database.one("SELECT count(*) FROM zip WHERE zip < 10000") == 0


def test_signs_of_one_dialect_are_not_seen_in_another() -> None:
    from pgdyno.loader import advice
    from pgdyno.loader.sample import SourceSample
    from pgdyno.loader.source import RowSource

    def line(text: str) -> int | None:
        data = text.encode()
        return advice.backslash_quotes(SourceSample(RowSource("t.csv", data), data, [], "", byte_order_mark=False), CSV)

    assert line('1,"a"\n2,"The \\"Best\\" of All"\n') == 2
    assert line('1,"C:\\dir\\",x\n2,"C:\\"\n') is None
    assert line('1,"He said ""x\\"""\n') is None
    assert line("1,a\\b\n") is None

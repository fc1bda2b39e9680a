"""One application, logged in several formats by real servers, gives the same capture."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pgdyno.server.cluster import Cluster
from tools.captured.logged import Logged, log_of

from ..support.commands import pgdyno
from .logged import (
    AZURE_PREFIX,
    CLOUD_SQL_PREFIX,
    FULL_PREFIX,
    RDS_PREFIX,
    Reached,
    captured,
    connected,
    sent,
    sessions,
)

HOSTILE = "it''s\n\t\"x\", $1 = 'y', ...\\ ü\r\n;"
SECRET = "hunter2-is-a-password"


def application(cluster: Reached) -> None:
    """Statements of each protocol, values that are hard to quote, errors of each kind, a transaction, a password."""
    with connected(cluster) as result, connected(cluster) as two:
        result.execute("DROP TABLE IF EXISTS orders")
        result.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        result.execute(sql.SQL("SELECT {} AS a").format(sql.Literal(HOSTILE)))
        result.execute("INSERT INTO orders VALUES (%s, %s)", [1, HOSTILE])
        two.execute("SELECT note FROM orders WHERE id = %s", [1], prepare=True)
        two.execute("SELECT note FROM orders WHERE id = %s", [None], prepare=True)
        with result.transaction():
            result.execute("INSERT INTO orders VALUES (%s, %s)", [2, None])
            result.execute("UPDATE orders SET note = 'x' WHERE id = 2")
        for text, values in FAILING:
            with pytest.raises(psycopg.Error):
                two.execute(text, values)
        two.execute(f"ALTER ROLE postgres PASSWORD '{SECRET}'".encode())
        with two.cursor().copy("COPY orders FROM STDIN") as copy:
            copy.write_row([3, "copied"])


FAILING: list[tuple[Any, Any]] = [
    ("INSERT INTO orders VALUES (%s, %s)", [1, "again"]),
    ("SELECT nothing FROM", None),
    ("SELECT 1 / (%s::int - id) FROM orders", [1]),
    ("SELECT nowhere FROM orders", None),
]
EXPECTED = [
    [
        ("text", "DROP TABLE IF EXISTS orders", [], None),
        ("text", "CREATE TABLE orders (id int PRIMARY KEY, note text)", [], None),
        ("text", None, [], None),  # the literal, which is compared below
        ("unnamed", "INSERT INTO orders VALUES ($1, $2)", ["1", HOSTILE], None),
        ("text", "BEGIN", [], None),
        ("unnamed", "INSERT INTO orders VALUES ($1, $2)", ["2", None], None),
        ("text", "UPDATE orders SET note = 'x' WHERE id = 2", [], None),
        ("text", "COMMIT", [], None),
    ],
    [
        ("named", "SELECT note FROM orders WHERE id = $1", ["1"], None),
        ("named", "SELECT note FROM orders WHERE id = $1", [None], None),
        ("unnamed", "INSERT INTO orders VALUES ($1, $2)", ["1", "again"], "23505"),
        ("text", "SELECT nothing FROM", [], "42601"),
        ("unnamed", "SELECT 1 / ($1::int - id) FROM orders", ["1"], "22012"),
        ("text", "SELECT nowhere FROM orders", [], "42703"),
        ("text", "DEALLOCATE ALL", [], None),  # psycopg's own, after ALTER
        ("text", "COPY orders FROM STDIN", [], None),
    ],
]


def equal(result: list[list[Any]], states: bool = True, lacking: str | None = None) -> None:
    """What was found is what was sent, except a text that the log lacks."""
    assert len(result) == len(EXPECTED)
    for session, all_sent in zip(result, EXPECTED, strict=True):
        wanted = [texts for texts in all_sent if lacking is None or texts[1] != lacking]
        for (protocol, text, values, error), call in zip(wanted, session, strict=True):
            assert text is None or call[1] == text
            assert (call[0], call[2]) == (protocol, values), call[1]
            assert (call[3] if states or call[3] is None else error) == error, call[1]
    with_literal = result[0][2][1]
    assert with_literal.startswith("SELECT ")
    assert "$1 = ''y''" in with_literal and "...\\\\ ü\r\n" in with_literal


@pytest.fixture(scope="module")
def full(logging_server: Cluster) -> Logged:
    """The application, with a prefix that has everything."""
    return log_of(logging_server, "full", application, log_line_prefix=FULL_PREFIX)


def test_each_format_gives_the_same_capture(full: Logged, tmp_path: Path) -> None:
    made = {}
    for end, path in full.files.items():
        capture, account = captured(tmp_path, path, options=("--prefix", FULL_PREFIX) if end == "log" else ())
        made[end] = sessions(capture)
        equal(sent(capture))
        assert account["fractions"]
        assert (account["passwords"], account["torn"], account["missing"]) == (1, 0, 0), end
    for end, item in made.items():
        for element, other in zip(item, made["csv"], strict=True):
            assert element["calls"] == other["calls"], end
            alike = {"user", "database", "application", "ended", "calls"}
            assert {key: element["session"][key] for key in alike} == {key: other["session"][key] for key in alike}
            assert element["session"]["ended"]


def test_transactions_times_and_durations_are_those_of_the_log(full: Logged, tmp_path: Path) -> None:
    capture, _ = captured(tmp_path, full.files["csv"])
    result, two = sessions(capture)
    numbers = [call["transaction"] for call in result["calls"]]
    assert numbers == [1, 2, 3, 4, 5, 5, 5, 5]
    assert len({call["transaction"] for call in two["calls"]}) == len(two["calls"])
    for session in (result, two):
        dues = [call["due_us"] for call in session["calls"]]
        # Parse and Bind, by which an execution begins earlier, are as exact as the log's milliseconds.
        assert all(later - earlier >= -2000 for earlier, later in itertools.pairwise(dues))
        assert session["session"]["begin_us"] <= dues[0] + 2000
        assert session["session"]["end_us"] >= dues[-1]
        assert all((call["us"] is None) == (call["error"] is not None) for call in session["calls"])


def test_a_log_by_duration_alone_gives_the_same_statements(logging_server: Cluster, tmp_path: Path) -> None:
    logged = log_of(
        logging_server,
        "duration",
        application,
        log_statement="none",
        log_duration="off",
        log_min_duration_statement="0",
        log_line_prefix=FULL_PREFIX,
    )
    try:
        captures = [captured(tmp_path, path)[0] for end, path in logged.files.items() if end != "log"]
        for capture in captures:
            equal(sent(capture))
            result, _ = sessions(capture)
            assert [call["transaction"] for call in result["calls"]] == [1, 2, 3, 4, 5, 5, 5, 5]
    finally:
        log_of(
            logging_server,
            "after",
            lambda _: None,
            log_statement="all",
            log_duration="on",
            log_min_duration_statement="-1",
        )


def test_the_prefix_of_rds_is_found_and_its_seconds_are_said(logging_server: Cluster, tmp_path: Path) -> None:
    logged = log_of(logging_server, "rds", application, log_line_prefix=RDS_PREFIX)
    capture, account = captured(tmp_path, logged.files["log"])
    assert account["files"][0][1] == f"stderr with log_line_prefix = '{RDS_PREFIX}'"
    assert not account["fractions"]
    equal(sent(capture), states=False)
    dues = [call["due_us"] for session in sessions(capture) for call in session["calls"]]
    assert len(set(dues)) == len(dues)
    assert "spread" in pgdyno("capture", "show", capture, code=0).out


def test_an_export_of_cloud_sql_has_a_document_for_each_line(logging_server: Cluster, tmp_path: Path) -> None:
    logged = log_of(logging_server, "cloud", application, log_line_prefix=CLOUD_SQL_PREFIX)
    export = tmp_path / "export.json"
    with export.open("w") as out:
        for line in logged.files["log"].read_bytes().decode().removesuffix("\n").split("\n"):
            out.write(
                json.dumps({"insertId": "s=1", "textPayload": line, "resource": {"type": "cloudsql_database"}}) + "\n"
            )
    capture, account = captured(tmp_path, export)
    assert account["files"][0][1].startswith("Cloud SQL with")
    # The prefix has no application, so the server's log-in line says it.
    equal(sent(capture), states=False)


ENTRY = re.compile(r"(?P<prefix>[-\d]+ [:\d]+ \w+-[.\w]+-)(?P<level>[A-Z]+):  (?P<text>.*)", re.DOTALL)


def exported_by_azure(log: str, *, apart: bool) -> Iterator[dict[str, Any]]:
    """A log as Azure exports it: a record for each entry, with DETAIL beside it, and without STATEMENT and CONTEXT."""
    begun: dict[str, Any] | None = None
    for line in re.split(r"\n(?!\t)", log.removesuffix("\n")):
        match = ENTRY.fullmatch(line.replace("\n\t", "\n"))
        if match is None:
            continue  # from before the prefix was set
        prefix, level, text = match.group("prefix", "level", "text")
        if level == "DETAIL":
            assert begun is not None
            begun["detail"] = text
        elif level in ("LOG", "ERROR", "FATAL"):
            if begun is not None:
                yield begun
            begun = {"errorLevel": level, "detail": ""}
            begun |= {"prefix": prefix, "message": text} if apart else {"message": f"{prefix}{level}:  {text}"}
    if begun is not None:
        yield begun


@pytest.mark.parametrize("apart", [False, True], ids=["flexible server", "single server"])
def test_an_export_of_azure_has_a_document_for_each_entry(logging_server: Cluster, tmp_path: Path, apart: bool) -> None:
    logged = log_of(logging_server, f"azure-{apart}", application, log_line_prefix=AZURE_PREFIX)
    export = tmp_path / "PT1H.json"
    with export.open("w") as out:
        for document in exported_by_azure(logged.files["log"].read_bytes().decode(), apart=apart):
            record = {"category": "PostgreSQLLogs", "operationName": "LogEvent", "properties": document}
            out.write(json.dumps({"time": "2026-11-25T07:04:42.830Z", **record}) + "\n")
    capture, account = captured(tmp_path, export)
    assert account["files"][0][1] == f"Azure with log_line_prefix = '{AZURE_PREFIX}'"
    assert not account["fractions"]
    # A statement that is no SQL has no line of its own, and Azure leaves out the line that repeats it.
    equal(sent(capture), states=False, lacking="SELECT nothing FROM")


def test_parts_of_a_log_in_any_order_and_compressed_are_one(full: Logged, tmp_path: Path) -> None:
    whole, account = captured(tmp_path, full.files["csv"])
    records = full.files["csv"].read_bytes()
    middle = records.index(b"\n20", len(records) // 2) + 1
    first, second = tmp_path / "b.csv.gz", tmp_path / "a.csv"
    first.write_bytes(gzip.compress(records[:middle]))
    second.write_bytes(records[middle:])
    parts, of_parts = captured(tmp_path, second, first)
    assert sent(parts, None) == sent(whole, None)
    assert (of_parts["calls"], of_parts["missing"], of_parts["torn"]) == (account["calls"], 0, 0)
    alone, of_one = captured(tmp_path, second)
    assert of_one["begun_before"] > 0
    assert of_one["calls"] < account["calls"]
    assert sent(alone, None) != sent(whole, None)

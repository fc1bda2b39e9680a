"""What a relay records is what the server logged, but for what a log lacks."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import random
import socket
import stat
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from pgdyno.base.errors import EXIT_HOST, EXIT_USAGE
from tools.captured.logged import log_of

from ..support import disk
from ..support.commands import pgdyno
from ..support.servers import throwaway_cluster
from .logged import AS_SUPERUSER, CLIENT, ITSELF, captured, connected, sent, sessions
from .relayed import PATIENCE_S, recording, start
from .test_formats import application, equal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

BINARY = [
    (7, "7"),
    (-(2**40), "-1099511627776"),
    (True, "t"),
    (0.1, "0.1"),
    (Decimal("-12345.6700"), "-12345.6700"),
    (b"\x00\xff'", "\\x00ff27"),
    ("it's", "it's"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (dt.date(1999, 12, 31), "1999-12-31"),
    (dt.datetime(2026, 11, 25, 1, 2, 3, 4, dt.UTC), "2026-11-25 01:02:03.000004+00"),
    (dt.timedelta(days=-2, microseconds=5), "0 mons -2 days 5 microseconds"),
    ([1, None, 300], '{"1",NULL,"300"}'),
    (["a,b", '"'], '{"a,b","\\""}'),
    (Jsonb({"a": [1]}), '{"a": [1]}'),
    (None, None),
]
"""Values as psycopg sends them in binary, with the text that the server reads them from."""


def binary(session: psycopg.Connection[Any]) -> None:
    """Values in binary, of types that are known and of one that is not."""
    for value, _ in BINARY:
        session.execute("SELECT %b", [value])
    point = session.pgconn.exec_params(b"SELECT $1", [bytes(16)], param_types=[600], param_formats=[1])
    assert point.status == psycopg.pq.ExecStatus.TUPLES_OK


def pipelined(session: psycopg.Connection[Any]) -> None:
    """Statements that are sent before the first is answered; what follows one that fails is skipped by the server."""
    with pytest.raises(psycopg.errors.DivisionByZero), session.pipeline() as pipeline:
        session.execute("SELECT 1 + %s::int", [1])
        session.execute("SELECT 1 / %s::int", [0])
        session.execute("SELECT 'skipped'")
        pipeline.sync()
    with session.pipeline():
        session.execute("SELECT 2 + %s::int", [2])
        session.execute("SELECT 3 + %s::int", [3])


PIPELINED = [
    ("unnamed", "SELECT 1 + $1::int", ["1"], None),
    ("unnamed", "SELECT 1 / $1::int", ["0"], "22012"),
    ("unnamed", "SELECT 2 + $1::int", ["2"], None),
    ("unnamed", "SELECT 3 + $1::int", ["3"], None),
]


def copied(session: psycopg.Connection[Any]) -> None:
    """COPY by each protocol, whole and with a row that is none. In the extended one the server ignores a Sync meanwhile."""
    session.execute("CREATE TEMPORARY TABLE copies (id int PRIMARY KEY)")
    server = session.pgconn
    for extended in (False, True):
        for row, ends in ((b"%d\n", psycopg.pq.ExecStatus.COMMAND_OK), (b"none\n", psycopg.pq.ExecStatus.FATAL_ERROR)):
            if extended:
                server.send_query_params(b"COPY copies FROM STDIN", None)
            else:
                server.send_query(b"COPY copies FROM STDIN")
            begun = server.get_result()
            assert begun is not None and begun.status == psycopg.pq.ExecStatus.COPY_IN
            server.put_copy_data(row % (1 + extended) if b"%" in row else row)
            server.put_copy_end()
            ended = server.get_result()
            assert ended is not None and ended.status == ends
            assert server.get_result() is None
        session.execute("SELECT count(*) FROM copies WHERE id > %s", [0])


COPIED = [
    ("text", "CREATE TEMPORARY TABLE copies (id int PRIMARY KEY)", [], None),
    ("text", "COPY copies FROM STDIN", [], None),
    ("text", "COPY copies FROM STDIN", [], "22P02"),
    ("unnamed", "SELECT count(*) FROM copies WHERE id > $1", ["0"], None),
    ("unnamed", "COPY copies FROM STDIN", [], None),
    ("unnamed", "COPY copies FROM STDIN", [], "22P02"),
    ("unnamed", "SELECT count(*) FROM copies WHERE id > $1", ["0"], None),
]


@dataclass(frozen=True)
class Both:
    """One use of a server, from its log and from the relay."""

    logged: Path
    recorded: Path
    found: dict[str, Any]


@pytest.fixture(scope="module")
def both(embedded_server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("record")
    output = folder / "relayed.capture"
    with recording(embedded_server, output) as relay:

        def use(_: Cluster) -> None:
            application(relay)
            with connected(relay, "binary") as session:
                binary(session)
            with connected(relay, "pipelined") as session:
                pipelined(session)
            with connected(relay, "copied") as session:
                copied(session)
            with pytest.raises(psycopg.OperationalError, match="does not support SSL"):
                psycopg.connect(relay.dsn, sslmode="require")

        logged = log_of(embedded_server, "relayed", use)
        end = relay.end()
    return Both(captured(folder, logged.files["csv"])[0], output, end)


def test_what_is_recorded_is_what_was_logged(both: Both) -> None:
    equal(sent(both.recorded))
    assert sent(both.recorded) == sent(both.logged)
    assert sent(both.recorded, "pipelined") == [PIPELINED] == sent(both.logged, "pipelined")
    assert sent(both.recorded, "copied") == [COPIED] == sent(both.logged, "copied")
    (copies,) = [session for session in sessions(both.recorded, None) if session["session"]["application"] == "copied"]
    assert [call["rows"] for call in copies["calls"] if "rows" in call] == ["1\n", "none\n", "2\n", "none\n"]
    of_log, of_relay = (
        [
            session
            for session in sessions(capture, None)
            if session["session"]["application"] in (CLIENT, "pipelined", "copied")
        ]
        for capture in (both.logged, both.recorded)
    )
    alike = {"user", "database", "application", "ended", "calls"}
    for item, other in zip(of_log, of_relay, strict=True):
        assert {key: item["session"][key] for key in alike} == {key: other["session"][key] for key in alike}
        assert other["session"]["host"] == "127.0.0.1"
        transactions = [[call["transaction"] for call in session["calls"]] for session in (item, other)]
        assert transactions[0] == transactions[1]
        pipelined = item["session"]["application"] == "pipelined"
        for logged, recorded in zip(item["calls"], other["calls"], strict=True):
            assert (recorded["us"] is None) == (logged["us"] is None)
            # Answers of a pipeline come together, so their times are not told apart. To a named statement a log adds what preparing it took.
            if logged["us"] is not None and not pipelined and logged["protocol"] != "named":
                # The relay's time has the way there and back in it; both are cut to whole microseconds, each of up to three parts.
                assert recorded["us"] >= logged["us"] - 3, recorded


def test_values_in_binary_are_kept_as_text(both: Both, embedded_server: Cluster) -> None:
    (calls,) = sent(both.recorded, "binary")
    assert [values for _, _, values, _ in calls[:-1]] == [[text] for _, text in BINARY]
    assert calls[-1][2] == [] and both.found["account"]["binary"] == both.found["account"]["without_values"] == 1
    with connected(embedded_server) as session:
        for value, text in BINARY[:-1]:
            kind = session.execute("SELECT pg_typeof(%b)::text", [value]).fetchone()
            assert kind is not None
            same = session.execute(f"SELECT %b IS NOT DISTINCT FROM %s::text::{kind[0]}".encode(), [value, text])
            assert same.fetchone() == (True,), kind[0]


def test_what_cannot_be_recorded_is_refused_or_counted(both: Both) -> None:
    assert both.found["tls_refused"] == 1
    account = both.found["account"]
    assert account["passwords"] == 1
    assert (account["not_ended"], account["without_ending"], account["errors_without_statement"]) == (0, 0, 0)
    assert account["calls"] == sum(session["session"]["calls"] for session in sessions(both.recorded, None))
    assert stat.S_IMODE(both.recorded.stat().st_mode) == 0o600


def test_a_recording_ends_by_a_signal_with_what_was_sent_until_then(embedded_server: Cluster, tmp_path: Path) -> None:
    with (
        recording(embedded_server, tmp_path / "a.capture") as relay,
        contextlib.closing(psycopg.connect(relay.dsn, autocommit=True, application_name=CLIENT)) as session,
    ):
        session.execute("SELECT 1")
        # This one is under way when it ends.
        session.pgconn.send_query(b"SELECT pg_sleep(600)")
        session.pgconn.flush()
        with connected(embedded_server, "another") as other:
            result = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%sleep(600)' AND pid <> pg_backend_pid()"
            while other.execute(result).fetchone() == (0,):
                pass
        end = relay.end()
        assert [(text, error) for _, text, _, error in sent(relay.output)[0]] == [
            ("SELECT 1", None),
            ("SELECT pg_sleep(600)", None),
        ]
        assert (end["account"]["not_ended"], end["account"]["without_ending"]) == (1, 1)


def test_what_cannot_begin_is_said(embedded_server: Cluster, tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "new"
    there.touch()
    server = f"host={embedded_server.socket_dir} port={embedded_server.port}"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for listen, to, output, says in (
            ("127.0.0.1:0", f"127.0.0.1:{port}", new, "no server takes connections at 127.0.0.1"),
            ("127.0.0.1:0", "host=127.0.0.1,127.0.0.2", new, "names several hosts"),
            ("127.0.0.1:0", "password=secret", new, "a password does not belong"),
            ("6432", server, new, "is not HOST:PORT"),
            (f"127.0.0.1:{port}", server, new, "cannot listen on"),
            ("127.0.0.1:0", server, there, "exists already"),
        ):
            ended = pgdyno("capture", "record", "--listen", listen, "--to", to, "--output", output, code=EXIT_USAGE)
            assert says in ended.err and "secret" not in ended.err, ended.err
    assert not new.exists()


def test_a_recording_without_a_statement_leaves_nothing(embedded_server: Cluster, tmp_path: Path) -> None:
    output = tmp_path / "none.capture"
    to = f"host={embedded_server.socket_dir} port={embedded_server.port}"
    process = start("--listen", "127.0.0.1:0", "--to", to, "--output", output, "--for", "0.2s")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == EXIT_USAGE and "no client sent a statement; 0 clients connected" in err
    assert list(tmp_path.iterdir()) == []


LINES = 30_000
LOADED = "SELECT count(*), pg_catalog.md5(string_agg(kept::text, ';' ORDER BY id)) FROM kept"


def loads(dsn: str) -> None:
    """Rows of more than one part, by one COPY that ends, one that the client gives up, and one of no row."""
    with psycopg.connect(dsn, autocommit=True, application_name=CLIENT) as session:
        session.execute("CREATE TABLE kept (id int PRIMARY KEY, note text)")
        with session.cursor() as cursor:
            with cursor.copy("COPY kept FROM STDIN") as copy:
                for number in range(LINES):
                    copy.write_row((number, f"it's {number}\t\\ ü" * 5))
            with pytest.raises(psycopg.errors.QueryCanceled), cursor.copy("COPY kept FROM STDIN") as copy:
                copy.write_row((LINES, "not kept"))
                raise psycopg.errors.QueryCanceled("the application")
            with cursor.copy("COPY kept FROM STDIN"):
                pass
        session.execute("INSERT INTO kept VALUES (-1, 'behind')")


def test_rows_of_copy_are_recorded_and_sent_again(embedded_server: Cluster, tmp_path: Path) -> None:
    with recording(embedded_server, tmp_path / "kept.capture") as relay:
        loads(relay.dsn)
        end = relay.end()
    assert end["account"]["copied_bytes"] > 2**21
    with connected(embedded_server) as session:
        wanted = session.execute(LOADED).fetchone()
        session.execute("DROP TABLE kept")
        where = ("--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, *ITSELF, "--speed", "100", "--json")
        replayed = json.loads(pgdyno("capture", "replay", relay.output, *where, code=0).out)
        assert session.execute(LOADED).fetchone() == wanted
    assert (replayed["newly_failed"], replayed["failed_as_recorded"], replayed["left_out"]) == (0, 1, {})


def test_keys_are_those_that_the_server_answered(embedded_server: Cluster, tmp_path: Path) -> None:
    with connected(embedded_server) as admin:
        admin.execute("CREATE TABLE made (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text, used int)")
        admin.execute("INSERT INTO made (note) SELECT 'old' FROM generate_series(1, 50)")
    with recording(embedded_server, tmp_path / "made.capture") as relay:
        with connected(relay, "maker") as maker:
            made = [
                maker.execute("INSERT INTO made (note) VALUES (%s) RETURNING id, note", [str(number)]).fetchone()
                for number in range(5)
            ]
        with connected(relay, "user") as user:
            for row in made:
                assert row is not None
                user.execute("UPDATE made SET used = 1 WHERE id = %s", [row[0]])
        relay.end()
    (shown,) = [session for session in sessions(relay.output, None) if session["session"]["application"] == "maker"]
    assert [call["answer"] for call in shown["calls"]] == [[["id", str(number)]] for number in range(51, 56)]
    with connected(embedded_server) as admin:
        admin.execute("TRUNCATE made RESTART IDENTITY")
        admin.execute("INSERT INTO made (note) SELECT 'old' FROM generate_series(1, 50)")
        where = ("--dsn", embedded_server.dsn, "--yes-write", *AS_SUPERUSER, *ITSELF, "--json")
        replayed = json.loads(pgdyno("capture", "replay", relay.output, *where, code=0).out)
        keys = replayed["keys"]
        assert (keys["learned"], keys["exchanged"], replayed["newly_failed"]) == (5, 5, 0)
        assert admin.execute("SELECT count(*) FROM made WHERE used = 1").fetchone() == (5,)


def test_clients_log_in_by_scram_through_it_and_its_password_is_not_kept(tmp_path: Path) -> None:
    # The server checks what the client proves; without TLS there is no channel to bind it to.
    with throwaway_cluster(tcp="127.0.0.1") as cluster:
        output = tmp_path / "scram.capture"
        with recording(cluster, output, f"127.0.0.1:{cluster.port}") as relay:
            document: dict[str, Any] = {
                "require_auth": "scram-sha-256",
                "password": cluster.password,
                "autocommit": True,
            }
            with psycopg.connect(relay.dsn, **document, application_name=CLIENT) as session:
                session.execute("SELECT 'behind a password'")
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(relay.dsn, **document | {"password": "another"})
            with pytest.raises(psycopg.OperationalError, match="channel binding required"):
                psycopg.connect(relay.dsn, **document, channel_binding="require")
            relay.end()
    assert [[text for _, text, _, _ in item] for item in sent(output)] == [["SELECT 'behind a password'"]]
    shown = pgdyno("capture", "show", output, "--values", "--json", code=0).out
    assert cluster.password is not None and cluster.password not in shown


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """One of 1 MiB."""
    with disk.small_disk(tmp_path / "small", 1) as folder:
        yield folder


BEYOND = 1500
"""Statements with two kilobytes each that cannot be packed: three times the disk."""


@pytest.mark.needs_root
def test_a_full_disk_ends_no_session_and_what_was_recorded_can_be_used(
    embedded_server: Cluster, small_disk: Path
) -> None:
    output, draw = small_disk / "full.capture", random.Random(1)
    with (
        recording(embedded_server, output) as relay,
        psycopg.connect(relay.dsn, autocommit=True, application_name="filling") as session,
        psycopg.connect(relay.dsn, autocommit=True, application_name="waiting") as other,
    ):
        other.execute("SELECT 'before'")
        for number in range(BEYOND):
            row = session.execute("SELECT %s || %s", [f"{number} ", draw.randbytes(1000).hex()]).fetchone()
            assert row is not None and row[0].startswith(f"{number} ")
        other.execute("SELECT 'behind'")
        result = relay.process.stderr.readline() if relay.process.stderr is not None else ""
        assert "the capture is full" in result and "clients stay connected" in result
        session.execute("SELECT 'still there'")
        end = relay.end(EXIT_HOST, "error[capture.record.full]")
    kept = end["account"]["calls"]
    assert 0.1 * BEYOND < kept < BEYOND
    (filling,) = sent(output, "filling")
    # All of them until then, each with its values, and none behind.
    assert [values[0] for _, _, values, _ in filling] == [f"{number} " for number in range(kept - 1)]
    assert [[text for _, text, _, _ in item] for item in sent(output, "waiting")] == [["SELECT 'before'"]]
    # The room that was taken ahead is given back.
    assert output.stat().st_blocks * 512 < output.stat().st_size + (64 << 10)

"""Clients and logs that are made to harm: the recorder goes on, reading takes linear time, and what was recorded is kept."""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import socket
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from pgdyno.base import engine as _engine
from pgdyno.base.errors import EXIT_HOST
from pgdyno.machine.waiting import wait_until

from ..support.commands import pgdyno
from .logged import CLIENT, sent
from .relayed import PATIENCE_S, Recording, recording
from .test_refused import line

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

RECORDER_BYTES_MAX = 200 << 20
"""Far more than a recorder of a few sessions takes, and far less than what the messages here became before they were bounded."""
LINEAR_MAX = 3.0
"""Twice the input takes twice the time; what is quadratic takes four times."""
LEAST_CPU_S = 0.2
"""Below this a start of the process would count."""


def engine_of(relay: Recording) -> int:
    """The process that relays and records."""
    children = Path(f"/proc/{relay.process.pid}/task/{relay.process.pid}/children").read_text().split()
    (engine,) = [int(child) for child in children if b"record" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return engine


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(row for row in status.splitlines() if row.startswith("VmHWM")).split()[1])


def startup(user: str) -> bytes:
    body = struct.pack("!I", 196608) + f"user\0{user}\0database\0postgres\0\0".encode()
    return struct.pack("!I", len(body) + 4) + body


def message(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack("!I", len(body) + 4) + body


def bind_of_nothing() -> bytes:
    """Forty bytes that were gigabytes of text: an array of 2,147,483,647 times nothing."""
    array = struct.pack("!iiIiiii", 2, 0, 23, 2**31 - 1, 1, 0, 1)
    parse = message(b"P", b"\0select $1::int4[]\0" + struct.pack("!hI", 1, 1007))
    values = struct.pack("!hhhi", 1, 1, 1, len(array)) + array + struct.pack("!h", 0)
    return parse + message(b"B", b"\0\0" + values) + message(b"E", b"\0" + struct.pack("!I", 0)) + message(b"S", b"")


GARBAGE = {
    "a bind before the log-in": startup("nobody") + bind_of_nothing(),
    "half a startup": startup("nobody")[:20],
    "a message of 2 GB": startup("nobody") + b"Q\x7f\xff\xff\xff" + b"x" * 100_000,
    "a message of no length": startup("nobody") + b"Q\0\0\0\0" * 100,
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "random bytes": bytes(range(1, 256)) * 50,
}


def test_no_client_ends_the_recorder_or_fills_its_memory(embedded_server: Cluster, tmp_path: Path) -> None:
    with recording(embedded_server, tmp_path / "a.capture") as relay:
        with psycopg.connect(relay.dsn, autocommit=True, application_name=CLIENT) as session:
            session.execute("SELECT 'before'")
            hostile = []
            for bytes_sent in GARBAGE.values():
                client = socket.create_connection(("127.0.0.1", relay.port), timeout=PATIENCE_S)
                hostile.append(client)
                client.sendall(bytes_sent)
                # It is served while the others stay as they are.
                assert session.execute("SELECT 'meanwhile'").fetchone() == ("meanwhile",)
            array = struct.pack("!iiIiiii", 2, 0, 23, 2**20, 1, 0, 1)
            logged_in = session.pgconn.exec_params(b"select $1::int4[]", [array], param_types=[1007], param_formats=[1])
            assert logged_in.get_value(0, 0) == b"{}"
            assert peak_bytes(engine_of(relay)) < RECORDER_BYTES_MAX
            for client in hostile:
                client.close()
        end = relay.end()
    texts = [text for _, text, _, _ in sent(relay.output)[0]]
    assert texts == ["SELECT 'before'", *["SELECT 'meanwhile'"] * len(GARBAGE), "select $1::int4[]"]
    assert sent(relay.output)[0][-1][2] == ["{}"]
    assert end["account"]["not_followed_sessions"]["statements before the log-in"] >= 1


def test_a_killed_recorder_leaves_what_was_recorded(embedded_server: Cluster, tmp_path: Path) -> None:
    output = tmp_path / "killed.capture"
    with recording(embedded_server, output) as relay:
        with psycopg.connect(relay.dsn, autocommit=True, application_name=CLIENT) as session:
            for number in range(20):
                session.execute("SELECT %s::int", [number])
            # While it is recorded, too, it can be read up to its last checkpoint.
            assert wait_until(lambda: calls_in(output) == 20, PATIENCE_S)
            os.kill(engine_of(relay), signal.SIGKILL)
        _, result = relay.process.communicate(timeout=PATIENCE_S)
        assert relay.process.returncode == EXIT_HOST and "error[capture.record.killed]" in result, result
    shown = json.loads(pgdyno("capture", "show", output, "--json", code=0).out)
    assert (shown["calls"], shown["account"]["unfinished"], shown["account"]["not_ended"]) == (20, True, 1)
    assert "incomplete" in pgdyno("capture", "show", output, code=0).out
    assert [values for _, _, values, _ in sent(output)[0]] == [[str(number)] for number in range(20)]


def calls_in(output: Path) -> int:
    """Statements in a capture that may not be one yet."""
    shown = pgdyno("capture", "show", output, "--json")
    return int(json.loads(shown.out)["calls"]) if shown.code == 0 else 0


def cpu_of(folder: Path, log: Path, **result: Any) -> tuple[float, dict[str, Any]]:
    """CPU seconds of a reading, and its account; an empty one if the log is refused."""
    output = folder / f"{log.name}.capture"
    output.unlink(missing_ok=True)
    order = json.dumps({"logs": [str(log)], "output": str(output), **result}).encode()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([_engine.checked(), "capture", "read"], input=order, capture_output=True, timeout=PATIENCE_S)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = ended.stdout.splitlines()
    return cpu_s, json.loads(lines[-1]).get("summary", {}) if lines else {}


def of_rds(severity: str, count: int, pairs: int) -> bytes:
    """A log of RDS whose statements have JSON with all that its prefix has."""
    values = "".join(f'{{"addr":"10.0.0.{item % 255}:5432","mail":"a{item}@b:[c"}},' for item in range(pairs))
    text = f"{severity}:  duration: 0.100 ms  statement: INSERT INTO t VALUES ('[{values}]')"
    return f"2026-11-28 12:00:00 UTC:10.0.0.5(5555):app@shop:[100]:{text}\n".encode() * count


@pytest.mark.parametrize("prefix", [None, "%t:%r:%u@%d:[%p]:"])
@pytest.mark.parametrize("severity", ["LOG", "FEHLER"])
def test_reading_a_log_full_of_what_its_prefix_has_takes_linear_time(
    tmp_path: Path, severity: str, prefix: str | None
) -> None:
    took = []
    for count in (250, 500):
        log = tmp_path / f"{count}.log"
        log.write_bytes(of_rds(severity, count, 700))
        cpu_s, account = cpu_of(tmp_path, log, prefix=prefix)
        assert account.get("calls", 0) == (count if severity == "LOG" else 0)
        took.append(max(cpu_s, LEAST_CPU_S))
    assert took[1] / took[0] < LINEAR_MAX, took


def test_a_log_in_another_language_is_refused_for_that(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(of_rds("FEHLER", 20, 100))
    for prefix in ((), ("--prefix", "%t:%r:%u@%d:[%p]:")):
        refused = pgdyno("capture", "read", log, "--output", tmp_path / "a.capture", *prefix, code=2)
        assert refused.error is not None and refused.error.code == "capture.log.language"
        assert refused.error.data["severities"] == {"FEHLER": 20}


def test_a_torn_quote_in_a_compressed_log_costs_a_record_and_linear_time(tmp_path: Path) -> None:
    took = []
    for count in (20_000, 40_000):
        torn = line("statement: SELECT 'torn'", 1)
        records = "".join(line(f"statement: SELECT {number}", number) for number in range(2, count))
        log = tmp_path / f"{count}.csv.gz"
        log.write_bytes(gzip.compress((torn[: torn.index("torn")] + "\n" + records).encode(), 1))
        cpu_s, account = cpu_of(tmp_path, log)
        assert (account["calls"], account["torn"], account["missing"]) == (count - 2, 1, 0)
        took.append(max(cpu_s, LEAST_CPU_S))
    assert took[1] / took[0] < LINEAR_MAX, took


def test_a_long_reading_says_how_far_it_is_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    import pyarrow as pa

    # 128 GB of lines in a few megabytes; none is an entry, so that they are read before anything else is known.
    frame = pa.Codec("zstd").compress(b"a line of another program\n" * (1 << 21), asbytes=True)
    log = tmp_path / "endless.log"
    log.write_bytes(frame * 2500)
    order = json.dumps({"logs": [str(log)], "output": str(tmp_path / "a.capture"), "prefix": "%m [%p] "}).encode()
    command = [_engine.checked(), "capture", "read"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        process.stdin.write(order + b"\n")
        process.stdin.close()
        assert "progress" in json.loads(process.stdout.readline())
        process.terminate()
        assert process.wait(PATIENCE_S) != 0
        assert json.loads(process.stderr.read())["error"]["code"] == "capture.read.interrupted"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()

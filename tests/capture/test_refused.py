"""Logs that cannot be used end in one sentence and a remedy, and leave nothing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.machine.waiting import wait_until

from ..support.commands import pgdyno

PATIENCE_S = 60.0
HEAD = "2026-11-25 07:04:42.123 UTC"


def line(
    message: str, number: int = 1, *, severity: str = "LOG", pid: int = 7, at: str = HEAD, detail: str = ""
) -> str:
    """A record of csvlog."""
    message, detail = (text.replace('"', '""') for text in (message, detail))
    return (
        f'{at},"app","shop",{pid},"10.0.0.1:5000",6563.{pid:x},{number},"SELECT",{at[:19]} UTC,4/12,0,{severity},00000,'
        f'"{message}","{detail}",,,,,,,,"shop web","client backend",,0\n'
    )


LOGS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no log of PostgreSQL"),
    "binary": (bytes(range(256)) * 8, "is no log of PostgreSQL"),
    "dump": (b"--\n-- PostgreSQL database dump\n--\nCREATE TABLE t ();\n", "is no log of PostgreSQL"),
    "web server": (b'10.0.0.1 - - [25/Nov/2026:07:04:42 +0000] "GET / HTTP/1.1" 200\n', "is no log of PostgreSQL"),
    "gzip": (b"\x1f\x8b\x08\x00 this is not gzip", "cannot be read"),
    "connections alone": (line("connection authorized: user=app database=shop").encode(), "statements were not logged"),
    "durations alone": (line("duration: 0.991 ms").encode(), "durations without statements"),
    "another language": (
        line("Anweisung: SELECT 1", severity="LOG").encode()
        + line("Division durch Null", 2, severity="FEHLER").encode(),
        "in another language than English",
    ),
    "server alone": (f"{HEAD} [7] LOG:  checkpoint starting: time\n".encode(), "statements were not logged"),
    "passwords alone": (line("statement: ALTER ROLE a PASSWORD 'x'").encode(), "no statement that could be sent again"),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_cannot_be_used_is_refused_for_what_it_is(tmp_path: Path, name: str) -> None:
    content, message = LOGS[name]
    log, output = tmp_path / "server.log", tmp_path / "a.capture"
    log.write_bytes(content)
    ended = pgdyno("capture", "read", log, "--output", output, code=2)
    assert message in ended.err
    assert "remedy:" in ended.err
    assert sorted(tmp_path.iterdir()) == [log]


def test_logs_of_two_servers_are_refused(tmp_path: Path) -> None:
    path, two = tmp_path / "one.csv", tmp_path / "two.csv"
    path.write_text(line("statement: SELECT 1") + line("statement: SELECT 2", 2, at="2026-11-25 07:09:42.123 UTC"))
    two.write_text(line("statement: SELECT 3", at="2026-11-25 07:05:42.123 UTC"))
    error = pgdyno("capture", "read", two, path, "--output", tmp_path / "a.capture", code=2).error
    assert error is not None and error.code == "capture.logs.two_servers"
    assert error.data == {"session": "6563.7"}
    assert not (tmp_path / "a.capture").exists()


def test_a_wrong_prefix_and_an_existing_file_are_refused(tmp_path: Path) -> None:
    log, output = tmp_path / "a.log", tmp_path / "a.capture"
    log.write_text(f"{HEAD} [7] app@shop LOG:  statement: SELECT 1\n")
    prefixes = {"%u ": "capture.prefix.lacking", "%m|%p|": "capture.log.no_entry", "%m%p ": "capture.prefix.touching"}
    for prefix, code in prefixes.items():
        error = pgdyno("capture", "read", log, "--output", output, "--prefix", prefix, code=2).error
        assert error is not None and error.code == code
    output.write_text("mine")
    assert "exists already" in pgdyno("capture", "read", log, "--output", output, code=2).err
    assert output.read_text() == "mine"
    assert "is no capture" in pgdyno("capture", "show", output, code=2).err
    missing = pgdyno("capture", "read", tmp_path / "no.log", "--output", tmp_path / "b.capture", code=2)
    assert "cannot be read" in missing.err


def test_what_is_damaged_in_a_log_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    records = [line(f"statement: SELECT {number}", number) for number in range(1, 21)]
    bad = line("statement: SELECT 'xyz'", 21).encode().replace(b"xyz", b"\xff\xfe")
    content = "".join(records[:4]) + records[4][:150] + "".join(records[5:9]) + "".join(records[12:]) + records[2]
    log.write_bytes(content.encode() + bad)
    account = json.loads(pgdyno("capture", "read", log, "--output", output, "--json", code=0).out)
    assert account["torn"] >= 1
    assert account["not_text"] == 1
    assert (account["duplicates"], account["repeated"]) == (1, 0)
    assert 4 <= account["missing"] <= 5
    assert 14 <= account["calls"] <= 16
    out = pgdyno("capture", "show", output, code=0).out
    assert "lines that are missing by their numbers" in out
    assert "the first record that cannot be read" in out


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("statement: INSERT INTO t VALUES ({})", "set log_statement = all"),
        ("duration: 51{}.5 ms  statement: SELECT {}", "no statement took less than 510 ms"),
        ("execute s1: SELECT $1", "set log_parameter_max_length = -1"),
    ],
)
def test_what_a_setting_leaves_out_is_said_with_the_setting(tmp_path: Path, message: str, said: str) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    log.write_text("".join(line(message.format(number % 10, number), number + 1) for number in range(30)))
    assert said in pgdyno("capture", "read", log, "--output", output, code=0).out
    assert said in pgdyno("capture", "show", output, code=0).out


def test_the_mark_of_rds_in_a_log_that_was_downloaded_in_parts_is_counted(tmp_path: Path) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    log.write_text(line("statement: SELECT 1") + line("statement: SELECT 'abc [Your log message was truncated]", 2))
    account = json.loads(pgdyno("capture", "read", log, "--output", output, "--json", code=0).out)
    assert (account["calls"], account["cut_entries"]) == (1, 1)


def test_a_torn_or_damaged_capture_is_refused(tmp_path: Path) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    log.write_text("".join(line(f"statement: SELECT {number}", number) for number in range(1, 200)))
    pgdyno("capture", "read", log, "--output", output, code=0)
    whole = output.read_bytes()
    torn = tmp_path / "torn.capture"
    for size in (10, 100, len(whole) - 1):
        torn.write_bytes(whole[:size])
        ended = pgdyno("capture", "show", torn, code=2)
        assert "no capture" in ended.err or "cannot be read" in ended.err, size
    for at in range(20, len(whole) - 24, 97):
        torn.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        ended = pgdyno("capture", "show", torn)
        assert ended.code == 2, at
        assert "Traceback" not in ended.err


def test_no_value_is_shown_unless_it_is_asked_for_and_the_file_is_private(tmp_path: Path) -> None:
    log, output = tmp_path / "a.csv", tmp_path / "a.capture"
    secrets = [f"value-{number:04}-{number * 7919:x}" for number in range(1000)]
    with log.open("w") as out:
        for number, secret in enumerate(secrets):
            text = f"statement: SELECT * FROM people /* {secret} */ WHERE name = '{secret}' AND age = {70000 + number}"
            out.write(line(text, 2 * number + 1))
            prepared = "execute s1: SELECT $1"
            out.write(line(prepared, 2 * number + 2, detail=f"parameters: $1 = '{secret}'"))
    read = pgdyno("capture", "read", log, "--output", output, code=0)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    shown = [pgdyno("capture", "show", output, *more, code=0) for more in ((), ("--json",), ("--session", "1"))]
    printed = "".join(item.out + item.err for item in (read, *shown))
    assert not [secret for secret in secrets if secret in printed]
    assert "7000" not in printed
    assert "SELECT * FROM people WHERE name = ? AND age = ?" in printed
    result = pgdyno("capture", "show", output, "--session", "1", "--values", code=0).out
    assert all(secret in result for secret in secrets)
    output.chmod(0o644)
    assert "others than its owner may read it" in pgdyno("capture", "show", output, code=0).err


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_reading_leaves_nothing(tmp_path: Path, sign: signal.Signals) -> None:
    import pyarrow as pa

    log, output = tmp_path / "a.csv.zst", tmp_path / "a.capture"
    some = "".join(line(f"statement: SELECT {number}", number, pid=number) for number in range(1, 5000)).encode()
    with pa.CompressedOutputStream(str(log), "zstd") as out:
        for _ in range(800):
            out.write(some)
    command = [sys.executable, "-m", "pgdyno", "capture", "read", str(log), "--output", str(output)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: _writes(process.pid, tmp_path), PATIENCE_S, interval_s=0.01)
        process.send_signal(sign)
        assert process.wait(PATIENCE_S) != 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert wait_until(lambda: list(tmp_path.iterdir()) == [log], PATIENCE_S)


def _writes(pid: int, folder: Path) -> bool:
    """Whether a child has a file open that it writes in the folder."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    with contextlib.suppress(OSError):
        for child in children:
            opened = [os.readlink(path) for path in Path(f"/proc/{child}/fd").iterdir()]
            if any(item.startswith(f"{folder}/") and not item.endswith(".zst") for item in opened):
                return True
    return False

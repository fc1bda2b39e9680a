"""A driver that gets the instant to begin at: it connects, says that it is ready, and begins at that instant, or says why not."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from . import driven

if TYPE_CHECKING:
    import subprocess

MS = 1_000_000
TOLD: dict[str, Any] = {"begin": {"told": {"within_ms": 20_000}}, "arrivals": driven.PAUSED}


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def tell(process: subprocess.Popen[bytes], begin_ns: int) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"begin_ns": begin_ns}).encode() + b"\n")
    process.stdin.flush()


def failure_of(process: subprocess.Popen[bytes]) -> dict[str, str]:
    """What a driver that has not begun ends with."""
    process.wait(driven.TIMEOUT_S)  # before its input is closed, which would end it too
    out, err = process.communicate(timeout=driven.TIMEOUT_S)
    assert (process.returncode, out) == (2, b""), err
    error: dict[str, str] = json.loads(err.splitlines()[-1])["error"]
    return error


def test_it_begins_at_the_instant_that_it_is_told(dsn: str) -> None:
    with driven.driving(dsn, driven.spec(warmup_ms=500, **TOLD)) as process:
        ready = driven.line(process)["ready"]
        assert (ready["clients"], ready["begin_ns"]) == (4, None)
        begin_ns = now_ns() + 300 * MS
        tell(process, begin_ns)
        first = driven.line(process)["second"]
        threads = [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_OTHER}, (
            "real-time to begin, no longer"
        )
        rest, summary = driven.summary_of(process)
    seconds = [first, *rest]
    assert seconds[0]["begin_ns"] == begin_ns
    assert [second["warmup"] for second in seconds[:2]] == [True, False]
    assert summary["begin_ns"] == begin_ns + 500 * MS, "the seconds of all drivers have one grid"
    assert summary["succeeded"] > 0
    # A busy machine may wake a thread late, but not by a hundred milliseconds.
    assert 0 <= summary["begin_late_ns"] < 100 * MS
    assert summary["scheduled_with_warmup"] == driven.settled(summary) + summary["settled_in_warmup"]


def test_an_instant_that_is_past_is_begun_at_once_and_its_lateness_is_said(dsn: str) -> None:
    with driven.driving(dsn, driven.spec(**TOLD)) as process:
        driven.line(process)
        begin_ns = now_ns() - 200 * MS
        tell(process, begin_ns)
        seconds, summary = driven.summary_of(process)
    assert summary["begin_late_ns"] >= 200 * MS
    assert seconds[0]["begin_ns"] == begin_ns


def test_what_is_told_with_the_specification_is_heard(dsn: str) -> None:
    with driven.driving(dsn, driven.spec(**TOLD)) as process:
        tell(process, now_ns() + 2_000 * MS)
        driven.line(process)
        assert driven.summary_of(process)[1]["succeeded"] > 0


def test_nobody_who_tells_it_is_said(dsn: str) -> None:
    assert (
        driven.refused(dsn, driven.spec(**TOLD))["message"]
        == "standard input ended before it gave the instant to begin at"
    )
    with driven.driving(dsn, driven.spec(begin={"told": {"within_ms": 200}})) as process:
        driven.line(process)
        assert failure_of(process)["message"] == "no instant to begin at was given within 200 ms"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"begin": 5}\n', "the line with the instant to begin at cannot be read"),
        (b'{"begin_ns": 9000000000000000000}\n', "the given instant is more than 20000 ms away"),
    ],
)
def test_a_line_that_tells_no_instant_is_refused(dsn: str, line: bytes, said: str) -> None:
    with driven.driving(dsn, driven.spec(**TOLD)) as process:
        driven.line(process)
        assert process.stdin is not None
        process.stdin.write(line)
        process.stdin.flush()
        error = failure_of(process)
    assert error["message"].startswith(said)
    assert error["remedy"]


@pytest.mark.parametrize("is_told", [False, True])
def test_the_order_to_stop_ends_the_wait(dsn: str, is_told: bool) -> None:
    with driven.driving(dsn, driven.spec(**TOLD)) as process:
        driven.line(process)
        if is_told:
            tell(process, now_ns() + 15_000 * MS)
        process.send_signal(signal.SIGTERM)
        began_ns = now_ns()
        assert failure_of(process)["message"] == "it was stopped before it began"
    assert now_ns() - began_ns < 10_000 * MS, "long before the instant"


def test_a_share_has_its_part_of_the_rate(dsn: str) -> None:
    """Of 400 transactions a second of eight clients, three have 150."""
    share = {"clients_before": 4, "clients_all": 8, "threads_before": 1, "threads_all": 3}
    spec = driven.spec(arrivals={"fixed": {"rate_per_s": 400.0}}, clients=3, share=share, duration_ms=2000)
    summary = driven.drive(dsn, spec).summary
    assert summary["scheduled_with_warmup"] == pytest.approx(300, abs=2)

"""Watching again and again: when, what happens when the server does not answer, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose.calendar import MISSED_FILE, WatchSchedule, calendar_of, repeated, runs_of, schedule_of
from pgdyno.base.errors import HostError, InputError
from pgdyno.cli.main import cli
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

NOW = datetime(2026, 11, 25, 14, 30).astimezone().timestamp()
DEADLINE_S = 120.0


@pytest.mark.parametrize(
    ("until", "hours"),
    [("24h", 24.0), ("15:30", 1.0), ("14:00", 23.5), ("2026-11-25T16:30", 2.0), ("90min", 1.5)],
)
def test_the_end_is_a_time_of_day_a_date_or_a_length(until: str, hours: float) -> None:
    schedule = schedule_of("1h", until, 60, NOW)
    assert schedule.until_unix_s == pytest.approx(NOW + 3600 * hours)
    assert (schedule.begin_unix_s, schedule.every_s) == (NOW, 3600)


@pytest.mark.parametrize(
    ("every", "until", "message"),
    [
        ("62s", None, "a watch of 60 s takes up to 65 s"),
        ("1h", "2026-11-25T14:00", "is over"),
        ("1h", "25:00", "is not a time"),
        ("1h", "tomorrow", "tomorrow"),
        ("often", None, "often"),
    ],
)
def test_what_cannot_be_is_refused(every: str, until: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        schedule_of(every, until, 60, NOW)


def test_watches_are_on_a_grid_and_those_whose_time_is_over_are_left_out() -> None:
    schedule = WatchSchedule(NOW, 600, None)
    assert schedule.next_after(0, NOW + 65) == 1
    assert schedule.next_after(1, NOW + 1850) == 4, "a machine that slept resumes at the next instant"
    assert schedule.due(4) == NOW + 2400


def test_a_server_that_does_not_answer_once_is_noted_and_the_next_watch_comes(tmp_path: Path) -> None:
    import time

    calls: list[int] = []
    notes: list[str] = []
    values: list[float] = []

    def once() -> None:
        calls.append(len(calls))
        if len(calls) == 2:
            raise HostError("the server cannot be connected to", remedy="look at it")

    begin = time.time()
    schedule = WatchSchedule(begin, 0.05, begin + 0.14)
    made = repeated(schedule, once, tmp_path, values.append, notes.append)
    assert made == len(calls) - 1
    assert len(calls) >= 2
    assert "the server cannot be connected to" in notes[0]
    (line,) = (tmp_path / MISSED_FILE).read_text().splitlines()
    assert json.loads(line)["why"] == "the server cannot be connected to"
    assert values, "it says when the next one is"


def test_a_first_watch_that_fails_ends_it(tmp_path: Path) -> None:
    def once() -> None:
        raise HostError("the server cannot be connected to", remedy="look at it")

    with pytest.raises(HostError):
        repeated(WatchSchedule(0.0, 60.0, None), once, tmp_path, lambda _: None, lambda _: None)
    assert not (tmp_path / MISSED_FILE).exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dbname=app", "--every", "1h"], "needs a directory"),
        (["dbname=app", "--until", "24h", "--keep", "w"], "--until is for watches that are repeated"),
        (["dbname=app", "--every", "1h", "--keep", "w", "--json"], "one after the other"),
        (["dbname=app", "--every", "30s", "--keep", "w"], "takes up to 65 s"),
        ([".", "--every", "1h"], "--every is for a server that is watched"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["diagnose", *words])
    assert isinstance(result.exception, InputError)
    assert message in result.exception.message


def test_watches_of_a_server_collect_in_one_directory_until_ctrl_c(cluster: Cluster, tmp_path: Path) -> None:
    """Two watches of a real server; then the command is interrupted in the third, and what was seen is a calendar, also for
    `query` and `report`.
    """
    root = tmp_path / "watches"
    command = [
        sys.executable, "-m", "pgdyno", "diagnose", cluster.dsn, "--for", "5s", "--every", "10s", "--keep", str(root),
    ]  # fmt: skip
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))
        reader.start()
        try:
            assert wait_until(lambda: len(lines) >= 2 or process.poll() is not None, DEADLINE_S)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 130
        reader.join()
    assert len(runs_of(root)) == 2
    assert not list(root.glob("**/*.partial"))
    assert sum(len(hour.watches) for hour in calendar_of(root).hours) == 2
    result = CliRunner().invoke(cli, ["query", "--results", str(root), "SELECT count(*) AS runs FROM runs", "--json"])
    assert result.exit_code == 0, result.output
    assert '"runs": 2' in result.stdout or "2" in result.stdout
    experiment = next(root.glob("*/experiment.json")).parent
    reported = CliRunner().invoke(cli, ["report", str(experiment), "--format", "md"])
    assert reported.exit_code == 0, reported.output

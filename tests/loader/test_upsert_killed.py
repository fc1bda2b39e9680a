"""``--upsert`` merges once, whole or not at all, whatever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from typing import TYPE_CHECKING

import psycopg
import pytest

from pgdyno.base.errors import Interrupted

from ..support.servers import throwaway_cluster
from .database import Database
from .test_killed import loading, reaches
from .test_upsert import BEFORE, OLD, ROWS, Event, load, staged, written

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path


KILLS_OF_THE_BENCH = 60
EVENTS = 9
"""A load that is not killed at any of its first nine events has said that it ended."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Each key twice; the second one counts. A third of the rows replaces others."""
    lines = [f"{number},{word} {number}\n" for word in ("first", "last") for number in range(1, ROWS // 2 + 1)]
    return written(tmp_path, "id,name\n" + "".join(lines))


def whole(database: Database, event: Event) -> None:
    """Everything is in the table once, and nothing else is left."""
    keys = ROWS // 2
    assert (event["rows_loaded"], event["rows_merged"], event["rows_replaced"]) == (ROWS, keys, BEFORE)
    assert database.rows(
        "SELECT count(*), count(*) FILTER (WHERE name = 'last ' || id), count(*) FILTER (WHERE kept = 'old') FROM t"
    ) == [(keys, keys, BEFORE)]
    assert staged(database) == []
    assert database.left_to_undo() == 0


def finish(database: Database, file: Path) -> Event:
    """Run to the end; what it said last."""
    with loading(database, file, "--upsert", "id") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    last: Event = json.loads(out.splitlines()[-1])
    return last


@contextlib.contextmanager
def row_in_use(database: Database) -> Iterator[None]:
    """Somebody else has a row, so that a merge waits for it."""
    with psycopg.connect(database.dsn) as connection:
        connection.execute("SELECT FROM t WHERE id = 1 FOR UPDATE")
        yield
        connection.rollback()


PHASES: dict[str, Callable[[Event], bool]] = {
    "some rows are staged": lambda event: event["event"] == "progress" and event["rows_loaded"] > ROWS // 4,
    "the merge is under way": lambda event: event.get("text") == "merge",
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_upsert_goes_on(database: Database, file: Path, phase: str) -> None:
    database.run(OLD)
    slow = ("--rate", "300KiB") if "staged" in phase else ()
    with row_in_use(database), loading(database, file, "--upsert", "id", *slow) as process:
        assert reaches(process, PHASES[phase])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert database.one("SELECT count(*) FROM t WHERE name = 'old'") == BEFORE, "nothing of it is in the table yet"
    assert staged(database)
    whole(database, finish(database, file))


def test_what_was_merged_is_not_merged_again(database: Database, file: Path) -> None:
    database.run(OLD)
    with loading(database, file, "--upsert", "id") as process:
        assert reaches(process, lambda event: "vacuum" in event.get("text", ""))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    database.run("UPDATE t SET name = 'mine' WHERE id = 1")
    result = finish(database, file)
    assert database.one("SELECT name FROM t WHERE id = 1") == "mine"
    database.run("UPDATE t SET name = 'last 1' WHERE id = 1")
    whole(database, result)


def test_ctrl_c_in_the_merge_says_how_to_go_on(database: Database, file: Path) -> None:
    database.run(OLD)
    with row_in_use(database), loading(database, file, "--upsert", "id") as process:
        assert reaches(process, PHASES["the merge is under way"])
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert "run the same command again" in err.decode()
    whole(database, finish(database, file))


class InterruptAtWhatIsNew:
    """Ctrl-C when the load says what none before it has said, which is also between two steps."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    def __call__(self, event: Event) -> None:
        text = str(event.get("text", event["event"]))
        if text not in self.heard:
            self.heard.add(text)
            raise KeyboardInterrupt


def test_ctrl_c_at_whatever_is_said_tells_how_to_go_on(database: Database, file: Path) -> None:
    """Each run gets further than the one before, until one comes to its end."""
    database.run(OLD)
    at = InterruptAtWhatIsNew()
    for _ in range(100):
        try:
            load(file, database, tell=at)
        except Interrupted as error:
            assert "run the same command again" in error.remedy
            continue
        break
    assert {"plan", "merge", "vacuum and analyze", "checkpoint"} <= at.heard
    assert staged(database) == []
    assert database.left_to_undo() == 0
    assert database.one("SELECT count(*) FROM t WHERE name = 'last ' || id") == ROWS // 2


def test_ctrl_c_without_a_ledger_does_not_say_that_the_same_command_goes_on(database: Database, file: Path) -> None:
    database.run(OLD)
    with pytest.raises(Interrupted) as error:
        load(file, database, upsert=(), ledger=False, tell=InterruptAtWhatIsNew())
    assert "--truncate" in error.value.remedy


def test_a_server_that_is_killed_keeps_what_is_staged(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unlogged staging table would be empty then, with all its lines in the ledger."""
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "state"))
    with throwaway_cluster() as own:
        database = Database(own.dsn)
        database.run(OLD)
        with loading(database, file, "--upsert", "id", "--rate", "300KiB") as process:
            assert reaches(process, PHASES["some rows are staged"])
            own.kill()
            own.start()
            out, _ = process.communicate(timeout=120)
        done = process.returncode == 0
        whole(database, json.loads(out.splitlines()[-1]) if done else finish(database, file))


def killed_at(process: subprocess.Popen[bytes], event: int) -> bool:
    """Kill a load at its event of that number; whether it came to it."""
    assert process.stdout is not None
    for number, _ in enumerate(process.stdout):
        if number == event:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


@pytest.mark.bench
def test_upserts_that_are_killed_again_and_again_merge_once(database: Database, file: Path) -> None:
    """Each is killed at one of its events, whichever a seeded draw says, and begun again, until it gets through."""
    chance = random.Random(7)
    kills = 0
    while kills < KILLS_OF_THE_BENCH:
        database.run("DROP TABLE IF EXISTS t; DROP SCHEMA IF EXISTS pgdyno_load CASCADE;" + OLD)
        killed = True
        while killed:
            with loading(database, file, "--upsert", "id", "--rate", "300KiB") as process:
                killed = killed_at(process, chance.randrange(EVENTS))
            kills += killed
        whole(database, finish(database, file))

"""SIGKILL at each phase of a load: nothing is lost, nothing is doubled, and all comes back."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.loader import restore

from ..support.servers import throwaway_cluster
from .database import RICH, Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = 30_000
SLOW = ("--rate", "512KiB")
"""So slow that a load of :data:`ROWS` has two seconds to be killed in."""

Event = dict[str, Any]
PHASES: dict[str, Callable[[Event], bool]] = {
    "indexes are dropped": lambda event: "indexes:" in event.get("text", ""),
    "rows come in": lambda event: event["event"] == "progress",
    "some rows are in": lambda event: event["event"] == "progress" and event["rows_loaded"] > ROWS // 4,
    "indexes are built": lambda event: event["event"] == "step",
    "the end is written": lambda event: "checkpoint" in event.get("text", ""),
}


def rich_file(folder: Path) -> Path:
    """Rows for :data:`RICH`."""
    made = folder / "rich.csv"
    lines = (f"{n},code {n},{n % 50},{n % 99},{n % 100 + 1}\n" for n in range(1, ROWS + 1))
    made.write_text("id,code,low,high,other_id\n" + "".join(lines))
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that is loaded."""
    return rich_file(tmp_path)


@contextlib.contextmanager
def loading(
    database: Database, file: Path | str, *words: str, restore: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """A load in a session of its own: what is killed is all of it. Or ``--restore`` alone."""
    here = () if "--via" in words else ("--chunk", "64KiB")
    arguments = [str(file), "--into", database.dsn, "--indexes", "rebuild", *here, *words]
    if restore:
        arguments = ["--restore", database.dsn]
    process = subprocess.Popen(
        [sys.executable, "-m", "pgdyno", "load", *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=os.environ,
    )
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def reaches(process: subprocess.Popen[bytes], phase: Callable[[Event], bool]) -> bool:
    """Whether a load comes to a phase before it ends."""
    assert process.stdout is not None
    return any(phase(json.loads(line)) for line in process.stdout)


def finish(database: Database, file: Path) -> Event:
    """Run to the end; what it said last."""
    with loading(database, file) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    last: Event = json.loads(out.splitlines()[-1])
    return last


def check(database: Database, before: list[tuple[Any, ...]], event: Event) -> None:
    assert event["rows_loaded"] == ROWS
    assert database.rows("SELECT count(*), sum(id)::bigint, count(DISTINCT code) FROM rich") == [
        (ROWS, ROWS * (ROWS + 1) // 2, ROWS)
    ]
    assert database.shape("rich") == before
    assert database.left_to_undo() == 0


@pytest.mark.parametrize(
    ("phase", "whom"),
    [
        ("indexes are dropped", "all"),
        ("rows come in", "all"),
        ("rows come in", "the command alone"),
        ("indexes are built", "all"),
        ("indexes are built", "the command alone"),
        ("the end is written", "all"),
    ],
)
def test_a_killed_load_goes_on(database: Database, file: Path, phase: str, whom: str) -> None:
    """The other phases are met by the bench, and "the command alone" is SIGKILL to it with its engine alive."""
    database.run(RICH)
    before = database.shape("rich")
    slow = SLOW if "rows" in phase else ()
    with loading(database, file, *slow) as process:
        assert reaches(process, PHASES[phase])
        (os.killpg if whom == "all" else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    check(database, before, finish(database, file))


def test_restore_alone_brings_the_table_back_and_the_load_goes_on_later(database: Database, file: Path) -> None:
    database.run(RICH)
    before = database.shape("rich")
    with loading(database, file, *SLOW) as process:
        assert reaches(process, PHASES["some rows are in"])
    assert database.left_to_undo() > 0
    restore(database.dsn)
    assert database.shape("rich") == before
    check(database, before, finish(database, file))


def test_ctrl_c_puts_back_and_says_how_to_go_on(database: Database, file: Path) -> None:
    database.run(RICH)
    before = database.shape("rich")
    with loading(database, file, *SLOW) as process:
        assert reaches(process, PHASES["some rows are in"])
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err.decode()
    assert "run the same command again to resume" in err.decode()
    assert database.shape("rich") == before
    check(database, before, finish(database, file))


def test_a_server_that_is_killed_loses_nothing(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine waits for it; synchronous_commit is off, so that rows and their lines are lost together or not at all."""
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(tmp_path / "state"))
    with throwaway_cluster() as own:
        database = Database(own.dsn)
        database.run(RICH)
        before = database.shape("rich")
        with loading(database, file, *SLOW) as process:
            assert reaches(process, PHASES["some rows are in"])
            own.kill()
            own.start()
            process.communicate(timeout=120)
        document = {"rows_loaded": ROWS} if process.returncode == 0 else finish(database, file)
        check(database, before, document)

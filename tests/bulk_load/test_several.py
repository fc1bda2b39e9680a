"""The process that loads several tables: what it is told, what it says, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import EngineError, PgdynoError
from pgdyno.kinds.load.run import WORDS
from pgdyno.workload.process import HelperProcess, environment

from ..loader.conftest import database
from ..support.servers import cluster

if TYPE_CHECKING:
    from pathlib import Path

    from ..loader.database import Database

__all__ = ["cluster", "database"]

COMMAND = [sys.executable, "-m", "pgdyno.loader.several"]
LIMIT_S = 60.0


def document(folder: Path, dsn: str, *, parallel: bool) -> dict[str, Any]:
    """Three files, each into a table of its own."""
    loads = []
    for number, table in enumerate(("one", "two", "three"), 1):
        path = folder / f"{table}.csv"
        path.write_text("id,name\n" + "".join(f"{row},{table}\n" for row in range(1000 * number)))
        loads.append({"sources": [str(path)], "into": dsn, "table": table, "create": True, "checkpoint": False})
    return {"parallel": parallel, "loads": loads}


def said(document: dict[str, Any], log: Path) -> tuple[list[dict[str, Any]], HelperProcess]:
    """Every line after the word go."""
    with HelperProcess(COMMAND, log, environment(None), WORDS) as process:
        process.ask(document)
        return list(process.go(LIMIT_S)), process


@pytest.mark.parametrize("parallel", [False, True])
def test_tables_are_loaded_in_their_order_or_at_once(
    parallel: bool, database: Database, tmp_path: Path, engine: Path
) -> None:
    lines, process = said(document(tmp_path, database.dsn, parallel=parallel), tmp_path / "log")
    assert "end" in lines[-1], process.failure(LIMIT_S)
    begun = [line["begin"] for line in lines if "begin" in line]
    ended = [line["table"] for line in lines if "loaded" in line]
    assert begun == ["one", "two", "three"]
    assert sorted(ended) == ["one", "three", "two"]
    assert "checkpoint" in lines[-2]
    first_end = next(place for place, line in enumerate(lines) if "loaded" in line)
    last_begin = max(place for place, line in enumerate(lines) if "begin" in line)
    assert (last_begin < first_end) == parallel
    assert [database.one(f"SELECT count(*) FROM {table}") for table in begun] == [1000, 2000, 3000]


def test_what_the_loader_refuses_is_the_error_with_its_remedy(database: Database, tmp_path: Path, engine: Path) -> None:
    values = document(tmp_path, database.dsn, parallel=False)
    values["loads"][1]["create"] = False
    lines, process = said(values, tmp_path / "log")
    assert not any("end" in line for line in lines)
    failure = process.failure(LIMIT_S)
    assert type(failure) is PgdynoError
    assert "there is no table two" in failure.message
    assert "--create" in failure.remedy


def test_an_option_that_makes_no_sense_is_said_before_anything_begins(tmp_path: Path, engine: Path) -> None:
    values = document(tmp_path, "dbname=x", parallel=False)
    values["loads"][1]["connections"] = 300
    with (
        HelperProcess(COMMAND, tmp_path / "log", environment(None), WORDS) as process,
        pytest.raises(PgdynoError, match="--connections: 300 is more than 256") as caught,
    ):
        process.ask(values)
    assert type(caught.value) is PgdynoError, "with its own remedy, and not that of a process that broke"
    assert "256" in caught.value.remedy


def test_a_load_that_takes_too_long_is_ended_and_said(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; print('{\"ready\": true}', flush=True); sys.stdin.readline(); sys.stdin.read()",
    ]
    with HelperProcess(command, tmp_path / "log", environment(None), WORDS) as process:
        process.ask({})
        assert list(process.go(0.2)) == []
        assert "was not done within" in process.failure(0.2).message


def test_a_process_that_is_never_ready_is_not_a_load_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More time for the load would not help: it has not begun."""
    monkeypatch.setattr("pgdyno.workload.process._START_S", 0.2)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        HelperProcess(command, tmp_path / "log", environment(None), WORDS) as process,
        pytest.raises(EngineError, match="was not ready within") as caught,
    ):
        process.ask({})
    assert "timeout" not in caught.value.remedy


def test_a_process_that_ends_before_it_is_ready_is_said_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such thing')"]
    with (
        HelperProcess(command, tmp_path / "log", environment(None), WORDS) as process,
        pytest.raises(EngineError, match="no such thing"),
    ):
        process.ask({})


def test_it_ends_with_whoever_asked(database: Database, tmp_path: Path, engine: Path) -> None:
    """Its standard input ends when this process is killed; the engines that it has started end with it."""
    import json

    values = document(tmp_path, database.dsn, parallel=False)
    values["loads"][0]["rate_bytes_per_s"] = 1000  # for ten seconds and more
    process = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment({"PGDYNO_STATE_DIR": str(tmp_path / "state")}),
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps(values).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"ready": True}
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert "begin" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.wait(LIMIT_S) == -signal.SIGTERM


def test_the_servers_variables_of_the_caller_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=1GB")
    monkeypatch.setenv("PGDYNO_ENGINE", "/somewhere")
    document = environment({"PGPASSWORD": "secret"})
    assert "PGOPTIONS" not in document
    assert (document["PGDYNO_ENGINE"], document["PGPASSWORD"]) == ("/somewhere", "secret")

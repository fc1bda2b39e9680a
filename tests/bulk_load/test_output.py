"""What the loader's process says becomes the outcome of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.kinds.load.options import BulkTable, Files
from pgdyno.kinds.load.run import LoaderOutput
from pgdyno.results.tables import SubjectClock

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.workload.outcome import Outcome

S = 1_000_000_000


def loaded(rows: int, **steps_s: float) -> dict[str, Any]:
    """A table's end, as :class:`pgdyno.loader.Loaded` has it."""
    return {
        "rows_loaded": rows,
        "bytes": rows * 40,
        "chunks": 3,
        "connections": 2,
        "client_cpu_s": 0.25,
        "steps_s": steps_s or {"transfer": 3.0, "put_back": 0.5, "vacuum": 0.4, "checkpoint": 0.1},
        "limits": {"WAL": 0.75, "the client": 0.25},
        "indexes": "kept: none",
        "already": False,
    }


def progress(table: str, t_s: float, rows: int) -> dict[str, Any]:
    """A line of progress."""
    event = {
        "event": "progress",
        "rows_loaded": rows,
        "bytes": rows * 40,
        "connections": 2,
        "limit": "WAL",
        "share": 0.5,
    }
    return {"table": table, "t_ns": round(t_s * S), "event": event}


def heard(
    folder: Path, *lines: dict[str, Any], rows: int | None = 900, tables: tuple[str, ...] = ("a", "b")
) -> LoaderOutput:
    """After those lines."""
    files = []
    for table in tables:
        path = folder / f"{table}.csv"
        path.write_bytes(bytes(1000))
        files.append(Files(table, (path,), rows))
    made = LoaderOutput(files)
    for line in lines:
        made.take(line)
    return made


BOTH = (
    {"begin": "a", "t_ns": 100 * S},
    progress("a", 101.0, 300),
    progress("a", 102.0, 600),
    {"loaded": loaded(900), "table": "a", "t_ns": 104 * S},
    {"begin": "b", "t_ns": 104 * S},
    progress("b", 105.5, 450),
    {"loaded": loaded(900), "table": "b", "t_ns": 108 * S},
    {"checkpoint": {"begin_ns": 108 * S, "end_ns": 109 * S}},
    {"end": True, "t_ns": 109 * S},
)


def outcome(output: LoaderOutput, clock: SubjectClock | None = None) -> Outcome:
    """From the word go at 100 s."""
    assert output.end_ns is not None
    bulk = BulkTable.model_validate({"generate": "imdb"})
    return output.outcome(bulk, 100 * S, output.end_ns, clock or SubjectClock())


def test_rows_are_the_account_and_every_second_has_its_part(tmp_path: Path) -> None:
    output = heard(tmp_path, *BOTH)
    assert output.share == 1.0
    made = outcome(output)
    assert made.phases[-1].seconds == 9.0
    assert (made.account.succeeded, made.account.failed) == (1800, 0)
    assert made.tps == 200.0
    seconds = made.throughput.to_pylist()
    assert sum(row["transactions"] for row in seconds) == 1800
    assert [row["transactions"] for row in seconds[:3]] == [300, 300, 300]
    assert seconds[-1]["transactions"] == 0, "the checkpoint brings no rows"
    assert seconds[-1]["t_end_ns"] == 109 * S


def test_a_record_has_every_table_with_its_steps(tmp_path: Path) -> None:
    made = outcome(heard(tmp_path, *BOTH))
    assert made.bulk_load is not None
    assert made.bulk_load.checkpoint_s == 1.0
    first = made.bulk_load.tables[0]
    assert (first.table, first.rows, first.stored_bytes, first.files) == ("a", 900, 1000, 1)
    assert first.seconds["put_back"] == 0.5
    assert first.limits == {"WAL": 0.75, "the client": 0.25}
    assert made.moments is not None
    assert made.moments["rows"].to_pylist() == [300, 600, 450]
    assert made.driver is not None
    assert (made.driver.engine, made.driver.cpu_ns) == ("loader", S // 2)


def test_a_dilated_load_is_in_the_time_of_its_world(tmp_path: Path) -> None:
    made = outcome(heard(tmp_path, *BOTH), SubjectClock(100 * S, 2))
    assert made.phases[-1].seconds == 4.5
    assert made.tps == 400.0
    assert made.bulk_load is not None
    assert made.bulk_load.tables[0].seconds["transfer"] == 1.5
    assert sum(made.throughput["transactions"].to_pylist()) == 1800


def test_rows_that_a_file_has_and_a_table_has_not_are_a_failed_check(tmp_path: Path) -> None:
    checks = {check.name: check for check in outcome(heard(tmp_path, *BOTH, rows=901)).checks}
    assert not checks["rows_of_the_files"].ok
    assert "a: 900 of 901" in checks["rows_of_the_files"].detail
    assert checks["loaded_in_this_run"].ok
    # Nobody has counted the rows of a user's files; the loader's ledger has.
    assert "rows_of_the_files" not in {check.name for check in outcome(heard(tmp_path, *BOTH, rows=None)).checks}


def test_a_table_that_had_been_loaded_before_is_a_failed_check(tmp_path: Path) -> None:
    lines = [*BOTH[:3], {"loaded": loaded(900) | {"already": True}, "table": "a", "t_ns": 104 * S}, *BOTH[4:]]
    (failed,) = [check for check in outcome(heard(tmp_path, *lines)).checks if not check.ok]
    assert failed.name == "loaded_in_this_run"


@given(
    steps=st.lists(st.tuples(st.floats(0.05, 3.0), st.integers(0, 10_000)), max_size=12),
    rest=st.integers(0, 5_000),
    later_s=st.floats(0.0, 2.0),
)
def test_no_row_is_lost_between_the_seconds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, int]], rest: int, later_s: float
) -> None:
    lines: list[dict[str, Any]] = [{"begin": "a", "t_ns": 100 * S}]
    at_s, rows = 100.0, 0
    for after_s, more in steps:
        at_s, rows = at_s + after_s, rows + more
        lines.append(progress("a", at_s, rows))
    end_ns = round((at_s + later_s + 0.01) * S)
    lines += [{"loaded": loaded(rows + rest, transfer=1.0, vacuum=later_s), "table": "a", "t_ns": end_ns}]
    lines += [{"end": True, "t_ns": end_ns + 10}]
    folder = tmp_path_factory.mktemp("heard")
    made = outcome(heard(folder, *lines, rows=None, tables=("a",)))
    counts = made.throughput["transactions"].to_pylist()
    assert sum(counts) == rows + rest
    assert min(counts) >= 0

"""A run's directory is whole or it is not there, and once there it stays as it is."""

from __future__ import annotations

import errno
import subprocess
import sys
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pytest

from pgdyno.base.errors import HostError, InputError, PgdynoError
from pgdyno.results import RunWriter, list_experiments, open_experiment, open_run, write_experiment
from pgdyno.results.tables import TABLES, columns, empty, from_rows
from pgdyno.results.writer import held, other_experiments

from .conftest import EXPERIMENT_ID, make_experiment_record, make_record, throughput_table

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeExperiment


def test_a_finished_run_reads_back_what_was_written(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
    writer.table("workload/throughput", throughput_table(42))
    writer.file("logs/server.log").write_text("hello\n")
    run = open_run(writer.finish(make_record()))
    assert run.record == make_record()
    assert run.table("workload/throughput").to_pylist() == throughput_table(42).to_pylist()
    assert (run.path / "logs/server.log").read_text() == "hello\n"


def test_a_table_that_the_run_never_had_is_empty(tmp_path: Path) -> None:
    run = open_run(RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1").finish(make_record()))
    for name in TABLES:
        assert run.table(name).num_rows == 0
        assert run.table(name).schema == columns(name)
    with pytest.raises(InputError, match="no table"):
        run.table("workload/nonsense")


def test_an_unfinished_run_is_not_listed(tmp_path: Path, make_experiment: MakeExperiment) -> None:
    path = make_experiment(tmp_path)
    partial = RunWriter(tmp_path, EXPERIMENT_ID, "09-gp3-r9").path
    assert partial.exists()
    experiment = open_experiment(path)
    assert [run.record.position for run in experiment.runs] == [0, 1, 2, 3]
    assert experiment.unreadable == {}
    with pytest.raises(InputError, match="unfinished run"):
        open_run(partial)


def test_what_a_killed_attempt_left_is_replaced(tmp_path: Path) -> None:
    RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1").file("logs/old.log").write_text("old")
    run = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1").finish(make_record())
    assert not (run / "logs").exists()


def test_a_finished_run_is_never_rewritten(tmp_path: Path) -> None:
    RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1").finish(make_record())
    with pytest.raises(PgdynoError, match="never rewritten"):
        RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")


def test_the_record_must_be_of_this_run(tmp_path: Path) -> None:
    with pytest.raises(PgdynoError, match="was given to"):
        RunWriter(tmp_path, EXPERIMENT_ID, "01-gp3-r1").finish(make_record())


def test_wrong_columns_are_refused(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
    with pytest.raises(PgdynoError, match=r"missing \['skipped'\]"):
        writer.table("workload/throughput", throughput_table(1).drop(["skipped"]))
    with pytest.raises(PgdynoError, match=r"unknown \['extra'\]"):
        writer.table("workload/throughput", throughput_table(1).append_column("extra", pa.array([1])))
    with pytest.raises(PgdynoError, match="no table"):
        writer.table("workload/else", empty("workload/latency"))


def test_a_file_stays_inside(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
    for outside in ("../x", "/etc/x", ""):
        with pytest.raises(PgdynoError, match="not inside"):
            writer.file(outside)


def test_rows_may_lack_columns_and_volumes_may_have_more() -> None:
    table = from_rows("probe/volume", [{"t_ns": 1, "read_ops": 2, "new_counter": 3}])
    assert table["read_ops"].to_pylist() == [2]
    assert table["write_ops"].to_pylist() == [None]
    assert table["new_counter"].to_pylist() == [3]


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path, make_experiment: MakeExperiment) -> None:
    path = make_experiment(tmp_path)
    damaged = next((path / "runs").iterdir())
    (damaged / "run.json").write_text("{")
    experiment = open_experiment(path)
    assert len(experiment.runs) == 3
    assert list(experiment.unreadable) == [damaged]


def test_a_damaged_experiment_does_not_hide_the_others(tmp_path: Path, make_experiment: MakeExperiment) -> None:
    make_experiment(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/experiment.json").write_text('{"schema_version": 99}')
    unreadable: dict[Path, str] = {}
    assert len(list_experiments(tmp_path, unreadable)) == 1
    assert "newer pgdyno" in unreadable[tmp_path / "broken"]
    with pytest.raises(InputError, match="newer pgdyno"):
        list_experiments(tmp_path)


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(PgdynoError, match="cannot be written") as caught:
        RunWriter(tmp_path / "results", EXPERIMENT_ID, "00-gp3-r1")
    assert caught.value.exit_code == 3
    assert "--results" in caught.value.remedy


def test_only_one_process_makes_the_runs_of_an_experiment(tmp_path: Path, make_experiment: MakeExperiment) -> None:
    directory = make_experiment(tmp_path)
    with held(directory), pytest.raises(HostError, match="another pgdyno makes the runs"), held(directory):
        pass
    with held(directory):
        pass


def test_only_one_of_two_processes_begins_an_experiment(tmp_path: Path, make_experiment: MakeExperiment) -> None:
    """Both in the same second, so that it has one name: the first is still writing its record, or has written it."""
    written = open_experiment(make_experiment(tmp_path / "first")).record
    writing = tmp_path / "second" / written.experiment_id / "experiment.json.partial"
    writing.parent.mkdir(parents=True)
    writing.write_text("half")
    for root in (tmp_path / "first", tmp_path / "second"):
        with pytest.raises(PgdynoError, match="never rewritten"):
            write_experiment(root, written)
    assert writing.read_text() == "half"
    assert not list((tmp_path / "first").glob("*/*.partial"))


def test_a_lock_that_cannot_be_had_is_not_taken_for_another_process(
    tmp_path: Path, make_experiment: MakeExperiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system may have no locks, and NFS gives none that excludes others to who cannot write."""
    directory = make_experiment(tmp_path)
    modes: list[str] = []

    def refused(file: BinaryIO, _how: int) -> None:
        modes.append(file.mode)
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("pgdyno.results.writer.fcntl.flock", refused)
    with pytest.raises(HostError, match="cannot be locked: No locks available"), held(directory):
        raise AssertionError("not reached")
    assert modes == ["rb+"]


def test_an_experiment_that_was_removed_is_not_continued(make_experiment: MakeExperiment, tmp_path: Path) -> None:
    """Who is interrupted before its first run removes its directory, also while another waits for it to let go."""
    directory = make_experiment(tmp_path)

    def removed_meanwhile(*_: object) -> None:
        (directory / "experiment.json").unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgdyno.results.writer.fcntl.flock", removed_meanwhile)
        with pytest.raises(HostError, match="is gone"), held(directory):
            raise AssertionError("not reached")
    with pytest.raises(HostError, match="is gone"), held(directory):
        raise AssertionError("not reached")


def test_a_table_is_kept_until_its_file_is_another_one(tmp_path: Path) -> None:
    import os

    import pyarrow.parquet as pq

    writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
    writer.table("workload/throughput", throughput_table(42))
    run = open_run(writer.finish(make_record()))
    first = run.table("workload/throughput")
    assert run.table("workload/throughput") is first
    file = run.path / "workload" / "throughput.parquet"
    before = file.stat()
    pq.write_table(first.slice(0, 0), file)
    # As if the clock were too coarse to tell: the size does.
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run.table("workload/throughput").num_rows == 0
    file.unlink()
    assert run.table("workload/throughput").num_rows == 0


def test_experiments_of_other_processes_are_seen_with_their_directory(tmp_path: Path) -> None:
    directory = write_experiment(tmp_path, make_experiment_record(("gp3",), 1))
    with held(directory):
        assert directory not in other_experiments().values(), "this process's own"
    hold = (
        "import sys, pathlib; from pgdyno.results.writer import held\n"
        "with held(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert other_experiments()[other.pid] == directory
    assert directory not in other_experiments().values()


def test_of_what_failed_the_logs_are_kept_and_the_remedy_says_where(tmp_path: Path) -> None:
    for attempt in ("first", "second"):
        writer = RunWriter(tmp_path, EXPERIMENT_ID, "00-gp3-r1")
        writer.file("logs/postgresql.log").write_text(attempt)
        writer.file("workload/latency.hdr.json").write_text("{}")
        error = PgdynoError("the server died", remedy="look at it")
        writer.explain(error)
        kept = tmp_path / EXPERIMENT_ID / "failed" / "00-gp3-r1"
        assert error.remedy == f"look at it; the logs are kept in {kept}"
        assert {file.name: file.read_text() for file in kept.iterdir()} == {"postgresql.log": attempt}
        assert not list((tmp_path / EXPERIMENT_ID / "runs").iterdir())
    silent = PgdynoError("nothing was begun")
    RunWriter(tmp_path, EXPERIMENT_ID, "01-gp3-r1").explain(silent)
    assert silent.remedy == ""

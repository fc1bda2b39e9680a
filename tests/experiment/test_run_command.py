"""``pgdyno run`` as a user runs it: whole, in parts, interrupted, continued, changed.

The same on the fake world, at more moments, is in :mod:`tests.experiment.test_worlds`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.machine.clean import left_in
from pgdyno.machine.mounts import mounts_below
from pgdyno.results import open_experiment
from tests.conftest import find_system_postgres
from tests.experiment.documents import FILE
from tests.support.commands import Ended, pgdyno

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "workload.scale=2",
    "workload.clients=4",
    "workload.warmup=1s",
    "workload.duration=2s",
    "instance.memory=96MiB",
)
"""What makes an example short. Numbers of such runs mean nothing, so they may be invalid."""


def run(*arguments: str, code: int = 0) -> Ended:
    """``pgdyno run``, which ends with that code."""
    return pgdyno("run", *arguments, code=code)


def small(example: str, *assignments: str) -> list[str]:
    """The arguments that run an example, made short."""
    words = [str(ROOT / "experiments" / f"{example}.toml"), "--keep-invalid"]
    for assignment in (*SMALL, *assignments):
        words += ["--set", assignment]
    return words


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_an_example_runs_in_parts_and_ends_whole(state_dir: Path, tmp_path: Path) -> None:
    """Arm by arm, interrupted, continued: the end is that of one uninterrupted experiment."""
    arguments = [*small("compare-gp3-io2bx", "replicates=2"), "--results", str(tmp_path)]
    run(*arguments, "--only", "2", "--budget", "30s")
    directory = next(tmp_path.glob("*-compare-gp3-io2bx-*"))
    first = open_experiment(directory)
    assert {run.record.arm for run in first.runs} == {"io2bx:iops=8000"}
    began = {run.path.name: run.record.anchor.unix_ns for run in first.runs}

    other = [*small("compare-gp3-io2bx", "replicates=2", "workload.clients=5"), "--resume", str(directory)]
    assert run(*other, "--dry-run", code=2).err.count("was a different experiment") == 1
    changed = run(*other, code=2)
    assert "workload.clients is 5, was 4" in changed.err
    refused = run("--resume", str(directory), "--seed", "2", code=2)
    assert "options cannot be changed when resuming an experiment" in refused.err

    interrupted = _interrupt_after_a_run(["--resume", str(directory), "--keep-invalid"])
    assert f"pgdyno run --resume {directory}" in interrupted
    assert left_in(state_dir) == []
    assert mounts_below(state_dir) == []

    done = run("--resume", str(directory), "--keep-invalid", "--json")
    whole = open_experiment(directory)
    assert [run.record.position for run in whole.runs] == [0, 1, 2, 3]
    assert {name: began[name] for name in began} == {
        run.path.name: run.record.anchor.unix_ns for run in whole.runs if run.path.name in began
    }
    assert [(run.record.block, run.record.arm_index) for run in whole.runs] == list(whole.record.order)
    assert {run.record.experiment_hash for run in whole.runs} == {whole.record.experiment_hash}
    assert whole.record.factors == {"world.volume": ("gp3", "io2bx:iops=8000")}
    assert all(run.record.factors == {"world.volume": run.record.arm} for run in whole.runs)
    assert json.loads(done.out)["arms"][0]["tps"]["n"] == 2

    nothing_left = run("--resume", str(directory), "--keep-invalid")
    assert "run 1 of" not in nothing_left.err


def _interrupt_after_a_run(arguments: list[str]) -> str:
    command = [sys.executable, "-m", "pgdyno", "run", *arguments]
    result = ""
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            result += line
            if "run 1 of" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130, result
    return result


@pytest.mark.needs_fuse
def test_a_budget_in_which_nothing_fits_is_refused(state_dir: Path, tmp_path: Path) -> None:
    texts = ("--results", tmp_path / "results", "--budget", "5s")
    assert (
        "filling the data sets and the first run take about"
        in pgdyno("run", *small("compare-gp3-io2bx"), *texts, code=2).err
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs_fuse
def test_a_dry_run_says_what_would_be_done_and_changes_nothing(state_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(FILE)
    out = pgdyno("run", path, "--dry-run", "--results", tmp_path / "results", code=0).out
    assert "arm 2: io2bx" in out
    assert "run 4: replicate 2" in out
    planned = json.loads(pgdyno("run", path, "--dry-run", "--json", "--only", "gp3", code=0).out)
    assert [run["arm"] for run in planned["runs"]] == ["gp3", "gp3"]
    assert planned["total_s"] > sum(run["seconds"] for run in planned["runs"])
    whole = {
        "name",
        "arms",
        "preparation",
        "events",
        "power_cuts",
        "warnings",
        "runs",
        "runs_within_budget",
        "memory_bytes",
        "load_s",
        "total_s",
    }
    assert planned.keys() == whole
    assert (planned["events"], planned["warnings"], planned["power_cuts"]) == ([], [], None)
    assert planned["name"] == "trial"
    assert planned["arms"][0] == {"label": "gp3", "factors": {"world.volume": "gp3"}}
    assert planned["preparation"] == ["data set PostgreSQL 18 on ext4, scale 2"]
    assert planned["runs"][0].keys() == {"position", "block", "arm", "seconds", "seconds_max"}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["trial.toml"]
    assert not state_dir.exists()


@pytest.mark.needs_fuse
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"io2bx"', '"gp4"', 'trial.toml:14: factors."world.volume"[2]: '),
        ("clients = 4", 'driver_cpus = "x"', "trial.toml:9: workload.driver_cpus: `x` is not a list of CPUs"),
        ("scale = 2", "scale = 9000", "trial.toml:8: workload.scale: gp3 holds 100.0 GiB"),
        ('memory = "128MiB"', 'type = "r6g.larg"', "trial.toml:5: instance.type: "),
        ("[workload]", '[postgres]\nbin = "/nowhere"\n[workload]', "trial.toml:8: postgres.bin: /nowhere"),
        ("[workload]", "[postgres]\nparameters.fsync = false\n[workload]", "trial.toml:8: postgres.parameters"),
        ("[factors]", '[factors]\n"world.mount_options" = ["", "nobarrier"]', 'trial.toml:14: factors."world.mount_'),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_line(
    old: str, new: str, said: str, state_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(FILE.replace(old, new))
    refused = pgdyno("run", path, "--results", tmp_path / "results", code=2).err
    assert said in refused
    assert "remedy:" in refused
    assert not (tmp_path / "results").exists()


def test_an_arm_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(FILE)
    assert "did you mean `io2bx`?" in pgdyno("run", path, "--only", "io2b", code=2).err
    assert "pgdyno run EXPERIMENT.toml" in pgdyno("run", code=2).err


def test_tables_cannot_be_asked_for_where_no_server_exists_already(tmp_path: Path) -> None:
    path = tmp_path / "trial.toml"
    path.write_text(FILE)
    assert "--yes-create is for an existing server" in pgdyno("run", path, "--yes-create", code=2).err
    assert "--yes-drop is for an existing server" in pgdyno("run", path, "--yes-drop", "--dry-run", code=2).err


@pytest.mark.needs_fuse
@pytest.mark.needs_system_postgres
@pytest.mark.sets_limits
@pytest.mark.slow
def test_versions_settings_file_systems_and_a_wal_volume_from_one_file(state_dir: Path, tmp_path: Path) -> None:
    """The first and the last of sixteen arms: every factor at both of its levels. Each run stands on what was asked."""
    bins = f'factors.postgres.bin=["", "{find_system_postgres()}"]'
    arguments = [*small("postgres-versions", "replicates=1", bins), "--results", str(tmp_path)]
    planned = json.loads(run(*arguments, "--dry-run", "--json").out)
    assert len(planned["arms"]) == len(planned["runs"]) == 16
    run(*arguments, "--only", "1", "--only", "16")
    directory = next(tmp_path.glob("*-postgres-versions-*"))
    experiment = open_experiment(directory)
    first, last = sorted(experiment.runs, key=lambda run: run.record.arm_index)
    assert first.record.arm == "embedded · tuned · ext4 · no wal volume"
    assert first.record.world.file_system == "ext4"
    assert list(first.record.world.volumes) == ["data"]
    assert last.record.arm.endswith("defaults · xfs · wal gp3")
    assert last.record.world.file_system == "xfs"
    assert list(last.record.world.volumes) == ["data", "wal"]
    assert first.record.postgres.version.split(".")[0] == "18" != last.record.postgres.version.split(".")[0]
    settings = [
        {row["name"]: row["source"] for row in run.table("postgres/settings").to_pylist()} for run in experiment.runs
    ]
    assert {setting["random_page_cost"] for setting in settings} == {"configuration file", "default"}
    for stored_run in (first, last):
        assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
    # A commit waits for a write of the WAL, and that is where it went.
    writes = {row["volume"]: row["write_ops"] for row in last.table("probe/volume").to_pylist()}
    assert writes["wal"] > last.record.account.succeeded / 4
    assert (directory / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_killed_it_is_continued_after_a_clean_up(state_dir: Path, tmp_path: Path) -> None:
    arguments = [*small("wal-volume", "replicates=1"), "--results", str(tmp_path), "--only", "1", "--only", "3"]
    command = [sys.executable, "-m", "pgdyno", "run", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "run 1 of" in line:
                process.kill()
    directory = next(tmp_path.glob("*-wal-volume-*"))
    subprocess.run([sys.executable, "-m", "pgdyno", "doctor", "--clean"], check=True, capture_output=True, timeout=60)
    assert left_in(state_dir) == []
    before = {run.path.name for run in open_experiment(directory).runs}
    run("--resume", str(directory), "--keep-invalid", "--only", "1", "--only", "3")
    after = {run.path.name for run in open_experiment(directory).runs}
    assert before < after
    assert len(after) == 2

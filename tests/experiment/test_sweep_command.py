"""A sweep as a user runs it: killed in the middle, continued to its report."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.machine.clean import left_in
from pgdyno.results import open_experiment

SWEEP = """\
schema_version = 1
title = "A sweep for a test"
replicates = 1

[world]
volume = "gp3"

[instance]
memory = "96MiB"

[workload]
scale = 2
warmup = "0s"
duration = "20s"
transactions = 30

[factors]
"workload.clients" = [1, 2, 4, 8]
"""
PGDYNO = (sys.executable, "-m", "pgdyno")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``pgdyno`` of the package under test."""
    return subprocess.run([*PGDYNO, *arguments], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
@pytest.mark.slow
def test_a_sweep_survives_a_kill_in_the_middle(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    result = ""
    command = [*PGDYNO, "run", str(file), "--results", str(tmp_path), "--keep-invalid"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            result += line
            if "run 1 of 4" in line:
                process.send_signal(signal.SIGKILL)
                break  # what it started may hold the pipe
        process.wait(60)
    assert process.returncode == -signal.SIGKILL, f"it ended by itself:\n{result}"
    directory = next(tmp_path.glob("*-sweep-*"), None)
    assert directory is not None, result
    began = {run.path.name: run.record.anchor.unix_ns for run in open_experiment(directory).runs}
    assert 1 <= len(began) < 4, result
    assert left_in(state_dir), "a killed command leaves its data set at least"

    done = run("run", "--resume", str(directory), "--keep-invalid", "--json")
    assert done.returncode == 0, done.stderr
    assert "cleaned up after a command that was killed: " in done.stderr
    assert left_in(state_dir) == []
    whole = open_experiment(directory)
    assert [run.record.position for run in whole.runs] == list(range(4))
    assert began == {run.path.name: run.record.anchor.unix_ns for run in whole.runs if run.path.name in began}
    for stored_run in whole.runs:
        assert stored_run.record.account.succeeded == 30 * int(stored_run.record.factors["workload.clients"])
        assert stored_run.record.measure.seconds > 0
    assert len(json.loads(done.stdout)["arms"]) == 4
    assert 'id="sweep"' in (directory / "report.html").read_text()

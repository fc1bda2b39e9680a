"""``pgdyno reproduce`` on emulated volumes, killed at 20 random moments: ``make bench ONLY=reproduce``. In the end it is that of one life.

It needs the machine for itself: another run holds the kernel's dirty limits, and the last life is then refused.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.machine.clean import left_in
from pgdyno.machine.waiting import wait_until
from pgdyno.results import list_experiments
from tests.reproduce.conftest import FILE, Shelf

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.bench]

SEED = 25
KILLS = 20
REPLICATES = 6
"""Of two arms in two experiments: 24 runs of some nine seconds, which outlast the kills."""
LIFE_S = (0.3, 24.0)
"""From before the first change to the second run: a life begins with filling the data set again."""
WHOLE_S = 900.0
COMMAND = """
import sys
from pathlib import Path
from pgdyno.base import installation
from pgdyno.cli import main
root, results = sys.argv[1:]
installation.data_folder = lambda name: Path(root) / name
sys.exit(main.run(["reproduce", "--full", "--keep-invalid", "--results", results]))
"""


def test_twenty_kills_leave_the_experiments_of_one_life(shelf: Shelf, state_dir: Path, tmp_path: Path) -> None:
    file = FILE.replace('[world]\nkind = "fake"\n', '[instance]\nmemory = "96MiB"\n')
    file = file.replace("replicates = 2", f"replicates = {REPLICATES}").replace("clients = 64", "clients = 4")
    for name in ("trial", "larger"):
        (shelf.root / "experiments" / f"{name}.toml").write_text(file.replace('"5s"', '"2s"'))
    draw = random.Random(SEED)
    words = [sys.executable, "-c", COMMAND, str(shelf.root), str(shelf.results)]
    path = tmp_path / "said.log"
    """In a file: what a killed life has started may hold a pipe open after it."""
    grown = []
    for number in range(KILLS):
        life_s = draw.uniform(*LIFE_S)
        with path.open("w") as log, subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log) as process:
            ended = wait_until(lambda process=process: process.poll() is not None, life_s)
            process.kill()
        assert not ended, f"it ended by itself after {number} kills: {path.read_text()}"
        grown.append(sum(len(list_experiment.runs) for list_experiment in list_experiments(shelf.results)))
        print(f"killed after {life_s:.1f} s: {grown[-1]} runs are there")
    assert grown == sorted(grown), "no finished run is lost"
    done = subprocess.run(words, capture_output=True, text=True, timeout=WHOLE_S, check=False)
    assert done.returncode == 0, done.stderr
    experiments = list_experiments(shelf.results)
    assert sorted(experiment.record.name for experiment in experiments) == ["larger", "trial"], (
        "each continues its own directory"
    )
    for experiment in experiments:
        assert sorted(run.record.position for run in experiment.runs) == list(range(2 * REPLICATES))
        assert all(check.ok for run in experiment.runs for check in run.record.checks)
        assert (experiment.path / "report.html").is_file()
    assert list(shelf.results.rglob("*.partial")) == []
    assert "b to a" in done.stdout
    assert left_in(state_dir) == []
    print(f"{KILLS} kills, {grown[-1]} of {4 * REPLICATES} runs before the last life")

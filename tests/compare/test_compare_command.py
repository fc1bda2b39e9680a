"""``pgdyno compare`` as a user runs it: small, real, interrupted, killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pgdyno.store import open_experiment
from pgdyno.world import awake
from pgdyno.world.clean import leftovers
from pgdyno.world.mounts import mounts_below

pytestmark = [pytest.mark.needs_fuse, pytest.mark.slow]

SCHEMA = Path(__file__).parents[2] / "schema" / "compare.schema.json"
TINY = ("--scale", "2", "--memory", "96MiB", "--warmup", "1s", "--duration", "2s", "-c", "4")
KILLS = 10
RUN_S = 14.0
"""A tiny comparison of two volumes in two replicates takes longer than this."""


def pgdyno(*arguments: str) -> list[str]:
    """The command line of the package under test."""
    return [sys.executable, "-m", "pgdyno", *arguments]


def test_json_fits_the_schema_and_the_record_repeats_the_experiment(state_dir: Path, tmp_path: Path) -> None:
    command = pgdyno(
        "compare", "gp3", "io2bx", *TINY, "-n", "2", "--json", "--keep-invalid", "--results", str(tmp_path)
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert [arm["volume"] for arm in document["arms"]] == ["gp3", "io2bx"]
    assert all(arm["tps"]["n"] == 2 for arm in document["arms"])
    assert Path(document["report"]).read_text().startswith("<!doctype html>")
    assert "run 4 of 4" in done.stderr

    experiment = open_experiment(next(tmp_path.glob("*-compare-*")))
    assert experiment.record.command[1:3] == ("compare", "gp3")
    for run in experiment.runs:
        assert run.record.checks, "the workload's own invariants were checked"
        assert all(check.ok for check in run.record.checks), run.record.checks
        assert run.record.world.attach["proofs"]["dio"] == "1"
        assert run.record.world.host.cpus_awake is awake.possible()
        for table in ("probe/disk", "probe/volume", "probe/cpu", "probe/database", "probe/io", "postgres/settings"):
            assert run.table(table).num_rows > 0, table
    # The arms of a block draw the same transactions from the same seed.
    by_block = {(run.record.block, run.record.arm): run.record.workload["seed"] for run in experiment.runs}
    assert by_block[1, "gp3"] == by_block[1, "io2bx"] != by_block[2, "gp3"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_undoes_everything(number: signal.Signals, state_dir: Path, tmp_path: Path) -> None:
    command = pgdyno("compare", "gp3", "io2bx", *TINY, "--results", str(tmp_path))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "replicate 1 of" in line:
                process.send_signal(number)
        assert process.wait(60) == 130
    assert leftovers(state_dir) == []
    assert mounts_below(state_dir) == []


def test_killed_at_any_moment_it_is_undone_by_doctor_clean(state_dir: Path, tmp_path: Path) -> None:
    moments = random.Random(20261121)
    for _ in range(KILLS):
        command = pgdyno("compare", "gp3", "io2bx", *TINY, "-n", "2", "--results", str(tmp_path))
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            process.wait(moments.uniform(0.2, RUN_S))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        cleaned = subprocess.run(pgdyno("doctor", "--clean"), capture_output=True, text=True, check=False, timeout=60)
        assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
        assert leftovers(state_dir) == []
        assert mounts_below(state_dir) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gp3",), "at least two volumes"),
        (("gp3", "gp4"), "gp4"),
        (("gp3", "gp3:iops=20000,size=10GiB"), "500 IOPS per GiB"),
        (("gp3", "io2bx", "--memory", "lots"), "--memory"),
        (("gp3", "io2bx", "--script", "tpcc"), "tpcc"),
        (("gp3", "io2bx", "--set", "fsync=off"), "fsync"),
        (("gp3:size=1GiB", "io2bx", "--scale", "500"), "scale"),
        (("gp3", "io2bx", "--pg-bin", "/nowhere"), "/nowhere"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_happens(
    arguments: tuple[str, ...], said: str, state_dir: Path, tmp_path: Path
) -> None:
    command = pgdyno("compare", *arguments, "--results", str(tmp_path / "results"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "remedy:" in done.stderr
    assert not (tmp_path / "results").exists()

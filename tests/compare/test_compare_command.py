"""``pgdyno compare`` as a user runs it: small, real, interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pgdyno.machine import awake
from pgdyno.machine.clean import left_in
from pgdyno.machine.mounts import mounts_below
from pgdyno.machine.volume import list_volumes
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_experiment
from tests.support.commands import pgdyno

pytestmark = [pytest.mark.needs_fuse, pytest.mark.sets_limits, pytest.mark.slow]

SCHEMA = Path(__file__).parents[2] / "schema" / "compare.schema.json"
TINY = ("--scale", "2", "--memory", "96MiB", "--warmup", "1s", "--duration", "2s", "-c", "4")


def words(*arguments: str) -> list[str]:
    """The command line of the package under test, for a process of its own."""
    return [sys.executable, "-m", "pgdyno", *arguments]


def test_json_fits_the_schema_and_the_record_repeats_the_experiment(state_dir: Path, tmp_path: Path) -> None:
    command = words("compare", "gp3", "io2bx", *TINY, "-n", "1", "--json", "--keep-invalid", "--results", str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert [arm["volume"] for arm in document["arms"]] == ["gp3", "io2bx"]
    assert all(arm["tps"]["n"] == 1 for arm in document["arms"])
    assert Path(document["report"]).read_text().startswith("<!doctype html>")
    assert "run 2 of 2" in done.stderr

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
    assert by_block[1, "gp3"] == by_block[1, "io2bx"]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.bench)])
def test_an_interrupted_command_undoes_everything(number: signal.Signals, state_dir: Path, tmp_path: Path) -> None:
    command = words("compare", "gp3", "io2bx", *TINY, "--results", str(tmp_path))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "replicate 1 of" in line:
                process.send_signal(number)
        assert process.wait(60) == 130
    assert left_in(state_dir) == []
    assert mounts_below(state_dir) == []


DRIVERS = {"native": ("pgdyno-engine", "drive"), "pgbench": ("pgbench",)}
"""Engine of a workload -> how the command line of its process begins, without folders."""


def _driven_by(pid: int, engine: str) -> bool:
    """Whether that process has this driver at work: a child that has its command line."""
    wanted = DRIVERS[engine]
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            program, *arguments = Path(f"/proc/{child}/cmdline").read_text().rstrip("\0").split("\0")
            if (Path(program).name, *arguments)[: len(wanted)] == wanted:
                return True
    return False


@pytest.mark.parametrize(
    ("victim", "engine"),
    [pytest.param("server", "native", id="server"), pytest.param("daemon", "pgbench", id="daemon")],
)
def test_what_died_during_a_run_is_named_and_its_log_is_kept(
    victim: str, engine: str, state_dir: Path, tmp_path: Path
) -> None:
    texts = ("null", "null", *TINY[:-2], "-c", "2", "--duration", "600s", "--results", str(tmp_path))
    texts += ("--set", f"workload.engine={engine}")
    with subprocess.Popen(words("compare", *texts), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "replicate 1 of" in line:
                break
        assert wait_until(lambda: _driven_by(process.pid, engine) or process.poll() is not None, 60.0)
        assert process.poll() is None, process.stderr.read()
        (attached,) = list_volumes(state_dir)
        (lock,) = (state_dir / "mounts").glob("*/**/postmaster.pid")
        pid = int(lock.read_text().splitlines()[0]) if victim == "server" else attached.daemon.pid
        os.kill(pid, signal.SIGKILL)
        try:
            _, result = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.terminate()
            pytest.fail("the run goes on without what died")
        assert process.returncode == 1, result
    expected = (
        "PostgreSQL was killed by signal 9 after " if victim == "server" else "the daemon of the data volume died"
    )
    assert f"error: {expected}" in result
    assert "volume detach" not in result
    (kept,) = tmp_path.glob("*-compare-*/failed/*")
    assert f"the logs are kept in {kept}" in result
    assert "database system is ready" in (kept / "postgresql.log").read_text()
    assert (kept / {"native": "drive.err", "pgbench": "pgbench.err"}[engine]).is_file()
    assert (kept / "volume-data.log").is_file() is (victim == "daemon")
    assert not list(tmp_path.glob("*/experiment.json"))
    assert left_in(state_dir) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gp3",), "at least two volumes"),
        (("gp3", "gp4"), "gp4"),
        (("gp3", "gp3:iops=20000,size=10GiB"), "500 IOPS per GiB"),
        (("gp3", "io2bx", "--memory", "lots"), "--memory"),
        (("gp3", "io2bx", "--script", "tpcc"), "tpcc"),
        (("gp3", "io2bx", "--setting", "fsync=off"), "--setting: postgres.parameters: fsync"),
        (("gp3", "io2bx", "--set", "workload.clinets=4"), "did you mean `clients`"),
        (("gp3", "io2bx", "--set", "world.volume=null"), "world.volume is a factor"),
        (("gp3:size=1GiB", "io2bx", "--scale", "500"), "scale"),
        (("gp3", "io2bx", "--pg-bin", "/nowhere"), "/nowhere"),
        (("gp3", "io2bx", "--server-cpus", "99"), "--server-cpus: this machine offers no CPU 99"),
        (("gp3", "io2bx", "--driver-cpus", "0,98-99"), "--driver-cpus: this machine offers no CPU 98, 99"),
        (("gp3", "io2bx", "--mount-options", "bogus"), "--mount-options: the mount option `bogus` is refused"),
        (("gp3", "io2bx", "-c", "90", "--settings", "defaults"), "need 110 connections, and the server takes 100"),
        (("gp3", "io2bx", "--duration", "100000000h"), "`100000000h` is longer than a year"),
        (("gp3", "io2bx", "--duration", "200h"), "a run takes 8 d 08 h, and may take 7 d 00 h"),
        (("gp3", "io2bx", "--duration", "1h", "--dilation", "1000"), "at dilation 1000, and may take"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_happens(
    arguments: tuple[str, ...], said: str, state_dir: Path, tmp_path: Path
) -> None:
    refused = pgdyno("compare", *arguments, "--results", tmp_path / "results", code=2).err
    assert said in refused
    assert "remedy:" in refused
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("further", "each"), [((), 1), (("--client-rtt-ms", "1"), 2)])
def test_more_clients_than_open_files_are_refused_before_anything_happens(
    further: tuple[str, ...], each: int, state_dir: Path, tmp_path: Path
) -> None:
    allowed = 400
    command = words("compare", "gp3", "io2bx", "-c", "399", *further, "--results", str(tmp_path / "results"))
    limited = ["prlimit", f"--nofile={allowed}:{allowed}", *command]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "--clients: 399 clients need 463 open files in the driver (native), and 400 are allowed" in done.stderr
    assert "remedy: use at most 336 clients, or raise the limit: `ulimit -n 463`" in done.stderr
    assert not (tmp_path / "results").exists()
    if further:
        command[command.index("399")] = "300"
        done = subprocess.run(limited[:2] + command, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done.stderr
        assert f"300 clients need {each * 300 + 64} open files in the relay" in done.stderr

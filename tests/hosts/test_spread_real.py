"""``pgdyno run --spread`` on emulated volumes, by ``make bench ONLY=hosts``: one host, since those of one machine share its dirty limits."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_OK
from pgdyno.machine.waiting import wait_until
from pgdyno.results import open_experiment
from tests.support.commands import pgdyno

from . import there
from .apart import apart
from .conftest import DAY_S
from .test_experiment import TRIAL
from .test_kills import left
from .test_spread import GONE_S, flags, idle, state_of, with_state

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse, pytest.mark.sets_limits]


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    path = tmp_path / "trial.toml"
    path.write_text(TRIAL.replace("replicates = 1", "replicates = 2"))
    return path


@pytest.fixture
def alpha(state_dir: Path) -> Iterator[there.Place]:
    """A host with a network and a clock of its own, where that is allowed."""
    with apart((DAY_S,), first=3) as made:
        where = made[0].place if made else there.Place("127.0.0.6")
        yield with_state(where, state_dir)


@pytest.fixture
def hosts(alpha: there.Place, tmp_path: Path) -> Iterator[there.Hosts]:
    with there.hosts(tmp_path, alpha.here, {}) as hosts:
        yield hosts


def test_runs_on_emulated_volumes_come_back_whole(
    hosts: there.Hosts, alpha: there.Place, trial: Path, tmp_path: Path
) -> None:
    with hosts.worker("alpha", alpha) as worker:
        run = ("run", trial, *flags(hosts), "--results", tmp_path / "results", "--keep-invalid")
        pgdyno(*run, code=EXIT_OK)
        assert wait_until(lambda: idle(worker), GONE_S)
        assert left(state_of(alpha), alpha) == []
    experiment = open_experiment(next((tmp_path / "results").iterdir()))
    assert [run.record.world.host.label for run in experiment.runs] == ["alpha", "alpha"]
    for run in experiment.runs:
        assert all(check.ok for check in run.record.checks), run.record.checks
        assert run.record.account.succeeded > 0
        assert {"server", "driver"} <= set(run.table("probe/cpu")["role"].to_pylist())
    [load] = (experiment.path / "loads").iterdir()
    assert load.name.startswith("00-alpha-") and (load / "load.json").is_file()
    assert "alpha" in (experiment.path / "report.html").read_text()


def test_a_worker_that_is_killed_in_a_run_leaves_no_volume(
    hosts: there.Hosts, alpha: there.Place, trial: Path, tmp_path: Path
) -> None:
    trial.write_text(trial.read_text().replace('duration = "2s"', 'duration = "30s"'))
    command = [sys.executable, "-m", "pgdyno", "run", str(trial), *flags(hosts), "--results", str(tmp_path / "results")]
    with hosts.worker("alpha", alpha) as worker, contextlib.ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        stack.callback(process.kill)
        results, volumes = tmp_path / "results", state_of(alpha) / "volumes"
        assert wait_until(lambda: any(results.glob("*/runs/*.partial")), 2 * GONE_S), "a run has begun"
        assert wait_until(lambda: any(volumes.iterdir()), GONE_S), "it has a volume"
        runs = there.children(worker.process.pid)
        worker.process.kill()
        _, err = process.communicate(timeout=2 * GONE_S)
        assert process.returncode == 3 and b"no host is left" in err, err.decode()
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in runs), 2 * GONE_S)
        assert left(state_of(alpha), alpha, worker.process.pid) == []
    assert not list(tmp_path.glob("results/*/runs/*"))

"""``pgdyno run --drivers``: the server here on its volumes, the drivers there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_OK, EXIT_USAGE, InputError
from pgdyno.cli.main import run as command
from pgdyno.flow.plan import plan
from pgdyno.hosts import connection
from pgdyno.machine.clean import left_in
from pgdyno.results import open_experiment
from tests.experiment.documents import experiment
from tests.support.commands import pgdyno

from . import there

TRIAL = """\
schema_version = 1
replicates = 1

[world]
volume = "null"

[instance]
memory = "96MiB"

[workload]
script = "select-only"
scale = 2
clients = 4
threads = 2
warmup = "0s"
duration = "2s"
"""


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
@pytest.mark.parametrize("programs", ["embedded", pytest.param("package", marks=pytest.mark.needs_system_postgres)])
def test_drivers_of_other_hosts_come_to_a_record_and_a_report(
    two: there.Hosts, state_dir: Path, tmp_path: Path, programs: str, request: pytest.FixtureRequest
) -> None:
    """With a PostgreSQL that has TLS, all that comes by TCP is encrypted: `pg_hba.conf` lets nothing else in."""
    trial, results = tmp_path / "trial.toml", tmp_path / "results"
    has_tls = programs == "package"
    own = f'[postgres]\nbin = "{request.getfixturevalue("system_postgres")}"\n' if has_tls else ""
    trial.write_text(TRIAL + own)
    hosts = two.file(tmp_path, "alpha = 1\ngamma = 1")
    assert command(["run", str(trial), "--drivers", str(hosts), "--results", str(results), "--keep-invalid"]) == EXIT_OK
    experiment = open_experiment(next(results.iterdir()))
    [run] = experiment.runs
    record = run.record
    assert all(check.ok for check in record.checks), record.checks
    assert (list(record.drivers), record.client.rtt_ms) == (["alpha", "gamma"], None)
    assert all(driver.host is not None and driver.host.rtt_ms for driver in record.drivers.values())
    assert experiment.record.settings["client"]["drivers"] == {"alpha": 1, "gamma": 1}
    roles = set(run.table("probe/cpu")["role"].to_pylist())
    assert "server" in roles and "driver" not in roles, "its CPU is another host's"
    listens = {row["name"]: row["setting"] for row in run.table("postgres/settings").to_pylist()}
    assert (listens["listen_addresses"], listens["ssl"]) == (two.here, "on" if has_tls else "off")
    text = (experiment.path / "report.html").read_text()
    assert "on alpha, gamma" in text and "round trips to the server of alpha" in text
    assert left_in(state_dir) == []


def named(tmp_path: Path, more: str = "", drivers: str = "alpha = 1\nbeta = 2") -> connection.HostsFile:
    path = tmp_path / "hosts.toml"
    path.write_text(f'schema_version = 1\nscheduler = "tls://10.0.0.5"\nkeys = "k"\n{more}\n[drivers]\n{drivers}\n')
    return connection.read(path)


WORKLOAD = {"clients": 6, "threads": 3}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"client": {"drivers": {"alpha": 1}, "rtt_ms": 1}}, "client.rtt_ms: the drivers are on other hosts"),
        ({"workload": WORKLOAD | {"engine": "pgbench"}}, "can begin at a given instant, not pgbench"),
        ({"workload": WORKLOAD | {"driver_cpus": "0"}}, "workload.driver_cpus: the drivers are on other hosts"),
        ({"workload": {"clients": 6}}, "each of 2 drivers needs a thread, and alpha would get none of 1"),
        ({"client": {"drivers": {"alpha": 0}}}, "client.drivers"),
        ({"client": {"drivers": {}}}, "client.drivers"),
    ],
)
def test_what_drivers_elsewhere_cannot_do_is_refused(tables: dict[str, dict[str, object]], said: str) -> None:
    with pytest.raises(InputError) as caught:
        experiment(**{"client": {"drivers": {"alpha": 1, "beta": 2}}, "workload": WORKLOAD} | tables)
    assert said in str(caught.value)


def test_hosts_that_no_file_names_are_refused(tmp_path: Path) -> None:
    result = experiment(client={"drivers": {"alpha": 1, "delta": 2}}, workload=WORKLOAD)
    assert result.arms[0].client.weights == (1, 2)
    with pytest.raises(InputError, match="nothing says where those are"):
        plan(result, to_run=False)
    with pytest.raises(InputError, match=r"hosts\.toml does not name delta"):
        plan(result, to_run=False, hosts=named(tmp_path))
    with pytest.raises(InputError, match="listen is missing"):
        plan(result, to_run=False, hosts=named(tmp_path, drivers="alpha = 1\ndelta = 1"))
    plan(result, to_run=False, hosts=named(tmp_path, 'listen = "10.0.0.1"', "alpha = 1\ndelta = 1"))


def test_all_hosts_of_the_file_drive_unless_the_experiment_names_some(tmp_path: Path) -> None:
    hosts = named(tmp_path, 'listen = "10.0.0.1"').path
    trial = tmp_path / "trial.toml"
    trial.write_text(TRIAL.replace("threads = 2", "threads = 1"))
    ended = pgdyno("run", trial, "--drivers", hosts, "--dry-run", code=EXIT_USAGE)
    assert "alpha would get none of 1" in ended.err or "beta would get none of 1" in ended.err, "both"
    trial.write_text(TRIAL + "[client]\ndrivers = { beta = 1 }\n")
    assert pgdyno("run", trial, "--drivers", hosts, "--dry-run", code=EXIT_OK).err == ""

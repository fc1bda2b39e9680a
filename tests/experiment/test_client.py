"""Where the client stands: what an experiment may ask, and what a run at a distance comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import InputError
from pgdyno.machine.clean import left_in
from pgdyno.results import open_experiment
from pgdyno.workload import histogram
from tests.experiment.documents import experiment
from tests.experiment.test_run_command import run

if TYPE_CHECKING:
    from pathlib import Path

RTT_MS = 5.0
TRIAL = f"""\
schema_version = 1
title = "One client, here and far away"
replicates = 1

[world]
volume = "null"

[instance]
memory = "96MiB"

[workload]
script = "select-only"
scale = 2
clients = 1
warmup = "1s"
duration = "2s"

[factors]
"client.rtt_ms" = [0, {RTT_MS}]
"""


def test_the_distance_is_none_unless_it_is_asked_for() -> None:
    near, far = experiment(), experiment(client={"rtt_ms": 0.5})
    assert near.arms[0].client.rtt_ms == 0
    assert far.arms[0].client.rtt_ms == 0.5
    assert near.identity() != far.identity(), "results at another distance are not pooled"


def test_a_distance_can_be_a_factor() -> None:
    result = experiment(factors={"client.rtt_ms": [0, 0.5]})
    assert [(arm.label, arm.client.rtt_ms) for arm in result.arms] == [("rtt_ms 0", 0), ("rtt_ms 0.5", 0.5)]


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"client": {"rtt_ms": -1}}, "client.rtt_ms"),
        ({"client": {"rtt_ms": 5000}}, "client.rtt_ms"),
        ({"client": {"rtt": 1}}, "did you mean"),
        ({"world": {"kind": "real", "dsn": "host=db.example"}, "client": {"rtt_ms": 1}}, "client.rtt_ms: a distance"),
    ],
)
def test_what_cannot_be_is_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        experiment(**tables)
    assert said in str(caught.value)


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
@pytest.mark.slow
def test_each_transaction_of_a_distant_client_takes_a_round_trip(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(TRIAL)
    run(str(file), "--results", str(tmp_path / "results"), "--keep-invalid")
    experiment = open_experiment(next((tmp_path / "results").iterdir()))
    near, far = sorted(experiment.runs, key=lambda run: run.record.arm_index)
    for stored_run in (near, far):
        assert all(check.ok for check in stored_run.record.checks), stored_run.record.checks
    assert (near.record.client.rtt_ms, near.record.client.relay) == (0, {})
    relay = far.record.client.relay
    assert (far.record.client.rtt_ms, relay["rtt_ns"]) == (RTT_MS, RTT_MS * 1e6)
    # A prepared statement is one question and one answer.
    done = far.record.account.succeeded
    assert 0 < done <= far.record.measure.seconds * 1000 / RTT_MS + 1
    assert near.record.account.succeeded > done
    assert relay["to_server"]["chunks"] >= done
    assert histogram.decode(relay["to_client"]["late_ns"]).get_total_count() == relay["to_client"]["chunks"]
    listens = {row["name"]: row["setting"] for row in far.table("postgres/settings").to_pylist()}
    assert listens["listen_addresses"] == "127.0.0.1", "nobody on another machine reaches the server"
    roles = set(far.table("probe/cpu")["role"].to_pylist())
    assert "relay" in roles
    assert "relay" not in near.table("probe/cpu")["role"].to_pylist()
    for stored_run in (near, far):
        latency = stored_run.table("workload/latency")
        least_us = RTT_MS * 1000 if stored_run is far else 0
        assert min(latency["latency_us"].to_pylist()) >= least_us * 0.999, "a bucket is named by its lowest value"
    text = (tmp_path / "results" / experiment.path.name / "report.html").read_text()
    assert "client: local, 0 ms and behind 5 ms round trip (emulated)" in text
    assert left_in(state_dir) == []


def test_a_round_trip_that_no_login_would_outlast_is_refused() -> None:
    """At dilation 10 a round trip of one second takes ten of this machine's, and a login five of those."""
    world = {"volume": "gp3", "dilation": 10}
    with pytest.raises(InputError, match="a round trip of 1000 ms takes 10 s at dilation 10, and may take 5"):
        experiment(world=world, client={"rtt_ms": 1000})
    assert experiment(world=world, client={"rtt_ms": 500}).arms[0].client.rtt_ms == 500
    assert experiment(client={"rtt_ms": 1000}).arms[0].client.rtt_ms == 1000


def test_one_driver_is_the_same_experiment_as_before_there_were_several() -> None:
    result, also_one, four, same_four = (
        experiment(client=client, workload={"threads": 4})
        for client in ({}, {"drivers": 1}, {"drivers": 4}, {"drivers": [1, 1, 1, 1]})
    )
    assert "drivers" not in result.identity()["client"]
    assert result.identity() == also_one.identity()
    assert four.identity() == same_four.identity() != result.identity()
    assert four.arms[0].client.drivers == (1, 1, 1, 1)


def test_the_number_of_drivers_can_be_a_factor() -> None:
    result = experiment(factors={"client.drivers": [1, 4, [2, 1]]}, workload={"threads": 4, "clients": 8})
    assert [arm.label for arm in result.arms] == ["drivers 1", "drivers 4", "drivers 2, 1"]


@pytest.mark.parametrize(
    ("drivers", "workload", "said"),
    [
        (2, {}, "client.drivers: each of 2 drivers needs a thread, and driver 1 would get none of 1"),
        (0, {}, "client.drivers"),
        ([], {}, "client.drivers"),
        (True, {}, "client.drivers"),
        ([1, 0], {}, "client.drivers"),
        (65, {"threads": 65, "clients": 65}, "client.drivers"),
        (2, {"threads": 2, "engine": "pgbench"}, "only pgdyno's own driver can begin at a given instant, not pgbench"),
        (2, {"kind": "tpch"}, "only pgdyno's own driver can begin at a given instant"),
    ],
)
def test_drivers_that_cannot_share_the_load_are_refused(drivers: Any, workload: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        experiment(client={"drivers": drivers}, workload=workload)
    assert said in str(caught.value)


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
@pytest.mark.slow
def test_drivers_that_share_a_load_come_to_one_record(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    shared = TRIAL.replace(f'"client.rtt_ms" = [0, {RTT_MS}]', '"client.drivers" = [1, 2]')
    file.write_text(shared.replace("clients = 1\n", "clients = 4\nthreads = 2\n"))
    run(str(file), "--results", str(tmp_path / "results"), "--keep-invalid")
    experiment = open_experiment(next((tmp_path / "results").iterdir()))
    result, two = sorted((each.record for each in experiment.runs), key=lambda record: record.arm_index)
    assert (result.drivers, list(two.drivers)) == ({}, ["driver 1", "driver 2"])
    for each in (result, two):
        assert all(check.ok for check in each.checks), each.checks
    assert two.driver is not None
    assert two.driver.transactions == sum(each.transactions or 0 for each in two.drivers.values())
    text = (tmp_path / "results" / experiment.path.name / "report.html").read_text()
    assert "driven by pgdyno&#x27;s driver and 2 processes of pgdyno&#x27;s driver" in text.replace("&#39;", "&#x27;")
    assert left_in(state_dir) == []

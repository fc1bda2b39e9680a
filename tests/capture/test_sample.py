"""`kind = "sample"`: transactions of a capture, drawn for any number of clients."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment import read_experiment
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.sample import SampleKind
from pgdyno.workload.outcome import RunRequest
from pgdyno.world.client_endpoint import ReachedServer

from .counted import copy_of
from .experiment import ran
from .test_replay_kind import FILE, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.results.record import Check
    from pgdyno.server.cluster import Cluster
    from pgdyno.workload.outcome import Outcome

    from .shop import Shop
    from .sold import Sold

SIGMAS = 6.0
"""Of a count that is drawn: one in half a billion is further away."""


def sampled(cluster: Cluster, database: str, capture: Path, folder: Path, **keys: Any) -> tuple[Outcome, list[Check]]:
    """A run of some seconds, and what is proven of it."""
    table = {"clients": 4, "warmup": "0s", "duration": "2s", "database": {"from": "nowhere.dump"}} | keys
    spec = workload_of(kind="sample", capture=str(capture), seed=7, **table)
    assert isinstance(spec, SampleKind)
    server = ReachedServer(cluster.dsn_of("postgres", database), cluster.binaries, None)
    outcome = spec.runner()(server, RunRequest(duration_s=2, out_dir=folder))
    return outcome, [*outcome.checks, *spec.proofs(server, outcome)]


def test_transactions_have_the_keys_of_this_run_and_each_is_drawn_as_often_as_any_other(
    sold: Sold, tmp_path: Path
) -> None:
    outcome, checks = sampled(
        sold.cluster, copy_of(sold.cluster, "unsold", "drawn"), sold.capture, tmp_path, users=("seller",)
    )
    account = outcome.account_total
    assert (account.failed, outcome.driver.errors) == (0, {})
    assert all(check.ok for check in checks), checks
    with sold.cluster.connect(dbname="drawn") as connection:
        counted = "SELECT (SELECT count(*) FROM orders WHERE note NOT LIKE 'old%'), (SELECT count(*) FROM lines), (SELECT count(*) FROM shipments)"
        made, lines, shipments = connection.execute(counted).fetchone() or (0, 0, 0)
    # Each order has its two lines, by its own key, and is shipped at most once, as in production.
    assert lines == 2 * made > 0
    assert 0 < shipments <= made
    assert outcome.statement is not None
    drawn: Counter[str] = Counter()
    for name, count in zip(
        outcome.statement["statement"].to_pylist(), outcome.statement["count"].to_pylist(), strict=True
    ):
        drawn[name] += count
    # One kind of order needs no other's key, and is made as often as each of the two others.
    ways = ("SELECT place($1)", "SELECT currval(?)", "INSERT INTO orders (note) VALUES ($1) RETURNING id, ref")
    place, currval, returning = (drawn[way] for way in ways)
    # With an order that is rolled back to a savepoint before each.
    for count in (currval, returning / 2):
        assert abs(count - place) < SIGMAS * math.sqrt(2 * place), drawn


def test_sent_as_captured_they_are_not_there(sold: Sold, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"users": ("seller",), "keys": "captured"}
    outcome, _ = sampled(sold.cluster, copy_of(sold.cluster, "unsold", "undrawn"), sold.capture, tmp_path, **keys)
    assert outcome.account_total.failed > 0.01 * outcome.account_total.scheduled
    assert outcome.driver.errors.keys() >= {"23503"}


def test_what_its_session_had_set_holds_for_a_transaction_and_the_rate_is_the_asked_one(
    shop: Shop, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {"users": ("setter",), "rate_per_s": 50, "arrivals": "fixed"}
    outcome, checks = sampled(shop.cluster, shop.copy("settled"), shop.capture, tmp_path, **keys)
    # The only statement of the role finds its table by the search_path that was set before it.
    assert outcome.account_total.failed == 0
    # Every 20 ms in the 2.5 s in which transactions begin; what is late is not lost.
    assert outcome.account_total.scheduled in (124, 125)
    assert all(check.ok for check in checks), checks


def test_a_transaction_that_begins_some_microseconds_before_its_time_is_counted_from_its_begin(
    shop: Shop, tmp_path: Path
) -> None:
    # An answer to another client often wakes the thread within that time, and its turn comes then.
    keys: dict[str, Any] = {"users": ("setter",), "rate_per_s": 4000, "clients": 8}
    outcome, _ = sampled(shop.cluster, shop.copy("early"), shop.capture, tmp_path, **keys)
    assert outcome.account_total.succeeded > 0 == outcome.account_total.failed


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_a_sample_runs_on_volumes_and_its_record_has_no_value(
    sold: Sold, tmp_path: Path, state_dir: Path, image_dir: Path
) -> None:
    del state_dir, image_dir
    keys = ('users = ["seller"]', "clients = 2", 'warmup = "1s"', 'duration = "3s"')
    result = ran(sold.cluster, "unsold", sold.capture, tmp_path, *keys, kind="sample")
    (run,) = result.runs
    assert run.record.account.failed == 0 < run.record.account.succeeded
    assert {check.name: check.ok for check in run.record.checks}["keys_given"]
    assert run.record.workload["capture"] == sold.capture.name
    assert run.record.metric == "tps"
    # What the server said of each statement, and what pgdyno kept of it, has none of the notes.
    kept = {
        path: texts_of(path)
        for path in result.directory.rglob("*")
        if path.is_file() and path.name != "experiment.toml"
    }
    assert [path for path, text in kept.items() if "ships 0-" in text or "pays 0-" in text] == []


SAMPLE = FILE.replace('"replay"', '"sample"')
KEYS: dict[str, tuple[str, str]] = {
    "protocol": ('protocol = "simple"', "each statement is sent as it was"),
    "threads": ("threads = 2\nclients = 1", "a thread needs a client"),
    "tries": ("tries_max = 3", "what the application tried again is in the capture"),
    "speed": ("speed = 2", 'it is for kind = "replay"'),
    "think": ("think_ms = 5\nrate_per_s = 5", "clients of an open loop (rate_per_s) do not think"),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_that_do_not_go_with_a_sample_are_refused(tmp_path: Path, name: str) -> None:
    lines, message = KEYS[name]
    path = tmp_path / "experiment.toml"
    path.write_text(SAMPLE.replace('kind = "sample"', f'kind = "sample"\n{lines}'))
    with pytest.raises(InputError) as caught:
        read_experiment(path)
    assert message in f"{caught.value.message}; {caught.value.remedy}"


def test_clients_and_rates_of_a_sample_can_be_factors(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(
        SAMPLE.replace("[workload.database]", '[factors]\n"workload.clients" = [1, 8]\n[workload.database]')
    )
    workloads = [arm.workload for arm in read_experiment(path).arms]
    assert [workload.clients for workload in workloads if isinstance(workload, SampleKind)] == [1, 8]


def test_a_sample_has_one_driver(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(SAMPLE.replace("[workload]", "[client]\ndrivers = 2\n[workload]"))
    with pytest.raises(InputError, match='kind = "sample" has one driver'):
        read_experiment(path)

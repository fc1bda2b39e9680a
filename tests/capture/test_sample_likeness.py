"""How near a sample is to a replay of the same capture, and two replays to production: measurements, on a capture of twenty thousand transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.replay import unlike
from pgdyno.kinds.registry import workload_of
from pgdyno.kinds.replay.capture import counted, grown
from pgdyno.kinds.replay.run import ReplayRunner
from pgdyno.kinds.replay.selection import ReplaySelection
from pgdyno.workload.outcome import RunRequest
from pgdyno.world.client_endpoint import ReachedServer

from .experiment import ran
from .logged import logging_cluster
from .things import SESSIONS, Things, captured_things

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.workload.outcome import Outcome

pytestmark = pytest.mark.bench
ROUNDS = 1400
TRANSACTIONS = 3 * SESSIONS * ROUNDS
SEEDS = 10
SHARE_MOST = 0.05
"""Issue 21: WAL bytes, blocks and rows of a transaction, in ten draws of the seed."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Things]:
    """The capture. Whole pages in the WAL follow from checkpoints, and not from what is asked, so there are none."""
    settings = {"shared_preload_libraries": "pg_stat_statements", "full_page_writes": "off"}
    with logging_cluster(None, **settings) as cluster:
        yield captured_things(cluster, tmp_path_factory.mktemp("many"), name="many", rounds=ROUNDS)


def of_transaction(many: Things, database: str, outcome: Outcome) -> dict[str, float]:
    """What pg_stat_statements has counted in a database, by transaction."""
    with many.cluster.connect(dbname=database) as connection:
        each = grown((), counted(connection), {"many_worker"}).values()
    done = outcome.account_total.succeeded
    return {name: sum(getattr(item, name) for item in each) / done for name in ("rows", "wal_bytes", "blocks")}


def reached(many: Things, database: str) -> ReachedServer:
    """A copy of the database as it was before the capture, for its role."""
    return ReachedServer(many.cluster.dsn_of("postgres", many.copy(database)), many.cluster.binaries, None)


def test_a_sample_does_the_work_of_a_replay_whatever_its_seed(many: Things, tmp_path: Path) -> None:
    selection = ReplaySelection(str(many.capture), users=("many_worker",))
    seconds = selection.planned().part_s
    replayed = ReplayRunner(selection)(
        reached(many, "replayed"), RunRequest(duration_s=600, out_dir=tmp_path / "replay")
    )
    wanted = of_transaction(many, "replayed", replayed)
    assert replayed.account_total.succeeded == TRANSACTIONS
    table: dict[str, Any] = {
        "database": {"from": "nowhere.dump"},
        "capture": str(many.capture),
        "users": ("many_worker",),
        "clients": SESSIONS,
        "arrivals": "fixed",
    }
    beyond = {}
    for seed in range(1, SEEDS + 1):
        sample = workload_of(kind="sample", **table, rate_per_s=TRANSACTIONS / seconds, warmup="0s").seeded(seed)
        name = f"seed_{seed}"
        request = RunRequest(duration_s=seconds, out_dir=tmp_path / name)
        outcome = sample.runner()(reached(many, name), request)
        assert outcome.account_total.failed == 0
        transaction = of_transaction(many, name, outcome)
        ratios = {figure: transaction[figure] / wanted[figure] for figure in wanted}
        print(f"seed {seed}: " + ", ".join(f"{ratio:.3f} times the {figure}" for figure, ratio in ratios.items()))
        beyond |= {(seed, figure): ratio for figure, ratio in ratios.items() if abs(ratio - 1) > SHARE_MOST}
    assert beyond == {}


@pytest.mark.needs_fuse
def test_the_same_replay_twice_on_a_volume_without_limits_does_what_production_did(
    many: Things, tmp_path: Path, state_dir: Path, image_dir: Path
) -> None:
    del state_dir, image_dir
    document: dict[str, Any] = {"kind": "replay", "stats": many.stats, "replicates": 2}
    runs = ran(many.cluster, "many_before", many.capture, tmp_path, 'users = ["many_worker"]', **document).runs
    assert len(runs) == 2
    for run in runs:
        assert run.record.replay is not None and run.record.replay.likeness is not None
        likeness = run.record.replay.likeness
        assert unlike(likeness) == []
        counts = {
            statement.statement: (statement.production.calls, statement.here.calls) for statement in likeness.statements
        }
        print(counts)
        assert all(there == here for there, here in counts.values()), counts

"""What the volumes of a server that existed already were bought as: said by the user, resolved, recorded, used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.base import engine
from pgdyno.base.errors import InputError
from pgdyno.experiment import Experiment
from pgdyno.flow import cell
from pgdyno.flow.run import execute, plan
from pgdyno.world.resolved import existing_arms
from tests.support.servers import cluster

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.server.cluster import Cluster

__all__ = ["cluster"]


def experiment(dsn: str, **world: Any) -> Experiment:
    """A short one on a server that is there."""
    workload = {"script": "select-only", "scale": 1, "clients": 2, "warmup": "0s", "duration": "2s"}
    document = {
        "schema_version": 1,
        "replicates": 1,
        "world": {"kind": "real", "dsn": dsn, **world},
        "workload": workload,
    }
    return Experiment.of(document)


def test_what_was_bought_is_recorded_with_its_price_and_what_else_is_sold(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = experiment(cluster.dsn, bought={"data": "gp3:iops=6000", "wal": "io2bx:iops=2000"})
    prepared = plan(result, yes_create=True)
    with monkeypatch.context() as patched:
        # An engine that started for prices now would take CPU from what is measured: offers are looked for when all of it is written.
        patched.setattr(engine.Conversation, "ask", lambda *_: pytest.fail("the catalogue was asked during a run"))
        patched.setattr(cell, "of_run", lambda run: run.record)
        directory = execute(prepared, root=tmp_path, command=("pgdyno", "run"))
    comparison = summarise(directory)
    world = comparison.arms[0].replicates[0].figures.record.world
    assert world.kind == "real"
    assert world.volumes["data"].spec["limits"]["iops"] == 6000
    assert world.volumes["data"].price is not None and world.volumes["data"].price.usd_per_gib_month == 0.08
    assert world.volumes["data"].attach == {}
    binding = comparison.bindings[0]
    assert set(binding.representative.evidence.given.bought) == {"data", "wal"}
    assert "what the volume was bought with is not known" not in binding.missing
    assert comparison.arms[0].usd_per_month is not None


def test_what_cannot_have_been_bought_is_refused(cluster: Cluster) -> None:
    with pytest.raises(InputError, match="gp9"):
        existing_arms(experiment(cluster.dsn, bought={"data": "gp9"}))
    with pytest.raises(InputError, match="a volume cannot be for `logs`"):
        experiment(cluster.dsn, bought={"logs": "gp3"})


def test_an_emulated_world_has_the_volumes_that_it_names() -> None:
    document = {"schema_version": 1, "world": {"volume": "gp3", "bought": {"data": "gp3"}}}
    with pytest.raises(InputError, match='bought is for kind = "real"'):
        Experiment.of(document)

"""A capture sent to a server of the user's: as an experiment, and by `pgdyno drive`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment import read_experiment
from pgdyno.results import open_experiment
from pgdyno.server.remote import RemoteServer

from ..support.commands import pgdyno
from .counted import copy_of
from .shop import FAILING, Shop

if TYPE_CHECKING:
    from pathlib import Path

    from .sold import Sold

FILE = """
schema_version = 1
replicates = 1
[world]
kind = "real"
dsn = "{dsn}"
[workload]
kind = "replay"
capture = "{capture}"
users = ["app"]
"""


def written(folder: Path, shop: Shop, dsn: str, more: str = "") -> Path:
    """An experiment file."""
    path = folder / "experiment.toml"
    path.write_text(FILE.format(dsn=dsn, capture=shop.capture) + more)
    return path


def test_a_capture_is_replayed_once_on_a_copy_that_may_be_changed(shop: Shop, tmp_path: Path) -> None:
    file = written(tmp_path, shop, shop.cluster.dsn_of("postgres", shop.copy("existing")))
    results: list[str | Path] = ["run", file, "--results", tmp_path / "results", "--keep-invalid", "--json"]
    assert "add --yes-write" in pgdyno(*results, code=2).err
    assert "these are 2 runs on one" in pgdyno(*results, "--yes-write", "--replicates", "2", code=2).err
    assert shop.rows("existing") == shop.rows("before"), "nothing was sent"
    (arm,) = json.loads(pgdyno(*results, "--yes-write", code=0).out)["arms"]
    (account,) = arm["replay"]["accounts"]
    assert (account["failed_as_recorded"], account["newly_failed"]) == (FAILING, 0)
    assert shop.rows("existing") == shop.rows("shop") != shop.rows("before")
    (directory,) = (path for path in (tmp_path / "results").iterdir() if (path / "experiment.json").is_file())
    (run,) = open_experiment(directory).runs
    assert (run.record.world.kind, run.record.postgres.clock_shift_s) == ("real", None)


def test_roles_that_cannot_log_in_are_named_first(shop: Shop, tmp_path: Path) -> None:
    file = written(tmp_path, shop, shop.cluster.dsn_of("postgres", shop.copy("existing")))
    users = ("--set", 'workload.users=["app=missing"]')
    assert 'role "missing" does not exist' in pgdyno("run", file, *users, "--yes-write", code=2).err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('clock = "capture"', "only a server that pgdyno starts can have another time"),
        ('stats = ["a.json", "b.json"]', "pgdyno capture replay --stats"),
        ('database.from = "shop.dump"', "an existing server has its own"),
    ],
)
def test_keys_about_a_server_that_pgdyno_starts_are_refused(shop: Shop, tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_experiment(written(tmp_path, shop, "service=copy", more))
    assert said in f"{caught.value.message}; {caught.value.remedy}"


def test_each_role_has_its_own_session(shop: Shop) -> None:
    server = RemoteServer.open(shop.cluster.dsn, shop.cluster.binaries)
    document = server.endpoint.of("app", "before").document
    assert (document["user"], document["dbname"]) == ("app", "before")
    assert server.endpoint.document["user"] == "postgres"


def test_drive_draws_transactions_of_a_capture(sold: Sold) -> None:
    dsn = sold.cluster.dsn_of("postgres", copy_of(sold.cluster, "unsold", "driven"))
    results: list[Any] = ["drive", sold.capture, "--dsn", dsn, "--clients", "2", "--warmup", "0s", "--duration", "2s"]
    results += ["--user", "seller", "--database", "sold=driven"]
    assert "add --yes-write" in pgdyno(*results, code=2).err
    assert "--protocol would have no effect" in pgdyno(*results, "--yes-write", "--protocol", "simple", code=2).err
    assert "an embedded server has no copy" in pgdyno("drive", sold.capture, code=2).err
    document = json.loads(pgdyno(*results, "--yes-write", "--keep-invalid", "--json", code=0).out)
    assert document["failed"] == 0 < document["succeeded"]
    assert document["workload"]["capture"] == sold.capture.name
    with sold.cluster.connect(dbname="driven") as connection:
        counted = "SELECT (SELECT count(*) FROM orders WHERE note NOT LIKE 'old%'), (SELECT count(*) FROM lines)"
        made, lines = connection.execute(counted).fetchone() or (0, 0)
    # Each order has its two lines, by the key that it was given here.
    assert lines == 2 * made > 0

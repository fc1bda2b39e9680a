"""A stand on this machine: its server on its emulated volumes, with a role that may watch and nothing more."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from psycopg.conninfo import make_conninfo

from pgdyno.experiment import Experiment
from pgdyno.probe.sql import SqlProbe
from pgdyno.probe.visibility import look
from pgdyno.world import subject as subjects
from pgdyno.world.dataset import Dataset, DatasetKey, dataset_keys, loaded
from pgdyno.world.resolved import emulated_arms

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from pgdyno.world.resolved import ResolvedArm
    from tools.diagnose.scenarios import Stand

MONITOR = "monitor"
_ROLE = f"CREATE ROLE {MONITOR} LOGIN; GRANT pg_monitor TO {MONITOR}; CREATE ROLE hoarder LOGIN"
DATA_SET_BYTES = 16 << 30
"""Size of the volumes that data sets are made on: at most that of the smallest in the draw, so that all stands share them."""


class DataSets:
    """Data sets by what they are; each is filled once for the length of a ``with`` block."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._ending = contextlib.ExitStack()
        self._made: dict[DatasetKey, Dataset] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def of(self, experiment: Experiment, arm: ResolvedArm) -> Dataset:
        """The one that an arm starts from."""
        (key,) = dataset_keys(experiment, [arm]).values()
        key = replace(key, sizes=tuple((role, DATA_SET_BYTES) for role, _ in key.sizes))
        if key not in self._made:
            made = loaded({key: arm.binaries}, lambda _: lambda _share, _text: None, self._scratch, lambda _: None)
            self._made |= self._ending.enter_context(made)
        return self._made[key]


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    subject: subjects.Subject
    arm: ResolvedArm
    scratch: Path

    @property
    def monitor_dsn(self) -> str:
        """How the watch reaches it: as a role with pg_monitor and nothing more."""
        return self.dsn_of(MONITOR)

    def dsn_of(self, role: str) -> str:
        """How a role reaches it."""
        return make_conninfo(self.subject.server.dsn, user=role)

    def connect(self, role: str | None = None) -> psycopg.Connection[tuple[object, ...]]:
        """As a role, or as the superuser."""
        import psycopg

        return psycopg.connect(self.subject.server.dsn if role is None else self.dsn_of(role), autocommit=True)

    def warm(self) -> None:
        """Have in memory what a watch reads of the catalogs, as on a server that is connected to all the time.

        Otherwise each of some hundred pages waits in the queue of the load: 26 ms at an instance's limit, and the watch a minute.
        """
        look(self.monitor_dsn)
        with SqlProbe(self.monitor_dsn, watched=True):
            pass

    def data_directory(self) -> str:
        """Where its files are."""
        with self.connect() as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        return str(row[0])

    def program(self, name: str) -> str:
        """The path of one of the server's own programs."""
        return str(self.arm.binaries.program(name))


def _allow_replication(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Base backups and standbys, which a server of an experiment has not."""
    row = connection.execute("SHOW hba_file").fetchone()
    assert row is not None
    with Path(str(row[0])).open("a", encoding="utf-8") as file:
        file.write("local replication all trust\n")
    connection.execute("SELECT pg_reload_conf()")


@contextlib.contextmanager
def running(stand: Stand, data_sets: DataSets, scratch: Path) -> Iterator[Running]:
    """Start a stand's server; all of it is gone at the end of the ``with`` block."""
    experiment = Experiment.of(stand.document())
    (arm,) = emulated_arms(experiment)
    dataset = data_sets.of(experiment, arm)
    with subjects.emulated(
        arm,
        dataset,
        name=f"diagnose{stand.number}-{os.getpid()}",
        seed=stand.seed,
        watch=subjects.Stopwatch(),
        log=scratch / f"{stand.name}.log",
    ) as subject:
        running = Running(subject, arm, scratch)
        with running.connect() as connection:
            connection.execute(_ROLE)
            _allow_replication(connection)
        yield running

"""Tables in a schema on an existing server: pgdyno's own, which may be made, or those that HammerDB has built."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from pgdyno.experiment import Arm, Experiment
from pgdyno.workload.fill import Progress
from pgdyno.workload.tables import SchemaTables, Tables
from pgdyno.world import on_server
from pgdyno.world import subject as subjects
from pgdyno.world.base import PlannedRun, Preparation, PreparedWorld, RunOutcome, World
from pgdyno.world.dataset import create_tables, loader_of, missing_tables
from pgdyno.world.driver_hosts import connected
from pgdyno.world.fill import load_estimate_s
from pgdyno.world.resolved import ResolvedArm, existing_arms

from ..base.errors import InputError


class Real(World):
    """A server named by its connection string."""

    kind = "real"
    resumed_by_file = True

    def __init__(self, experiment: Experiment, arms: tuple[ResolvedArm, ...]) -> None:
        super().__init__(experiment, arms)
        self._missing: Tables | None = None
        self._yes_create = False
        self._removes = False

    @classmethod
    def open(cls, experiment: Experiment, *, to_run: bool, yes_create: bool) -> Self:
        """See :meth:`World.open`. Connects once."""
        result = cls(experiment, existing_arms(experiment, to_run=to_run))
        result._yes_create = yes_create
        return result

    def check(self) -> None:
        """Refuse a server without the workload's tables, unless they may be made."""
        self._missing = missing_tables(self.experiment, self.arms, yes_create=self._yes_create)
        for resolved in self.arms:
            workload, runs = resolved.arm.workload, len(self.experiment.cells)
            if workload.uses_up and runs > 1:
                raise self.experiment.error(
                    resolved.arm,
                    ("workload", "kind"),
                    f'each run of kind = "{workload.kind}" begins with the database as it was, and these are {runs} runs on one',
                    "use --replicates 1 and no factors, and restore the database before the next run",
                )
            assert resolved.server is not None
            workload.rehearse(resolved.server)

    def parameters_of(self, arm: Arm) -> None:
        """It has its own."""

    def remove_tables(self) -> None:
        """See :meth:`World.remove_tables`. Those that were there before stay."""
        if not self._yes_create:
            raise InputError("--yes-drop removes the tables that --yes-create creates", remedy="use both, or neither")
        if isinstance(self._missing, SchemaTables):
            raise InputError(
                f"--yes-drop removes tables, and these are in a schema, {self._missing.schema}",
                remedy=f"omit --yes-drop; `DROP SCHEMA {self._missing.schema} CASCADE` removes it",
            )
        self._removes = True

    def warnings(self) -> list[str]:
        """What earlier runs left in existing tables."""
        first = self.arms[0]
        if self._missing is not None or first.server is None:
            return []
        left = first.arm.workload.left_by_runs(first.server)
        return [left] if left else []

    def preparation(self, due: Sequence[Arm]) -> list[Preparation]:
        """The tables that are made on the server."""
        tables = self._missing
        if tables is None:
            return []
        by = loader_of(self.arms[0])
        estimate_s = load_estimate_s(tables, by.manner, by.connections)
        return [Preparation("load", f"{tables.family}'s tables of {tables} on the server", estimate_s)]

    def clean_up(self, note: Callable[[str], None]) -> None:
        """Nothing of this machine is used but the driver's CPU."""

    @contextlib.contextmanager
    def prepared(
        self, due: Sequence[Arm], directory: Path, step: Callable[[str], Progress], note: Callable[[str], None]
    ) -> Iterator[PreparedWorld]:
        """Make the missing tables; they stay, unless they are to be removed and all went well."""
        first = self.arms[0]
        with connected(self.hosts_file, due) as hosts:
            if self._missing is not None:
                assert first.server is not None
                made = create_tables(first.server, self._missing, step("load"), directory, loader=loader_of(first))
                note(made.said)

            def ready(run: PlannedRun) -> RunOutcome:
                resolved = self.arms[run.cell.arm.index]
                with subjects.existing(resolved, watch=run.watch) as subject:
                    return on_server.measure(run, resolved, subject, hosts=hosts)

            yield ready
            if self._removes and self._missing is not None:
                assert first.server is not None
                assert not isinstance(self._missing, SchemaTables)
                names = tuple(self._missing.rows)
                first.server.drop_tables(names)
                note(f"removed the {len(names)} tables of {self._missing.family} that were created for these runs")

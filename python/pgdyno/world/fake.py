"""A world without PostgreSQL, devices or root: its figures are made up from the seed, in milliseconds.

Experiments, resumption, budgets, locks, reports and the command line are tested on it. It resolves arms and estimates times as
the emulated world does. Its records say ``fake``, so that no report passes its figures for measured ones.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

from pgdyno.experiment import Arm, Experiment
from pgdyno.probe.samples import ProbeTables
from pgdyno.world import fake_tables
from pgdyno.world.base import PlannedRun, Preparation, PreparedWorld, RunOutcome, World
from pgdyno.world.resolved import ResolvedArm, emulated_arms

from ..base.specification import VolumeSpec
from ..results import record
from ..results.work_record import FailedCut, PowerCutsRecord
from ..workload.clients import clients_of
from ..workload.fill import Progress

LOAD_S = 1.0
"""What its preparation is estimated at."""
CPU_TPS = 4000.0
"""Transactions per second where no volume limits."""
REQUESTS_PER_TRANSACTION = 3.0
NOISE = 0.01
"""Relative standard deviation of a replicate."""
TRANSACTION_S = 0.002
"""What a transaction takes without waiting."""


class Fake(World):
    """Made-up figures."""

    kind = "fake"

    @classmethod
    def open(cls, experiment: Experiment, *, to_run: bool, yes_create: bool) -> Self:
        """See :meth:`World.open`."""
        del to_run, yes_create
        return cls(experiment, emulated_arms(experiment, to_run=False))

    def check(self) -> None:
        """Refuse loads, which need a server."""
        for arm in self.experiment.arms:
            if clients_of(arm.workload) is None:
                raise self.experiment.error(
                    arm, ("workload", "kind"), "a fake world has figures of transactions only", "use another kind"
                )

    def preparation(self, due: Sequence[Arm]) -> list[Preparation]:
        """One data set, which takes no time."""
        return [Preparation("load", "a data set that is made up", LOAD_S)] if due else []

    def clean_up(self, note: Callable[[str], None]) -> None:
        """It leaves nothing."""

    @contextlib.contextmanager
    def prepared(
        self, due: Sequence[Arm], directory: Path, step: Callable[[str], Progress], note: Callable[[str], None]
    ) -> Iterator[PreparedWorld]:
        """Nothing has to be made."""
        if due:
            step("load")(1.0, "made up")
            note("nothing loaded: the figures of this world are made up")
        yield self._measured

    def _measured(self, run: PlannedRun) -> RunOutcome:
        resolved = self.arms[run.cell.arm.index]
        run.progress(0.5, "make up")
        story = _story(run, resolved)
        run.watch.seconds |= dict(zip(("warmup", "measure"), resolved.arm.workload.phases_s, strict=True))
        return RunOutcome(
            outcome=fake_tables.outcome(story),
            samples=fake_tables.samples(story) | _events(resolved, story),
            checks=(record.Check(name="made up", ok=True, detail="no server was asked"),),
            settings=[{"name": name, "setting": value} for name, value in sorted(resolved.settings.items())],
            world=_world(resolved),
            postgres=resolved.postgres,
            client=record.ClientRecord(rtt_ms=resolved.arm.client.rtt_ms),
            power_cuts=_power_cuts(resolved, run.cell.block),
        )


def _story(run: PlannedRun, resolved: ResolvedArm) -> fake_tables.Story:
    """A run that its volume's IOPS, its clients or a CPU limit."""
    import numpy as np

    workload = clients_of(resolved.arm.workload)
    assert workload is not None
    rng = np.random.default_rng((run.workload_seed, run.cell.arm.index, run.cell.block))
    begin_ns = run.clock.instant_ns(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    limits = {role: _iops(spec) for role, spec in resolved.volumes.items()}
    most = min([limits["data"] / REQUESTS_PER_TRANSACTION, CPU_TPS, workload.clients / TRANSACTION_S])
    tps = most if workload.rate_per_s is None else min(most, workload.rate_per_s)
    return fake_tables.Story(
        spec=workload,
        rng=rng,
        begin_ns=begin_ns,
        warmup_s=workload.warmup_s,
        measure_s=workload.measure_s,
        tps=tps * (1 - NOISE * abs(float(rng.normal()))),
        requests_per_transaction=REQUESTS_PER_TRANSACTION,
        iops_limits=limits,
    )


FAKE_MODIFIED_USD = 42.0
"""Price a month of what a volume of this world becomes."""


def _events(resolved: ResolvedArm, story: fake_tables.Story) -> ProbeTables:
    """Each takes a tenth of a second."""
    from ..results.tables import from_rows

    begin_ns = story.begin_ns + int(story.warmup_s * 1e9)
    rows = [
        {
            "planned_s": event.at_s,
            "kind": event.do,
            "target": event.target,
            "words": event.words,
            "t_begin_ns": begin_ns + int(event.at_s * 1e9),
            "t_end_ns": begin_ns + int((event.at_s + 0.1) * 1e9),
            "result": "made up",
            "usd_per_month": FAKE_MODIFIED_USD if event.do == "modify" else None,
        }
        for event in resolved.arm.events
    ]
    return ProbeTables({"world/event": from_rows("world/event", rows)} if rows else {})


def _power_cuts(resolved: ResolvedArm, block: int) -> tuple[PowerCutsRecord, ...]:
    """Without full_page_writes one cut in ten fails where a write may tear; else none does."""
    table, off = resolved.arm.crash, bool(resolved.given_up)
    return tuple(
        PowerCutsRecord(
            reading=reading,
            cache=table.cache,
            cuts=table.cuts,
            failed=(failed := table.cuts // 10 if off and reading != "whole" else 0),
            by_check={"start": failed} if failed else {},
            first_failed=(
                FailedCut(id=f"made-up:{reading}:{block}:7", stratum="checkpoint", failures={"start": "made up"}),
            )
            if failed
            else (),
            strata={"checkpoint": table.cuts},
        )
        for reading in (table.reading if table.cuts else ())
    )


def _iops(volume: VolumeSpec) -> float:
    return float("inf") if volume.iops is None else volume.iops.maximum


def _world(resolved: ResolvedArm) -> record.WorldRecord:
    from ..results.record import HostRecord

    volumes = {
        role: record.VolumeRecord(spec=dict(spec.document), attach={}) for role, spec in resolved.volumes.items()
    }
    return record.WorldRecord(
        kind="fake",
        dilation=resolved.arm.world.dilation,
        volume=volumes["data"].spec,
        volumes=volumes,
        file_system=resolved.arm.world.file_system,
        mount_options=resolved.arm.world.mount_options,
        instance=resolved.instance,
        host=HostRecord.of_this_machine(),
    )

"""A load as a measured phase: the loader at work, the devices watched meanwhile, and the record of both."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pgdyno.probe.host import HostProbe, Role
from pgdyno.store import record
from pgdyno.store.writer import LoadWriter
from pgdyno.workload.load import LoadOutcome, Progress, fill, load
from pgdyno.workload.tables import SysbenchTables, Tables
from pgdyno.world.scratch import scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.probe.samples import Samples
    from pgdyno.workload.spec import Server


@dataclass(frozen=True)
class Phase:
    """Where a load takes place, and what is watched of it."""

    directory: Path
    """The experiment's."""
    title: str
    postgres: record.PostgresRecord
    roles: Mapping[str, Role]
    """``server`` and, in an emulated world, ``daemon``; those of the laboratory are added."""
    devices: Mapping[str, str]
    """Block device by the role of its volume."""
    volumes: Mapping[str, tuple[str, Path]] = field(default_factory=dict)
    """Name and state directory of each emulated volume, by the same roles."""


@dataclass(frozen=True)
class Loaded:
    """A load that is done."""

    path: Path
    """The directory of its record."""
    said: str
    """What it came to, in a line."""


def measured(
    server: Server,
    tables: Tables,
    phase: Phase,
    progress: Progress | None = None,
    *,
    native: bool = False,
    replace: bool = True,
    env: Mapping[str, str] | None = None,
) -> Loaded:
    """Load ``tables`` and write the load's record. On any error nothing is left but the error.

    pgbench's tables are loaded by ``pgbench -i`` unless ``native``; sysbench's always by pgdyno's own engine.
    """
    writer = LoadWriter(phase.directory, phase.title)
    log = writer.file("logs/load.log")

    def work(watch: Callable[[int], None]) -> LoadOutcome:
        if native or isinstance(tables, SysbenchTables):
            return fill(server, tables, progress, replace=replace, env=env, log=log, on_start=watch)
        return load(server, tables, progress, replace=replace, env=env, log=log, on_start=watch)

    try:
        return _measured(work, tables, phase, writer)
    except BaseException:
        writer.abandon()
        raise


def _measured(
    work: Callable[[Callable[[int], None]], LoadOutcome], tables: Tables, phase: Phase, writer: LoadWriter
) -> Loaded:
    anchor, begin_ns = record.Anchor.read(), _now_ns()
    outcome, samples = _watched(work, phase, writer.path)
    end_ns = _now_ns()
    samples.write(writer)
    path = writer.finish(
        record.LoadRecord(
            load_id=writer.final_path.name,
            experiment_id=phase.directory.name,
            title=phase.title,
            tables=tables.document(),
            loader=outcome.loader,
            sessions=outcome.sessions,
            anchor=anchor,
            begin_ns=begin_ns,
            end_ns=end_ns,
            rows=outcome.rows,
            row_bytes=outcome.row_bytes,
            seconds={what: round(seconds, 3) for what, seconds in outcome.seconds.items()},
            steps=tuple(record.LoadedStep(**asdict(step)) for step in outcome.steps),
            moments=tuple(record.LoadedMoment(**asdict(moment)) for moment in outcome.moments),
            postgres=phase.postgres,
        )
    )
    seconds = (end_ns - begin_ns) / 1e9
    rows = sum(outcome.rows.values())
    said = f"{phase.title}: {rows:,} rows loaded in {seconds:.1f} s ({rows / seconds:,.0f} rows/s)"
    return Loaded(path, said + _written(samples))


def _watched(
    work: Callable[[Callable[[int], None]], LoadOutcome], phase: Phase, fallback: Path
) -> tuple[LoadOutcome, Samples]:
    """The loader with the host's probe beside it."""
    with scratch_directory(fallback) as scratch, contextlib.ExitStack() as ending:
        probe = HostProbe(scratch, {}, devices=phase.devices, volumes=phase.volumes)
        ending.push(probe)  # started by `watch`; ended whatever happens

        def watch(pid: int) -> None:
            # This process only waits and shows how far it is.
            probe.roles = {**phase.roles, "driver": Role(pids=(pid,)), "probe": Role(pids=(os.getpid(),))}
            probe.start()

        outcome = work(watch)
        return outcome, probe.stop()


def _written(samples: Samples) -> str:
    """What the devices wrote meanwhile, by volume; nothing where none could be seen."""
    disk = samples.tables.get("probe/disk")
    if disk is None:
        return ""
    counted: dict[str, list[int]] = {}
    for row in disk.select(["volume", "write_bytes"]).to_pylist():
        counted.setdefault(row["volume"], []).append(row["write_bytes"])
    each = (f"{volume} wrote {(values[-1] - values[0]) / 2**30:.2f} GiB" for volume, values in counted.items())
    return "; " + ", ".join(each)


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

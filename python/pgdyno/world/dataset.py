"""The data sets of an experiment: each filled once, by default on volumes without limits, then cloned for every run.

Arms share a data set when a server of the same major version can run on it, on the same file system, with the same
tables, spread over volumes of the same roles, and in the same stripes where the file system gets them; each of its volumes is
as large as the smallest volume of these arms.

A load is watched like a run, and its record lies in the experiment's directory, below ``loads``.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pgdyno.experiment import Experiment
from pgdyno.probe.host import Role
from pgdyno.probe.visibility import look
from pgdyno.workload.database import OwnDatabase
from pgdyno.workload.generated import column_names
from pgdyno.workload.tables import (
    BY,
    SUPPLIERS_PER_SCALE,
    TPCC_COLUMNS,
    BulkTables,
    PgbenchTables,
    SchemaTables,
    SysbenchTables,
    Tables,
    TpccTables,
    routine_arguments,
)
from pgdyno.world.fill import Loader, LoadPhase, LoadWorld, PhaseResult, load_estimate_s, measured
from pgdyno.world.resolved import ResolvedArm
from pgdyno.world.restored import restore

from ..base.errors import InputError, PgdynoError
from ..machine import paths, preflight
from ..machine.file_system import TOLD_OF_STRIPES, FileSystem
from ..machine.instance import InstanceGroup
from ..machine.journal import HostJournal
from ..machine.placement import AttachedPlacement, Placement, attach_placement
from ..machine.process import own_name
from ..results import record
from ..results.kept_database import KeptDatabase
from ..server import layout, settings
from ..server.binaries import PgBinaries
from ..server.built_schema import Built, require_built
from ..server.cluster import DATABASE, Cluster
from ..server.remote import RemoteServer
from ..server.remote_schema import lacks_schema, require_schema
from ..workload.database import DataSet
from ..workload.kind import LoadManner
from . import kept as own_database
from .restored import Site


def schema_is_missing(server: RemoteServer, tables: SchemaTables, *, yes_create: bool) -> bool:
    """Whether the tables have to be made. :class:`InputError` for others, and where they are missing and may not be made."""
    if tables.built:
        require_built(server, _built(tables))
        return False
    return lacks_schema(server, tables.schema, tables.comment, yes_create=yes_create)


def require_schema_of(server: RemoteServer, tables: SchemaTables) -> None:
    """Refuse a server that lacks the tables, or has others. :class:`InputError`."""
    if tables.built:
        require_built(server, _built(tables))
    else:
        require_schema(server, tables.schema, tables.comment, tables.family)


def _built(tables: SchemaTables) -> Built:
    if isinstance(tables, TpccTables):
        kind, routines = tables.routines, routine_arguments(tables.routines)
        return Built(BY, tables.schema, TPCC_COLUMNS, routines, kind, "warehouse", tables.warehouses, "warehouses", 1)
    rows = round(tables.scale_factor * SUPPLIERS_PER_SCALE)
    return Built(
        BY, tables.schema, column_names(), {}, "", "supplier", rows, "scale_factor", float(SUPPLIERS_PER_SCALE)
    )


Progress = Callable[[float, str], None]

_BESIDE_DATA_BYTES = 512 << 20
"""An empty cluster, its WAL while loading, and the file system's own."""
_LOAD_MEMORY_BYTES = 1 << 30
"""Settings for loading are those of this much memory; no limit is imposed."""
_MADE_EMPTY = frozenset({"backup"})
"""Roles whose volume holds nothing of the data set."""


@dataclass(frozen=True)
class DatasetKey:
    """What makes two data sets the same."""

    postgres_major: int
    file_system: FileSystem
    tables: DataSet
    sizes: tuple[tuple[str, int], ...]
    """(role, bytes) of the volumes it is made on, the data's first; a clone is at least as large."""
    stripes: tuple[tuple[str, int, int], ...] = ()
    """(role, columns, KiB of a chunk) of arrays whose file system gets them: it is laid out when it is made, and a clone has it."""
    native: bool = field(default=False, compare=False)
    """Whether pgdyno's own engine loads it; what it loads is equal to what ``pgbench -i`` does."""
    connections: int | None = None
    """Sessions that load it; a load with others is another one, and measured by itself."""
    split: bool = False
    """Whether several of them write one table, whose rows then lie in another order."""
    manner: LoadManner = "copy"
    """In which it is loaded."""
    world: LoadWorld | None = None
    """The arm's own world when it is loaded there, with its limits on."""
    times: int = field(default=1, compare=False)
    """How often it is loaded: the last one is used, and each has a record."""

    @property
    def bytes_needed(self) -> int:
        """Bytes on all volumes after loading."""
        return _bytes_needed(self.tables)

    @property
    def estimate_s(self) -> float:
        """How long loading takes, about, as often as it is done."""
        world = self.world
        alone_s = load_estimate_s(
            self.tables, self.manner, self.connections, 0.0 if world is None else world.wal_write_s * world.dilation
        )
        once_s = alone_s if world is None else max(alone_s, world.estimate_s(self.tables.size_bytes))
        return once_s * self.times

    @property
    def tables_digest(self) -> str | None:
        """The digest of a user's database; None of other tables."""
        return self.tables.digest if isinstance(self.tables, OwnDatabase) else None

    def __str__(self) -> str:
        """Title of a step."""
        roles = [role for role, _ in self.sizes[1:]]
        beside = f" with {', '.join(roles)} apart" if roles else ""
        striped = "".join(f", {role} in {columns} stripes of {kib} KiB" for role, columns, kib in self.stripes)
        limits = "" if self.world is None else f", on {self.world}"
        manner = "" if self.manner == "copy" else ", in HammerDB's batches"
        return f"PostgreSQL {self.postgres_major} on {self.file_system}{beside}{striped}, {self.tables}{manner}{limits}"


@dataclass(frozen=True)
class Dataset:
    """A cleanly shut down cluster with the workload's tables, as images that volumes start from."""

    key: DatasetKey
    images: dict[str, Path]
    """By the role of the volume."""
    database: str = DATABASE
    """Name of the database with them."""


def dataset_keys(experiment: Experiment, arms: Sequence[ResolvedArm]) -> dict[int, DatasetKey]:
    """The data set of each arm by the arm's index. An error when a volume is too small for the data."""
    sharing: dict[DatasetKey, list[ResolvedArm]] = {}
    for arm in arms:
        _require_room(experiment, arm)
        sizeless = _sizeless(arm)
        sharing.setdefault(sizeless, []).append(arm)
    keys: dict[int, DatasetKey] = {}
    for sizeless, group in sharing.items():
        smallest = {role: min(arm.volumes[role].size_bytes for arm in group) for role, _ in sizeless.sizes}
        keys |= {arm.arm.index: replace(sizeless, sizes=tuple(smallest.items())) for arm in group}
    return keys


def _sizeless(arm: ResolvedArm) -> DatasetKey:
    """The data set of an arm, but for the size of its volumes."""
    workload, roles = arm.arm.workload, tuple(role for role in arm.volumes if role not in _MADE_EMPTY)
    by, file_system = loader_of(arm), arm.arm.world.file_system
    arrays = roles if file_system in TOLD_OF_STRIPES and not workload.making.limited else ()
    stripes = ((role, arm.volumes[role].stripes) for role in arrays)
    return DatasetKey(
        postgres_major=arm.binaries.major,
        file_system=file_system,
        tables=workload.data_set(),
        sizes=tuple((role, 0) for role in roles),
        stripes=tuple((role, *item) for role, item in stripes if item is not None),
        native=by.native,
        connections=by.connections,
        split=by.split,
        manner=by.manner,
        world=LoadWorld.of(arm, roles) if workload.making.limited else None,
        times=workload.making.times,
    )


def loader_of(arm: ResolvedArm) -> Loader:
    """Who makes an arm's tables."""
    workload = arm.arm.workload
    table = workload.making
    return Loader(native=workload.made_by_engine, connections=table.connections, split=table.split, manner=table.manner)


def missing_tables(experiment: Experiment, arms: Sequence[ResolvedArm], *, yes_create: bool) -> Tables | None:
    """The tables that an existing server lacks and that may be made there; None when it has them.

    An error when it has others, when they may not be made, or when the arms need different ones.
    """
    results = [(arm.arm, arm.arm.workload.needed_tables()) for arm in arms]
    tables = next((needed for _, needed in results if needed is not None), None)
    if tables is None:
        return None  # what scripts of the user's need is not known
    for arm, needed in results:
        if isinstance(needed, PgbenchTables) and isinstance(tables, PgbenchTables):
            if (needed.scale, needed.fillfactor) != (tables.scale, tables.fillfactor):
                raise experiment.error(arm, ("workload", "scale"), "an existing server has its tables at one scale")
        elif needed is not None and not _are(needed, tables):
            raise experiment.error(arm, ("workload",), "an existing server has its tables once, for all arms")
    server = arms[0].server
    assert server is not None
    writes = any(arm.arm.workload.writes for arm in arms)
    if isinstance(tables, SchemaTables):
        lacks = schema_is_missing(server, tables, yes_create=yes_create)
    elif isinstance(tables, PgbenchTables):
        lacks = server.require_tables(tables.scale, writes=writes, yes_create=yes_create)
    else:
        names, by_hand = [*tables.rows], "`sysbench ... prepare`"
        lacks = server.lacks_tables(tables.family, names, by_hand, writes=writes, yes_create=yes_create)
    return tables if lacks else None


def _are(needed: Tables, tables: Tables) -> bool:
    """Whether tables are what is needed; sysbench's tests find their rows whatever those have in ``k``."""
    of_sysbench = isinstance(needed, SysbenchTables) and isinstance(tables, SysbenchTables)
    return needed.rows == tables.rows if of_sysbench else needed == tables


def create_tables(
    server: RemoteServer, tables: Tables, progress: Progress, directory: Path, *, loader: Loader | None = None
) -> PhaseResult:
    """Make a workload's tables on an existing server. Nothing is dropped, and they stay.

    The load's record is written below the experiment's ``directory``.
    """
    view = look(server.dsn)
    phase = LoadPhase(
        directory=directory,
        title=str(tables),
        postgres=record.PostgresRecord(version=server.version, source="an existing server"),
        roles=view.roles,
        devices=view.devices,
    )
    return measured(server, tables, phase, progress, loader=loader, replace=False, env=server.environment)


@contextlib.contextmanager
def loaded(
    wanted: Mapping[DatasetKey, PgBinaries],
    progress: Callable[[DatasetKey], Progress],
    directory: Path,
    note: Callable[[str], None],
    adds_bytes: int = 0,
) -> Iterator[dict[DatasetKey, Dataset]]:
    """Load every data set, and keep them for the length of a ``with`` block. ``adds_bytes`` is what a run makes of its own, at most.

    The record of each load is written below the experiment's ``directory``, and ``note`` gets its result. Loads that are repeated take turns, so
    that what changes on the machine meanwhile is in all of them alike.
    """
    needed = memory_bytes(wanted, adds_bytes)
    preflight.require_memory(needed, f"{len(wanted)} data set{'s' if len(wanted) > 1 else ''} with a run on a clone")
    with contextlib.ExitStack() as stack:
        for number in range(1, max((key.times for key in wanted), default=1)):
            for key, binaries in wanted.items():
                if number < key.times:
                    with _loaded(key, binaries, progress(key), directory, note):
                        pass  # measured; its images are removed again
        made = {}
        for key, binaries in wanted.items():
            made[key] = stack.enter_context(_loaded(key, binaries, progress(key), directory, note))
        yield made


def memory_bytes(wanted: Mapping[DatasetKey, PgBinaries], adds_bytes: int = 0) -> int:
    """What these data sets with a run on a clone of the largest take of this machine's memory, at most."""
    # Loading writes the tables once and WAL beside them; each run then writes into a layer of its own.
    sizes = [_memory_bytes(key, binaries) for key, binaries in wanted.items()]
    filling = max((key.tables.filling_bytes for key in wanted), default=0)
    return sum(sizes) + max(sizes, default=0) + adds_bytes + filling


def _memory_bytes(key: DatasetKey, binaries: PgBinaries) -> int:
    """What a data set takes of this machine's memory: of a kept one only what is written is there."""
    return key.bytes_needed if _kept(key, binaries) is None else _BESIDE_DATA_BYTES


@contextlib.contextmanager
def _loaded(
    key: DatasetKey, binaries: PgBinaries, progress: Progress, directory: Path, note: Callable[[str], None]
) -> Iterator[Dataset]:
    journal = HostJournal(paths.state_dir())
    name = own_name(f"dataset-{secrets.token_hex(3)}")
    with contextlib.ExitStack() as stack:
        images = {}
        for number, (role, _) in enumerate(key.sizes):
            images[role] = stack.enter_context(journal.directory(paths.image_dir() / f"{name}-{number}"))
            # The image's folder must not exist when the volume becomes it.
            images[role].rmdir()
        kept = _kept(key, binaries)
        if kept is not None:
            stack.enter_context(kept.in_use())
            if kept.digest == key.tables_digest:
                note(f"{key}: the kept database {kept.name}")
                yield Dataset(key, kept.images, kept.database)
                return
        based = None if kept is None else kept.images
        with attach_placement(_placement(key), name=name, images=based, journal=journal) as attached:
            bounds: contextlib.AbstractContextManager[InstanceGroup | None] = (
                contextlib.nullcontext() if key.world is None else key.world.instance(name, journal)
            )
            with bounds as instance:
                text, database = _made(key, binaries, attached, instance, journal, progress, directory)
                note(text)
            attached.detach(save_images=images)
        yield Dataset(key, images, database)


def _kept(key: DatasetKey, binaries: PgBinaries) -> KeptDatabase | None:
    """A kept database that is this data set."""
    if not isinstance(key.tables, OwnDatabase) or key.world is not None:
        return None
    return own_database.found_kept(key.tables, binaries, key.file_system, dict(key.sizes))


def _made(
    key: DatasetKey,
    binaries: PgBinaries,
    attached: AttachedPlacement,
    instance: InstanceGroup | None,
    journal: HostJournal,
    progress: Progress,
    directory: Path,
) -> tuple[str, str]:
    """Make the data set; what it came to in a line, and the database that it is in."""
    tables = key.tables
    if not isinstance(tables, OwnDatabase):
        return _fill(key, tables, binaries, attached, instance, journal, progress, directory), DATABASE
    chosen = _load_settings(key, binaries, attached.mounts)
    site = Site(binaries, attached, instance, journal, directory, str(key), chosen, key.world, progress)
    # A load that is limited is measured: its volumes get the requests of its server alone.
    with attached.trimmed(meanwhile=key.world is None):
        restored = restore(tables, site)
    return restored.said, restored.database


def _define(cluster: Cluster, tables: BulkTables) -> None:
    """Make the tables of a load, empty. :class:`InputError` with what the server has against their definitions."""
    import psycopg

    with psycopg.connect(cluster.dsn, autocommit=True) as connection:
        try:
            connection.execute(tables.definitions.encode())
        except psycopg.Error as error:
            raise InputError(
                f"the tables cannot be created: {' '.join(str(error).split())}",
                remedy="correct the file of workload.bulk.definitions",
            ) from None
        connection.execute("CHECKPOINT")


def _placement(key: DatasetKey) -> Placement:
    """The volumes that a data set is made on: the arm's own, or some without limits."""
    return unlimited(key) if key.world is None else key.world.placement


def unlimited(key: DatasetKey) -> Placement:
    """Volumes without limits for a data set, striped as its file system gets them."""
    volumes = {role: f"null:size={size_bytes >> 20}MiB" for role, size_bytes in key.sizes}
    for role, columns, chunk_kib in key.stripes:
        member_bytes = dict(key.sizes)[role] // columns
        volumes[role] = f"{columns}xnull:size={member_bytes >> 20}MiB,chunk={chunk_kib}KiB"
    return Placement(volumes, key.file_system)


def _fill(
    key: DatasetKey,
    tables: Tables | BulkTables,
    binaries: PgBinaries,
    attached: AttachedPlacement,
    instance: InstanceGroup | None,
    journal: HostJournal,
    progress: Progress,
    directory: Path,
) -> str:
    """Make the data set; what it came to, in a line."""
    progress(0.0, "initdb")
    mounts = attached.mounts
    cluster = Cluster(binaries, layout.data_dir(mounts), journal=journal)
    try:
        layout.initdb(cluster, mounts)
        with cluster.running(_load_settings(key, binaries, mounts), instance), _deaths_named(cluster, attached):
            layout.create_tablespaces(cluster, mounts)
            if isinstance(tables, BulkTables):
                _define(cluster, tables)
                return f"{key}: made"
            phase = LoadPhase(
                directory=directory,
                title=str(key),
                postgres=record.PostgresRecord(version=binaries.version, source=binaries.source),
                roles={
                    "server": Role(parents=(cluster.pid,)),
                    "daemon": Role(pids=tuple({volume.daemon.pid: None for volume in attached.volumes.values()})),
                },
                devices={role: volume.block_device for role, volume in attached.volumes.items()},
                volumes={role: (volume.name, volume.state_dir) for role, volume in attached.volumes.items()},
                world=key.world,
            )
            loader = Loader(key.native, key.connections, key.split, key.manner)
            return measured(cluster, tables, phase, progress, loader=loader).said
    finally:
        cluster.close()


@contextlib.contextmanager
def _deaths_named(cluster: Cluster, attached: AttachedPlacement) -> Iterator[None]:
    """Where the server or a volume died meanwhile, the error names it: a client that lost its session tells little."""
    try:
        yield
    except Exception as error:
        dead = [role for role, volume in attached.volumes.items() if volume.daemon.ending()]
        if dead:
            raise PgdynoError(
                f"the daemon of the {' and '.join(dead)} volume died while the data set was filled",
                remedy="run the same command again",
            ) from error
        died = cluster.death()
        if died is None:
            raise
        raise died from error


def _load_settings(key: DatasetKey, binaries: PgBinaries, mounts: Mapping[str, Path]) -> dict[str, str]:
    """The arm's in its own world. Else those of a plain server, with checkpoints often enough for a small volume of WAL."""
    if key.world is not None:
        return layout.settings(mounts) | dict(key.world.settings)
    return settings.tuned(_LOAD_MEMORY_BYTES, binaries.major, wal_volume_bytes=dict(key.sizes).get("wal"))


def _bytes_needed(tables: DataSet) -> int:
    return tables.size_bytes + _BESIDE_DATA_BYTES


def _require_room(experiment: Experiment, arm: ResolvedArm) -> None:
    workload = arm.arm.workload
    tablespace = workload.tablespaces.get("tablespace")
    role = "data" if tablespace is None else f"tablespace.{tablespace}"
    spec, size_bytes = arm.arm.world.placement[role], arm.volumes[role].size_bytes
    tables = workload.data_set()
    adds = workload.adds_bytes(arm.arm.world.dilation)
    needed = _bytes_needed(tables) + adds
    if size_bytes < needed:
        with_orders = f", {adds / 2**30:.1f} of it for what a run adds" if adds else ""
        raise experiment.error(
            arm.arm,
            ("workload", *workload.size_key.split(".")),
            f"{spec} holds {size_bytes / 2**30:.1f} GiB, and {tables} needs {needed / 2**30:.1f} GiB{with_orders}",
            f"use less data, or a volume of at least {math.ceil(needed / 2**30)} GiB",
        )

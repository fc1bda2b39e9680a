"""What every way of restoring a user's database has in common: where it is done, its record, its last steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.probe.host import Role
from pgdyno.workload.database import OwnDatabase
from pgdyno.workload.fill import default_connections
from pgdyno.world.load_phase import LoadPhase, LoadWorld, recorded

from ..base.errors import InputError, PgdynoError
from ..machine.instance import InstanceGroup
from ..machine.journal import HostJournal
from ..machine.placement import AttachedPlacement
from ..results import record
from ..server import layout
from ..server import restore as programs
from ..server.binaries import PgBinaries
from ..server.cluster import DATABASE, Cluster
from ..server.restore import RestoreLog, Restorer
from ..workload.database import files_of
from ..workload.outcome import LoadOutcome, Progress

_ROWS = """
SELECT n.nspname || '.' || c.relname, c.reltuples::bigint FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND c.reltuples >= 0 AND c.relpersistence <> 't'
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY 1
"""
SHARE_RESTORE = 0.8
"""Share of the progress bar that restoring has; the rest is VACUUM, ANALYZE and the checkpoint (17 s and 4 s for 1.2 GB)."""


@dataclass(frozen=True)
class Site:
    """Where a database is restored, and what is to be recorded of it."""

    binaries: PgBinaries
    attached: AttachedPlacement
    instance: InstanceGroup | None
    journal: HostJournal
    directory: Path
    title: str
    settings: Mapping[str, str]
    world: LoadWorld | None
    progress: Progress


@dataclass(frozen=True)
class RestoredDatabase:
    """A database that is there now."""

    said: str
    """The result in a line."""
    database: str
    size_bytes: int
    seconds: float


@dataclass
class RestoreWork:
    """What both ways have in common."""

    tables: OwnDatabase
    site: Site
    database: str = DATABASE
    size_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cluster = Cluster(
            self.site.binaries, layout.data_dir(self.site.attached.mounts), journal=self.site.journal
        )

    @property
    def settings(self) -> dict[str, str]:
        """The server's while it restores."""
        return dict(self.site.settings) | programs.SETTINGS

    @property
    def jobs(self) -> int:
        """Sessions that restore at the same time."""
        return self.tables.table.jobs or default_connections()

    def done(self) -> RestoredDatabase:
        """Do it, and stop the server."""
        raise NotImplementedError

    def record(self, work: Callable[[Callable[[int], None], Path], LoadOutcome], server: Role) -> RestoredDatabase:
        """Do the work as a measured load."""
        site = self.site
        volumes = site.attached.volumes
        phase = LoadPhase(
            directory=site.directory,
            title=site.title,
            postgres=record.PostgresRecord(version=site.binaries.version, source=site.binaries.source),
            roles={
                "server": server,
                "daemon": Role(pids=tuple({volume.daemon.pid: None for volume in volumes.values()})),
            },
            devices={role: volume.block_device for role, volume in volumes.items()},
            volumes={role: (volume.name, volume.state_dir) for role, volume in volumes.items()},
            world=site.world,
        )
        begin = time.monotonic()
        loaded = recorded(work, self.tables, phase)
        seconds = time.monotonic() - begin
        source = self.tables.source
        times = "" if source.measured else f", {self.size_bytes / max(1, _bytes_of(source.path)):.1f} times the dump"
        text = "; ".join([f"{loaded.said}; {self.size_bytes / 2**20:,.0f} MiB{times}", *self.notes])
        return RestoredDatabase(text, self.database, self.size_bytes, seconds)

    @contextmanager
    def step(self, name: str, share: float) -> Iterator[None]:
        """Time a step."""
        self.site.progress(share, name)
        begin = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begin

    def refuse(self, log: RestoreLog, what: str) -> None:
        """Stop for errors that are not allowed."""
        rest = log.without(self.tables.table.allow)
        if not rest.messages:
            return
        if any(programs.NO_SPACE in message for message in rest.messages):
            sizes = ", ".join(
                f"{role} {volume.facts['spec']['size_bytes'] / 2**30:.1f} GiB"
                for role, volume in self.site.attached.volumes.items()
            )
            raise PgdynoError(
                f"{self.tables} does not fit on its volumes ({sizes})", remedy="use larger volumes, as gp3:size=200GiB"
            )
        raise PgdynoError(
            f"{what}: {len(rest.messages)} errors: {rest.words()}",
            remedy='correct the source, or allow an error by a part of its text: allow = ["TEXT"] in [workload.database]',
        )

    def role_must_log_in(self) -> None:
        """The role that drives is there, and may log in."""
        user = self.tables.user
        with self.cluster.connect() as connection:
            row = connection.execute(
                "SELECT rolcanlogin FROM pg_catalog.pg_roles WHERE rolname = %s", (user,)
            ).fetchone()
        if row is None or not row[0]:
            why = "may not log in" if row else "is neither in the globals nor in the database"
            raise InputError(
                f"the role {user}, which is to send the statements, {why}",
                remedy="name another role (workload.database.user, --user), or give its globals (--globals)",
            )

    def prepare(self, restorer: Restorer) -> None:
        """The SQL of `prepare`."""
        prepare = self.tables.table.prepare
        if prepare is None:
            return
        with self.step("prepare", SHARE_RESTORE):
            log = restorer.psql([prepare.text.encode(), b"\n"], self.database, stop=True)
        if log.messages:
            raise InputError(
                f"prepare{f' ({prepare.name})' if prepare.name else ''} fails: {log.words()}",
                remedy="correct workload.database.prepare",
            )

    def measure(self) -> dict[str, int]:
        """The size of the database, and its rows by table."""
        with self.cluster.connect() as connection:
            row = connection.execute("SELECT pg_catalog.pg_database_size(%s::name)", (self.database,)).fetchone()
            assert row is not None
            self.size_bytes = int(row[0])
            return {str(table): int(rows) for table, rows in connection.execute(_ROWS).fetchall()}

    def checkpoint(self) -> None:
        """All of it is on the volumes; WAL that is not needed any more is removed."""
        with self.step("checkpoint", 0.97), self.cluster.connect() as connection:
            for _ in range(2):
                connection.execute("CHECKPOINT")


def _bytes_of(path: Path | None) -> int:
    return 0 if path is None else sum(file.stat().st_size for file in files_of(path))

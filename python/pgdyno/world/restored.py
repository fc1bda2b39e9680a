"""Restores of a user's own database as a data set: dumps, running servers, and the steps that all restores share."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.probe.host import Role
from pgdyno.workload.database import OwnDatabase, default_name, files_of, read_text
from pgdyno.workload.fill import default_connections
from pgdyno.workload.outcome import Progress
from pgdyno.world import physical

from ..base import engine
from ..base.errors import InputError, PgdynoError
from ..machine.instance import InstanceGroup
from ..machine.journal import HostJournal
from ..machine.placement import AttachedPlacement
from ..machine.process import own_identity
from ..results import record
from ..server import dump_script, layout
from ..server import restore as programs
from ..server.binaries import PgBinaries
from ..server.cluster import DATABASE, Cluster
from ..server.dump import DumpFacts, facts_of
from ..server.restore import RestoreLog, Restorer
from ..workload.database import PHYSICAL, Form, opened
from ..workload.outcome import LoadOutcome
from .fill import LoadPhase, LoadWorld, recorded

if TYPE_CHECKING:
    import psycopg


_REMEDY = "check the connection string, and that its role may read all tables; pg_dump must be as new as the server"


@dataclass(frozen=True)
class ServerDump:
    """A dump of a server."""

    archive: Path
    """In the directory format."""
    roles: str | None
    """Its globals; None where the role may not read them."""
    instant: str
    """The server's time of the snapshot."""


def server_facts(dsn: str, binaries: PgBinaries) -> DumpFacts:
    """What the server's database needs, from a dump of its definitions. :class:`InputError` when it cannot be dumped."""
    with _program(binaries, "pg_dump", ["--create", "--schema-only", "-d", dsn]) as process:
        assert process.stdout is not None
        return facts_of(process.stdout)


@contextlib.contextmanager
def dumped(
    dsn: str, binaries: PgBinaries, jobs: int, journal: HostJournal, watch: Callable[[int], None]
) -> Iterator[ServerDump]:
    """Dump the database for the length of a ``with`` block, into a directory that only this user may enter."""
    import psycopg

    folder = Path(tempfile.gettempdir()).resolve() / f"pgdyno-dump-{secrets.token_hex(4)}"
    with journal.directory(folder):
        folder.chmod(0o700)
        try:
            with psycopg.connect(dsn, application_name="pgdyno dump") as connection:
                snapshot, instant = _snapshot(connection)
                archive = folder / "dump"
                options = [
                    "-F",
                    "d",
                    "-Z",
                    "1",
                    "-j",
                    str(jobs),
                    f"--snapshot={snapshot}",
                    "-f",
                    str(archive),
                    "-d",
                    dsn,
                ]
                with _program(binaries, "pg_dump", options) as process:
                    watch(process.pid)
        except psycopg.Error as error:
            raise InputError(f"the server cannot be dumped: {' '.join(str(error).split())}", remedy=_REMEDY) from None
        yield ServerDump(archive, _roles(dsn, binaries), instant)


def _snapshot(connection: psycopg.Connection[tuple[object, ...]]) -> tuple[str, str]:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    row = connection.execute("SELECT pg_catalog.pg_export_snapshot(), pg_catalog.now()").fetchone()
    assert row is not None
    return str(row[0]), str(row[1])


def _roles(dsn: str, binaries: PgBinaries) -> str | None:
    """The server's globals without passwords; None where its role may not read them."""
    try:
        with _program(binaries, "pg_dumpall", ["--globals-only", "--no-role-passwords", "-d", dsn]) as process:
            assert process.stdout is not None
            return process.stdout.read().decode()
    except PgdynoError:
        return None


@contextlib.contextmanager
def _program(binaries: PgBinaries, name: str, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A client program at work; waited for at the end. It gets the caller's environment, by which libpq finds passwords."""
    environment = {key: value for key, value in os.environ.items() if key.startswith(("PG", "HOME", "USER"))}
    process = subprocess.Popen(
        engine.child([str(binaries.program(name)), "--no-password", *arguments]),
        env=environment | binaries.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    hearing = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    hearing.start()
    try:
        yield process
        process.stdout.read()
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        hearing.join(10.0)
        process.stdout.close()
        process.stderr.close()
    if process.returncode != 0:
        why = (
            "; ".join(line.decode(errors="replace").strip() for line in errors[:5]) or f"exit code {process.returncode}"
        )
        raise InputError(f"{name} {binaries.version} cannot dump the server: {why}", remedy=_REMEDY)


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


STATISTICS_SINCE = 18
"""Version whose servers have pg_restore_relation_stats and its siblings."""
STATISTICS_FUNCTIONS = tuple(
    f"function pg_catalog.pg_restore_{kind}_stats(" for kind in ("relation", "attribute", "extended")
)
RECOVERY_S = 3600.0
"""How long a base backup's server may take to start: it applies the WAL that came with it."""


def facts_of_source(tables: OwnDatabase, binaries: PgBinaries) -> DumpFacts:
    """What a dump says about itself and needs. :class:`InputError` when it is torn or cannot be read by these programs."""
    source = tables.source
    assert source.path is not None
    if source.form != "plain":
        facts = programs.archive_facts(binaries, source.path)
    else:
        facts = _plain_facts(source.path, tables.table.name)
    given = tables.table.globals
    if given is not None or facts.of_cluster:
        facts.preloaded |= facts_of(_role_lines(given, source.path)).preloaded
    # Functions that restore statistics came with 18 (its release notes); an older server makes its own by ANALYZE.
    facts.statistics = facts.statistics and binaries.major >= STATISTICS_SINCE
    return facts


def _plain_facts(path: Path, wanted: str | None) -> DumpFacts:
    try:
        facts = _facts_of_cluster(path, wanted)
        if facts is None:
            with opened(path) as file:
                facts = facts_of(file)
    except (OSError, EOFError) as error:
        raise InputError(f"{path} is torn: {error}", remedy="copy the dump again") from None
    if facts.version is not None and not facts.complete:
        raise InputError(
            f"{path} is torn: the last line of a dump is missing",
            remedy="copy the dump again; it ends with `-- PostgreSQL database dump complete`",
        )
    return facts


def _facts_of_cluster(path: Path, wanted: str | None) -> DumpFacts | None:
    """What pg_dumpall wrote of the database that is wanted; ``None`` if pg_dumpall did not write it."""
    with opened(path) as file:
        if not dump_script.is_of_cluster(file):
            return None
    names: dict[str, None] = {}
    complete = False
    with opened(path) as file:
        for name, line in dump_script.sections(file):
            if name is not None:
                names[name] = None
            complete = complete or line.startswith(dump_script.CLUSTER_COMPLETE)
    chosen = dump_script.chosen_database(names, wanted, path.name)
    with opened(path) as file:
        facts = facts_of(line for name, line in dump_script.sections(file) if name == chosen)
    facts.database, facts.of_cluster, facts.complete = chosen, True, complete
    return facts


def _role_lines(globals_: str | None, dump: Path) -> Iterator[bytes]:
    """Lines that make roles: of the globals, or of pg_dumpall's output itself."""
    if globals_ is not None:
        yield from dump_script.roles(read_text(globals_, "globals").encode().splitlines(keepends=True))
        return
    with opened(dump) as file:
        yield from dump_script.roles(file)


def restore(tables: OwnDatabase, site: Site) -> RestoredDatabase:
    """Restore the database onto the attached volumes, stop the server, and write the load's record.

    :class:`PgdynoError` with every error that was not allowed.
    """
    form = tables.source.form
    kind = _Physical if form in PHYSICAL else _KeptDatabase if form == "kept" else _Logical
    work = kind(tables, site)
    try:
        return work.done()
    finally:
        work.cluster.close()


@dataclass(frozen=True)
class _Dump:
    """A dump that is there, with what it says about itself."""

    path: Path
    form: Form
    facts: DumpFacts
    roles: Iterable[bytes] | None
    """Lines that make roles."""


class _Logical(RestoreWork):
    """A dump, or a server that is dumped first."""

    def done(self) -> RestoredDatabase:
        """See :func:`restore`."""
        mounts, cluster = self.site.attached.mounts, self.cluster
        self.site.progress(0.0, "initdb")
        layout.initdb(cluster, mounts)
        with cluster.running(self.settings, self.site.instance):
            layout.create_tablespaces(cluster, mounts)
            return self.record(self._restore, Role(parents=(cluster.pid,)))

    def _restore(self, watch: Callable[[int], None], log: Path) -> LoadOutcome:
        with self._dump(watch) as dump:
            return self._restored(dump, Restorer(self.cluster, log, watch=watch, look=self._look))

    @contextmanager
    def _dump(self, watch: Callable[[int], None]) -> Iterator[_Dump]:
        """The dump; of a server it is made, and removed again."""
        source, given = self.tables.source, self.tables.table.globals
        if source.form != "server":
            assert source.path is not None
            facts = facts_of_source(self.tables, self.site.binaries)
            roles = _role_lines(given, source.path) if given is not None or facts.of_cluster else None
            yield _Dump(source.path, source.form, facts, roles)
            return
        binaries = self.site.binaries
        self.site.progress(0.0, "dump")
        begin = time.monotonic()
        with dumped(source.text, binaries, self.jobs, self.site.journal, watch) as result:
            self.seconds["dump"] = time.monotonic() - begin
            self.notes.append(f"snapshot of {result.instant}")
            lines: Iterable[bytes] | None = _role_lines(given, result.archive) if given is not None else None
            if lines is None and result.roles is not None:
                lines = result.roles.encode().splitlines(keepends=True)
            yield _Dump(result.archive, "directory", programs.archive_facts(binaries, result.archive), lines)

    def _restored(self, dump: _Dump, restorer: Restorer) -> LoadOutcome:
        facts = dump.facts
        self._globals(dump.roles, restorer)
        self._roles(facts)
        self._tablespaces(facts)
        with self.step("restore", 0.02):
            log = self._content(restorer, dump)
        self.refuse(log, "the dump could not be restored")
        self._named()
        self.role_must_log_in()
        self.prepare(restorer)
        with self.step("vacuum", SHARE_RESTORE):
            restorer.vacuumdb(self.database, self.jobs)
        rows = self.measure()
        if not facts.statistics or self.tables.table.prepare is not None:
            with self.step("analyze", 0.9):
                restorer.vacuumdb(self.database, self.jobs, "--analyze-only")
        self.checkpoint()
        return LoadOutcome(seconds=self.seconds, rows=rows, loader="restore", sessions=self.jobs)

    def _look(self) -> None:
        """Show how far it is."""
        expected = max(1, self.tables.size_bytes)
        try:
            with self.cluster.connect() as connection:
                row = connection.execute(
                    "SELECT sum(pg_catalog.pg_database_size(oid)) FROM pg_catalog.pg_database"
                ).fetchone()
        except Exception:  # noqa: BLE001 - the program that restores says what is wrong with the server
            return
        size_bytes = int(row[0]) if row is not None and row[0] is not None else 0
        share = 0.02 + (SHARE_RESTORE - 0.02) * min(1.0, size_bytes / expected)
        self.site.progress(share, f"restore: {size_bytes / 2**20:,.0f} MiB")

    def _globals(self, roles: Iterable[bytes] | None, restorer: Restorer) -> None:
        if roles is None:
            return
        own = layout.tablespaces(self.site.attached.mounts)
        with self.step("globals", 0.01):
            script = dump_script.globals_script(roles, own)
            log = restorer.psql(self._understood(script), DATABASE)
        self.refuse(log, "the globals could not be restored")

    def _roles(self, facts: DumpFacts) -> None:
        """Roles that the dump names and that are not there."""
        from psycopg import sql

        user = self.tables.user
        with self.cluster.connect() as connection:
            there = {row[0] for row in connection.execute("SELECT rolname FROM pg_catalog.pg_roles").fetchall()}
            missing = sorted(facts.roles - there)
            for role in missing:
                login = sql.SQL("LOGIN" if role == user else "NOLOGIN")
                connection.execute(sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(role), login))
        if missing:
            self.notes.append(f"without globals for them, created without rights: {', '.join(missing)}")

    def _tablespaces(self, facts: DumpFacts) -> None:
        from psycopg import sql

        with self.cluster.connect() as connection:
            there = {row[0] for row in connection.execute("SELECT spcname FROM pg_catalog.pg_tablespace").fetchall()}
            missing = sorted(facts.tablespaces - there)
            for name in missing:
                connection.execute("SET allow_in_place_tablespaces = on")
                connection.execute(sql.SQL("CREATE TABLESPACE {} LOCATION ''").format(sql.Identifier(name)))
        if missing:
            self.notes.append(f"without a volume of their own, with the data: tablespaces {', '.join(missing)}")

    def _content(self, restorer: Restorer, dump: _Dump) -> RestoreLog:
        """Definitions and rows."""
        facts = dump.facts
        self.database = facts.database or self.tables.table.name or default_name(dump.path)
        at = DATABASE
        if facts.creates and facts.database == DATABASE:
            at = "template1"
            with self.cluster.connect(dbname=at) as connection:
                connection.execute(f"DROP DATABASE {DATABASE}".encode())
        if dump.form == "plain":
            if facts.database is None or (facts.of_cluster and not facts.creates):
                self._create()
                at = self.database
            with opened(dump.path) as file:
                lines: Iterable[bytes] = file
                if facts.of_cluster:
                    lines = (line for name, line in dump_script.sections(file) if name == facts.database)
                return self._without_statistics(restorer.psql(self._understood(lines), at))
        jobs = [] if dump.form == "tar" else ["-j", str(self.jobs)]
        return restorer.pg_restore(dump.path, ["--create", "--no-subscriptions", *jobs], at)

    def _create(self) -> None:
        from psycopg import sql

        if self.database == DATABASE:
            return
        with self.cluster.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(self.database)))

    def _named(self) -> None:
        """The database has the name that was asked for, and later sessions are in it."""
        from psycopg import sql

        wanted = self.tables.table.name or self.database
        if wanted != self.database:
            statement = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            with self.cluster.connect(dbname="template1") as connection:
                connection.execute(statement.format(sql.Identifier(self.database), sql.Identifier(wanted)))
        self.database = self.cluster.database = wanted

    def _understood(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """A script for this server and its psql."""
        return dump_script.DatabaseScript(self.site.binaries.version).pieces(lines)

    def _without_statistics(self, log: RestoreLog) -> RestoreLog:
        """An older server lacks the functions that restore statistics, which ANALYZE makes again."""
        return log.without(STATISTICS_FUNCTIONS) if self.site.binaries.major < STATISTICS_SINCE else log


class _Physical(RestoreWork):
    """A cluster's files."""

    def done(self) -> RestoredDatabase:
        """See :func:`restore`."""
        return self.record(self._restore, Role(parents=(own_identity().pid,)))

    def _restore(self, watch: Callable[[int], None], log: Path) -> LoadOutcome:
        source, mounts, cluster = self.tables.source, self.site.attached.mounts, self.cluster
        assert source.path is not None
        with self.step("copy", 0.02):
            physical.copy(source.path, cluster, watch)
        dropped = physical.settle(cluster, mounts)
        if dropped:
            self.notes.append(f"not preloaded, as this machine lacks them: {', '.join(dropped)}")
        with self.step("recover", 0.5):
            physical.ensure_superuser(cluster, self.settings)
            cluster.start(self.settings, self.site.instance, timeout_s=RECOVERY_S)
            names = physical.tablespaces(cluster)
            cluster.stop()
        physical.arrange_tablespaces(cluster, mounts, names)
        with cluster.running(self.settings, self.site.instance):
            if "temp" in mounts:
                layout.create_tablespaces(cluster, {"temp": mounts["temp"]})
            self.database = cluster.database = self._chosen()
            self.role_must_log_in()
            physical.require_extensions(cluster, self.site.binaries)
            self.prepare(Restorer(cluster, log, watch=watch))
            rows = self.measure()
            self.checkpoint()
        return LoadOutcome(seconds=self.seconds, rows=rows, loader="restore", sessions=1)

    def _chosen(self) -> str:
        """The database that is named, or the only one."""
        with self.cluster.connect() as connection:
            names = [
                str(row[0])
                for row in connection.execute(
                    "SELECT datname FROM pg_catalog.pg_database WHERE NOT datistemplate AND datallowconn ORDER BY 1"
                ).fetchall()
            ]
        wanted = self.tables.table.name
        own = [name for name in names if name != DATABASE] or names
        if wanted is None and len(own) == 1:
            return own[0]
        if wanted in names:
            return str(wanted)
        why = f"has no database {wanted}" if wanted else "has several databases"
        raise InputError(
            f"the cluster {why}: there are {', '.join(names)}", remedy='name one: name = "NAME" in [workload.database]'
        )


class _KeptDatabase(RestoreWork):
    """A kept database, whose images the volumes were cloned from: only `prepare` is left to do."""

    def done(self) -> RestoredDatabase:
        """See :func:`restore`."""
        kept = self.tables.source.kept
        assert kept is not None
        self.database = self.cluster.database = kept.database
        layout.arrange(self.cluster, self.site.attached.mounts)
        with self.cluster.running(self.settings, self.site.instance):
            return self.record(self._prepared, Role(parents=(self.cluster.pid,)))

    def _prepared(self, watch: Callable[[int], None], log: Path) -> LoadOutcome:
        self.prepare(Restorer(self.cluster, log, watch=watch))
        rows = self.measure()
        self.checkpoint()
        return LoadOutcome(seconds=self.seconds, rows=rows, loader="restore", sessions=1)

"""A recording: a server works on a volume with a write log, and what it acknowledged is noted outside."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...base.errors import InputError, PgdynoError
from ...base.text import parsed_json
from ...machine import paths, preflight, program, volume
from ...machine.file_system import trim
from ...machine.journal import HostJournal
from ...machine.process import own_name
from ...machine.volume import AttachedVolume, Cache
from ...results.names import experiment_id, identity_hash, results_root
from ...server.binaries import PgBinaries, find_binaries
from ...server.cluster import Cluster
from . import archive, ledger
from .archive import Archive
from .ledger import SCHEMA_CLIENT, Client, Ledger

RECORDING_FILE = "recording.json"
LOG_FILE = "write.log"
VERSION = 1
SIZE = "1GiB"
"""The smallest gp3, of which only what is written takes memory."""
SIZE_BYTES = 1 << 30
"""The size of every file system, also on a larger volume: the tables of a large one would fill the write log."""
CLIENTS = 4
STATES = 4
"""Contents that are tried at each instant."""
WAL_SEGMENT_MIB = 1
"""The smallest: segments are switched often, and a cluster stays small."""
PAUSE_S = 0.05
"""Between two operations beside the clients."""
COMMITS_MAX = 2000
"""Commits whose instants are drawn from; more add nothing but time."""
BEFORE_COMMIT_NS, AFTER_COMMIT_NS = 3_000_000, 500_000
"""What happens around an acknowledgement: writing and flushing WAL takes a gp3 2 to 3 ms (docs/concept/volume/service_time.md)."""

SETTINGS = {
    "shared_buffers": "16MB",
    "max_wal_size": "16MB",
    "min_wal_size": "4MB",
    "checkpoint_timeout": "30s",
    "checkpoint_completion_target": "0.5",
    "autovacuum_naptime": "1s",
    "max_prepared_transactions": "16",
    "max_connections": "20",
    "huge_pages": "off",
    "jit": "off",
}
"""Small, so that buffers are evicted, segments recycled and checkpoints frequent."""

Kind = Literal["ext4", "ext4-bigalloc", "xfs"]
_OF_EXT4 = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
MAKERS: dict[Kind, list[str]] = {
    "ext4": ["mkfs.ext4", "-q", "-F", *_OF_EXT4],
    "ext4-bigalloc": ["mkfs.ext4", "-q", "-F", "-O", "bigalloc", "-C", "16384", *_OF_EXT4],
    "xfs": ["mkfs.xfs", "-q", "-f", "-d", f"size={SIZE_BYTES}"],
}


@dataclass(frozen=True)
class RecordingOptions:
    """What is recorded."""

    volume: str = "gp3"
    file_system: Kind = "ext4"
    cache: Cache = "none"
    wal_apart: bool = False
    wal_volume: str = ""
    """The WAL's where it is apart. Empty: one like the data's."""
    mount_options: str = ""
    """Mount options of the recorded file systems; a content is mounted without."""
    seconds: float = 10.0
    settings: dict[str, str] = field(default_factory=dict)
    """Settings of the server beside :data:`SETTINGS`."""
    given_up: dict[str, str] = field(default_factory=dict)
    """Settings that give up durability; refused everywhere else."""
    archive: Archive = ""
    """Empty: after a cut the server recovers as it is. Else it is restored from a backup and its archive (:mod:`pgdyno.durability.crash.archive`)."""
    planted: dict[str, str] = field(default_factory=dict)
    """A planted bug: what the environment of the recorded server has beside its own. The server that recovers lacks it."""
    pg_bin: str | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        """The volumes, in the order of the log."""
        return ("data", "wal") if self.wal_apart else ("data",)


@dataclass(frozen=True)
class Operation:
    """Something that was done beside the clients."""

    kind: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class Recording:
    """A recording on disk."""

    folder: Path
    asked: RecordingOptions
    postgres: str
    begin_ns: int
    end_ns: int
    operations: list[Operation]
    ledger: Ledger

    @property
    def log(self) -> Path:
        """Its write log."""
        return self.folder / LOG_FILE

    def strata(self) -> dict[str, list[tuple[int, int]]]:
        """Intervals of the instants that are drawn from, by kind."""
        strata: dict[str, list[tuple[int, int]]] = {"anywhere": [(self.begin_ns, self.end_ns)]}
        for operation in self.operations:
            strata.setdefault(operation.kind, []).append((operation.begin_ns, min(operation.end_ns, self.end_ns)))
        known = sorted(at for at in self.ledger.acknowledgements() if self.begin_ns < at < self.end_ns)
        step = len(known) // COMMITS_MAX + 1
        strata["commit"] = [(max(at - BEFORE_COMMIT_NS, self.begin_ns), at + AFTER_COMMIT_NS) for at in known[::step]]
        return strata

    def binaries(self) -> PgBinaries:
        """The programs that it was recorded with."""
        binaries = find_binaries(Path(self.asked.pg_bin) if self.asked.pg_bin else None)
        if binaries.version != self.postgres:
            raise InputError(
                f"the recording is of PostgreSQL {self.postgres}, and here is {binaries.version}",
                remedy="record it again, or install that version",
            )
        return binaries

    def save(self) -> None:
        """Write it beside its log."""
        document = {
            "version": VERSION,
            "asked": asdict(self.asked),
            "postgres": self.postgres,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "states": STATES,
            "operations": [[operation.kind, operation.begin_ns, operation.end_ns] for operation in self.operations],
            "ledger": self.ledger.to_json(),
        }
        (self.folder / RECORDING_FILE).write_text(json.dumps(document) + "\n", encoding="utf-8")


def load(folder: Path) -> Recording:
    """Read a recording. :class:`InputError` when it is none, or of another version."""
    remedy = "name a directory that `pgdyno crashtest` wrote"
    try:
        document = parsed_json((folder / RECORDING_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{folder} is not a recording of a server", remedy=remedy) from None
    if document.get("version") != VERSION or document.get("states") != STATES:
        raise InputError(f"the recording {folder} is of another version of pgdyno", remedy="record it again")
    if not (folder / LOG_FILE).is_file():
        raise InputError(
            f"the recording {folder} has no write log", remedy="record it again: without it nothing is cut"
        )
    return Recording(
        folder.resolve(),
        RecordingOptions(**document["asked"]),
        document["postgres"],
        document["begin_ns"],
        document["end_ns"],
        [Operation(*operation) for operation in document["operations"]],
        Ledger.from_json(document["ledger"]),
    )


def new_folder(options: RecordingOptions, results: Path | None) -> Path:
    """Where a recording that begins now lies."""
    digest = identity_hash(asdict(options))
    return results_root(results) / experiment_id("crashtest", digest, time.time_ns())


def record(options: RecordingOptions, folder: Path) -> Recording:
    """Record a new server in ``folder``, which is made."""
    preflight.require_root("recording a server")
    preflight.require_programs(MAKERS[options.file_system][0], "fstrim")
    binaries = find_binaries(Path(options.pg_bin) if options.pg_bin else None)
    folder.mkdir(parents=True)
    journal = HostJournal()
    with contextlib.ExitStack() as stack:
        # Two commands may record folders of one name.
        below = stack.enter_context(journal.directory(paths.state_dir() / own_name(f"crash-{folder.name}")))
        below.chmod(0o755)
        attached = stack.enter_context(volumes(options, folder.resolve() / LOG_FILE))
        mounts = stack.enter_context(mounted(options, attached, below))
        cluster = Cluster(binaries, mounts[0] / "pgdata", journal=journal)
        stack.callback(cluster.close)
        cluster.initdb(wal_dir=mounts[1] / "pg_wal" if options.wal_apart else None, wal_segment_mib=WAL_SEGMENT_MIB)
        archiving = archive.prepare(options.archive, cluster, mounts[0])
        cluster.start(SETTINGS | archiving | options.settings, given_up=options.given_up, environment=options.planted)
        _shrink(cluster, mounts[0])
        result = Ledger({client: [] for client in range(CLIENTS + 1)})
        ledger.make(cluster, CLIENTS)
        with cluster.connect() as connection:
            connection.execute("CHECKPOINT")
        if options.archive:
            archive.take_backup(cluster, mounts[0])
        for mount in mounts:  # pgdyno's own lines in postgresql.conf are not synced
            program.run("sync", "--file-system", mount)
        attached[0].mark("begin")
        begin_ns = time.monotonic_ns()
        operations = _work(cluster, result, options.seconds)
        end_ns = time.monotonic_ns()
        require_room(attached[0].mark("end"))
        cluster.stop("immediate")
    made = Recording(folder.resolve(), options, binaries.version, begin_ns, end_ns, operations, result)
    made.save()
    return made


def _shrink(cluster: Cluster, mount: Path) -> None:
    """Remove the databases that others are made from: two thirds of a new cluster, which each cut would write, read and check again."""
    with cluster.connect() as connection:
        for name in ("template1", "template0"):
            connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE false".encode())
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
    trim(mount)


def require_room(marked: dict[str, Any]) -> None:
    """Refuse a recording whose log ended before it; ``marked`` is what the log said of its last mark."""
    if marked["full"]:
        raise PgdynoError("the write log is full: it ended before the recording", remedy="use a shorter --seconds")


@contextlib.contextmanager
def volumes(options: RecordingOptions, log: Path) -> Iterator[list[AttachedVolume]]:
    """The volumes, of one instance with one log."""
    with contextlib.ExitStack() as stack:
        instance = own_name(f"crash-{log.parent.name}")[-32:].strip("-").lower()
        specs = {"data": _sized(options.volume), "wal": _sized(options.wal_volume or options.volume)}
        yield [
            stack.enter_context(
                volume.attached(
                    specs[role],
                    mount=None,
                    write_log=log if role == "data" else None,
                    cache=options.cache,
                    instance=instance,
                    calibrate=False,
                )
            )
            for role in options.roles
        ]


def _sized(spec: str) -> str:
    return spec if "size=" in spec else f"{spec}{',' if ':' in spec else ':'}size={SIZE}"


@contextlib.contextmanager
def mounted(
    recording_options: RecordingOptions, attached: Sequence[AttachedVolume], below: Path, *, new: bool = True
) -> Iterator[list[Path]]:
    """The volumes mounted below a directory, and formatted before if they are ``new``."""
    mounts = [below / role for role in recording_options.roles]
    with contextlib.ExitStack() as stack:
        for volume, mount in zip(attached, mounts, strict=True):
            if new:
                size = [] if recording_options.file_system == "xfs" else [f"{SIZE_BYTES >> 10}k"]
                program.run(*MAKERS[recording_options.file_system], volume.block_device, *size)
            mount.mkdir()
            options = ("-o", recording_options.mount_options) if recording_options.mount_options else ()
            program.run("mount", *options, volume.block_device, mount)
            stack.callback(program.run, "umount", mount)
        yield mounts


def _work(cluster: Cluster, ledger: Ledger, seconds: float) -> list[Operation]:
    """Clients work, and beside them the schema changes, checkpoints come, segments are switched and tables vacuumed."""
    stop = threading.Event()
    clients = [Client(cluster, client, ledger.clients[client], stop) for client in range(1, CLIENTS + 1)]
    for client in clients:
        client.start()
    try:
        operations = list(_operations(cluster, ledger, stop, time.monotonic() + seconds))
    finally:
        stop.set()
        for client in clients:
            client.join()
    for client in clients:
        if client.error is not None:
            raise client.error
    return operations


def _operations(cluster: Cluster, result: Ledger, stop: threading.Event, until: float) -> Iterator[Operation]:
    schema = result.clients[SCHEMA_CLIENT]
    with cluster.connect() as connection:
        while True:
            for kind in ("ddl", "checkpoint", "ddl", "segment", "vacuum", "ddl", "segment", "reindex"):
                if time.monotonic() >= until or stop.wait(PAUSE_S):
                    return
                begin_ns = time.monotonic_ns()
                match kind:
                    case "ddl":
                        ledger.send_schema_change(connection, schema, ledger.tablespace(cluster))
                    case "checkpoint":
                        connection.execute("CHECKPOINT")
                    case "segment":
                        connection.execute("SELECT pg_switch_wal()")
                    case "vacuum":
                        connection.execute("VACUUM page, wide, account")
                    case "reindex":
                        connection.execute("REINDEX INDEX wide_number_idx")
                yield Operation(kind, begin_ns, time.monotonic_ns())

"""Kept databases: restored once onto volumes, saved as images, compared and rehearsed before they are used again."""

from __future__ import annotations

import fcntl
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.workload.database import PHYSICAL, OwnDatabase
from pgdyno.workload.kind import Workload
from pgdyno.world import physical
from pgdyno.world.restored import facts_of_source
from pgdyno.world.restored import restore as restore_database

from ..base.errors import HostError, InputError
from ..machine import paths, preflight
from ..machine.file_system import FileSystem
from ..machine.journal import HostJournal
from ..machine.placement import Placement, attach_placement
from ..machine.process import own_name
from ..results.kept_database import RECORD, KeptDatabase, databases_dir, find_kept, kept_databases
from ..server import layout, restore, settings
from ..server.binaries import PgBinaries
from ..server.cluster import Cluster
from ..server.lacking import lacking
from .client_endpoint import ReachedServer
from .restored import RestoredDatabase, Site, server_facts


def require_restorable(tables: OwnDatabase, binaries: PgBinaries) -> None:
    """Compare the database with this PostgreSQL. :class:`InputError` has the whole list of what is missing. Nothing is changed."""
    source = tables.source
    if source.form == "kept":
        return
    if source.form in PHYSICAL:
        assert source.path is not None
        physical.require_usable(source.path, binaries)
        return
    facts = server_facts(source.text, binaries) if source.form == "server" else facts_of_source(tables, binaries)
    wrong = lacking(binaries, facts)
    if wrong:
        raise InputError(
            f"PostgreSQL {binaries.version} ({binaries.source}) cannot take {source.title}: {'; '.join(wrong)}",
            remedy="install what is missing, or name a PostgreSQL that has it with --pg-bin (postgres.bin)",
        )
    if source.path is not None and source.form != "plain":
        restore.require_readable(binaries, source.path)


def found_kept(
    tables: OwnDatabase, binaries: PgBinaries, file_system: str, sizes: Mapping[str, int]
) -> KeptDatabase | None:
    """A kept database that is this data set, or that was named and only lacks what `prepare` does; None where it must be restored.

    :class:`InputError` where one is named that does not fit these volumes or this PostgreSQL.
    """
    named = tables.source.kept
    try:
        known = kept_databases() if named is None else [named]
    except HostError:
        return None
    for database in known:
        if database.digest != tables.digest and named is None:
            continue
        why = _unfit(database, binaries, file_system, sizes)
        if why is None:
            return database
        if named is not None and why is not None:
            raise InputError(
                f"the kept database {database.name} {why}",
                remedy=f"keep another one for this: pgdyno data add {database.source} --name NAME, with the same options",
            )
    return None


def _unfit(database: KeptDatabase, binaries: PgBinaries, file_system: str, sizes: Mapping[str, int]) -> str | None:
    if database.postgres_major != binaries.major:
        return f"is of PostgreSQL {database.postgres_major}, and this is {binaries.version}"
    if database.file_system != file_system:
        return f"is on {database.file_system}, and {file_system} is asked for"
    if database.volume_bytes.keys() != sizes.keys():
        return f"has volumes for {', '.join(sorted(database.volume_bytes))}, and there are {', '.join(sorted(sizes))}"
    small = next((role for role, size_bytes in sizes.items() if size_bytes < database.volume_bytes[role]), None)
    if small is not None:
        needed = database.volume_bytes[small] / 2**30
        return f"needs a {small} volume of {needed:.0f} GiB, and there are {sizes[small] / 2**30:.0f}"
    return None


def rehearse(
    workloads: Sequence[Workload], binaries: PgBinaries, placement: Placement, images: Mapping[str, Path], database: str
) -> None:
    """Let each workload ask a server on a clone whether it takes its statements. :class:`InputError` says what it refuses."""
    journal = HostJournal(paths.state_dir())
    name = own_name(f"rehearsal-{secrets.token_hex(3)}")
    with attach_placement(placement, name=name, images=images, journal=journal) as attached:
        mounts = attached.mounts
        cluster = Cluster(binaries, layout.data_dir(mounts), database=database, journal=journal)
        try:
            layout.arrange(cluster, mounts)
            cluster.start(layout.settings(mounts) | restore.SETTINGS)
            for workload in workloads:
                own = workload.own_database
                assert own is not None
                workload.disarm(cluster)
                workload.rehearse(ReachedServer(cluster.dsn_of(own.user), binaries, None))
        finally:
            cluster.stop("immediate")
            cluster.close()


_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_GIB = 1 << 30
_ROOM = 1.5
"""Times the size of the database that its volume has: WAL and temporary files come to it while it is restored. What is not written
takes no space."""
_BESIDE_BYTES = 1 * _GIB
_MEMORY_BYTES = 1 << 30
"""Settings for restoring are those of this much memory; no limit is imposed."""


@dataclass(frozen=True)
class KeepOptions:
    """How a database is to be kept."""

    name: str
    binaries: PgBinaries
    file_system: FileSystem = "ext4"
    roles: tuple[str, ...] = ("data",)
    """Roles of its volumes, the data's first."""
    size_bytes: int | None = None
    """Size of each volume; by default what the database is expected to need."""


def require_keepable(tables: OwnDatabase, wanted: KeepOptions) -> None:
    """Refuse what cannot be kept, before anything is changed."""
    if not _NAME.fullmatch(wanted.name):
        raise InputError(
            f"`{wanted.name}` cannot be the name of a database that is kept",
            remedy="use up to 32 lower-case letters, digits, `-` and `_`; begin with a letter or a digit",
        )
    preflight.require_root("keeping a database")
    if tables.source.form == "kept":
        raise InputError(f"{tables.source.text} is kept already", remedy="name a dump, a base backup or a server")
    if find_kept(wanted.name) is not None:
        raise InputError(
            f"a database called {wanted.name} is kept already",
            remedy=f"choose another name, or remove it: pgdyno data remove {wanted.name} --yes",
        )
    preflight.require_fuse()
    preflight.require_mounts()
    preflight.require_loop()
    preflight.require_programs("mount", "umount", "fstrim", f"mkfs.{wanted.file_system}")
    preflight.require_space(databases_dir(), tables.size_bytes + _BESIDE_BYTES, f"{tables}, restored,")
    require_restorable(tables, wanted.binaries)


def keep(tables: OwnDatabase, wanted: KeepOptions, progress: Callable[[float, str], None]) -> tuple[KeptDatabase, str]:
    """Restore and keep a database: its record, and the result in a line. After an error or an interruption nothing of it is left."""
    journal = HostJournal(paths.state_dir())
    above = databases_dir()
    paths.make_walkable(above.parent)
    above.mkdir(mode=0o700, exist_ok=True)
    above.chmod(0o700)
    partial = above / f".{wanted.name}-{secrets.token_hex(4)}"
    with journal.directory(partial):
        partial.chmod(0o700)
        restored = _restored(tables, wanted, partial, journal, progress)
        kept = _record(tables, wanted, restored)
        (partial / RECORD).write_text(kept.model_dump_json(indent=1) + "\n", encoding="utf-8")
        os.sync()
        try:
            partial.rename(kept.folder)
        except OSError as error:
            raise HostError(
                f"{kept.folder} cannot be written: {error.strerror}", remedy="choose another name"
            ) from None
    return kept, restored.said


def _restored(
    tables: OwnDatabase,
    wanted: KeepOptions,
    partial: Path,
    journal: HostJournal,
    progress: Callable[[float, str], None],
) -> RestoredDatabase:
    """Restore onto volumes without limits whose content is below ``partial``, and save it as images there."""
    layers = partial / "layers"
    layers.mkdir(mode=0o700)
    volumes = dict.fromkeys(wanted.roles, f"null:size={_volume_bytes(tables, wanted) >> 20}MiB")
    placement = Placement(volumes, wanted.file_system, store=str(layers))
    name = own_name(f"keep-{secrets.token_hex(3)}")
    with attach_placement(placement, name=name, journal=journal) as attached:
        site = Site(
            binaries=wanted.binaries,
            attached=attached,
            instance=None,
            journal=journal,
            directory=partial,
            title=str(tables),
            settings=settings.tuned(_MEMORY_BYTES, wanted.binaries.major),
            world=None,
            progress=progress,
        )
        with attached.trimmed():
            result = restore_database(tables, site)
        progress(0.99, "save")
        attached.detach(save_images={role: partial / role for role in wanted.roles})
    shutil.rmtree(layers, ignore_errors=True)
    return result


def _volume_bytes(tables: OwnDatabase, wanted: KeepOptions) -> int:
    if wanted.size_bytes is not None:
        return wanted.size_bytes
    return math.ceil((tables.size_bytes * _ROOM + _BESIDE_BYTES) / _GIB) * _GIB


def _record(tables: OwnDatabase, wanted: KeepOptions, restored: RestoredDatabase) -> KeptDatabase:
    return KeptDatabase(
        name=wanted.name,
        source=tables.table.public_from,
        source_digest=tables.source.digest,
        digest=tables.digest,
        postgres_major=wanted.binaries.major,
        postgres_version=wanted.binaries.version,
        file_system=wanted.file_system,
        database=restored.database,
        size_bytes=restored.size_bytes,
        volume_bytes=dict.fromkeys(wanted.roles, _volume_bytes(tables, wanted)),
        created_unix_ns=time.time_ns(),
        seconds=round(restored.seconds, 3),
    )


def remove(kept: KeptDatabase) -> None:
    """Remove a kept database. :class:`HostError` while an experiment uses it."""
    with (kept.folder / RECORD).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostError(
                f"the kept database {kept.name} is in use", remedy="wait until that experiment ends"
            ) from None
        gone = kept.folder.with_name(f".{kept.name}-{secrets.token_hex(4)}")
        kept.folder.rename(gone)
    shutil.rmtree(gone)

"""What stands around a restore: the comparison before anything is attached, kept databases, and the rehearsal of scripts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgdyno.workload.database import OwnDatabase
from pgdyno.world import physical
from pgdyno.world.dump_server import server_facts
from pgdyno.world.reached import ReachedServer
from pgdyno.world.restored import facts_of_source

from ..base.errors import HostError, InputError
from ..machine import paths
from ..machine.journal import HostJournal
from ..machine.placement import Placement, attach_placement
from ..machine.process import own_name
from ..results.kept_database import KeptDatabase, kept_databases
from ..server import layout, restore
from ..server.binaries import PgBinaries
from ..server.cluster import Cluster
from ..server.lacking import lacking
from ..workload.database import PHYSICAL
from ..workload.kind import Workload


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

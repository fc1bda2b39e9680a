"""A database that is used while its server logs and counts, and copies of one as it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.captured.logged import log_of, of_roles

from .logged import captured, counters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pgdyno.server.cluster import Cluster


@dataclass(frozen=True)
class Counted:
    """What is left of a use."""

    log: Path
    """A csvlog."""
    capture: Path
    stats: tuple[Path, Path]
    """What the server had counted before it and after it."""


def counted(
    cluster: Cluster, database: str, folder: Path, use: Callable[[Cluster], None], role: str | None = None
) -> Counted:
    """Use a database; with ``role`` the log and the capture are of that role alone."""
    before = counters(cluster, database, folder / "before.json")
    log = log_of(cluster, database, use).files["csv"]
    if role is not None:
        log = of_roles(log, {role}, folder / "production.csv")
    after = counters(cluster, database, folder / "after.json")
    return Counted(log, captured(folder, log)[0], (before, after))


def copy_of(cluster: Cluster, template: str, name: str, *changes: str) -> str:
    """A new copy of a database that nobody is in, changed as asked."""
    with cluster.connect() as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    with cluster.connect(dbname=name) as admin:
        for change in filter(None, changes):
            admin.execute(change.encode())
    return name

"""What a workload needs of a server."""

from __future__ import annotations

from typing import Any, Protocol

from ..base.endpoint import Endpoint


class Binaries(Protocol):
    """Where PostgreSQL's programs are."""

    @property
    def bin_dir(self) -> Any:
        """Directory (``pathlib.Path``) that holds ``pgbench``."""


class Server(Protocol):
    """A server; :class:`pgdyno.server.cluster.Cluster` is one."""

    @property
    def dsn(self) -> str:
        """Connection string in libpq's notation."""

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it. :class:`InputError` if the engine cannot do what the connection string asks for."""

    @property
    def binaries(self) -> Binaries:
        """The programs that belong to it."""

"""The server as a driver reaches it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..base.endpoint import Endpoint, local
from ..server.binaries import PgBinaries


@dataclass(frozen=True)
class ReachedServer:
    """The server as the driver reaches it where the probes reach it otherwise: by its own role, or from a distance, which is by TCP,
    with a password, by way of the relay.
    """

    dsn: str
    binaries: PgBinaries
    password: str | None = field(repr=False)

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it."""
        return local(self.dsn, self.password)

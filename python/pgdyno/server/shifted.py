"""A server whose calendar is another day's: a library that is loaded before its own shifts what it takes for the time, by a constant.

``now() - interval '60 days'`` finds nothing in last year's dump, unless the server's clock is last year's too. The engine brings the
library (``crates/shifted``). Monotonic clocks stay, so timers and measured durations do.
"""

from __future__ import annotations

import functools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ..base import engine
from ..base.errors import HostError
from .cluster import Cluster
from .publish import publish

_NAME = "shifted.so"
_SEPARATORS = " :"
"""Of LD_PRELOAD (ld.so(8)): a path with one of them is several."""
TOLERANCE_S = 1.0
"""Both clocks are read within one statement, whose begin and end are known; the rest is what a step of the host's clock may be."""


@dataclass(frozen=True)
class Shift:
    """How far a server's clock is ahead of the host's, for as long as it runs."""

    us: int
    """Negative in the past."""
    environment: dict[str, str]
    """With which the server is started."""

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.us / 1e6

    def require(self, cluster: Cluster) -> None:
        """Refuse a server whose clock is not shifted: a library that cannot be loaded is ignored. :class:`HostError`."""
        with cluster.connect() as connection:
            before_s = time.time()
            row = connection.execute("SELECT extract(epoch FROM pg_catalog.clock_timestamp())::float8").fetchone()
            after_s = time.time()
        assert row is not None
        if not before_s - TOLERANCE_S <= row[0] - self.seconds <= after_s + TOLERANCE_S:
            raise HostError(
                "the server's clock could not be shifted: PostgreSQL did not load the library that shifts it",
                remedy='use a PostgreSQL that is linked with this machine\'s libc, or write clock = "now" in [workload]',
            )


@dataclass(frozen=True)
class ClockLibrary:
    """The library where a server can load it."""

    path: Path
    variable: str
    """In the server's environment: the shift in microseconds."""

    def to(self, unix_us: int) -> Shift:
        """The shift by which it is ``unix_us`` now, microseconds since 1970."""
        us = unix_us - time.time_ns() // 1000
        return Shift(us, {"LD_PRELOAD": str(self.path), self.variable: str(us)})


@functools.cache
def library(root: Path | None = None) -> ClockLibrary:
    """The library, in a copy below ``root`` that everyone can read; by default where PostgreSQL's programs are copied to."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-shifted-") as name:
        base = Path(name)
        folder = base / "lib"
        folder.mkdir()
        json = engine.run_json(["shifted", "--output", str(folder / _NAME)])
        path = publish(base, [folder], root) / "lib" / _NAME
    if set(_SEPARATORS) & set(str(path)):
        raise HostError(
            f"{path} has a space or a colon in its name, so no server can load it before its own libraries",
            remedy='set PGDYNO_POSTGRES_DIR to a directory without them, or write clock = "now" in [workload]',
        )
    return ClockLibrary(path, str(json["variable"]))

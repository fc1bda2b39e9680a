"""What statements did in production while they were captured: by the two documents of ``pgdyno capture stats``."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.workload.replay.asked import file_stamp
from pgdyno.workload.replay.counted import Counts, fallen, grown

from ...base.errors import InputError
from ...base.text import parsed_json

VERSION = 1
"""The form of the documents."""
FALLEN_MOST = 0.5
"""Statements with half of the calls have smaller counters than before: they were reset in between, or the files are in the wrong order."""
PLACES_MIN = 20_000
"""Statements that a server under test counts: four times PostgreSQL's default, so that none is evicted."""
LIBRARY = "pg_stat_statements"
_REMEDY = "name two files of `pgdyno capture stats`, the one from before the capture first"


@dataclass(frozen=True)
class Production:
    """The statements of one database of production, before a capture and after it."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def database(self) -> str:
        """The name that it has in production."""
        return str(self.after["database"])

    @property
    def server(self) -> Mapping[str, Any] | None:
        """Which database of which server they are of (:mod:`pgdyno.workload.replay.identity`); None if they do not say it."""
        server: Mapping[str, Any] | None = self.after.get("server")
        return server

    def work(self, roles: Collection[str]) -> dict[str, Counts]:
        """Shape -> what its statements did, of some roles; of all if none is named."""
        return grown(self.before["statements"], self.after["statements"], roles)

    def server_settings(self) -> dict[str, str]:
        """Settings with which another server counts as production did, from zero at its start."""
        document = {setting["name"]: setting["setting"] for setting in self.after["settings"]}
        track = ("pg_stat_statements.track", "pg_stat_statements.track_utility")
        return {
            "shared_preload_libraries": LIBRARY,
            "pg_stat_statements.save": "off",
            "pg_stat_statements.max": str(PLACES_MIN),
            **{name: document[name] for name in track if name in document},
        }


def production(paths: tuple[str, str]) -> Production:
    """What two files say. :class:`InputError` when they are not two of one database in their order."""
    before, after = (_read(path, file_stamp(path)) for path in paths)
    if before["database"] != after["database"]:
        raise InputError(
            f"{paths[0]} is of the database {before['database']}, {paths[1]} of {after['database']}", remedy=_REMEDY
        )
    if before["server_time_us"] >= after["server_time_us"]:
        raise InputError(f"{paths[0]} was not made before {paths[1]}", remedy=_REMEDY)
    if fallen(before["statements"], after["statements"]) > FALLEN_MOST:
        raise InputError(
            f"pg_stat_statements was reset between {paths[0]} and {paths[1]}",
            remedy="omit them, or capture again without resetting it",
        )
    return Production(before, after)


def digest(paths: tuple[str, ...]) -> str:
    """Digest of the files."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(_bytes(path) + b"\0")
    return whole.hexdigest()


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", remedy=_REMEDY) from error


@functools.lru_cache(maxsize=8)
def _read(path: str, stamp: tuple[int, int]) -> dict[str, Any]:
    del stamp
    try:
        result = parsed_json(_bytes(path))
    except ValueError as error:
        raise InputError(f"{path} is not JSON", remedy=_REMEDY) from error
    if not isinstance(result, dict) or result.get("stats_version") != VERSION:
        raise InputError(f"{path} is not a document of `pgdyno capture stats`", remedy=_REMEDY)
    return result

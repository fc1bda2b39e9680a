"""The file that says which hosts there are: where the scheduler is, whose certificates, and which workers drive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.hosts import address
from pgdyno.hosts.address import HostAddress
from pgdyno.hosts.keys import COORDINATOR, Identity

from ..base.errors import InputError
from ..base.toml_file import read_toml

_KEYS = {"scheduler", "keys", "drivers", "listen"}
_WEIGHT_MAX = 1000
_EXAMPLE = "alpha = 1, below [drivers]"


@dataclass(frozen=True)
class HostsFile:
    """A hosts file that was read."""

    path: Path
    scheduler: HostAddress
    identity: Identity
    """With which this process shows who it is."""
    drivers: dict[str, int]
    """Name of a worker -> its weight in the load."""
    listen: str | None = None
    """Address of this machine at which they reach a PostgreSQL that pgdyno starts."""


def read(path: Path) -> HostsFile:
    """Read a hosts file. :class:`InputError` names the key that is wrong. The folder of the keys is relative to the file."""
    document = read_toml(path, "a hosts file", _KEYS)
    scheduler = address.of_scheduler(_text(path, document, "scheduler", "tls://10.0.0.5:8786"), f"{path}: scheduler")
    keys = path.parent / _text(path, document, "keys", "keys")
    listen = (
        address.to_listen(_text(path, document, "listen", "10.0.0.1"), 0, f"{path}: listen").host
        if "listen" in document
        else None
    )
    return HostsFile(path, scheduler, Identity(keys, COORDINATOR), _drivers(path, document.get("drivers")), listen)


def _text(path: Path, document: dict[str, Any], key: str, example: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{path}: {key} is missing", remedy=f'write {key} = "{example}"')
    return value


def _drivers(path: Path, table: Any) -> dict[str, int]:
    if not isinstance(table, dict) or not table:
        raise InputError(f"{path}: no host drives", remedy=f"write the name of each worker with its weight: {_EXAMPLE}")
    for name, weight in table.items():
        if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _WEIGHT_MAX:
            raise InputError(
                f"{path}: drivers.{name}: a weight is a whole number from 1 to {_WEIGHT_MAX}",
                remedy=f"write it as {_EXAMPLE}",
            )
    return dict(table)

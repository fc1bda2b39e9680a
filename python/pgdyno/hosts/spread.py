"""Hosts that make whole runs: which scheduler knows them, and whether they are alike enough for one experiment."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgdyno.hosts.address import HostAddress
from pgdyno.hosts.facts import HostFacts
from pgdyno.hosts.keys import COORDINATOR, Identity

from ..base.errors import HostError

MEMORY_APART_SHARE = 0.02
"""Kernels reserve different parts of the same memory; a larger difference is another size."""


@dataclass(frozen=True)
class SpreadOptions:
    """What ``--spread``, ``--keys`` and ``--mixed`` say."""

    scheduler: HostAddress
    keys: Path
    mixed: bool = False
    """Whether hosts may differ in what changes a result."""

    @property
    def identity(self) -> Identity:
        """With which this process shows who it is."""
        return Identity(self.keys, COORDINATOR)

    @property
    def flags(self) -> str:
        """As they are written on a command line."""
        return f"--spread {self.scheduler.url} --keys {shlex.quote(str(self.keys))}" + " --mixed" * self.mixed


def require_alike(hosts: Mapping[str, HostFacts]) -> None:
    """Refuse hosts that differ in cores, memory, kernel or CPU: their runs would scatter by what they were made on."""
    (first, result), *others = hosts.items()
    for name, other in others:
        for what, here, there, same in (
            ("cores", str(result.cores), str(other.cores), result.cores == other.cores),
            ("memory", _gib(result), _gib(other), _close(result.memory_bytes, other.memory_bytes)),
            ("kernel", result.kernel, other.kernel, result.kernel == other.kernel),
            ("CPU", result.cpu, other.cpu, result.cpu == other.cpu),
        ):
            if not same:
                raise HostError(
                    f"hosts differ: {what} of {first}: {here}; of {name}: {there}",
                    remedy="use hosts of one kind, or give --mixed: then the report says how far they are apart",
                )


def _gib(facts: HostFacts) -> str:
    return f"{facts.memory_bytes / 2**30:.1f} GiB"


def _close(number: int, other: int) -> bool:
    return abs(number - other) <= MEMORY_APART_SHARE * max(number, other)

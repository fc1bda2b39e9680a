"""The limits that can bind, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Limit = Literal[
    "volume_iops",
    "volume_throughput",
    "burst_bucket",
    "instance_bandwidth",
    "volume_latency",
    "commit_latency",
    "checkpoints",
    "server_cpu",
    "locks",
    "client",
    "laboratory",
    "synchronous_standby",
    "connections",
    "no_answer",
]
"""What keeps the transactions from being more: lifting anything else would change little."""
Confidence = Literal["high", "low", "unknown"]
"""``high``: independent sources agree in most seconds. ``low``: one speaks for it. ``unknown``: nothing is said."""

LIMITS: Final[tuple[Limit, ...]] = get_args(Limit)
OF_WATCHED: Final[frozenset[Limit]] = frozenset({"synchronous_standby", "connections", "no_answer"})
"""Limits of servers in use: no run of pgdyno's own has a standby, or clients that are turned away, or continues without its server."""
OF_RUNS: Final[tuple[Limit, ...]] = tuple(limit for limit in LIMITS if limit not in OF_WATCHED)
"""The others."""
TITLES: Final[dict[Limit, str]] = {
    "volume_iops": "volume IOPS",
    "volume_throughput": "volume throughput",
    "burst_bucket": "burst bucket",
    "instance_bandwidth": "instance bandwidth",
    "volume_latency": "volume latency",
    "commit_latency": "commit latency",
    "checkpoints": "checkpoints",
    "server_cpu": "server CPU",
    "locks": "locks",
    "client": "client",
    "laboratory": "laboratory",
    "synchronous_standby": "synchronous standby",
    "connections": "connections",
    "no_answer": "no answer",
}
CAPS: Final[frozenset[Limit]] = frozenset({"volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth"})
"""Limits of what was bought: rates that a volume or an instance does not exceed."""


@dataclass(frozen=True)
class BindingLimit:
    """The limit that bound in one second."""

    limit: Limit
    sure: bool
    """Whether a second, independent source says so too."""
    role: str | None = None
    """The volume that it is a limit of, by its role; None where it is not a limit of a volume."""
    share: float = 1.0
    """Part of the second in which it bound, where the provider counts that."""

"""Fast snapshot restore: volume creation credits of a snapshot, and what a restore gets of them.

A snapshot for which it is enabled is optimized first. Then it earns credits in one bucket, which is empty at first; a volume takes one, and
below one credit it is made lazily (figures: ``catalog/restore.toml``). Zones are not told apart: each has a bucket like this one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from ..base import catalog
from ..base.quantity import duration_words
from .snapshot_file import VolumeSnapshot, changed, require_readable

_HOUR_S = 3600.0
_GIB = 1 << 30


@dataclass(frozen=True)
class Credits:
    """The bucket of a snapshot at an instant."""

    balance: float
    most: float
    next_s: float
    """Seconds until there is a whole credit; 0 if there is one."""
    optimizing_s: float
    """Seconds until it is optimized; 0 from then on."""


def credits_at(snapshot: VolumeSnapshot, now_unix_s: float) -> Credits:
    """The credits of a snapshot for which it is enabled."""
    rule = _rule(snapshot)
    begins_s = snapshot.fast_unix_ns / 1e9 + rule["optimizing_minutes"] * 60
    since_s = max(begins_s, snapshot.fast_spent_unix_ns / 1e9)
    earned = max(0.0, now_unix_s - since_s) / _HOUR_S * rule["per_hour"]
    balance = min(rule["most"], snapshot.fast_balance + earned)
    missing_s = max(0.0, 1.0 - balance) / rule["per_hour"] * _HOUR_S
    return Credits(
        balance,
        rule["most"],
        missing_s + max(0.0, since_s - now_unix_s) if missing_s else 0.0,
        max(0.0, begins_s - now_unix_s),
    )


def enable(snapshots: list[VolumeSnapshot], zones: int | None, state: Path) -> list[VolumeSnapshot]:
    """Enable it for ``snapshots`` in that number of zones (None: as before, else one). :class:`InputError` when one is pending, archived or too large."""
    for snapshot in snapshots:
        require_readable(snapshot)
        _rule(snapshot)
    now_ns = time.time_ns()
    return changed(
        state,
        {
            snapshot.name: {"fast_zones": zones or snapshot.fast_zones or 1}
            | (
                {}
                if snapshot.fast_zones
                else {"fast_unix_ns": now_ns, "fast_spent_unix_ns": now_ns, "fast_balance": 0.0}
            )
            for snapshot in snapshots
        },
    )


def disable(snapshots: list[VolumeSnapshot], state: Path) -> list[VolumeSnapshot]:
    """Disable it: the credits are gone."""
    return changed(state, {snapshot.name: {"fast_zones": 0} for snapshot in snapshots})


def spend(snapshot: VolumeSnapshot, now_unix_s: float) -> VolumeSnapshot | None:
    """The snapshot without the credit that a volume takes; None where there is none."""
    if why_lazy(snapshot, now_unix_s):
        return None
    left = credits_at(snapshot, now_unix_s).balance - 1.0
    return replace(snapshot, fast_balance=left, fast_spent_unix_ns=round(now_unix_s * 1e9))


def why_lazy(snapshot: VolumeSnapshot, now_unix_s: float) -> str:
    """Why a volume would be made without the benefit, or "" if it would have it."""
    if not snapshot.fast_zones:
        return (
            f"fast snapshot restore is not enabled for {snapshot.name} (`pgdyno volume snapshot fsr {snapshot.name}`)"
        )
    result = credits_at(snapshot, now_unix_s)
    if result.balance >= 1.0:
        return ""
    return f"{snapshot.name} has no volume creation credit; the next one comes in {duration_words(result.next_s)}"


def _rule(snapshot: VolumeSnapshot) -> dict[str, float]:
    """What the catalogue says of a snapshot of this size. :class:`InputError` when it is too large."""
    gib = -(-snapshot.size_bytes // _GIB)
    spec = catalog.resolve(f"gp3:size={gib}GiB,init=fsr")
    return dict(spec.document["initialization"]["credits"])

"""How likely it is that an arm's data are lost within a year, from the published failure rates of its volumes.

A provider publishes an annual failure rate: the share of volumes that fail in a year. Volumes are taken to fail one
independently of another. A RAID-0 needs all its members, so ``n`` of them last with the probability of one to the power
``n``. Copies are lost when all of them fail; how soon a failed one is replaced is not known, so both failing in the same
year counts as lost, which is far too much where an operator replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TABLESPACE = "tablespace."
_NEEDED = ("data", "wal")
"""Without these, and without a tablespace, there is no database. Temporary files and backups can be made again."""


@dataclass(frozen=True)
class Loss:
    """Probability of losing the data within a year, by both ends of the published rate; shares, not per cent."""

    low: float
    high: float


def loss_of_volume(resolved: Mapping[str, Any]) -> Loss | None:
    """Of one volume or array, as its specification was resolved; None where no rate is published."""
    array = resolved.get("array") or {}
    rates = (array.get("member") or resolved).get("annual_failure_rate_percent")
    if not rates:
        return None
    columns = int(array.get("columns", 1))
    copies = int(array.get("copies", 1)) * (1 if array.get("multi_az_ms") is None else 2)
    low, high = (loss_of_stripes(percent / 100, columns, copies) for percent in (min(rates), max(rates)))
    return Loss(low, high)


def loss_of_stripes(rate: float, columns: int, copies: int = 1) -> float:
    """Share of arrays that lose a column in a year: ``columns``, each of ``copies`` volumes, that fail at ``rate`` a year."""
    return _any_of([rate**copies] * columns)


def loss_of_volumes(by_role: Mapping[str, Mapping[str, Any]]) -> Loss | None:
    """The loss of all volumes that a database needs together, by role; None where one of them has no published rate, or there is none."""
    losses = [loss_of_volume(resolved) for role, resolved in by_role.items() if is_needed(role)]
    known = [loss for loss in losses if loss is not None]
    if not known or len(known) < len(losses):
        return None
    return Loss(_any_of([loss.low for loss in known]), _any_of([loss.high for loss in known]))


def is_needed(role: str) -> bool:
    """Whether the database is lost with the volume of that role."""
    return role in _NEEDED or role.startswith(TABLESPACE)


def ends_with_its_instance(by_role: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a volume that the database needs keeps nothing when its instance stops."""
    return any(bool(resolved.get("volatile")) for role, resolved in by_role.items() if is_needed(role))


def _any_of(rates: list[float]) -> float:
    """Probability that at least one happens. By logarithms, because 1 - (1 - 0.00001)^2 would lose its digits."""
    return -math.expm1(math.fsum(math.log1p(-rate) for rate in rates))

"""What more of the same volume would cost, recorded with a run so that arms of unequal size can be compared later."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pgdyno import _engine
from pgdyno.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB, MIB = 1 << 30, 1 << 20
_FACTORS = (64, 8, 2)
"""How many times larger a volume is asked for, the largest first that its type allows: a price has whole cents, and the more
GiB they are spread over, the more digits the price of one GiB has."""
_SIZE = re.compile(r"(?<=[:,])size=[^,]+")


class MorePrice(NamedTuple):
    """The price of more of a volume."""

    usd_per_gib_month: float
    limits_follow_size: bool
    """Whether a larger one has higher limits."""


def price_of_more(resolved: Mapping[str, Any]) -> MorePrice | None:
    """What one more GiB of a volume costs a month; None where nobody sells it.

    ``resolved`` is a specification as the engine resolved it. Only the size changes: IOPS and throughput stay as they are
    written, unless they are no choice of the buyer's but follow from the size.
    """
    usd, spec = resolved.get("usd_per_month"), str(resolved.get("spec", ""))
    if usd is None:
        return None
    member = (resolved.get("array") or {}).get("member") or resolved
    for factor in _FACTORS:
        larger = _SIZE.sub(f"size={int(member['size_bytes']) * factor // MIB}MiB", spec)
        try:
            answer = _engine.run_json(["volume", "spec", larger])
        except InputError:
            continue  # larger than the type is
        grown_gib = (answer["size_bytes"] - resolved["size_bytes"]) / GIB
        if grown_gib > 0 and answer["usd_per_month"] is not None:
            follows = (answer["limits"], answer.get("burst")) != (resolved["limits"], resolved.get("burst"))
            return MorePrice((answer["usd_per_month"] - usd) / grown_gib, follows)
    return None

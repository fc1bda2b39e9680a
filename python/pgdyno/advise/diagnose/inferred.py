"""Limits that were bought and are not said, inferred from a plateau: what is held there looks capped. Nothing is sure by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgdyno.analysis.binding.evidence import Evidence

from ...analysis.binding.device import DeviceActivity, ProvisionedVolume
from ...base.errors import InputError
from ...base.specification import Rate
from ..size import capped
from ..size.demand import demand_of
from ..size.offers import measured_of

SPEC = "inferred"
"""In place of a specification."""


def with_inferred(evidence: Evidence) -> Evidence:
    """The evidence with a limit for each volume of which nothing was said and that stood at a plateau."""
    given = evidence.given
    roles = dict.fromkeys(role for second in evidence.seconds for role in second.devices)
    volumes = {
        role: bought
        for role in roles
        if role not in given.bought
        and (bought := _bought([second.devices[role] for second in evidence.seconds if role in second.devices]))
    }
    if not volumes:
        return evidence
    known = replace(given, bought={**given.bought, **volumes}, inferred=given.inferred | volumes.keys())
    return replace(evidence, given=known)


def inferred_words(evidence: Evidence) -> Iterator[str]:
    """What was inferred of which volume."""
    for role in sorted(evidence.given.inferred):
        bought = evidence.given.bought[role]
        for rate, unit in ((bought.iops, "IOPS"), (bought.mib_per_s, "MiB/s")):
            if rate is not None:
                yield (
                    f"the {role} volume stood at {rate.maximum:,.0f} {unit} again and again, with a longer queue than else: it"
                    " looks like its limit, which --bought would tell"
                )


def _bought(devices: Sequence[DeviceActivity]) -> ProvisionedVolume | None:
    try:
        result = capped.find(demand_of(measured_of(devices), 99, 0.0))
    except InputError:
        return None  # it did nothing
    if result is None or result.level is None:
        return None
    level = Rate(result.level, result.level)
    of_iops = result.unit == "IOPS"
    return ProvisionedVolume(SPEC, level if of_iops else None, None, None if of_iops else level, None)

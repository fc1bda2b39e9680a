"""The advice as one JSON document. What is without limit, without end or not known is ``null``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pgdyno.size.demand import MIB
from pgdyno.size.words import capped_sentence

if TYPE_CHECKING:
    from pgdyno.size.advice import Advice
    from pgdyno.size.capped import Capped
    from pgdyno.size.demand import Spread
    from pgdyno.size.fit import Fit
    from pgdyno.size.instances import InstanceChoice
    from pgdyno.size.search import Choice
    from pgdyno.specification import Rate

SCHEMA_VERSION = 1


def document(advice: Advice) -> dict[str, Any]:
    """Everything that the table says, unrounded, and the choices that it leaves out."""
    demand = advice.demand
    measured = demand.measured
    return {
        "schema_version": SCHEMA_VERSION,
        "measured": {
            "origin": measured.origin,
            "device": measured.device,
            "intervals": len(measured.samples),
            "seconds": measured.seconds,
            "reads_and_writes_apart": measured.split_known,
        },
        "demand": {
            "percentile": demand.percentile,
            "headroom": demand.headroom,
            "size_bytes": advice.size_bytes,
            "read_share": demand.read_share,
            "request_kib": demand.request_kib,
            "iops": _spread(demand.iops),
            "mib_per_s": _spread(demand.mib_per_s),
            "needed_iops": demand.needed_iops,
            "needed_mib_per_s": demand.needed_mib_per_s,
            "capped": None if advice.capped is None else _capped(advice, advice.capped),
        },
        "volumes": [_choice(one) for one in advice.choices],
        "not_enough": [{"type": name, "why": why} for name, why in advice.unfit],
        "credits": [
            {
                "spec": one.member.spec,
                "empty_after_s": one.fit.empty_after_s,
                "empty_after_s_without_a_pause": one.steady_s,
                "sustained_iops": _finite(one.member.charged_iops.sustained),
                "sustained_mib_per_s": _finite(one.member.charged_bytes.sustained / MIB),
            }
            for one in advice.collapses
        ],
        "instance": None if advice.now is None else _instance(advice.now),
        "instances": [_instance(one) for one in advice.instances],
        "notes": list(advice.notes),
    }


def _capped(advice: Advice, found: Capped) -> dict[str, Any]:
    """That the load stood at a limit: everything else in the document is the least that will do."""
    return {
        "first": capped_sentence(advice),
        "share": found.share,
        "why": found.sentence,
        "is_certain": found.is_certain,
        "level": found.level,
        "unit": found.unit or None,
        "wanted_iops": found.wanted_iops,
        "steps": [
            {
                "times": one.times,
                "needed_iops": one.needed_iops,
                "needed_mib_per_s": one.needed_mib_per_s,
                "spec": one.spec,
                "usd_per_month": one.usd_per_month,
            }
            for one in found.steps
        ],
    }


def _spread(one: Spread) -> dict[str, float]:
    return {"mean": one.mean, "median": one.median, "at_percentile": one.at_percentile, "maximum": one.maximum}


def _choice(one: Choice) -> dict[str, Any]:
    return {
        "spec": one.spec,
        "type": one.member.type,
        "members": one.members,
        "member_spec": one.member.spec,
        "size_bytes": one.size_bytes,
        "usd_per_month": one.usd_per_month,
        "price_region": one.member.price_region,
        "durability": one.member.durability,
        "failures_per_year_max": one.failures_per_year_max,
        "iops": _rate(one.member.charged_iops, one.member.charge.read_tokens / one.members),
        "mib_per_s": _rate(one.member.charged_bytes, MIB / one.members),
        **_fit(one.fit),
    }


def _instance(one: InstanceChoice) -> dict[str, Any]:
    return {
        "instance": one.name,
        "vcpus": one.vcpus,
        "memory_bytes": one.memory_bytes,
        "arch": one.arch,
        "usd_per_month": one.usd_per_month,
        "price_region": one.price_region,
        "iops": _rate(one.iops, 1.0),
        "mib_per_s": _rate(one.throughput, MIB),
        **_fit(one.fit),
    }


def _rate(rate: Rate, scale: float) -> dict[str, float | None]:
    return {"sustained": _finite(rate.sustained / scale), "maximum": _finite(rate.maximum / scale)}


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "carries": fit.carries,
        "nearest_limit": fit.nearest,
        "headroom": _finite(fit.headroom),
        "on_credits": fit.on_credits,
        "credits_empty_after_s": fit.empty_after_s,
    }


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value

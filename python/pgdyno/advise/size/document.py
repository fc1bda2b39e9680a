"""The advice as one JSON document. What is without limit, without end or not known is ``null``."""

from __future__ import annotations

import math
from typing import Any

from ...base.specification import Rate
from .advice import Advice
from .capped import CapEvidence
from .demand import MIB, DemandSpread
from .fit import Fit
from .instances import InstanceChoice
from .search import VolumeChoice
from .words import capped_sentence

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
        "volumes": [_choice(choice) for choice in advice.choices],
        "not_enough": [{"type": name, "why": why} for name, why in advice.unfit],
        "credits": [
            {
                "spec": collapse.member.spec,
                "empty_after_s": collapse.fit.empty_after_s,
                "empty_after_s_without_a_pause": collapse.steady_s,
                "sustained_iops": _finite(collapse.member.charged_iops.sustained),
                "sustained_mib_per_s": _finite(collapse.member.charged_bytes.sustained / MIB),
            }
            for collapse in advice.collapses
        ],
        "instance": None if advice.now is None else _instance(advice.now),
        "instances": [_instance(instance) for instance in advice.instances],
        "notes": list(advice.notes),
    }


def _capped(advice: Advice, evidence: CapEvidence) -> dict[str, Any]:
    """That the load stood at a limit: everything else in the document is the least that will do."""
    return {
        "first": capped_sentence(advice),
        "share": evidence.share,
        "why": evidence.sentence,
        "is_certain": evidence.is_certain,
        "level": evidence.level,
        "unit": evidence.unit or None,
        "wanted_iops": evidence.wanted_iops,
        "steps": [
            {
                "times": step.times,
                "needed_iops": step.needed_iops,
                "needed_mib_per_s": step.needed_mib_per_s,
                "spec": step.spec,
                "usd_per_month": step.usd_per_month,
            }
            for step in evidence.steps
        ],
    }


def _spread(spread: DemandSpread) -> dict[str, float]:
    return {
        "mean": spread.mean,
        "median": spread.median,
        "at_percentile": spread.at_percentile,
        "maximum": spread.maximum,
    }


def _choice(choice: VolumeChoice) -> dict[str, Any]:
    return {
        "spec": choice.spec,
        "type": choice.member.type,
        "members": choice.members,
        "member_spec": choice.member.spec,
        "size_bytes": choice.size_bytes,
        "usd_per_month": choice.usd_per_month,
        "price_region": choice.member.price_region,
        "durability": choice.member.durability,
        "failures_per_year_max": choice.failures_per_year_max,
        "iops": _rate(choice.member.charged_iops, choice.member.charge.read_tokens / choice.members),
        "mib_per_s": _rate(choice.member.charged_bytes, MIB / choice.members),
        **_fit(choice.fit),
    }


def _instance(choice: InstanceChoice) -> dict[str, Any]:
    return {
        "instance": choice.name,
        "vcpus": choice.vcpus,
        "memory_bytes": choice.memory_bytes,
        "arch": choice.arch,
        "usd_per_month": choice.usd_per_month,
        "price_region": choice.price_region,
        "iops": _rate(choice.iops, 1.0),
        "mib_per_s": _rate(choice.throughput, MIB),
        **_fit(choice.fit),
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

"""Events that cannot happen, refused before the first data set is filled: what a provider forbids, what this machine cannot do.

The daemon of a volume has the same rules (``crates/emulate/src/modify.rs``) and refuses what is left.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

from pgdyno.experiment import Experiment
from pgdyno.experiment.event import EventTable
from pgdyno.world.resolved import ResolvedArm

from ..base import catalog
from ..base.specification import VolumeSpec
from ..machine import preflight
from ..machine.instance_type import resolve_type

HOUR_S, TIB = 3600.0, 1 << 40
MODIFYING_S = 5.0
OPTIMIZING_S_PER_TIB, OPTIMIZING_S_MAX = 6 * HOUR_S, 24 * HOUR_S
"""As the daemon's: a modification is in these states one after the other."""
IN_A_DAY = 4
"""Modifications in any 24 hours, by the rule of 2026."""
_GROWERS = {"ext4": "resize2fs", "xfs": "xfs_growfs"}


def require_possible(experiment: Experiment, resolved: ResolvedArm) -> None:
    """:class:`~pgdyno.base.errors.InputError` at the first event that cannot happen in a run of this arm."""
    for number, event in enumerate(resolved.arm.file.event):
        if event.member is not None and event.member >= (there := resolved.volumes[event.target].members):
            raise experiment.origin.error(
                ("event", number, "member"),
                f"there is no member {event.member}",
                f"name one of 0 to {there - 1}",
                code="experiment.event.no_member",
                data={"members": there},
            )
    numbers = {id(event): number for number, event in enumerate(resolved.arm.file.event)}
    becoming: dict[str, VolumeSpec] = dict(resolved.volumes)
    asked_s: dict[str, list[float]] = {}
    completed_s: dict[str, float] = {}
    for event in resolved.arm.events:  # in the order in which they happen
        if event.spec is None:
            continue
        number, role = numbers[id(event)], event.target
        place = ("event", number, "spec")
        with experiment.origin.explained(place):
            wanted = catalog.resolve(event.spec)
        earlier = asked_s.setdefault(role, [])
        problems = (
            *_of_volumes(becoming[role], wanted),
            *_of_machine(resolved, becoming[role], wanted),
            *_of_rule(event, earlier, completed_s.get(role, -math.inf)),
        )
        for reason, message, remedy in problems:
            raise experiment.origin.error(
                place, message, remedy, code=f"experiment.event.{reason}", data={"role": role}
            )
        if resolved.arm.instance.type is not None:
            with experiment.origin.explained(place):
                resolve_type(resolved.arm.instance.type).require_iops([wanted])
        earlier.append(event.at_s)
        completed_s[role] = event.at_s + _modification_s(event, wanted)
        becoming[role] = wanted


def _of_volumes(now: VolumeSpec, wanted: VolumeSpec) -> Iterator[tuple[str, str, str]]:
    """Why one volume cannot become another: reason, message, remedy."""
    if wanted.size_bytes < now.size_bytes:
        has, number = now.size_bytes >> 30, wanted.size_bytes >> 30
        yield (
            "smaller",
            f"a volume can only be made larger: it has {has} GiB, and this has {number} GiB",
            f"add size={has}GiB",
        )
    if wanted.spec == now.spec:
        yield "same", f"the volume is {now.spec} already at this time", "give other figures, or omit the event"
    if now.document.get("volatile") or wanted.document.get("volatile"):
        yield "volatile", "the disks of an instance cannot be modified", "modify a volume"
    if _layout(now) != _layout(wanted):
        yield (
            "layout",
            f"the members of an array can be modified, its layout cannot: the volume is {now.spec}",
            "keep its layout and give other figures",
        )


def _layout(spec: VolumeSpec) -> tuple[Any, ...]:
    array = spec.document.get("array") or {}
    return tuple(array.get(key) for key in ("columns", "copies", "chunk_kib", "multi_az_ms"))


def _of_machine(resolved: ResolvedArm, now: VolumeSpec, wanted: VolumeSpec) -> Iterator[tuple[str, str, str]]:
    """Why this machine cannot make the file system larger. A plan can be made without root, for another user."""
    kind = resolved.arm.world.file_system
    if wanted.size_bytes <= now.size_bytes or os.geteuid() != 0:
        return
    if kind == "ext4" and not preflight.may_exceed_resources():
        yield (
            "cannot_grow",
            "a mounted ext4 file system grows only with CAP_SYS_RESOURCE, which this process does not have",
            'use world.file_system = "xfs", or keep the size; in a container pass `--cap-add SYS_RESOURCE`',
        )
    elif (missing := preflight.missing_programs(_GROWERS[kind])) != []:
        yield "no_grower", f"this machine has no {missing[0]}, which makes the file system larger", "install it"


def _of_rule(event: EventTable, earlier: list[float], completed_s: float) -> Iterator[tuple[str, str, str]]:
    """Why the provider would refuse it after the modifications before it, all in seconds since measuring began."""
    if not earlier:
        return
    if event.rule == "2023":
        if event.at_s < earlier[-1] + 6 * HOUR_S:
            yield "too_soon", "a volume is modified at most once in 6 hours (rule of 2023)", 'use rule = "2026"'
        return
    if len(earlier) >= IN_A_DAY and event.at_s < earlier[-IN_A_DAY] + 24 * HOUR_S:
        yield (
            "too_soon",
            "a volume is modified at most four times in 24 hours (rule of 2026)",
            "omit one of the modifications",
        )
    if event.at_s < completed_s:
        yield (
            "too_soon",
            f"its last modification is completed only {completed_s:,.0f} s after measuring began (rule of 2026)",
            'give the one before it optimizing = "0s", or let this one happen later',
        )


def _modification_s(event: EventTable, wanted: VolumeSpec) -> float:
    """Until it is completed."""
    optimizing_s = event.optimizing_s
    if optimizing_s is None:
        optimizing_s = min(OPTIMIZING_S_MAX, OPTIMIZING_S_PER_TIB * wanted.size_bytes / wanted.columns / TIB)
    return min(MODIFYING_S, optimizing_s) + optimizing_s

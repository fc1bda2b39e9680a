"""An instance type by name: what memory, vCPUs and EBS limits it has, and what of it this host can stand for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base import engine
from ..base.errors import InputError
from ..base.specification import VolumeSpec


@dataclass(frozen=True)
class InstanceType:
    """One line of the catalogue of instances."""

    name: str
    vcpus: int
    memory_bytes: int
    ebs: dict[str, Any]
    """Its limits to all its EBS volumes together; empty where it has none."""
    attachments: int | None = None
    """EBS volumes that it attaches at most; ``None`` where that is not known."""
    volume_iops: Mapping[str, int] = field(default_factory=dict)
    """The most that one volume of a type does there, whatever it is provisioned with; empty on Nitro instances."""

    def require_iops(self, volumes: Iterable[VolumeSpec]) -> None:
        """Refuse volumes that would not do their provisioned IOPS there; of an array, each member by itself."""
        for volume in volumes:
            each = 0.0 if volume.iops is None else volume.iops.sustained / volume.columns
            most = self.volume_iops.get(volume.type, math.inf)
            if each > most:
                raise InputError(
                    f"{volume.type} with {each:,.0f} IOPS does at most {most:,} on {self.name}, which is not a Nitro instance",
                    remedy=f"write iops={most}, which is what it does there, or name a Nitro instance, such as r6i.16xlarge",
                )

    def require_room(self, volumes: Iterable[VolumeSpec]) -> None:
        """Refuse more volumes than it attaches; an array is as many as it has members.

        Its own disks are not attached. The daemon refuses this too, but only when data sets have been loaded.
        """
        number = sum(volume.attachments for volume in volumes)
        if self.attachments is not None and number > self.attachments:
            raise InputError(
                f"{self.name} attaches at most {self.attachments} volumes, and this makes {number}",
                remedy="take fewer and larger volumes, or an instance type that attaches more (`pgdyno catalog instances`)",
            )


def is_storage_only(vcpus: int | None, dilation: int = 1) -> bool:
    """Whether an instance has more vCPUs than this host has cores, each of which stands for ``dilation`` of them.

    Then what the storage does is that instance's, and what the CPU does is this host's.
    """
    return vcpus is not None and vcpus > len(os.sched_getaffinity(0)) * dilation


def cpus_of(vcpus: int | None, dilation: int = 1) -> str | None:
    """So many of this host's CPUs that stand for the vCPUs, as a list for a cpuset; ``None`` where that is all of them.

    A core stands for ``dilation`` vCPUs. Part of one is a whole one: a quota would throttle lock holders, which costs
    more than it corrects (a third of the throughput was measured).
    """
    cores = sorted(os.sched_getaffinity(0))
    wanted = None if vcpus is None else -(-vcpus // dilation)
    return None if wanted is None or wanted >= len(cores) else ",".join(map(str, cores[:wanted]))


def resolve_type(name: str) -> InstanceType:
    """The type called ``name``, or one written as ``vcpus=4,memory=16GiB``.

    :class:`~pgdyno.base.errors.InputError` names the nearest ones when there is none of that name.
    """
    json = engine.run_json(["instance", "spec", name])
    return InstanceType(
        str(json["instance"]),
        int(json["vcpus"]),
        int(json["memory_bytes"]),
        dict(json.get("ebs") or {}),
        json.get("attachments"),
        dict(json["volume_iops"]),
    )


def require_limits(name: str) -> InstanceType:
    """The type called ``name``, which must have limits to its volumes; :class:`~pgdyno.base.errors.InputError` if it has none."""
    type_ = resolve_type(name)
    if not type_.ebs:
        raise InputError(
            f"{type_.name} has no bandwidth of its own to its volumes, so there is no limit to hold them to",
            remedy="name a type that has (`pgdyno catalog instances`), or none: then volumes have their own limits only",
        )
    return type_

"""Files without a server: the volumes alone are judged, over the time that all files cover."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pgdyno
from pgdyno.analysis.binding.evidence import Evidence, KnownConditions, Second

from ...analysis.binding.device import BoughtInstance, ProvisionedVolume, cpu_share_of
from ...analysis.binding.evidence import OBSERVE, Checkpoints
from ...base.errors import InputError
from ...results import StoredRun, record
from ...results.names import identity_hash
from ...results.record import HostRecord
from .alongside import TimeGrid, beside, utc
from .bought import Purchase
from .source import VolumeSource

POINTS_MAX = 20_000
"""Intervals that are judged: two weeks of minutes; of more, longer ones are made."""


def grid_of(sources: Sequence[VolumeSource]) -> TimeGrid:
    """The time that all files cover, in the shortest of their intervals. :class:`InputError` where there is none."""
    begin_s = max(source.span_s[0] for source in sources)
    end_s = min(source.span_s[1] for source in sources)
    if end_s <= begin_s:
        first, second = sorted(sources, key=lambda source: source.span_s[0])[:: len(sources) - 1]
        raise InputError(
            f"{first.path} ends at {utc(first.span_s[1])}, before {second.path} begins at {utc(second.span_s[0])}",
            remedy="name files of the same time",
        )
    shortest_s = min(sample.seconds for source in sources for sample in source.measured.samples)
    step_s = max(1.0, shortest_s, (end_s - begin_s) / POINTS_MAX)
    return TimeGrid(begin_s, step_s, max(1, round((end_s - begin_s) / step_s)))


def evidence_of_files(sources: Sequence[VolumeSource], grid: TimeGrid, purchase: Purchase) -> Evidence:
    """What files alone show: devices and the provider's checks."""
    roles = {source.role for source in sources}
    strange = next((role for role in purchase.volumes if role not in roles), None)
    if strange is not None:
        raise InputError(
            f"--bought names {strange}, and no file is about that volume",
            remedy=f"files are about {', '.join(sorted(roles))}; {sources[0].flag} {strange}=FILE names another",
        )
    bought = {role: ProvisionedVolume.of(volume.spec) for role, volume in purchase.volumes.items()}
    given = KnownConditions(
        clients=0,
        bought={role: volume for role, volume in bought.items() if volume is not None},
        instance=BoughtInstance.of(purchase.instance),
        cpu_share=cpu_share_of(purchase.instance),
        driven=False,
    )
    nothing = Evidence(
        given, (Second(),) * grid.count, Checkpoints((False,) * grid.count, seconds=grid.step_s * grid.count), ()
    )
    return beside(nothing, grid, sources)


def run_of_files(sources: Sequence[VolumeSource], grid: TimeGrid, purchase: Purchase) -> StoredRun:
    """The record that a watch of that time would have, without a table: files are their own record."""
    begin_ns = round(grid.begin_s * 1e9)
    end_ns = begin_ns + round(grid.step_s * grid.count * 1e9)
    data = purchase.volumes.get("data")
    names = ", ".join(source.path for source in sources)
    made = record.RunRecord(
        run_id="files",
        experiment_id="files",
        experiment_hash=identity_hash({"files": names, "pgdyno": pgdyno.__version__}),
        command=(
            "pgdyno",
            "diagnose",
            *(word for source in sources for word in (source.flag, f"{source.role}={source.path}")),
        ),
        arm=names,
        arm_index=0,
        block=1,
        position=0,
        seed=0,
        anchor=record.Anchor(monotonic_ns=begin_ns, unix_ns=begin_ns),
        world=record.WorldRecord(
            kind="real",
            volume={} if data is None else data.spec,
            volumes=dict(purchase.volumes),
            instance=purchase.instance,
            host=HostRecord(cores=1, kernel="", memory_bytes=1),
        ),
        workload={"kind": OBSERVE},
        postgres=record.PostgresRecord(version="", source="no server was watched"),
        phases=(record.RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns),),
        account=record.Account(scheduled=0, skipped=0, succeeded=0, failed=0),
        validity=record.Validity(valid=True),
    )
    return StoredRun(Path(os.devnull), made)

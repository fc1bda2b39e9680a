"""One arm of an experiment over its replicates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pgdyno.analysis.distribution import ScriptStatement, ValueCounts, merge
from pgdyno.analysis.finding import CheckResult, why_invalid

from ..results.record import Visibility
from .figures import DATA, InstanceFigures, IoRate, MemberFigures, VolumeFigures, Wait, volume_attach, volume_spec
from .run import Headline, RunFigures, Unit, headline_of, unit_of
from .series import Event, down_s, events_of
from .statistics import Estimate, t_interval

_Name = TypeVar("_Name")
_Figures = TypeVar("_Figures", bound="VolumeFigures | MemberFigures | InstanceFigures")
_Timed = TypeVar("_Timed", bound="VolumeFigures | MemberFigures")


@dataclass(frozen=True)
class Replicate:
    """One run with what was found about it."""

    figures: RunFigures
    findings: tuple[CheckResult, ...]

    @property
    def valid(self) -> bool:
        """Whether no finding makes the run invalid."""
        return not why_invalid(self.findings)

    @property
    def block(self) -> tuple[str, int]:
        """What it shares with the runs of other arms that it is paired with: experiment and replicate."""
        return self.figures.record.experiment_id, self.figures.record.block

    @property
    def headline(self) -> float:
        """Its figure of the workload's headline; 0 where it did nothing."""
        return headline_of(self.figures.record).of(self.figures.record)


@dataclass(frozen=True)
class ArmMeans(Generic[_Figures]):
    """What a volume, a member of it and the instance above it have alike over the replicates; a rate is the mean of those that have it."""

    figures: tuple[_Figures, ...]

    @property
    def iops(self) -> float | None:
        """Requests per second."""
        return mean_known([figure.iops for figure in self.figures])

    @property
    def time_above_limit(self) -> dict[str, float]:
        """Limit -> share of the time in which requests waited for it."""
        return mean_by_name([figure.time_above_limit for figure in self.figures])


@dataclass(frozen=True)
class TimedMeans(ArmMeans[_Timed]):
    """What a volume and a member of it have alike."""

    @property
    def read_ms_mean(self) -> float | None:
        """Mean latency of its reads; None where it was not counted or there were none."""
        return mean_known([figure.read_ms_mean for figure in self.figures])

    @property
    def write_ms_mean(self) -> float | None:
        """Mean latency of its writes."""
        return mean_known([figure.write_ms_mean for figure in self.figures])


@dataclass(frozen=True)
class MemberSummary(TimedMeans["MemberFigures"]):
    """One member of an array over the replicates."""


@dataclass(frozen=True)
class VolumeSummary(TimedMeans["VolumeFigures"]):
    """One volume of an arm over the replicates."""

    role: str
    resolved: dict[str, Any]
    """Its resolved specification, from the first replicate; empty for a device that was there."""
    attach: dict[str, Any]
    """What its daemon said when it was ready, from the first replicate."""

    @property
    def mib_per_s(self) -> float | None:
        """Throughput."""
        return mean_known([figure.mib_per_s for figure in self.figures])

    @property
    def members(self) -> tuple[MemberSummary, ...]:
        """The members of an array, in their order; empty where a run did not record them."""
        return tuple(MemberSummary(each) for each in zip(*(figure.members for figure in self.figures), strict=False))

    @property
    def queue_length(self) -> float | None:
        """Mean queue length."""
        return mean_known([figure.queue_length for figure in self.figures])

    @cached_property
    def read_ms(self) -> ValueCounts:
        """Latency of its reads, all replicates together."""
        return merge(figure.read_ms for figure in self.figures)

    @cached_property
    def write_ms(self) -> ValueCounts:
        """Latency of its writes, all replicates together."""
        return merge(figure.write_ms for figure in self.figures)

    @property
    def limits(self) -> dict[str, Any]:
        """Limit -> its value, as resolved."""
        return dict(self.resolved.get("limits") or {})

    @property
    def burst(self) -> dict[str, Any]:
        """Limit -> what credits raise it to as long as they last, as resolved; None where it has none."""
        return dict(self.resolved.get("burst") or {})

    @property
    def usd_per_month(self) -> float | None:
        """List price; None where it has none."""
        price = self.resolved.get("usd_per_month")
        return None if price is None else float(price)


@dataclass(frozen=True)
class InstanceSummary(ArmMeans["InstanceFigures"]):
    """The instance of an arm over the replicates, as a limit to all its volumes."""

    type: str
    limits: dict[str, Any]
    """Its EBS limits, as recorded."""

    @property
    def mib_per_s(self) -> float | None:
        """Throughput of all its volumes."""
        return mean_known([figure.mib_per_s for figure in self.figures])

    @property
    def reserve(self) -> dict[str, float]:
        """Limit -> what a run left of its reserve, 0 to 1, mean of the replicates; empty without reserves."""
        return mean_by_name([figure.reserve for figure in self.figures])


@dataclass(frozen=True)
class ArmSummary:
    """One arm (one level of every factor) over its replicates."""

    index: int
    volume: str
    """The arm as the user wrote it: in a comparison of volumes, the volume."""
    label: str
    """A short name for a figure and a sentence: see :mod:`pgdyno.analysis.factors`."""
    replicates: tuple[Replicate, ...]
    missing: int = 0
    """Replicates that were planned and have no finished run."""
    levels: tuple[int, ...] = ()
    """The place of its level in each factor of the experiment, 0 for the reference."""

    @cached_property
    def unit(self) -> Unit:
        """What its runs count: transactions, or rows of a load."""
        return unit_of(self.replicates[0].figures.record)

    @cached_property
    def metric(self) -> Headline:
        """By which it is compared with others."""
        return headline_of(self.replicates[0].figures.record)

    @cached_property
    def headline(self) -> Estimate:
        """The mean of that figure over the replicates, with its interval. A run that did nothing took no known time."""
        values = [replicate.headline for replicate in self.replicates]
        known = [value for value in values if value > 0]
        return t_interval(known if known and self.metric.better == "less" else values)

    @property
    def by_block(self) -> dict[tuple[str, int], float]:
        """Block -> the headline of its run; one that did nothing is absent."""
        return {replicate.block: replicate.headline for replicate in self.replicates if replicate.headline > 0}

    @cached_property
    def latency_ms(self) -> ValueCounts:
        """Response times of all replicates together."""
        return merge(replicate.figures.latency_ms for replicate in self.replicates)

    @cached_property
    def scripts_ms(self) -> dict[str, ValueCounts]:
        """Response times by script of all replicates together; empty with a single script."""
        return merged_by_name([replicate.figures.scripts_ms for replicate in self.replicates])

    @cached_property
    def statements_ms(self) -> dict[ScriptStatement, ValueCounts]:
        """Times by statement of all replicates together; empty where the driver does not tell them."""
        return merged_by_name([replicate.figures.statements_ms for replicate in self.replicates])

    @cached_property
    def volumes(self) -> dict[str, VolumeSummary]:
        """Its volumes by role, the data's first."""
        roles = dict.fromkeys(role for replicate in self.replicates for role in replicate.figures.volumes)
        first = self.replicates[0].figures.run
        return {
            role: VolumeSummary(
                role=role,
                resolved=volume_spec(first, role),
                attach=volume_attach(first, role),
                figures=tuple(r.figures.volumes[role] for r in self.replicates if role in r.figures.volumes),
            )
            for role in roles
        }

    @property
    def above_limit_share(self) -> float | None:
        """Share of the time in which requests waited for the limit that bound most: a volume's, or the instance's."""
        shares = [volume.time_above_limit for volume in self.volumes.values()]
        if self.instance is not None:
            shares.append(self.instance.time_above_limit)
        return max((share for other in shares for share in other.values()), default=None)

    @cached_property
    def instance(self) -> InstanceSummary | None:
        """The limit above all its volumes; None where there is none."""
        figures = tuple(
            instance_figures
            for replicate in self.replicates
            if (instance_figures := replicate.figures.instance) is not None
        )
        if not figures:
            return None
        record = self.replicates[0].figures.record.world.instance
        return InstanceSummary(figures=figures, type=record.type or "", limits=dict(record.ebs))

    @property
    def data(self) -> VolumeSummary:
        """The volume of the data directory."""
        return self.volumes[DATA]

    @property
    def cpu_share(self) -> dict[str, float]:
        """Role -> share of the machine, mean of the replicates."""
        return mean_by_name([replicate.figures.cpu_share for replicate in self.replicates])

    @cached_property
    def waits(self) -> dict[Wait, float]:
        """Mean number of the clients' sessions in each state, the most frequent first; empty when they were not sampled."""
        looked = [replicate.figures.waits for replicate in self.replicates if replicate.figures.waits]
        names = dict.fromkeys(wait for waits in looked for wait in waits)
        means = {wait: math.fsum(waits.get(wait, 0.0) for waits in looked) / len(looked) for wait in names}
        return dict(sorted(means.items(), key=lambda item: -item[1]))

    @property
    def server(self) -> dict[str, float]:
        """What PostgreSQL counted itself, by name, mean of the replicates."""
        return mean_by_name([replicate.figures.server.rates for replicate in self.replicates])

    def io_mib_per_s(self, moved: Callable[[IoRate], float]) -> dict[tuple[str, str], float]:
        """(process, object) of pg_stat_io -> bytes that it moved, by what ``moved`` takes of a row; mean of the replicates."""
        runs = [
            {(rate.backend_type, rate.object): moved(rate) for rate in replicate.figures.server.io}
            for replicate in self.replicates
            if replicate.figures.server.io
        ]
        names = dict.fromkeys(name for run in runs for name in run)
        return {name: math.fsum(run.get(name, 0.0) for run in runs) / len(runs) for name in names}

    @cached_property
    def events(self) -> tuple[tuple[Event, ...], ...]:
        """What happened on purpose during each of its runs."""
        return tuple(events_of(replicate.figures.run) for replicate in self.replicates)

    @property
    def modified(self) -> tuple[str, ...]:
        """Roles of the volumes that became others while measuring."""
        return tuple(
            dict.fromkeys(event.target for events in self.events for event in events if event.kind == "modify")
        )

    @property
    def down_s(self) -> tuple[float, ...]:
        """For how many seconds of each run's measuring events had ended the server."""
        return tuple(
            down_s(events, replicate.figures.record.measure.seconds)
            for events, replicate in zip(self.events, self.replicates, strict=True)
        )

    @property
    def usd_per_month_of_parts(self) -> tuple[float | None, ...]:
        """List price of all its volumes together as the run began, and after each modification of one."""
        prices = {role: volume.usd_per_month for role, volume in self.volumes.items()}
        values = [_together(prices)]
        for event in self.events[0] if self.events else ():
            if event.kind == "modify":
                prices[event.target] = event.usd_per_month
                values.append(_together(prices))
        return tuple(values)

    @property
    def usd_per_month(self) -> float | None:
        """List price of all its volumes together; None where one has none, and where one was modified: it had two."""
        if self.modified:
            return None
        return _together({role: volume.usd_per_month for role, volume in self.volumes.items()})

    @property
    def given_up(self) -> tuple[str, ...]:
        """Settings that were off although durability rests on them; in all its runs, as they are what was asked for."""
        return self.replicates[0].figures.record.postgres.given_up

    @property
    def storage_only(self) -> bool:
        """Whether the instance has more vCPUs than the host has cores, so that only the storage was the instance's."""
        return any(replicate.figures.record.world.instance.storage_only for replicate in self.replicates)

    @property
    def dilation(self) -> int:
        """How many times slower than the host the subject's time went; every figure is in the subject's time."""
        return self.replicates[0].figures.record.world.dilation

    @property
    def visibility(self) -> tuple[Visibility, ...]:
        """What could be seen of the world and what not; where replicates differ, what was not seen once is not seen."""
        rows: dict[str, Visibility] = {}
        for replicate in self.replicates:
            for row in replicate.figures.record.visibility:
                if row.what not in rows or not row.seen:
                    rows[row.what] = row
        return tuple(rows.values())

    @property
    def why_invalid(self) -> tuple[str, ...]:
        """Reasons, each with the replicate and the figure; empty for a valid arm."""
        return self._reasons("invalid")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind, in the same form; a missing replicate is one."""
        lost = (f"{self.missing} of the planned replicates have no finished run",) if self.missing else ()
        return lost + self._reasons("warn")

    @property
    def valid(self) -> bool:
        """Whether every replicate is valid."""
        return all(replicate.valid for replicate in self.replicates)

    @property
    def representative(self) -> Replicate:
        """The replicate with the median headline (the lower of the two middle ones), for lines over time."""
        ordered = sorted(self.replicates, key=lambda replicate: replicate.headline)
        return ordered[(len(ordered) - 1) // 2]

    def _reasons(self, level: str) -> tuple[str, ...]:
        return tuple(
            f"replicate {replicate.figures.record.block}: {finding.check}: {finding.figure}"
            for replicate in self.replicates
            for finding in replicate.findings
            if finding.level == level
        )


def _together(prices: Mapping[str, float | None]) -> float | None:
    """The price of several volumes; None where one has none."""
    known = [price for price in prices.values() if price is not None]
    return math.fsum(known) if len(known) == len(prices) else None


def merged_by_name(parts: Sequence[Mapping[_Name, ValueCounts]]) -> dict[_Name, ValueCounts]:
    """Each name's distributions as one, in the order in which the names occur."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: merge(part[name] for part in parts if name in part) for name in names}


def mean_known(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are known; None when none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def mean_by_name(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean of each name over the parts that have it."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: mean_known([part.get(name) for part in parts]) or 0.0 for name in names}

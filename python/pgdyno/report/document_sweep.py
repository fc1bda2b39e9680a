"""What a sweep sweeps, and the law that its runs follow, as a part of the JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from pgdyno.analysis.compare import Comparison
from pgdyno.analysis.sweep import Axis, Sweep, SweepGroup
from pgdyno.report.part import DocumentPart, Share

from ..analysis.sweep import Scaling


class SweepAxis(DocumentPart):
    """A factor whose levels are numbers, in the order of their values."""

    factor: str
    title: str
    levels: list[str]
    """As written."""
    values: list[float]
    """The same as numbers: sizes in bytes, durations in seconds, else as written."""


class ScalingLaw(DocumentPart):
    """The universal scalability law, fitted to a variant's runs.

    TPS of n clients = rate n / (1 + contention (n - 1) + coherence n (n - 1)).
    """

    rate_tps: float
    """Transactions per second of one client by itself."""
    contention: Share
    """Share of the work for which clients queue."""
    coherence: Annotated[float, Field(ge=0)]
    """What each pair of clients costs."""
    peak_clients: float | None
    """Clients beyond which more of them do less; null where the curve never falls."""
    clients_min: float
    """The numbers of clients that it was fitted to."""
    clients_max: float
    deviation: float
    """How far runs lie from the curve: root mean square of the difference of logarithms."""
    follows: bool
    """Whether runs lie close enough to speak of its constants."""


class SweepCell(DocumentPart):
    """An arm's place on the axes."""

    at: list[int]
    """Place on each axis, from 0."""
    arm: int
    """Its place in `arms`."""


class SweepVariant(DocumentPart):
    """Arms that differ in the axes alone."""

    label: str
    """Their other levels; empty where there is no other factor."""
    cells: list[SweepCell]
    law: ScalingLaw | None
    """Null where the first axis is not the clients, or has fewer than four numbers of them."""


class SweepOf(DocumentPart):
    """An experiment along factors that are numbers."""

    axes: list[SweepAxis]
    """One or two; the clients come first."""
    variants: list[SweepVariant]


def sweep_of(comparison: Comparison) -> SweepOf | None:
    """The part of a comparison; None where it does not sweep anything."""
    sweep = comparison.sweep
    if sweep is None:
        return None
    place = {arm.index: number for number, arm in enumerate(comparison.arms)}
    return SweepOf(
        axes=[_axis(axis) for axis in sweep.axes],
        variants=[
            _variant(sweep, variant, law, place) for variant, law in zip(sweep.variants, sweep.laws, strict=True)
        ],
    )


def _axis(axis: Axis) -> SweepAxis:
    return SweepAxis(factor=axis.name, title=axis.title, levels=list(axis.texts), values=list(axis.values))


def _variant(sweep: Sweep, variant: SweepGroup, law: Scaling | None, place: Mapping[int, int]) -> SweepVariant:
    axes = len(sweep.axes)
    return SweepVariant(
        label=variant.label,
        cells=[SweepCell(at=list(at[:axes]), arm=place[arm.index]) for at, arm in sorted(variant.arms.items())],
        law=None if law is None else _law(law),
    )


def _law(law: Scaling) -> ScalingLaw:
    low, high = law.clients
    kept = ScalingLaw.model_fields.keys() - {"clients_min", "clients_max"}
    return ScalingLaw(**{name: getattr(law, name) for name in kept}, clients_min=low, clients_max=high)

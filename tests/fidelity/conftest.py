"""Volumes to judge, and patience with a noisy host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from pgdyno.base import engine
from pgdyno.machine import volume

TRIES = 3
"""A neighbour's burst lasts seconds here. A defect of the emulator fails every try; noise does not."""

EARLY = 0.5
"""A volume with no delay at all answers in a twentieth of the modelled time. Somewhat early is what a path whose cost was measured
at attach on a busy machine becomes; that makes a run invalid (`DEVICE_EARLY_INVALID`), and no test of the model."""

Attach = Callable[..., volume.AttachedVolume]
Measured = TypeVar("Measured")


@pytest.fixture
def attach(state_dir: Path) -> Iterator[Attach]:
    """Attach volumes that are detached when the test ends."""
    attached: list[volume.AttachedVolume] = []

    def one(spec: str, mount: Path | None = None, **options: object) -> volume.AttachedVolume:
        attached.append(volume.attach(spec, mount=mount, **options))  # type: ignore[arg-type]  # attach checks them
        return attached[-1]

    yield one
    for attached_volume in attached:
        if attached_volume.alive:
            attached_volume.detach()


def credit(attached_volume: volume.AttachedVolume, percent: int) -> None:
    """Set how full the buckets are: at 0 what follows is the provisioned rate, at 100 there is a burst."""
    command = [
        "volume",
        "credit",
        attached_volume.name,
        "--percent",
        str(percent),
        "--state-dir",
        str(attached_volume.state_dir),
    ]
    engine.run_json(command)


def in_tries(measure: Callable[[], Measured], faults: Callable[[Measured], list[str]]) -> None:
    """Measure until there is no fault, at most :data:`TRIES` times; fail with the faults of every try."""
    results = []
    for attempt in range(1, TRIES + 1):
        measured = measure()
        result = faults(measured)
        if not result:
            return
        results.append(f"try {attempt}: {measured}: {'; '.join(result)}")
    pytest.fail("\n".join(results), pytrace=False)


def off(name: str, value: float, wanted: float, tolerance: float) -> list[str]:
    """A fault if ``found`` is further from ``wanted`` than ``tolerance``, a share of it."""
    error = value / wanted - 1
    if abs(error) <= tolerance:
        return []
    return [
        f"{name} is {value:.4g}, should be {wanted:.4g} within {100 * tolerance:g} %, is off by {100 * error:+.2f} %"
    ]

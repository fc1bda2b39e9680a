"""Volumes to judge, and patience with a noisy host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from pgdyno import _engine
from pgdyno.host import volume

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
    for found in attached:
        if found.alive:
            found.detach()


def credit(found: volume.AttachedVolume, percent: int) -> None:
    """Set how full the buckets are: at 0 what follows is the provisioned rate, at 100 there is a burst."""
    command = ["volume", "credit", found.name, "--percent", str(percent), "--state-dir", str(found.state_dir)]
    _engine.run_json(command)


def in_tries(measure: Callable[[], Measured], faults: Callable[[Measured], list[str]]) -> None:
    """Measure until there is no fault, at most :data:`TRIES` times; fail with the faults of every try."""
    said = []
    for attempt in range(1, TRIES + 1):
        measured = measure()
        found = faults(measured)
        if not found:
            return
        said.append(f"try {attempt}: {measured}: {'; '.join(found)}")
    pytest.fail("\n".join(said), pytrace=False)


def off(name: str, found: float, wanted: float, tolerance: float) -> list[str]:
    """A fault if ``found`` is further from ``wanted`` than ``tolerance``, a share of it."""
    error = found / wanted - 1
    if abs(error) <= tolerance:
        return []
    return [
        f"{name} is {found:.4g}, should be {wanted:.4g} within {100 * tolerance:g} %, is off by {100 * error:+.2f} %"
    ]

"""Emulated volumes of tests: without a calibration where it does not matter when a request is answered."""

from __future__ import annotations

import pytest

from pgdyno.machine import volume


@pytest.fixture(autouse=True)
def uncalibrated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Volumes that a test attaches in this process are not calibrated, unless it is a bench: each answer is late by its path.

    A calibration takes half a second, and two on a busy machine. Volumes of other processes (commands that are killed while they attach) are
    calibrated; so are those of folders that look at times, which do not have this fixture.
    """
    if request.node.get_closest_marker("bench") is None:
        monkeypatch.setitem(volume.attach.__kwdefaults__, "calibrate", False)

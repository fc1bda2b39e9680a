"""A state directory of a test's own, and each way in which requests arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.host import transport

from ..host.conftest import state

if TYPE_CHECKING:
    from pgdyno.host.volume import AttachedVolume

__all__ = ["state"]


@pytest.fixture(params=["classic", "uring"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The way that volumes of the test are asked to use."""
    missing = transport.missing()
    if request.param == "uring" and missing is not None:
        pytest.skip(missing)
    monkeypatch.setenv("PGDYNO_TRANSPORT", request.param)
    return str(request.param)


def uses(attached: AttachedVolume) -> str:
    """The way that it uses."""
    return str(attached.facts["transport"]["used"])

"""A state directory of a test's own, and each way in which requests arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host.conftest import state
from ..support.volumes import way

if TYPE_CHECKING:
    from pgdyno.host.volume import AttachedVolume

__all__ = ["state", "way"]


def uses(attached: AttachedVolume) -> str:
    """The way that it uses."""
    return str(attached.facts["transport"]["used"])

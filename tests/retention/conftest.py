"""A state directory of a test's own, checked for leftovers at the end."""

from __future__ import annotations

from ..host.conftest import state
from ..support.volumes import uncalibrated

__all__ = ["state", "uncalibrated"]

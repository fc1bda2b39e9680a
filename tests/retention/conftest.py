"""A state directory of a test's own, checked for leftovers at the end."""

from __future__ import annotations

from ..host.conftest import state

__all__ = ["state"]

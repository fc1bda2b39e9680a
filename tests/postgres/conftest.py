"""The state directory of the world's tests."""

from ..world.conftest import state

__all__ = ["state"]

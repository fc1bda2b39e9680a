"""The state directory of the host's tests."""

from ..host.conftest import state

__all__ = ["state"]

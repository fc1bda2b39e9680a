"""A server in use."""

from __future__ import annotations

from ..support.servers import cluster, older_server

__all__ = ["cluster", "older_server"]

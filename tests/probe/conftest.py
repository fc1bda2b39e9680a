"""A server to sample."""

from ..servers import cluster, older_server

__all__ = ["cluster", "older_server"]

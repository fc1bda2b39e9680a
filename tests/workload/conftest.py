"""A server with pgbench's tables."""

from ..support.servers import cluster, older_server

__all__ = ["cluster", "older_server"]

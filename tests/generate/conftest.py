"""The server that the files are loaded into."""

from ..support.servers import cluster

__all__ = ["cluster"]

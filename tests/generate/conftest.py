"""The server that the files are loaded into."""

from ..servers import cluster

__all__ = ["cluster"]

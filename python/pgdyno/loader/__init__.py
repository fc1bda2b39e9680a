"""Loads files into an existing PostgreSQL server: fast, exactly once, and with every temporary change restored.

::

    asked -> source, format, sample -> table, columns -> job (frozen plan) -> changes -> transfer -> put back -> end

The bytes go through ``pgdyno-engine load``; here is what happens around it: what is refused, what is written down before
it is changed (:mod:`~pgdyno.loader.undo`), what is decided (:mod:`~pgdyno.loader.index_cost`), what is said meanwhile
(:mod:`~pgdyno.loader.limit`), and that it adds up in the end (:mod:`~pgdyno.loader.ledger`). Rows that replace others go
through a staging table first (:mod:`~pgdyno.loader.upsert`); objects of S3 may go past this machine altogether
(:mod:`~pgdyno.loader.by_server`).
"""

from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.flow import load, load_as_asked
from pgdyno.loader.preflight import Preflight, preflight
from pgdyno.loader.restore import restore
from pgdyno.loader.result import LoadResult

__all__ = ["LoadOptions", "LoadResult", "Preflight", "load", "load_as_asked", "preflight", "restore"]

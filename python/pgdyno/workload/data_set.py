"""What a server has when a workload begins: generated tables, empty ones, or a database of the user's."""

from __future__ import annotations

from pgdyno.workload.database import OwnDatabase
from pgdyno.workload.tables import BulkTables, Tables

DataSet = Tables | BulkTables | OwnDatabase
"""Each has ``family``, ``size_bytes`` and a title."""

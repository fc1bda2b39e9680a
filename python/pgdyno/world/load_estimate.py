"""How long a load takes, about: it is said before one begins, and feeds nothing else.

A load by COPY takes as long as its bytes. In HammerDB's manner each session commits its share of many small batches:

    LOAD_S_FIXED + max(cpu_s / cores, cpu_s / sessions + commits / sessions * COMMIT_WRITES * write_s * dilation)

Its CPU is this machine's and is not slowed; its commits wait for volumes, whose time is. Tables whose answers are known are asked for
these afterwards.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pgdyno.analysis.binding.device import ProvisionedVolume
from pgdyno.workload.tables import BulkTables, TpccTables, TpchTables

from ..base.specification import VolumeSpec
from ..kinds.tpch.validation import has_answers
from ..workload.database import DataSet
from ..workload.kind import LoadManner

LOAD_S_FIXED = 5.0
LOAD_BYTES_PER_S = 80 << 20
"""Loading on two cores, as measured with pgbench's tables."""
COMMIT_WRITES = 2.5
"""Writes for which a batch waits one after another: 2 warehouses by 2 sessions, 1,526 commits, made 4,640 requests (gp3 as io2bx); the
checkpoint had a sixth of them."""
COMMIT_WRITE_BYTES = 128 << 10
"""Of each: the same load wrote 675 MiB."""
_COMMITS_PER_WAREHOUSE = 762
_COMMITS_PER_SCALE = 3_560
_CPU_S_PER_WAREHOUSE = 4.5
"""Seconds of one core for server, loader and emulated volumes."""
ANSWERS_S = 20.0
"""The 22 queries whose answers are compared with dbgen's at scale factor 1, on two cores; a load does not have them in its time."""
_CPU_S_PER_SCALE = 125.0
"""The same at scale factor 1, with keys, references and indexes."""


@dataclass(frozen=True)
class BatchedLoad:
    """A load in HammerDB's manner."""

    commits: float
    cpu_s: float

    @classmethod
    def of(cls, tables: DataSet) -> BatchedLoad | None:
        """None of tables that are not loaded so."""
        if isinstance(tables, TpccTables):
            return cls(tables.warehouses * _COMMITS_PER_WAREHOUSE, tables.warehouses * _CPU_S_PER_WAREHOUSE)
        if isinstance(tables, TpchTables):
            return cls(tables.scale_factor * _COMMITS_PER_SCALE, tables.scale_factor * _CPU_S_PER_SCALE)
        return None

    def seconds(self, sessions: int, cores: int, write_s: float) -> float:
        """In the host's time; ``write_s`` is how long a write of WAL takes in it."""
        of_session = self.cpu_s / sessions + self.commits / sessions * COMMIT_WRITES * write_s
        return LOAD_S_FIXED + max(self.cpu_s / cores, of_session)


def load_estimate_s(
    tables: DataSet, manner: LoadManner = "copy", connections: int | None = None, write_s: float = 0.0
) -> float:
    """How long loading takes, about, with the queries whose answers are compared afterwards.

    ``connections`` are the sessions of a load in batches, by default one for each core.
    """
    alone_s = _load_s(tables, manner, connections, write_s)
    return alone_s + ANSWERS_S if has_answers(tables) else alone_s


def _load_s(tables: DataSet, manner: LoadManner, connections: int | None, write_s: float) -> float:
    batched = BatchedLoad.of(tables) if manner == "hammerdb" else None
    if batched is not None:
        cores = len(os.sched_getaffinity(0))
        parts = tables.warehouses if isinstance(tables, TpccTables) else connections or cores
        return batched.seconds(min(connections or cores, parts), cores, write_s)
    if isinstance(tables, BulkTables):
        return LOAD_S_FIXED  # they begin empty
    return LOAD_S_FIXED + tables.size_bytes / LOAD_BYTES_PER_S


def usual_write_s(volume: VolumeSpec) -> float:
    """How long a write of WAL usually takes on a volume; 0 of one that has no delay."""
    bought = ProvisionedVolume.of(volume.document)
    return 0.0 if bought is None or bought.usual is None else bought.usual.ms(COMMIT_WRITE_BYTES, 1.0) / 1e3

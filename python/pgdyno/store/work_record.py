"""The record of work that ends by itself, in the record of its run: loads, and streams of queries."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pgdyno.store.record_base import Count, Record


class BulkLoadedTable(Record):
    """One table of a load that was measured."""

    table: str
    files: Count
    stored_bytes: Count
    """Bytes of its files on disk."""
    bytes: Count
    """Uncompressed bytes of its files: the input of COPY."""
    rows: Count
    chunks: Count
    """Each one COPY and one commit."""
    connections: Count
    """Sessions that copied, at the end."""
    begin_ns: int
    end_ns: int
    """When its last commit was durable; the checkpoint is not in it."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By step, in their order: ``transfer``, ``put_back`` (indexes that were built again among it), ``vacuum``, ``checkpoint`` (waiting
    for the last commit)."""
    limits: dict[str, float] = Field(default_factory=dict)
    """Limit that the loader reported while it copied -> share of the seconds, 0 to 1."""
    indexes: str = ""
    """Its decision about indexes, and the reason."""


class BulkLoadRecord(Record):
    """A load that was the workload of a run: `kind = "load"`."""

    parallel: bool
    """Whether all tables were loaded in parallel."""
    tables: tuple[BulkLoadedTable, ...]
    checkpoint_s: Annotated[float, Field(ge=0)] | None = None
    """The CHECKPOINT at the end, which is in the measured phase; None if the role was not allowed to."""


class RefreshRecord(Record):
    """A refresh function that ran beside or around streams of queries."""

    function: Literal["insert", "delete"]
    """The first adds orders with their lines, the second deletes as many."""
    refresh_set: Count
    """Which of dbgen's sets, from 1."""
    begin_ns: int
    end_ns: int
    orders: Count
    lines: Count | None
    """None where the driver does not tell; ``transactions`` too."""
    transactions: Count | None
    error: str = ""
    """Why it ended before its work; empty if it did not."""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end_ns - self.begin_ns) / 1e9


class StreamsRecord(Record):
    """Streams of queries that were the workload of a run: `kind = "tpch"`. Each query is a row of ``workload/query``."""

    geometric_mean_s: Annotated[float, Field(gt=0)]
    """Geometric mean of the seconds of all queries that brought their rows."""
    query_s: dict[str, float]
    """Number of a query -> geometric mean of its seconds, over streams and sets."""
    stream_s: dict[str, float]
    """Number of a stream -> seconds from the begin of its first query to the end of its last."""
    temp_bytes: dict[str, Count] = Field(default_factory=dict)
    """Number of a query -> bytes of the temporary files that it wrote, all of its executions together. Empty where not counted."""
    temp_unseen: str = ""
    """Why temporary files were not counted; empty if they were."""
    refresh: tuple[RefreshRecord, ...] = ()
    """The refresh functions, in the order in which they ended; none of the figures above has them."""

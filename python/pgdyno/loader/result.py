"""What a load came to: the summary of ``pgdyno load``, and what :func:`pgdyno.loader.load` returns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class LoadResult:
    """What a load came to."""

    table: str
    job: int | None = None
    """Its number in the ledger."""
    rows_loaded: int = 0
    """By all runs of this load."""
    rows_rejected: int = 0
    rows_merged: int | None = None
    """Rows of the table that an upsert added or replaced, or that a load with ``on_conflict`` added. Fewer than were loaded if keys are duplicate."""
    rows_replaced: int | None = None
    """Those of them that existed before; None if the server does not count."""
    rows_skipped: int | None = None
    """Rows that were left out because their key was there, with ``on_conflict``."""
    sequences_behind: list[dict[str, Any]] = field(default_factory=list)
    """Sequences whose next number is in the table already: ``column``, ``sequence``, ``next``, ``loaded``, ``statement``."""
    bytes: int = 0
    """Of uncompressed input."""
    bytes_before: int = 0
    """Those of them that earlier runs of this load have loaded."""
    chunks: int = 0
    seconds: float = 0.0
    """Duration of this run, all steps together."""
    steps_s: dict[str, float] = field(default_factory=dict)
    """Seconds by step: ``transfer``, ``merge``, ``put_back``, ``vacuum``, ``checkpoint``."""
    connections: int = 0
    """Sessions that copied, at the end."""
    client_cpu_s: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """Limit -> its share of the seconds of ``transfer``."""
    indexes: str = ""
    """The decision about indexes, and the reason."""
    reject_files: list[str] = field(default_factory=list)
    already: bool = False
    """Whether the files were already loaded, so that nothing was done."""
    created: bool = False

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

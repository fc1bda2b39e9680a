"""The record of the bench of snapshots: what was measured, and on what."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tools.measured import OfServer


class Sets(BaseModel):
    """Sets of two volumes, each restored and recovered."""

    file_system: str
    sets: int = 0
    failed: list[str] = Field(default_factory=list)
    """What was missing or damaged, for each set with anything."""
    commits: int = 0
    """Acknowledged while the sets were taken."""
    waited_ms: list[float] = Field(default_factory=list)
    """How long the locks were held, for each set."""
    seconds: float = 0.0


class Waits(BaseModel):
    """Requests of fio that ended while a set was taken, and as many windows without one."""

    windows: int
    beside_ms: list[float]
    """Longest latency in each window with a set."""
    without_ms: list[float]
    """The same half way to the next set."""


class Restores(BaseModel):
    """Restored volumes that were looked at by others' programs."""

    restored: int = 0
    fio_faults: list[str] = Field(default_factory=list)
    fsck_faults: list[str] = Field(default_factory=list)


class Record(OfServer):
    """The bench, as far as it was measured."""

    sets: list[Sets] = Field(default_factory=list)
    """One for each server."""
    apart: Sets | None = None
    """The control: taken one after the other."""
    waits: Waits | None = None
    restores: Restores | None = None

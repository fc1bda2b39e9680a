"""A kind of workload in one file, as any kind is: jobs that are taken from a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from pgdyno.kinds.driven import FilledKind
from pgdyno.workload.kind import Refusal
from pgdyno.workload.tables import PgbenchTables

if TYPE_CHECKING:
    from collections.abc import Iterator


class Queue(FilledKind):
    """`queue`: jobs that clients take from a table."""

    blamed: ClassVar[str] = "jobs"

    kind: Literal["queue"] = "queue"
    """Jobs of a queue."""
    jobs: Annotated[int, Field(ge=1)] = 10
    """How many a transaction takes."""

    @property
    def writes(self) -> bool:
        """Each job that is taken is deleted."""
        return True

    @property
    def size_key(self) -> str:
        """The key that says how much data there is."""
        return "jobs"

    def native(self) -> dict[str, Any]:
        """What a driver would be told."""
        return {"queue": {"jobs": self.jobs}}

    def data_set(self) -> PgbenchTables:
        """Tables in place of a queue."""
        return PgbenchTables(scale=self.jobs)

    def _of_kind(self) -> Iterator[Refusal]:
        if self.jobs > 1 and self.protocol == "simple":
            yield Refusal("jobs", "the simple protocol takes one job at a time")

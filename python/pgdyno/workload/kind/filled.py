"""Kinds whose tables are filled before the first run, on as much memory as is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field

from pgdyno.workload.database import DatabaseTable
from pgdyno.workload.kind.base import LoadManner, LoadTable, Refusal, Workload


class WithTables(Workload):
    """Keys of the kinds whose tables are filled before the first run."""

    manners: ClassVar[tuple[LoadManner, ...]] = ("copy",)
    """In which its tables can be filled."""

    data_to_memory: Annotated[float, Field(gt=0)] | None = None
    """Size of the data with their indexes as a multiple of the instance's memory, instead of `scale`, `rows`, `warehouses` or `scale_factor`, so that the same share is cached as on a larger machine."""
    load: LoadTable = Field(default_factory=LoadTable)
    """How the data set is filled."""

    @property
    def making(self) -> LoadTable:
        """As the file says."""
        return self.load

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """The server has its own memory and its own volumes."""
        remove, fixed = "remove the key", 'with kind = "real" the server is measured as it is'
        if self.data_to_memory is not None:
            yield Refusal("data_to_memory", f"it needs the memory of an emulated instance; {fixed}", remove)
        if self.load.limited:
            yield Refusal("load.limited", f"it needs emulated volumes; {fixed}", remove)

    def _of_manner(self) -> Iterator[Refusal]:
        """How its tables are filled."""
        if self.load.manner not in self.manners:
            yield Refusal("load.manner", f'"{self.load.manner}" is for the kinds tpcc and tpch', "omit the key")
        elif self.load.manner == "hammerdb" and self.load.split:
            yield Refusal("load.split", "its sessions share the rows anyway", "omit the key")
        if self.load.times > 1 and not self.load.limited:
            yield Refusal("load.times", "a load without limits says nothing of a volume", "set load.limited = true")

    def _of_size(self, key: str) -> Iterator[Refusal]:
        """The size is said once: by ``key``, or by the memory."""
        if self.data_to_memory is not None and key in self.model_fields_set:
            text = f"it sets the amount of data, and so does {key}; omit one of them"
            yield Refusal("data_to_memory", text)


class OnOwnDatabase(WithTables):
    """Kinds that begin with a database of the user's where they have an :attr:`own_database`: it has its size, and the memory follows from that."""

    @property
    def size_key(self) -> str:
        """See :meth:`Workload.size_key`."""
        return super().size_key if self.own_database is None else "database.from"

    def sized(self, memory_bytes: int) -> Self:
        """See :meth:`Workload.sized`."""
        return super().sized(memory_bytes) if self.own_database is None else self

    @property
    def memory_bytes(self) -> int | None:
        """So much that the database is the multiple of it that ``data_to_memory`` asks for."""
        if self.own_database is None or self.data_to_memory is None:
            return None
        return self.own_database.memory_bytes_for(self.data_to_memory)

    def versions(self) -> dict[str, str]:
        """The content of the database's source."""
        return {} if self.own_database is None else self.own_database.versions()

    def _of_restored(self, database: DatabaseTable) -> Iterator[Refusal]:
        """What does not go with a database of the user's instead of tables that are filled."""
        for key in ("connections", "split", "foreign_keys"):
            if key in self.load.model_fields_set:
                yield Refusal(
                    f"load.{key}", "it is for generated tables; a database is restored by database.jobs sessions"
                )
        yield from database.refusals()
        if self.load.limited and database.is_kept:
            why = "a kept database is restored already, and not on this volume"
            yield Refusal("load.limited", why, "omit the key, or name the dump that it was kept from")

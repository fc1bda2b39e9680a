"""Kind `load`: files into empty tables, by `pgdyno load`. The load is what is measured."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import ExitStack
from typing import Any, ClassVar, Literal

from pydantic import Field

from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server
from pgdyno.workload.tables import BulkTables

from ...results.record import Check
from ...workload.kind import Refusal, Workload
from ...workload.outcome import Progress
from ...workload.server import ROWS_COUNTED_MAX, row_counts
from .options import BulkTable, Files, generated

_BYTES_PER_S = 30 << 20
"""Of files, loaded on two cores with everything that belongs to it; it only feeds estimates."""


class LoadKind(Workload):
    """`load`: files into empty tables, by `pgdyno load`."""

    headline: ClassVar[str] = "seconds"
    blamed: ClassVar[str] = "bulk"
    without: ClassVar[str] = "a load has no transactions, and ends with its files"
    forks: ClassVar[bool] = True

    kind: Literal["load"] = "load"
    """A load that is measured."""
    bulk: BulkTable = Field(default_factory=lambda: BulkTable.model_validate({}))
    """Files to load, and options of the load."""

    @property
    def driver(self) -> str:
        """`pgdyno load`."""
        return "loader"

    @property
    def writes(self) -> bool:
        """Every row."""
        return True

    @property
    def size_key(self) -> str:
        return "bulk"

    @property
    def estimate_s(self) -> float:
        """By the size of its files."""
        return self.bulk.input_bytes() / _BYTES_PER_S

    def require(self) -> None:
        """Check that the files exist."""
        self.bulk.sources()

    def data_set(self) -> BulkTables:
        """Empty tables; none where the load makes them itself."""
        bulk = self.bulk
        if bulk.definitions is not None:
            made_by = bulk.definitions.text
        else:
            made_by = "" if bulk.generated is None else bulk.generated.definitions(bulk.names, bulk.scale)
        return BulkTables(made_by, bulk.input_bytes())

    def shared(self, seed: int, progress: Progress, made: dict[Hashable, Any], ending: ExitStack) -> Any:
        """The files of each table; those that are generated are made once."""
        bulk = self.bulk
        if bulk.generate is None:
            return tuple(Files(table, tuple(paths)) for table, paths in bulk.sources().items())
        key = (bulk.generate, bulk.scale, bulk.gzip, tuple(sorted(bulk.names)))
        if key not in made:
            made[key] = ending.enter_context(generated(bulk, seed, progress))
        of_table = {item.table: item for item in made[key]}
        return tuple(of_table[name] for name in bulk.names)

    def runner(self, shared: Any = None) -> Runner:
        """A process of `pgdyno load`."""
        from .run import BulkLoadRunner

        return BulkLoadRunner(self.bulk, shared)

    def refusals(self) -> Iterator[Refusal]:
        """Refuse what is wrong with its files."""
        if (why := self.bulk.refusal()) is not None:
            yield Refusal("bulk", why)

    def refusals_on_existing(self) -> Iterator[Refusal]:
        yield Refusal(
            "kind",
            "each run of a load begins with empty tables, which an existing server cannot provide",
            "use `pgdyno load`: it loads files into an existing server, once, and reports what limits it",
        )

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Every table has the rows that the loader says came in."""
        assert outcome.bulk_load is not None
        counts = {table.table: table.rows for table in outcome.bulk_load.tables}
        if not full and sum(counts.values()) > ROWS_COUNTED_MAX:
            return ()
        counted = row_counts(server, counts)
        wrong = [
            f"{table} has {counted[table]:,} rows, {rows:,} came in"
            for table, rows in counts.items()
            if counted[table] != rows
        ]
        detail = ", ".join(wrong) or f"{len(counts)} tables have the {sum(counts.values()):,} rows that came in"
        return (Check(name="table_rows", ok=not wrong, detail=detail),)

    def record(self) -> dict[str, Any]:
        """With what of ``[workload.bulk]`` was in use."""
        first = {"kind": self.kind, "seed": self.seed}
        return first | self.bulk.record() | {"driver_cpus": self.driver_cpus}

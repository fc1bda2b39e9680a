"""Kind `sysbench`: its OLTP tests, by the statements of sysbench 1.0.20. After a run the rows are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from pgdyno.workload.counting import ROWS_COUNTED_MAX, row_counts
from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.driven import FilledKind
from pgdyno.workload.options import SysbenchOptions
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_EACH_MAX, Keys, SysbenchTables, size_for_memory, sysbench_rows_for

from ...results.record import Check

SysbenchTest = Literal[
    "legacy",
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_insert",
    "oltp_delete",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
]
_SENDS_TEXT = frozenset({"legacy", "oltp_insert"})
"""Tests whose originals send statements as text, never prepared. `legacy` is that of sysbench 0.5."""
_ON_K = frozenset({"select_random_points", "select_random_ranges"})
"""Tests that have one table."""
_READ_ONLY = frozenset({"oltp_read_only", "oltp_point_select", "select_random_points", "select_random_ranges"})


class Sysbench(FilledKind):
    """`sysbench`: one of its tests."""

    blamed: ClassVar[str] = "test"
    counts_queries: ClassVar[bool] = True

    kind: Literal["sysbench"] = "sysbench"
    """A test of sysbench."""
    test: SysbenchTest = "oltp_read_write"
    """The test, by the name of its script in 1.0.20; `legacy` is that of 0.5."""
    tables: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Number of tables."""
    rows: Annotated[int, Field(ge=1, le=2**31 - 1)] = 10_000
    """Rows of each table."""
    keys: Keys = "special"
    """How rows are drawn, as its `--rand-type`."""
    options: SysbenchOptions = Field(default_factory=SysbenchOptions)
    """Options of its tests."""
    tries_max: Annotated[int, Field(ge=0)] = 0
    """Attempts per transaction after a serialization failure or a deadlock; 0: until it succeeds, as sysbench does."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_original(cls, values: Any) -> Any:
        """Two of its tests send text, unless something else is said."""
        if isinstance(values, dict) and values.get("test") in _SENDS_TEXT:
            return {"protocol": "simple", **values}
        return values

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """The test."""
        return ((self.test, 1),)

    @property
    def writes(self) -> bool:
        """As the test does."""
        return self.test not in _READ_ONLY

    def native(self) -> dict[str, Any]:
        """See :meth:`Clients.native`."""
        sizes = {"tables": self.tables, "rows": self.rows}
        return {"sysbench": {"test": self.test, "rand_type": self.keys, **sizes, **self.options.told(self.test)}}

    def data_set(self) -> SysbenchTables:
        """Those of ``sysbench prepare``."""
        return SysbenchTables(
            self.tables,
            self.rows,
            auto_inc=self.options.auto_inc,
            secondary_index=self.options.create_secondary,
            keys=self.keys,
        )

    def needed_tables(self) -> SysbenchTables:
        """See :meth:`Workload.needed_tables`."""
        return self.data_set()

    @property
    def size_key(self) -> str:
        """See :meth:`Workload.size_key`."""
        return "rows" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        """See :meth:`Workload.sized`."""
        if self.data_to_memory is None:
            return self
        size_bytes = size_for_memory(memory_bytes, self.data_to_memory)
        rows = sysbench_rows_for(size_bytes, self.tables, secondary_index=self.options.create_secondary)
        return self.model_copy(update={"rows": min(rows, ROWS_EACH_MAX)})

    def baseline(self, server: Server, *, full: bool = False) -> int | None:
        """Rows of all tables; None where they are too many to be counted."""
        counted = full or self.tables * self.rows <= ROWS_COUNTED_MAX
        return self._counted(server) if counted else None

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Every test but two leaves as many rows as there were: what it deletes it inserts again."""
        loaded = self.tables * self.rows
        if not full and loaded > ROWS_COUNTED_MAX:
            return ()
        succeeded = outcome.account_total.succeeded
        were = loaded if baseline is None else baseline
        grown = self._counted(server) - were
        if self.test == "oltp_insert":
            ok = succeeded <= grown <= succeeded + outcome.uncounted_max
            expected = f"{succeeded:,} transactions inserted one each"
        elif self.test == "oltp_delete":
            # A row that is gone already is deleted without an effect, and without an error.
            ok = -(succeeded + outcome.uncounted_max) <= grown <= 0
            expected = f"{succeeded:,} transactions deleted at most one each"
        else:
            ok, expected = grown == 0, "this test leaves as many as there were"
        detail = f"{were:,} rows in {self.tables} tables changed by {grown:+,}; {expected}"
        return (Check(name="sysbench_rows", ok=ok, detail=detail),)

    def _counted(self, server: Server) -> int:
        return sum(row_counts(server, self.data_set().rows).values())

    def _own_record(self) -> dict[str, Any]:
        own = super()._own_record()
        del own["options"]
        return own | self.options.in_use(self.test)

    def _of_kind(self) -> Iterator[Refusal]:
        if self.test in _ON_K and self.tables > 1:
            yield Refusal("tables", f"{self.test} has one table, as in sysbench")
        if (why := self.options.refusal(self.test)) is not None:
            yield Refusal("options", why)
        yield from self._of_size("rows")
        if self.load.foreign_keys:
            yield Refusal("load", "foreign_keys are for pgbench's tables; sysbench's have nothing to refer to")

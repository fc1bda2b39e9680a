"""Kind `sysbench`: its OLTP tests with the statements, options and defaults of sysbench 1.0.20. After a run the rows are counted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_EACH_MAX, Keys, SysbenchTables, size_for_memory, sysbench_rows_for

from ..results.record import Check
from ..workload.kind import Refusal
from ..workload.server import ROWS_COUNTED_MAX, row_counts
from .driven import FilledKind

VALUES_MAX = 32_767
"""A statement has at most 65,535 parameters, and a range is two of them."""

Times = Annotated[int, Field(ge=0, le=100_000)]
"""How often something is done in a transaction."""
Values = Annotated[int, Field(ge=1, le=VALUES_MAX)]

_READS = ("point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges")
_CHANGES = ("index_updates", "non_index_updates", "delete_inserts")
_COUNTED = frozenset({*_READS, *_CHANGES})
"""Those that say how many statements a transaction has."""
_OF_TABLES = ("auto_inc", "create_secondary")
"""Those of the tables; every test has them."""
_USED: dict[str, tuple[str, ...]] = {
    "legacy": (*_READS, "range_size", *_CHANGES, "skip_trx"),
    "oltp_read_write": (*_READS, "range_size", *_CHANGES, "skip_trx"),
    "oltp_read_only": (*_READS, "range_size", "skip_trx"),
    "oltp_write_only": (*_CHANGES, "skip_trx"),
    "oltp_update_index": ("index_updates",),
    "oltp_update_non_index": ("non_index_updates",),
    "select_random_points": ("random_points",),
    "select_random_ranges": ("number_of_ranges", "delta"),
}
"""Options that the script of a test reads; a test that is not listed reads none."""
_WITH_SEQUENCE = frozenset({"legacy", "oltp_insert"})
"""The script of 0.5 makes tables with a sequence, and PostgreSQL's side of ``oltp_insert`` draws its ids from one."""


class SysbenchOptions(BaseModel):
    """For kind `sysbench`: options of its tests and of its tables, by the names and with the defaults of 1.0.20. One that the test does not read is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    point_selects: Times = 10
    """Rows by their id, in a transaction."""
    simple_ranges: Times = 1
    """Queries for the rows of a range."""
    sum_ranges: Times = 1
    """Queries for the sum of a range."""
    order_ranges: Times = 1
    """Queries for the ordered rows of a range."""
    distinct_ranges: Times = 1
    """Queries for the distinct rows of a range."""
    range_size: Annotated[int, Field(ge=1, le=2**31 - 1)] = 100
    """Rows of a range."""
    index_updates: Times = 1
    """Updates of the indexed column `k`."""
    non_index_updates: Times = 1
    """Updates of the column `c`, which has no index."""
    delete_inserts: Times = 1
    """Rows that are deleted and inserted again."""
    skip_trx: bool = False
    """Omit BEGIN and COMMIT."""
    random_points: Values = 10
    """Values of `k` in a query of `select_random_points`."""
    number_of_ranges: Values = 10
    """Ranges of `k` in a query of `select_random_ranges`."""
    delta: Annotated[int, Field(ge=0, le=2**31 - 1)] = 5
    """Length of such a range beyond its first value."""
    auto_inc: bool = True
    """True if the tables' ids have a sequence; those of `legacy` and `oltp_insert` always have."""
    create_secondary: bool = True
    """True if the tables have an index on `k`."""

    def in_use(self, test: str) -> dict[str, int | bool]:
        """Each option that the test or its tables read, with its value."""
        return {name: getattr(self, name) for name in (*_USED.get(test, ()), *_OF_TABLES)}

    def values_for(self, test: str) -> dict[str, int | bool]:
        """The options for a driver: those that its script reads and that differ from sysbench's defaults."""
        values: dict[str, int | bool] = {name: getattr(self, name) for name in _USED.get(test, ())}
        fields: Any = type(self).model_fields
        return {name: value for name, value in values.items() if value != fields[name].default}

    def refusal(self, test: str) -> str | None:
        """Reason why a test does not take these options; None if it does."""
        passed_over = sorted(self.model_fields_set - self.in_use(test).keys())
        if passed_over:
            takes = ", ".join(self.in_use(test))
            return f"{test} does not read {passed_over[0]}; it has {takes}"
        if test in _WITH_SEQUENCE and not self.auto_inc:
            return f"{test} draws ids from a sequence, so auto_inc stays true"
        counts = [getattr(self, name) for name in _USED.get(test, ()) if name in _COUNTED]
        alone = "skip_trx" not in _USED.get(test, ())
        if counts and not any(counts) and (alone or self.skip_trx):
            return f"a transaction of {test} would have no statement; raise one of its counts"
        return None


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
        sizes = {"tables": self.tables, "rows": self.rows}
        return {"sysbench": {"test": self.test, "rand_type": self.keys, **sizes, **self.options.values_for(self.test)}}

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
        return self.data_set()

    @property
    def size_key(self) -> str:
        return "rows" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
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

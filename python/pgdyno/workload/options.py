"""Options of sysbench's tests, by the names and with the defaults of 1.0.20. The original and pgdyno's own driver take the same."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

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
"""Which options the script of a test reads; of the tests that are not here, none."""
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
    """Whether the tables' ids have a sequence; those of `legacy` and `oltp_insert` always have."""
    create_secondary: bool = True
    """Whether the tables have an index on `k`."""

    def in_use(self, test: str) -> dict[str, int | bool]:
        """Each option that the test or its tables read, with its value."""
        return {name: getattr(self, name) for name in (*_USED.get(test, ()), *_OF_TABLES)}

    def told(self, test: str) -> dict[str, int | bool]:
        """The options for a driver: those that its script reads and that differ from sysbench's defaults."""
        values: dict[str, int | bool] = {name: getattr(self, name) for name in _USED.get(test, ())}
        fields: Any = type(self).model_fields
        return {name: value for name, value in values.items() if value != fields[name].default}

    def refusal(self, test: str) -> str | None:
        """Why these options do not go with a test; None for options that do."""
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

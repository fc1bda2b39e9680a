"""Kind `pgbench`: its built-in scripts on its tables, and the proofs that the server did what was counted.

The cheap ones read the small tables only (branches, tellers, this run's history, in cache when the run ends): row
counts, sums of balances, and that history grew by exactly the number of transactions that succeeded. ``full`` adds
the accounts, by one scan of the largest table: 16 s for each 2 GB on a gp3 volume of 125 MiB/s, so it is asked
for, on one run of an arm, and not made by default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from pgdyno.workload.counting import counting
from pgdyno.workload.data_set import DataSet
from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.clients import Engine
from pgdyno.workload.kind.driven import FilledKind
from pgdyno.workload.outcome import Outcome
from pgdyno.workload.scripts import READ_ONLY, ScriptName, parse_script
from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_PER_SCALE, PgbenchTables, scale_for, size_for_memory

from ...results.record import Check

TABLESPACE = r"^[a-z][a-z0-9_]{0,30}$"
"""A name that needs no quotes, and is a folder's name too."""

_SMALL = """
SELECT (SELECT count(*) FROM pgbench_branches), (SELECT coalesce(sum(bbalance), 0) FROM pgbench_branches),
       (SELECT count(*) FROM pgbench_tellers), (SELECT coalesce(sum(tbalance), 0) FROM pgbench_tellers),
       (SELECT count(*) FROM pgbench_history), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
"""
_ACCOUNTS = "SELECT count(*), coalesce(sum(abalance), 0) FROM pgbench_accounts"


class OnPgbenchTables(FilledKind):
    """Keys of the kinds `pgbench` and `script`, which run on pgbench's tables."""

    engines: ClassVar[tuple[Engine, ...]] = ("native", "pgbench")

    scale: Annotated[int, Field(ge=1)] = 100
    """Scale of pgbench's tables: 100,000 accounts per unit, about 15 MB with the primary key."""
    fillfactor: Annotated[int, Field(ge=10, le=100)] = 100
    """Fill factor of the tables in per cent; the rest is room for updates."""
    tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the tables, for example `fast` for the volume `tablespace.fast`. Default: the database's own."""
    index_tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the primary keys."""

    def data_set(self) -> DataSet:
        """Those of ``pgbench -i``."""
        return self.pgbench_tables()

    def pgbench_tables(self) -> PgbenchTables:
        """Those of ``pgbench -i``, as the keys say."""
        return PgbenchTables(
            scale=self.scale,
            fillfactor=self.fillfactor,
            foreign_keys=self.load.foreign_keys,
            tablespace=self.tablespace,
            index_tablespace=self.index_tablespace,
        )

    @property
    def made_by_engine(self) -> bool:
        """By the program that drives, unless something is asked for that ``pgbench -i`` cannot do."""
        return self.by_engine

    @property
    def size_key(self) -> str:
        """See :meth:`Workload.size_key`."""
        return "scale" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        """See :meth:`Workload.sized`."""
        if self.data_to_memory is None:
            return self
        size_bytes = size_for_memory(memory_bytes, self.data_to_memory)
        return self.model_copy(update={"scale": scale_for(size_bytes, self.fillfactor)})

    @property
    def tablespaces(self) -> dict[str, str]:
        """See :meth:`Workload.tablespaces`."""
        document = {"tablespace": self.tablespace, "index_tablespace": self.index_tablespace}
        return {key: name for key, name in document.items() if name is not None}

    def _of_kind(self) -> Iterator[Refusal]:
        return self._of_size("scale")


class Pgbench(OnPgbenchTables):
    """`pgbench`: its built-in scripts."""

    blamed: ClassVar[str] = "script"

    kind: Literal["pgbench"] = "pgbench"
    """pgbench's built-in scripts."""
    script: str = "tpcb-like"
    """`tpcb-like`, `simple-update`, `select-only`, or a mix: `select-only@3,simple-update@1`."""

    @field_validator("script")
    @classmethod
    def _is_a_script(cls, script: str) -> str:
        parse_script(script)
        return script

    @property
    def mix(self) -> tuple[tuple[ScriptName, int], ...]:
        """The built-in scripts."""
        return parse_script(self.script)

    @property
    def history_writers(self) -> frozenset[str]:
        """Those that are not read-only."""
        return frozenset(name for name, _ in self.mix if name not in READ_ONLY)

    @property
    def writes(self) -> bool:
        """Whether one of its scripts does."""
        return bool(self.history_writers)

    def native(self) -> dict[str, Any]:
        """See :meth:`Clients.native`."""
        scripts = [{"builtin": name, "weight": weight} for name, weight in self.mix]
        return {"pgbench": {"scripts": scripts, "scale": self.scale}}

    def pgbench_words(self, folder: Path) -> list[str]:
        """See :meth:`Clients.pgbench_words`."""
        del folder
        return [word for name, weight in self.mix for word in ("-b", f"{name}@{weight}")]

    def needed_tables(self) -> PgbenchTables:
        """See :meth:`Workload.needed_tables`."""
        return self.pgbench_tables()

    def baseline(self, server: Server, *, full: bool = False) -> Baseline:
        """See :meth:`Workload.baseline`."""
        return _read(server, full=full)

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Rows, history and balances.

        Clients that were lost may have committed a transaction they never counted: then history may have up to one row
        more for each of them.
        """
        before: Baseline = baseline or Baseline()
        now = _read(server, full=full)
        delta = now.history_delta - before.history_delta
        branches = now.branches_balance - before.branches_balance
        checks = [
            self._rows("pgbench_branches", now.branches),
            self._rows("pgbench_tellers", now.tellers),
            _history(now.history_rows - before.history_rows, outcome),
            self._balances(branches, now.tellers_balance - before.tellers_balance, delta),
        ]
        if full:
            balance = now.accounts_balance - before.accounts_balance
            detail = f"accounts changed by {balance:,}, history says {delta:,}"
            checks += [
                self._rows("pgbench_accounts", now.accounts),
                Check(name="accounts_balance", ok=balance == delta, detail=detail),
            ]
        return tuple(checks)

    def _rows(self, table: str, number: int) -> Check:
        wanted = ROWS_PER_SCALE[table] * self.scale
        return Check(name=f"{table}_rows", ok=number == wanted, detail=f"{number:,} rows, {wanted:,} were loaded")

    def _balances(self, branches: int, tellers: int, delta: int) -> Check:
        """tpcb-like changes branches and tellers by what it writes to history; the other scripts leave them alone."""
        names = {name for name, _ in self.mix}
        detail = f"branches changed by {branches:,}, tellers by {tellers:,}, history says {delta:,}"
        if "tpcb-like" not in names:
            ok = branches == tellers == 0
            detail += "; this workload leaves branches and tellers alone"
        elif "simple-update" in names:
            ok = branches == tellers
            detail += "; simple-update writes to history alone"
        else:
            ok = branches == tellers == delta
        return Check(name="balances", ok=ok, detail=detail)


@dataclass(frozen=True)
class Baseline:
    """State of the tables before a run. The default is that of tables just loaded (or of a clone of them)."""

    branches: int = 0
    branches_balance: int = 0
    tellers: int = 0
    tellers_balance: int = 0
    history_rows: int = 0
    history_delta: int = 0
    accounts: int = 0
    """Zero, as their balance, where they were not read."""
    accounts_balance: int = 0


def _read(server: Server, *, full: bool) -> Baseline:
    with counting(server) as connection:
        small = connection.execute(_SMALL).fetchone()
        assert small is not None
        accounts = connection.execute(_ACCOUNTS).fetchone() if full else None
    return Baseline(*map(int, (*small, *(accounts or ()))))


def _history(grown: int, outcome: Outcome) -> Check:
    return Check(
        name="history_rows",
        ok=outcome.writes_total <= grown <= outcome.writes_total + outcome.uncounted_max,
        detail=f"history grew by {grown:,} rows, {outcome.writes_total:,} writing transactions succeeded",
    )

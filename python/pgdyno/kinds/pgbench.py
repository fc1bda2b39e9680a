"""Kind `pgbench`: built-in scripts on its tables, with proofs of the counted work; and script files in pgbench's language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pgdyno.workload.outcome import Outcome
from pgdyno.workload.server import Server
from pgdyno.workload.tables import ROWS_PER_SCALE, PgbenchTables, scale_for, size_for_memory

from ..base.errors import InputError
from ..results.record import Check
from ..workload.clients import Engine
from ..workload.database import DataSet
from ..workload.kind import Refusal
from ..workload.server import counting
from .driven import FilledKind

ScriptName = Literal["tpcb-like", "simple-update", "select-only"]

SCRIPTS: tuple[ScriptName, ...] = ("tpcb-like", "simple-update", "select-only")
READ_ONLY: frozenset[str] = frozenset({"select-only"})
"""Built-in scripts that write nothing; each of the others writes one row of history."""
WEIGHT_MAX = 1_000_000
"""Above this a weight is a slip; sums stay far within the engine's numbers."""


class ScriptFile(BaseModel):
    """A script of the user's, with its text: a record must be able to repeat it when the file has changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1)]
    """The file, as it was written; what statistics call the script."""
    text: str
    """Its content."""
    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX)] = 1
    """How often it runs, relative to the others."""


def parse_script(text: str) -> tuple[tuple[ScriptName, int], ...]:
    """Read ``select-only@3,simple-update@1``; ValueError says what is wrong. A missing weight is 1."""
    parsed: list[tuple[ScriptName, int]] = []
    for part in text.split(","):
        name, at, weight = part.strip().partition("@")
        known = next((script for script in SCRIPTS if script == name), None)
        if known is None:
            raise ValueError(f"there is no script {name!r}; there are {', '.join(SCRIPTS)}, and mixes such as a@3,b@1")
        if at and not (weight.isascii() and weight.isdigit() and int(weight) > 0):
            raise ValueError(f"the weight of {name} is {weight!r}; it must be a whole number above 0")
        if any(script == known for script, _ in parsed):
            raise ValueError(f"{name} occurs twice in {text!r}; give it one weight")
        parsed.append((known, int(weight) if at else 1))
    return tuple(parsed)


def split_weight(text: str) -> tuple[str, int]:
    """``transfer.sql@9`` as name and weight; 1 where none is written. :class:`InputError` for a weight that is none."""
    name, at, weight = text.rpartition("@")
    if not at:
        return text, 1
    if not (name and weight.isascii() and weight.isdigit() and 0 < int(weight) <= WEIGHT_MAX):
        raise InputError(
            f"the weight in `{text}` is not a whole number from 1 to {WEIGHT_MAX:,}",
            remedy="write it as transfer.sql@9",
        )
    return name, int(weight)


def read_script(text: str, folder: Path) -> dict[str, Any]:
    """``FILE.sql@WEIGHT``, below ``folder`` unless absolute, as the fields of a :class:`ScriptFile`.

    :class:`InputError` when the file cannot be read.
    """
    name, weight = split_weight(text)
    try:
        content = (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(
            f"the script {folder / name} cannot be read: {why}",
            remedy=f"name a file in pgbench's language; relative names begin at {folder.absolute()}",
        ) from None
    return {"name": name, "text": content, "weight": weight}


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
        return "scale" if self.data_to_memory is None else "data_to_memory"

    def sized(self, memory_bytes: int) -> Self:
        if self.data_to_memory is None:
            return self
        size_bytes = size_for_memory(memory_bytes, self.data_to_memory)
        return self.model_copy(update={"scale": scale_for(size_bytes, self.fillfactor)})

    @property
    def tablespaces(self) -> dict[str, str]:
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
        """True if one of its scripts does."""
        return bool(self.history_writers)

    def native(self) -> dict[str, Any]:
        scripts = [{"builtin": name, "weight": weight} for name, weight in self.mix]
        return {"pgbench": {"scripts": scripts, "scale": self.scale}}

    def pgbench_words(self, folder: Path) -> list[str]:
        return [word for name, weight in self.mix for word in ("-b", f"{name}@{weight}")]

    def needed_tables(self) -> PgbenchTables:
        return self.pgbench_tables()

    def baseline(self, server: Server, *, full: bool = False) -> Baseline:
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

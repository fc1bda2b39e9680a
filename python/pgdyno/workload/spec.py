"""What pgbench is asked to do."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from pgdyno.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

ScriptName = Literal["tpcb-like", "simple-update", "select-only"]

SCRIPTS: tuple[ScriptName, ...] = ("tpcb-like", "simple-update", "select-only")
ROWS_PER_SCALE = {"pgbench_branches": 1, "pgbench_tellers": 10, "pgbench_accounts": 100_000}
"""Rows for each unit of the scale factor; ``pgbench_history`` begins empty."""

TABLESPACE = r"^[a-z][a-z0-9_]{0,30}$"
"""A name that needs no quotes, and is a folder's name too."""


@contextmanager
def explained(subject: str = "") -> Iterator[None]:
    """Turn what pydantic says of a wrong value into an :class:`InputError` that names the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (*first["loc"], *_key(first)))
        raise InputError(
            f"{subject}{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}",
            remedy="see `pgdyno compare --help`",
        ) from error


def at_key(key: str, message: str) -> PydanticCustomError:
    """What a check of a whole table raises about one of its keys."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


def _key(found: ErrorDetails) -> tuple[str, ...]:
    return (str(found["ctx"]["key"]),) if found["type"] == "at_key" else ()


class Binaries(Protocol):
    """Where PostgreSQL's programs are."""

    @property
    def bin_dir(self) -> Any:
        """Directory (``pathlib.Path``) that holds ``pgbench``."""


class Server(Protocol):
    """What a workload needs of a server; :class:`pgdyno.postgres.cluster.Cluster` is one."""

    @property
    def dsn(self) -> str:
        """Connection string in libpq's notation."""

    @property
    def binaries(self) -> Binaries:
        """The programs that belong to it."""


class PgbenchAsked(BaseModel):
    """A pgbench workload as an experiment asks for it: everything but the seed, which the experiment draws.

    Without ``rate_per_s`` the loop is closed: a client sends when its last transaction has ended, so a stall of the
    server lowers the load, and latency is service time under that load. With it the loop is open: transactions are
    scheduled at random (Poisson) and latency counts from the schedule.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    script: str = "tpcb-like"
    """`tpcb-like`, `simple-update`, `select-only`, or a mix: `select-only@3,simple-update@1`."""
    scale: Annotated[int, Field(ge=1)] = 100
    """100,000 accounts each, about 15 MB with the primary key."""
    fillfactor: Annotated[int, Field(ge=10, le=100)] = 100
    """Of the tables, in per cent: what is left free is room for updates."""
    tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the tables, as `fast` for the volume `tablespace.fast`. Default: the database's own."""
    index_tablespace: Annotated[str, Field(pattern=TABLESPACE)] | None = None
    """Tablespace of the primary keys."""
    clients: Annotated[int, Field(ge=1)] = 8
    """Connections that work at a time."""
    threads: Annotated[int, Field(ge=1)] = 1
    """One thread of pgbench drives tens of thousands of transactions a second; more only compete with the server."""
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    """Query protocol."""
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Open loop: transactions started per second, at random (Poisson). Default: a closed loop."""
    latency_limit_ms: Annotated[float, Field(gt=0)] | None = None
    """Transactions that an open loop would start later than this are skipped, and counted as skipped."""
    tries_max: Annotated[int, Field(ge=1)] = 1
    """How often a transaction is tried that ends in a serialisation failure or a deadlock."""

    @field_validator("script")
    @classmethod
    def _is_a_script(cls, script: str) -> str:
        parse_script(script)
        return script

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        if self.threads > self.clients:
            raise at_key("threads", f"{self.threads} threads for {self.clients} clients: a thread needs a client")
        if self.latency_limit_ms is not None and self.rate_per_s is None:
            raise at_key("latency_limit_ms", "it needs rate_per_s: without a schedule nothing is late")
        return self

    @property
    def closed(self) -> bool:
        """Whether clients wait for completions."""
        return self.rate_per_s is None

    @property
    def scripts(self) -> tuple[tuple[ScriptName, int], ...]:
        """(name, weight) in the order in which pgbench numbers them in its log."""
        return parse_script(self.script)


class PgbenchSpec(PgbenchAsked):
    """One pgbench workload, with its seed: two runs of it ask for the same transactions."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The specification, or an :class:`InputError` that names the field."""
        with explained("pgbench: "):
            return cls(**values)

    def dilated(self, dilation: int) -> Self:
        """What pgbench is told in a world that is so many times slower: what it does each second, and by when."""
        rate, limit = self.rate_per_s, self.latency_limit_ms
        return self.model_copy(
            update={
                "rate_per_s": None if rate is None else rate / dilation,
                "latency_limit_ms": None if limit is None else limit * dilation,
            }
        )

    def record(self) -> dict[str, Any]:
        """The specification as it stands in ``run.json``."""
        return {"kind": "pgbench", "closed": self.closed, **self.model_dump()}


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

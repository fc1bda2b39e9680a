"""Clients that send transactions: how many, by which driver, and when transactions begin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from pgdyno.workload.server import Server

from ..base.quantity import duration_words
from .keys import Seconds
from .kind import Refusal, Workload

Engine = Literal["native", "pgbench", "hammerdb"]
REQUESTS_PER_TRANSACTION = 3.0
"""Of TPC-B on data larger than memory: an account is read, a page of it is written back, a commit is written. It only feeds the
estimate of runs that end after a number of transactions."""
RUN_S_MAX = 7 * 86400.0
"""Of this machine's time, for one run. What is sampled of a busy run, about 20 kB a second, stays in memory until it ends:
12 GB in a week."""


class Clients(Workload):
    """Keys of the kinds `pgbench`, `script`, `sysbench`, `tpcc`, `sample` and `idle`, whose clients send transactions.

    Without ``rate_per_s`` the loop is closed: a client sends when its last transaction has ended and it has thought,
    so a stall of the server lowers the load, and latency is service time under that load. With it the loop is open:
    transactions are scheduled, and latency counts from the schedule.
    """

    headline: ClassVar[str] = "tps"
    engines: ClassVar[tuple[Engine, ...]] = ("native",)
    """Drivers that can run it, the default first."""
    command: ClassVar[tuple[str, ...]] = ("drive",)
    """The engine's program that is pgdyno's own driver of this kind."""
    counts_queries: ClassVar[bool] = False
    """True if statements are counted beside transactions, as sysbench does."""
    counts_types: ClassVar[bool] = False
    """True if succeeded transactions are recorded by type, because the headline or a proof needs one of them."""

    engine: Engine | None = None
    """The driver: `native` is pgdyno's own, `pgbench` the original program, `hammerdb` an installed HammerDB for kind `tpcc`. Default: `native`, unless `transactions` are counted."""
    clients: Annotated[int, Field(ge=1)] = 8
    """Number of clients, each with a connection."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of the driver. One drives tens of thousands of transactions a second; more only compete with the server."""
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    """Query protocol. For sysbench's `legacy` and `oltp_insert` the default is `simple`, as in sysbench."""
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Open loop: transactions started per second. Default: a closed loop."""
    arrivals: Literal["poisson", "fixed"] = "poisson"
    """Open loop: independent of each other, or evenly spaced."""
    think_ms: Annotated[float, Field(gt=0)] | None = None
    """Closed loop: how long a client waits between two transactions."""
    late_max_ms: Annotated[int, Field(ge=1)] | None = None
    """Transactions that an open loop would start later than this are skipped, and counted as skipped."""
    transactions: Annotated[int, Field(ge=1)] | None = None
    """Closed loop, by pgbench: each client ends after this number, and `duration` is the maximum time. Default: all run for `duration`."""
    tries_max: Annotated[int, Field(ge=0)] = 1
    """Attempts per transaction after a serialization failure or a deadlock; 0: until it succeeds, which is sysbench's default."""
    warmup_s: Annotated[Seconds, Field(ge=0)] = Field("15s", alias="warmup", validate_default=True)
    """Length of the warm-up, which is not measured, for example `15s`."""
    measure_s: Annotated[Seconds, Field(ge=2)] = Field("30s", alias="duration", validate_default=True)
    """Length of the measured phase, for example `30s`."""

    @field_validator("engine", mode="before")
    @classmethod
    def _is_an_engine(cls, engine: Any) -> Any:
        if engine == "sysbench":
            raise ValueError(
                'pgdyno runs sysbench\'s tests with its own driver; omit the key, or write engine = "native"'
            )
        return engine

    @property
    def driver(self) -> Engine:
        """The engine that drives, with the default put in."""
        return self.engine or ("pgbench" if self.transactions is not None else self.engines[0])

    @property
    def closed(self) -> bool:
        """True if clients wait for completions."""
        return self.rate_per_s is None

    @property
    def sessions(self) -> int | None:
        """One for each client."""
        return self.clients

    @property
    def prepares(self) -> bool:
        """As the protocol says, unless nothing is sent."""
        return self.asks_server and self.protocol == "prepared"

    @property
    def mix(self) -> tuple[tuple[str, int], ...]:
        """(name, weight) of every script, in the order in which a driver numbers them."""
        return ((self.kind, 1),)

    @property
    def history_writers(self) -> frozenset[str]:
        """Scripts of the mix whose every transaction writes one row of history."""
        return frozenset()

    def native(self) -> str | dict[str, Any]:
        """The work in the order for pgdyno's own driver."""
        return self.kind

    def order(self, server: Server, dilation: int) -> dict[str, Any]:
        """The part of the order for pgdyno's own driver that depends on the server, in a world that is ``dilation`` times slower."""
        return {"server": server.endpoint.named("pgdyno drive")}

    def pgbench_words(self, folder: Path) -> list[str]:
        """The work as arguments of pgbench; files that it reads are written into ``folder``."""
        return []

    @property
    def by_engine(self) -> bool:
        """By its driver, or by how its tables are made."""
        several = self.making.connections is not None or self.making.split
        return self.driver == "native" or several

    @property
    def phases_s(self) -> tuple[float, float]:
        """As the file says."""
        return self.warmup_s, self.measure_s

    @property
    def estimate_s(self) -> float:
        """Both phases."""
        return self.warmup_s + self.measure_s

    @property
    def counted(self) -> bool:
        """True if each client ends after a number of transactions."""
        return self.transactions is not None

    def work_s(self, iops: float, dilation: int = 1, mib_per_s: float = math.inf) -> float:
        """When the volume has done the requests of all transactions."""
        return (self.transactions or 0) * self.clients * REQUESTS_PER_TRANSACTION / iops

    def dilated(self, dilation: int) -> Self:
        """The same in a world that is ``dilation`` times slower: rates per second of the host, and its milliseconds."""
        rate, late_ms, think_ms = self.rate_per_s, self.late_max_ms, self.think_ms
        return self.model_copy(
            update={
                "rate_per_s": None if rate is None else rate / dilation,
                "late_max_ms": None if late_ms is None else late_ms * dilation,
                "think_ms": None if think_ms is None else think_ms * dilation,
            }
        )

    def refusals(self) -> Iterator[Refusal]:
        """First about the loop, then about the kind's own keys and the engine."""
        return chain(self._of_loop(), self._of_count(), self._of_kind(), self._of_engine())

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """A run must not be too long, and counted transactions have no warm-up."""
        takes_s = self.estimate_s * dilation
        if takes_s > RUN_S_MAX:
            slowed = "" if dilation == 1 else f" at dilation {dilation}"
            yield Refusal(
                "duration",
                f"a run takes {duration_words(takes_s)}{slowed}, and may take {duration_words(RUN_S_MAX)}:"
                " its samples stay in memory until it ends",
                "use a shorter duration and more replicates",
            )
        if self.transactions is not None and self.warmup_s > 0:
            why = "with a fixed number of transactions there is no warm-up"
            yield Refusal("transactions", why, 'write warmup = "0s"')

    def record(self) -> dict[str, Any]:
        """Without the keys of the other loop."""
        loop = {"think_ms"} if self.closed else {"arrivals", "late_max_ms"}
        loop |= {"clients", "threads", "protocol", "rate_per_s", "tries_max"}
        loop |= {"transactions"} if self.transactions is not None else set()
        first = {"kind": self.kind, "engine": self.driver, "closed": self.closed}
        last = {"seed": self.seed, "driver_cpus": self.driver_cpus}
        return first | self._own_record() | self.model_dump(mode="json", include=loop) | last

    def _own_record(self) -> dict[str, Any]:
        """The keys that only some kinds have."""
        own = type(self).model_fields.keys() - Clients.model_fields.keys()
        return self.model_dump(mode="json", include=set(own))

    def _of_kind(self) -> Iterator[Refusal]:
        """Refusals of the kind's own keys."""
        return iter(())

    def _of_loop(self) -> Iterator[Refusal]:
        if self.threads > self.clients:
            yield Refusal("threads", f"{self.threads} threads for {self.clients} clients: a thread needs a client")
        for key in ("late_max_ms", "arrivals"):
            if key in self.model_fields_set and getattr(self, key) is not None and self.rate_per_s is None:
                yield Refusal(key, "it needs rate_per_s: only an open loop has arrivals that can be late")
        if self.think_ms is not None and self.rate_per_s is not None:
            yield Refusal("think_ms", "clients of an open loop (rate_per_s) do not think; omit one of them")

    def _of_count(self) -> Iterator[Refusal]:
        if self.transactions is None:
            return
        if self.rate_per_s is not None:
            yield Refusal("transactions", "clients of an open loop (rate_per_s) end after a time; omit one of them")
        if self.driver != "pgbench":
            yield Refusal("transactions", f'{self.driver} runs for a time; only engine = "pgbench" can count')

    def _of_engine(self) -> Iterator[Refusal]:
        if self.driver not in self.engines:
            key = "transactions" if self.engine is None else "engine"
            yield Refusal(key, f'{self.driver} cannot run kind = "{self.kind}"; engine = "native" can')
        if self.driver == "native":
            return
        if self.arrivals == "fixed":
            why = f'{self.driver} draws its arrivals at random; only engine = "native" can space them evenly'
            yield Refusal("arrivals", why)
        if self.think_ms is not None:
            yield Refusal("think_ms", f'clients of {self.driver} do not think; those of engine = "native" do')


def clients_of(workload: Workload) -> Clients | None:
    """The workload, if clients send transactions; None of others."""
    return workload if isinstance(workload, Clients) else None

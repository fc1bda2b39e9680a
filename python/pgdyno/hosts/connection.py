"""The connection to a scheduler and, past it, to each of its workers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from pgdyno.hosts.facts import HostFacts

from ..base import engine as _engine
from ..base.errors import HostError, InputError
from ..base.toml_file import read_toml
from ..results.record import DriverHostRecord
from . import remote_process
from .certificates import COORDINATOR, Identity
from .dask import ANSWER_S, CONNECT_S, HostAddress, distributed, of_scheduler, reason, to_listen
from .remote_process import RUNS, RemoteSeat, Seat, lost

HTTP_REMEDY = "start it with `pgdyno hosts`, which has no HTTP: those routes ask for no certificate (distributed#6407)"
SAME_REMEDY = "install the same pgdyno on all hosts"
_CLOSE_S = 2.0
_EACH_S = 60.0
"""After the answer before it, an answer takes seconds."""
_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Worker:
    """A worker that is connected to the scheduler."""

    name: str
    url: str
    http: bool
    """Whether it serves HTTP, which asks for no certificate."""


class SchedulerAddress(Protocol):
    """Where a scheduler is, and who asks it: a hosts file, or flags that say the same."""

    @property
    def scheduler(self) -> HostAddress:
        """Its address."""

    @property
    def identity(self) -> Identity:
        """Of this process."""


class Connection:
    """Open for the length of a ``with`` block."""

    def __init__(self, file: SchedulerAddress) -> None:
        self.file = file
        self._client: Any = None
        self.workers: Mapping[str, Worker] = {}
        """By name, as they were when the connection was opened."""
        self.http = False
        """Whether the scheduler serves HTTP."""

    def __enter__(self) -> Self:
        """:class:`HostError` where the scheduler does not answer, or is of another authority."""
        dask_distributed, security = distributed(), self.file.identity.security()
        url = self.file.scheduler.url
        try:
            self._client = dask_distributed.Client(
                url, security=security, direct_to_workers=True, timeout=CONNECT_S, name="pgdyno"
            )
            info = self._client.scheduler_info(n_workers=-1)
        except Exception as error:  # noqa: BLE001 - Dask raises many kinds where a scheduler is not there, or of another authority
            self.close()
            raise HostError(
                f"no connection to the scheduler {url}: {reason(error)}",
                remedy=f"start it with `pgdyno hosts scheduler`, with a certificate of the authority in {self.file.identity.folder}",
            ) from None
        self.http = bool(info["services"])
        workers = (
            Worker(str(worker["name"]), url, bool(worker["services"])) for url, worker in info["workers"].items()
        )
        self.workers = {worker.name: worker for worker in workers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the connection."""
        self.close()

    def close(self) -> None:
        """The same, also of one that was not opened."""
        client, self._client = self._client, None
        if client is not None:
            client.close(timeout=_CLOSE_S)

    @property
    def loop(self) -> Any:
        """The event loop of the connection, which is another thread's."""
        return self._client.loop.asyncio_loop

    def seat(self, name: str) -> RemoteSeat:
        """A seat on a worker. :class:`HostError` where there is no worker of that name."""
        worker = self.workers.get(name)
        if worker is None:
            there = ", ".join(sorted(self.workers)) or "none"
            raise HostError(
                f"{name} is not connected to {self.file.scheduler.url}; connected: {there}",
                remedy=f"start `pgdyno hosts worker {self.file.scheduler.url} --name {name}` on that host",
            )
        key = f"pgdyno-seat-{secrets.token_hex(8)}"
        try:
            future = self._client.submit(Seat, actor=True, workers=[worker.url], key=key, pure=False)
            return RemoteSeat(name, future.result(timeout=ANSWER_S))
        except Exception as error:  # noqa: BLE001 - whatever another version of pgdyno, or none, raises there
            raise lost(name, error) from None

    def each(self, function: Callable[[_Question], _Answer], questions: Sequence[_Question]) -> list[_Answer]:
        """What a function makes of each, on all workers; of what a lost worker had, here. :class:`HostError` as :meth:`everyone`."""
        self.everyone()
        futures, answers = self._client.map(function, questions, pure=False), list[_Answer]()
        for question, future in zip(questions, futures, strict=True):
            try:
                answers.append(future.result(timeout=_EACH_S))
            except Exception:  # noqa: BLE001 - whatever Dask raises where a worker is lost; an error of the function comes again here
                answers.append(function(question))
        return answers

    def everyone(self) -> dict[str, DriverHost]:
        """The hosts of all workers, by name. :class:`HostError` as :meth:`drivers`, and where there is none."""
        if not self.workers:
            url = self.file.scheduler.url
            raise HostError(
                f"no worker is connected to {url}", remedy=f"start `pgdyno hosts worker {url}` on each host"
            )
        return self.drivers(sorted(self.workers))

    def drivers(self, names: Iterable[str]) -> dict[str, DriverHost]:
        """The hosts of these names. :class:`HostError` where one is not there, has another engine, or is open to others."""
        if self.http:
            raise HostError(f"the scheduler {self.file.scheduler.url} serves HTTP", remedy=HTTP_REMEDY)
        drivers = {}
        for name in names:
            drivers[name] = DriverHost(self, name)
            there, here = drivers[name].facts.engine, _engine.facts().build_hash
            if there != here:
                raise HostError(f"the engine of {name} is another: {there}; here {here}", remedy=SAME_REMEDY)
            if self.workers[name].http:
                raise HostError(f"the worker {name} serves HTTP", remedy=HTTP_REMEDY)
        return drivers


class DriverHost:
    """A host on which programs are started; for drivers an :class:`~pgdyno.workload.outcome.RemoteHost`."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    @cached_property
    def facts(self) -> HostFacts:
        """What it is; asked once."""
        return self._seat.facts()

    @cached_property
    def _seat(self) -> RemoteSeat:
        """For questions; each program has a seat of its own."""
        return self._connection.seat(self.name)

    def clock_ns(self) -> int:
        """What CLOCK_MONOTONIC shows there: that of the worker, whose children the drivers are. :class:`HostError` where it does not answer."""
        return int(self._seat.answer("clock_ns"))

    def launch(self, document: Mapping[str, Any], log: Path, *, timeout_s: float) -> _engine.EngineProcess:
        """Start a driver there; it is not ready yet."""
        seat = self._connection.seat(self.name)
        return remote_process.launch(seat, self._connection.loop, document, log, timeout_s=timeout_s)

    def runs(self, log: Path) -> remote_process.RemoteProcess:
        """Start what makes whole runs there; ``log`` takes the end of its standard error, here."""
        log.touch()
        return remote_process.RemoteProcess(self._connection.seat(self.name), self._connection.loop, log, RUNS)

    def record(self, server: Mapping[str, Any]) -> DriverHostRecord:
        """What it is, and its distance from a server. :class:`InputError` for a server that only this machine reaches, :class:`HostError` where it is lost."""
        if str(server["host"]).startswith(("/", "@")):
            raise InputError(
                f"{self.name} cannot reach the server, which is named by a socket of this machine",
                remedy="name its address in the connection string: host=10.0.0.1",
            )
        there = self.facts
        return DriverHostRecord(
            cores=there.cores,
            kernel=there.kernel,
            memory_bytes=there.memory_bytes,
            cpu=there.cpu,
            rtt_ms=self._rtt_ms(str(server.get("address") or server["host"]), int(server["port"])),
        )

    def _rtt_ms(self, host: str, port: int) -> float | None:
        """None where it cannot connect: the driver says why. A worker that does not answer is waited for once, not again for its driver."""
        round_trip_ns = self._seat.answer("round_trip_ns", host, port)
        return None if round_trip_ns is None else round_trip_ns / 1e6


_KEYS = {"scheduler", "keys", "drivers", "listen"}
_WEIGHT_MAX = 1000
_EXAMPLE = "alpha = 1, below [drivers]"


@dataclass(frozen=True)
class HostsFile:
    """A hosts file that was read."""

    path: Path
    scheduler: HostAddress
    identity: Identity
    """With which this process shows who it is."""
    drivers: dict[str, int]
    """Name of a worker -> its weight in the load."""
    listen: str | None = None
    """Address of this machine at which they reach a PostgreSQL that pgdyno starts."""


def read(path: Path) -> HostsFile:
    """Read a hosts file. :class:`InputError` names the key that is wrong. The folder of the keys is relative to the file."""
    document = read_toml(path, "a hosts file", _KEYS)
    scheduler = of_scheduler(_text(path, document, "scheduler", "tls://10.0.0.5:8786"), f"{path}: scheduler")
    keys = path.parent / _text(path, document, "keys", "keys")
    listen = (
        to_listen(_text(path, document, "listen", "10.0.0.1"), 0, f"{path}: listen").host
        if "listen" in document
        else None
    )
    return HostsFile(path, scheduler, Identity(keys, COORDINATOR), _drivers(path, document.get("drivers")), listen)


def _text(path: Path, document: dict[str, Any], key: str, example: str) -> str:
    value = document.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{path}: {key} is missing", remedy=f'write {key} = "{example}"')
    return value


def _drivers(path: Path, table: Any) -> dict[str, int]:
    if not isinstance(table, dict) or not table:
        raise InputError(f"{path}: no host drives", remedy=f"write the name of each worker with its weight: {_EXAMPLE}")
    for name, weight in table.items():
        if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= _WEIGHT_MAX:
            raise InputError(
                f"{path}: drivers.{name}: a weight is a whole number from 1 to {_WEIGHT_MAX}",
                remedy=f"write it as {_EXAMPLE}",
            )
    return dict(table)

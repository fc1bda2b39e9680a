"""Base of the kinds of workload: what experiments, worlds and drivers ask of every kind, so that none of them asks for its name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping
from contextlib import ExitStack
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr

from pgdyno.workload.database import DatabaseTable
from pgdyno.workload.keys import KeyTable, Refusal, at_key
from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server
from pgdyno.workload.tables import Tables

from ..results.record import Check
from .database import DataSet
from .outcome import Progress

__all__ = ["SESSIONS_DEFAULT", "KeyTable", "LoadManner", "LoadTable", "Refusal", "Workload", "at_key"]

LoadManner = Literal["copy", "hammerdb"]
SESSIONS_DEFAULT = 8
"""Sessions that PostgreSQL is set for where a kind does not say how many it opens."""


class LoadTable(KeyTable):
    """How the workload's tables are made, once for all arms that can share them. Each load is a measured phase of its own."""

    connections: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Sessions that fill at the same time, with pgdyno's own program. Default: the number of this host's cores; `pgbench -i` has one."""
    split: bool = False
    """Several sessions write parts of one large table, with pgdyno's own program; a vacuum then freezes its rows."""
    foreign_keys: bool = False
    """Add foreign keys to pgbench's tables."""
    manner: LoadManner = "copy"
    """`copy`: whole tables by COPY with frozen rows, keys afterwards; `hammerdb`, for the kinds `tpcc` and `tpch`: small batches with a commit each, as HammerDB builds its schemas: into tables with keys, 762 for each warehouse; by INSERT of 1,000 rows, about 3,560 for each unit of scale factor."""
    limited: bool = False
    """Fill on the arm's own volumes with their limits, in its instance and with its settings. Default: on volumes without limits."""
    times: Annotated[int, Field(ge=1, le=20)] = 1
    """How often, each time on new volumes, so that the figures of a load have an interval. Runs use the last. More than 1 needs `limited`."""


class Workload(KeyTable, ABC):
    """Work for PostgreSQL, and its duration.

    `kind` is `pgbench` by default. The other keys depend on it.
    """

    headline: ClassVar[str]
    """Name of the metric that arms are compared by."""
    blamed: ClassVar[str] = "kind"
    """The key that a refusal of its driver is about."""
    without: ClassVar[str] = ""
    """Reason why it lacks keys that most kinds have."""
    forks: ClassVar[bool] = False
    """True if the driver starts processes of its own, whose CPU is counted with it."""
    asks_server: ClassVar[bool] = True
    """True if it sends statements to a server."""
    uses_up: ClassVar[bool] = False
    """True if a run leaves tables with which another run would not do the same work."""

    kind: str
    """Kind of work."""
    driver_cpus: str | None = None
    """CPUs of this host for the driver. Default: all."""
    full_check: bool = False
    """Count every row that the workload may have changed after each run: a scan of all data through the volume."""
    _seed: int = PrivateAttr(0)

    @property
    def seed(self) -> int:
        """Decides every random draw: two runs with it ask for the same."""
        return self._seed

    def seeded(self, seed: int) -> Self:
        """The same with another seed."""
        made = self.model_copy()
        made._seed = seed  # noqa: SLF001 - a copy of itself
        return made

    # Refusals

    @abstractmethod
    def refusals(self) -> Iterator[Refusal]:
        """Keys that do not go with the others.

        A table of an experiment file may lack what its factors give, so this is asked of each arm.
        """

    def warnings(self, parameters: Mapping[str, str] | None = None) -> Iterator[str]:
        """Warnings before the first run about a workload that can run but is rarely intended. ``parameters`` are those that the server is to have beside
        its defaults; None of a server that is there already.
        """
        return iter(())

    def refusals_in_time(self, dilation: int) -> Iterator[Refusal]:
        """Refusals that depend on duration or dilation."""
        return iter(())

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """Refusals on an existing server."""
        return iter(())

    def refusals_on_own(self) -> Iterator[Refusal]:
        """Refusals on a server that pgdyno starts."""
        return iter(())

    @abstractmethod
    def require(self) -> None:
        """Refuse, before anything is changed, what its driver could not do on this machine. :class:`InputError`."""

    def require_descriptors(self, *, distant: bool = False) -> None:
        """Refuse more clients than may have open files; at a distance each has two in the relay."""

    def connecting(self, server: Server, environment: Mapping[str, str]) -> Self:
        """The same with a driver that can connect to an existing server. :class:`InputError` about the engine if there is none."""
        return self

    # Tables

    @abstractmethod
    def data_set(self) -> DataSet:
        """The tables that it begins with."""

    def needed_tables(self) -> Tables | None:
        """Tables that an existing server must have; None if that is unknown or only the run finds out."""
        return None

    @property
    def own_database(self) -> DatabaseTable | None:
        """The user's database that it begins with; None of generated tables."""
        return None

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the instance where the workload chooses it, because its data cannot be scaled."""
        return None

    def versions(self) -> dict[str, str]:
        """Inputs that must be unchanged when an experiment is resumed, besides the programs: name -> version."""
        return {}

    def left_by_runs(self, server: Server) -> str:
        """Sentence about rows that earlier runs left in existing tables; empty if they make no difference."""
        return ""

    def roles(self, own: str) -> tuple[str, ...]:
        """The server's roles that its sessions log in as; ``own`` is that of the connection string."""
        return (own,)

    @property
    def server_settings(self) -> dict[str, str]:
        """Settings of a server that is started for it; those of the file go first."""
        return {}

    @property
    def clock_unix_us(self) -> int | None:
        """Clock of a server started for it, at the start, microseconds since 1970; None: the host's time."""
        return None

    def rehearse(self, server: Server) -> None:
        """Refuse, before the first run, what this server would refuse. :class:`InputError`."""

    def disarm(self, server: Server) -> None:
        """Switch off what statements could reach outside a database that was restored for them. ``server`` is reached as its superuser."""

    @property
    def size_key(self) -> str:
        """The key that says how much data there is."""
        return "kind"

    def sized(self, memory_bytes: int) -> Self:
        """The same with as much data as is asked for on an instance with this memory."""
        return self

    @property
    def making(self) -> LoadTable:
        """Options of making its tables."""
        return LoadTable()

    @property
    def made_by_engine(self) -> bool:
        """True if pgdyno's own loader makes its tables, and not ``pgbench -i``."""
        return True

    @property
    def tablespaces(self) -> dict[str, str]:
        """Key -> tablespace that the tables or their keys are to be in."""
        return {}

    def shared(self, seed: int, progress: Progress, made: dict[Hashable, Any], ending: ExitStack) -> Any:
        """Inputs that all its runs share besides their tables, such as files. ``made`` is shared by all arms; ``ending`` removes it."""

    # Runs

    @property
    @abstractmethod
    def driver(self) -> str:
        """Driver: ``native``, ``pgbench``, ``loader``."""

    @property
    def by_engine(self) -> bool:
        """True if pgdyno's engine connects to the server: to drive, or to make the tables."""
        return True

    @property
    def sessions(self) -> int | None:
        """Sessions that it opens at a time; None where it decides that itself."""
        return None

    @property
    def prepares(self) -> bool:
        """True if it needs prepared statements that outlive a transaction."""
        return False

    @property
    @abstractmethod
    def writes(self) -> bool:
        """True if it may change rows; of a user's script that is not known."""

    @property
    def consent(self) -> str:
        """Work that an existing server gets only with the user's consent; empty if naming the server is enough."""
        return ""

    @abstractmethod
    def runner(self, shared: Any = None) -> Runner:
        """Runner of it, with the inputs of :meth:`shared`."""

    @property
    def phases_s(self) -> tuple[float, float]:
        """Warm-up and measure phase in seconds; zeros where the work decides when it ends."""
        return 0.0, 0.0

    @property
    @abstractmethod
    def estimate_s(self) -> float:
        """Estimate: how long a run takes at most, in the subject's seconds."""

    @property
    def counted(self) -> bool:
        """True if it may end before its time, because its transactions are counted."""
        return False

    @property
    def due_s(self) -> float | None:
        """Seconds of a run if nothing is late, in the subject's time; None if that is not decided before the run."""
        return None

    def work_s(self, iops: float, dilation: int = 1, mib_per_s: float = math.inf) -> float:
        """Estimate: when counted transactions are done, in seconds of a world that is ``dilation`` times slower, on a volume of ``iops`` and ``mib_per_s``."""
        return self.phases_s[1]

    def adds_bytes(self, dilation: int = 1) -> int:
        """Estimate: how much larger a run makes its tables at most, in a world that is ``dilation`` times slower."""
        return 0

    # What came of it

    def with_server_stats(self, server: Server, outcome: Outcome) -> Outcome:
        """The outcome with the server's own statistics, once the driver has ended. The role of ``server`` is a superuser if pgdyno started it."""
        return outcome

    def baseline(self, server: Server, *, full: bool = False) -> Any:
        """State of tables that were used before, for :meth:`proofs`."""

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Compare the tables to what the driver counted, once it has ended and no other client writes.

        Without ``baseline`` the tables were just made. ``full`` counts all rows, by a scan through the volume.
        """
        return ()

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``: what of it was in use."""


class WithTables(Workload):
    """Keys of the kinds whose tables are filled before the first run."""

    manners: ClassVar[tuple[LoadManner, ...]] = ("copy",)
    """Ways in which its tables can be filled."""

    data_to_memory: Annotated[float, Field(gt=0)] | None = None
    """Size of the data with their indexes as a multiple of the instance's memory, instead of `scale`, `rows`, `warehouses` or `scale_factor`, so that the same share is cached as on a larger machine."""
    load: LoadTable = Field(default_factory=LoadTable)
    """Options of filling the data set."""

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
        """Refusals of how its tables are filled."""
        if self.load.manner not in self.manners:
            yield Refusal("load.manner", f'"{self.load.manner}" is for the kinds tpcc and tpch', "omit the key")
        elif self.load.manner == "hammerdb" and self.load.split:
            yield Refusal("load.split", "its sessions share the rows anyway", "omit the key")
        if self.load.times > 1 and not self.load.limited:
            yield Refusal("load.times", "a load without limits shows nothing about a volume", "set load.limited = true")

    def _of_size(self, key: str) -> Iterator[Refusal]:
        """The size is said once: by ``key``, or by the memory."""
        if self.data_to_memory is not None and key in self.model_fields_set:
            text = f"it sets the amount of data, and so does {key}; omit one of them"
            yield Refusal("data_to_memory", text)


class OnOwnDatabase(WithTables):
    """Kinds that begin with a database of the user's where they have an :attr:`own_database`: it has its size, and the memory follows from that."""

    @property
    def size_key(self) -> str:
        """``database.from`` if the user's own database is used."""
        return super().size_key if self.own_database is None else "database.from"

    def sized(self, memory_bytes: int) -> Self:
        """The size of the user's own database is fixed."""
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
        """Refusals of keys of filled tables, if the user's own database is used."""
        for key in ("connections", "split", "foreign_keys"):
            if key in self.load.model_fields_set:
                yield Refusal(
                    f"load.{key}", "it is for generated tables; a database is restored by database.jobs sessions"
                )
        yield from database.refusals()
        if self.load.limited and database.is_kept:
            why = "a kept database is restored already, and not on this volume"
            yield Refusal("load.limited", why, "omit the key, or name the dump that it was kept from")

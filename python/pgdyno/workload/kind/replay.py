"""Kind `replay`: what an application asked its server, sent again from a capture to a copy of the database as it was.

A run ends with the capture. Nothing of it waits for completions but the sessions themselves, as the application's did.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from pgdyno.catalog import resolve
from pgdyno.errors import InputError
from pgdyno.quantity import duration_words
from pgdyno.workload.database import DIGEST_SHOWN, DatabaseTable
from pgdyno.workload.kind.base import Refusal, Workload
from pgdyno.workload.kind.filled import WithTables
from pgdyno.workload.quantity import Seconds
from pgdyno.workload.replay.asked import Asked, Keys, Pace, names_of
from pgdyno.workload.replay.likeness import Compared, compared, of_server
from pgdyno.workload.replay.production import digest, production

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.workload.data_set import DataSet
    from pgdyno.workload.outcome import Outcome, Runner
    from pgdyno.workload.server import Server

Name = Annotated[str, Field(min_length=1)]


@functools.cache
def canonical(spec: str) -> str:
    """A specification of a volume as records have it. :class:`InputError` when there is no such volume."""
    return resolve(spec).spec


class Replay(WithTables, Workload):
    """`replay`: a capture."""

    headline: ClassVar[str] = "response_ms"
    blamed: ClassVar[str] = "capture"
    without: ClassVar[str] = "a replay has the sessions, statements and times of its capture, and ends with it"

    kind: Literal["replay"] = "replay"
    """A capture of an application, sent again."""
    capture: str = ""
    """The capture, a file of `pgdyno capture read`, beside the experiment file."""
    database: DatabaseTable | None = Field(None)
    """Your own database, as it was when the capture began."""
    stats: tuple[Name, Name] | None = None
    """Two files of `pgdyno capture stats`, from before the capture and after it: each statement's calls, rows, WAL and blocks are compared with production's. Default: they are not compared."""
    speed: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    """How many captured seconds are sent in one."""
    pace: Pace = "due"
    """`due`: a statement is sent at its time, or when the one before it in its session is answered if that is later; `gaps`: as long after that answer as the application waited, so that a slow volume stretches the time."""
    recorded_on: Name | None = None
    """The volume that production had when it was captured, for example `gp3:iops=3000`: the arm with this volume is the measure of how far to trust the others, and is reported first."""
    databases: tuple[Name, ...] = ()
    """Databases of the capture whose sessions are sent; `NAME=HERE` sends them to another one. Default: all; those of a single one go to the restored database."""
    users: tuple[Name, ...] = ()
    """Roles of the capture whose sessions are sent; `NAME=HERE` sends them as another one. Default: all, as themselves."""
    from_s: Annotated[Seconds, Field(ge=0)] | None = Field(None, alias="from")
    """Send transactions that began so long after the first statement, for example `10min`. The database must be as it was then."""
    until_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, alias="until")
    """Send transactions that began before this time after the first statement."""

    keys: Keys = "learned"
    """`learned`: keys that the server gave in production (sequences, uuids) are found in the capture, and this run's are sent in their places; `captured`: they are sent as they were."""
    wait_max_s: Annotated[Seconds, Field(ge=0)] = Field("10s", alias="wait_max", validate_default=True)
    """How long a statement waits for the transaction of another session that makes its key; `0s`: not at all."""
    limit_s: Annotated[Seconds, Field(ge=1)] = Field("1h", alias="duration", validate_default=True)
    """The longest time that a run may take. What is not sent then is counted, and the run is invalid."""

    @property
    def asked(self) -> Asked:
        """What of the capture is sent, and how."""
        return Asked(
            capture=self.capture,
            speed=self.speed,
            pace=self.pace,
            users=self.users,
            databases=self.databases,
            from_s=self.from_s,
            until_s=self.until_s,
            keys=self.keys,
            wait_max_s=self.wait_max_s,
        )

    @property
    def own_database(self) -> DatabaseTable | None:
        """See :meth:`Workload.own_database`."""
        return self.database

    def data_set(self) -> DataSet:
        """The user's database."""
        assert self.database is not None
        return self.database.data_set()

    @property
    def size_key(self) -> str:
        """See :meth:`Workload.size_key`."""
        return "database.from"

    def sized(self, memory_bytes: int) -> Self:
        """A database of the user's has its size."""
        del memory_bytes
        return self

    @property
    def memory_bytes(self) -> int | None:
        """So much that the database is the multiple of it that ``data_to_memory`` asks for."""
        if self.database is None or self.data_to_memory is None:
            return None
        return self.database.memory_bytes_for(self.data_to_memory)

    def versions(self) -> dict[str, str]:
        """The contents of the capture and of the database's source."""
        found = {} if self.database is None else self.database.versions()
        if self.stats is not None:
            found |= {f"counters {', '.join(self.stats)}": digest(self.stats)[:DIGEST_SHOWN]}
        return found | {f"capture {self.capture}": self.asked.digest()}

    def compared(self, user: str, database: str) -> Compared | None:
        """What its statements are compared with, on a server with this role and database; None where nothing is."""
        if self.stats is None:
            return None
        whole = self.from_s is None and self.until_s is None
        return compared(self.stats, self.asked.destinations(user, database), whole=whole)

    def told(self, server: Server, outcome: Outcome) -> Outcome:
        """With what its statements did beside production's."""
        from psycopg.conninfo import conninfo_to_dict

        own = conninfo_to_dict(server.dsn)
        assert self.database is not None and outcome.replay is not None
        asked = self.compared(self.database.user, str(own["dbname"]))
        if asked is None:
            return outcome
        found = of_server(asked, server, outcome.replay.left_out_statements)
        return replace(outcome, replay=outcome.replay.model_copy(update={"likeness": found}))

    def rehearse(self, server: Server) -> None:
        """Connect as every role to its database. :class:`InputError` names those that cannot."""
        from pgdyno.workload.replay.rehearsal import rehearse

        rehearse(self.asked, server)

    @property
    def driver(self) -> str:
        """The engine, with a thread for each session."""
        return "replay"

    @property
    def sessions(self) -> int:
        """The most that are open at a time."""
        return self.asked.planned().lanes

    @property
    def prepares(self) -> bool:
        """As the application did."""
        return True

    @property
    def writes(self) -> bool:
        """That is the application's."""
        return True

    def roles(self, own: str) -> tuple[str, ...]:
        """Those of the capture, as they are named here."""
        return tuple(dict.fromkeys(user for _, user, _ in self.asked.destinations(own, "")))

    @property
    def server_settings(self) -> dict[str, str]:
        """The server's log is kept with the results: errors and statements, which have values in them, are not written into it.

        Where its statements are compared with production's, it counts them as production did.
        """
        counting = {} if self.stats is None else production(self.stats).server_settings()
        return {"log_min_messages": "log", "log_min_error_statement": "panic"} | counting

    def require(self) -> None:
        """That there is such a capture, with sessions that are asked for, and that its time is not longer than a run may take.

        Production's counters are of its database, and its volume is one.
        """
        self.compared("", "")
        if self.recorded_on is not None:
            canonical(self.recorded_on)
        if (due_s := self.asked.due_s) > self.limit_s:
            raise InputError(
                f"the capture takes {duration_words(due_s)} at speed {self.speed:g}, and a run may take"
                f" {duration_words(self.limit_s)}",
                remedy="raise workload.duration, or send a part (workload.until)",
            )

    def runner(self, shared: Any = None) -> Runner:
        """The engine's replay."""
        from pgdyno.workload.replay.running import Replaying

        del shared
        return Replaying(self.asked)

    @property
    def phases_s(self) -> tuple[float, float]:
        """There is no warm-up: the first statement is part of it."""
        return 0.0, self.limit_s

    @property
    def estimate_s(self) -> float:
        """The longest that it may take."""
        return self.limit_s

    @property
    def counted(self) -> bool:
        """It ends with its statements."""
        return True

    def work_s(self, iops: float, dilation: int = 1, mib_per_s: float = math.inf) -> float:
        """As long as in production, if nothing is late."""
        del iops, dilation, mib_per_s
        return self.asked.due_s

    def refusals(self) -> Iterator[Refusal]:
        """See :meth:`Workload.refusals`."""
        yield from self._of_manner()
        if not self.capture:
            yield Refusal("capture", 'kind = "replay" needs capture = "FILE"', "make one: `pgdyno capture read`")
        if self.database is None:
            why = 'kind = "replay" needs [workload.database]: the database as it was when the capture began'
            yield Refusal("database", why, 'name its dump: database.from = "FILE"')
        else:
            yield from self._of_restored(self.database)
        if self.until_s is not None and self.until_s <= (self.from_s or 0.0):
            yield Refusal("until", "it is not after from", "use a later time")
        for key, names in (("users", self.users), ("databases", self.databases)):
            if len(names_of(names)) < len(names) or any(not name for name in names_of(names)):
                yield Refusal(key, "each name stands once, as NAME or NAME=HERE")

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """See :meth:`Workload.refusals_on_existing`."""
        yield Refusal(
            "kind",
            "each run of a replay begins with the database as it was, which an existing server cannot provide",
            "use `pgdyno capture replay`: it sends a capture to an existing server, once",
        )

    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``: no value of the capture."""
        keys = ("speed", "pace", "databases", "users", "from_s", "until_s", "keys", "wait_max_s")
        asked = {key: value for key in keys if (value := getattr(self, key)) not in (None, ())}
        database = {} if self.database is None else {"database": self.database.record()}
        first = {"kind": self.kind, "capture": self.capture.rpartition("/")[2], "digest": self.asked.digest()}
        if self.recorded_on is not None:
            first |= {"recorded_on": canonical(self.recorded_on)}
        if self.stats is not None:
            first |= {"stats": [one.rpartition("/")[2] for one in self.stats]}
        return first | asked | database | {"seed": self.seed, "driver_cpus": self.driver_cpus}

"""Kind `replay`, and the base of kinds that send statements of a capture to a copy of its database."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pgdyno.workload.database import DIGEST_SHOWN, DatabaseTable
from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server

from ...base.catalog import resolve
from ...base.errors import InputError
from ...base.quantity import duration_words
from ...workload.database import DataSet
from ...workload.keys import Seconds
from ...workload.kind import OnOwnDatabase, Refusal
from .capture import Copied
from .outside import NAMES, wrong_name
from .production import ProductionWork, compared, digest, of_server, production
from .selection import NEWER, Clock, Keys, Pace, ReplaySelection, names_of

Name = Annotated[str, Field(min_length=1)]
_PART = ("databases", "users", "from_s", "until_s", "keys", "clock", "allow_outside", "accept_losses")


class OfCapture(OnOwnDatabase):
    """Keys of the kinds `replay` and `sample`, which send the statements of a capture to your own database."""

    blamed: ClassVar[str] = "capture"

    capture: str = ""
    """The capture, a file of `pgdyno capture read`, beside the experiment file."""
    database: DatabaseTable | None = Field(None)
    """Your own database, as it was when the capture began."""
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
    clock: Clock = "capture"
    """`capture`: the server's clock is set to the time at which the captured part began, so that `now()` finds what it found in production; `now`: it has the host's time."""
    allow_outside: tuple[Name, ...] = ()
    """Ways out of their databases that statements may use, named as in the refusal, for example `extension:dblink`. Default: nothing, and a database with a way out is refused; a restored one loses its foreign servers first."""

    accept_losses: bool = False
    """Accept runs although the capture lacks more than 1 % of the statements that its log had: passwords, entries that are cut, lines that are missing. They are in the account all the same."""

    @property
    def selection(self) -> ReplaySelection:
        """Selection of the capture to send."""
        return ReplaySelection(
            capture=self.capture,
            users=self.users,
            databases=self.databases,
            from_s=self.from_s,
            until_s=self.until_s,
            keys=self.keys,
            accept_losses=self.accept_losses,
        )

    @property
    def own_database(self) -> DatabaseTable | None:
        return self.database

    def data_set(self) -> DataSet:
        """The user's database."""
        assert self.database is not None
        return self.database.data_set()

    def versions(self) -> dict[str, str]:
        """The contents of the capture and of the database's source."""
        return super().versions() | {f"capture {self.capture}": self.selection.digest()}

    def rehearse(self, server: Server) -> None:
        """Connect as every role to its database. :class:`InputError` names those that cannot, and what their statements could reach."""
        from .outside import rehearse

        rehearse(self.selection, server, self.allow_outside)

    def disarm(self, server: Server) -> None:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        from .outside import disarm

        own = conninfo_to_dict(server.dsn)
        places = self.selection.destinations(str(own["user"]), str(own["dbname"]))
        for name in sorted({database for _, _, database in places}):
            with psycopg.connect(make_conninfo(server.dsn, dbname=name), autocommit=True) as connection:
                disarm(connection, self.allow_outside)

    @property
    def prepares(self) -> bool:
        """As the application did."""
        return True

    @property
    def writes(self) -> bool:
        """Unknown, so assume that the application writes."""
        return True

    def roles(self, own: str) -> tuple[str, ...]:
        """Those of the capture, as they are named here."""
        return tuple(dict.fromkeys(user for _, user, _ in self.selection.destinations(own, "")))

    @property
    def clock_unix_us(self) -> int | None:
        return self.selection.planned().begin_unix_us if self.clock == "capture" else None

    @property
    def server_settings(self) -> dict[str, str]:
        """The server's log is kept with the results: errors and statements, which have values in them, are not written into it."""
        return {
            "log_min_messages": "log",
            "log_min_error_statement": "panic",
            # A subscription of the restored database would take changes from production's publisher.
            "max_logical_replication_workers": "0",
        }

    @property
    def consent(self) -> str:
        return f"the statements of {self.capture}, those that write too,"

    def warnings(self, parameters: Mapping[str, str] | None = None) -> Iterator[str]:
        """An existing server has its own time."""
        if parameters is None and (unix_us := self.clock_unix_us) is not None:
            days = (time.time() - unix_us / 1e6) / 86_400
            if abs(days) >= 1:
                where = "after" if days > 0 else "before"
                yield f"the host's clock is {abs(days):,.0f} days {where} the capture's: statements with now() may find other rows"

    def refusals_on_own(self) -> Iterator[Refusal]:
        if self.database is None:
            why = f'kind = "{self.kind}" needs [workload.database]: the database as it was when the capture began'
            yield Refusal("database", why, 'name its dump: database.from = "FILE"')

    def refusals_on_existing(self) -> Iterator[Refusal]:
        yield from super().refusals_on_existing()
        if self.database is not None:
            yield self.database.refusal_on_existing()
        if "clock" in self.model_fields_set and self.clock == "capture":
            yield Refusal("clock", "only a server that pgdyno starts can have another time", "remove the key")

    def _of_capture(self) -> Iterator[Refusal]:
        """Refusals of keys that are missing or cannot be combined."""
        if (wrong := wrong_name(self.allow_outside)) is not None:
            yield Refusal("allow_outside", f"{wrong} names nothing that a replay could reach", NAMES)
        yield from self._of_manner()
        if not self.capture:
            yield Refusal("capture", f'kind = "{self.kind}" needs capture = "FILE"', "make one: `pgdyno capture read`")
        if self.database is not None:
            yield from self._of_restored(self.database)
        if self.until_s is not None and self.until_s <= (self.from_s or 0.0):
            yield Refusal("until", "it is not after from", "use a later time")
        for key, names in (("users", self.users), ("databases", self.databases)):
            if len(names_of(names)) < len(names) or any(not name for name in names_of(names)):
                yield Refusal(key, "each name stands once, as NAME or NAME=HERE")

    def _record_of_capture(self) -> dict[str, Any]:
        """As it stands in ``run.json``: no value of the capture."""
        document = {
            key: value for key in _PART if (value := getattr(self, key)) not in (None, ()) and value is not False
        }
        database = {} if self.database is None else {"database": self.database.record()}
        return {"capture": self.capture.rpartition("/")[2], "digest": self.selection.digest()} | document | database


@functools.cache
def canonical(spec: str) -> str:
    """A specification of a volume as records have it. :class:`InputError` when there is no such volume."""
    return resolve(spec).spec


class ReplayKind(OfCapture):
    """`replay`: a capture."""

    headline: ClassVar[str] = "response_ms"
    uses_up: ClassVar[bool] = True
    without: ClassVar[str] = "a replay has the sessions, statements and times of its capture, and ends with it"

    kind: Literal["replay"] = "replay"
    """A capture of an application, sent again."""
    stats: tuple[Name, Name] | None = None
    """Two files of `pgdyno capture stats`, from before the capture and after it: each statement's calls, rows, WAL and blocks are compared with production's. Default: they are not compared."""
    copied: Copied = Field("left_out", alias="copy")
    """COPY FROM STDIN from a log, which has no rows: `left_out`, or `made`: as many rows as production counted, with values from the statistics of the table's columns (needs stats). Rows of a recording are sent as they were."""
    speed: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    """Playback speed: 2 replays twice as fast."""
    pace: Pace = "due"
    """`due`: a statement is sent at its time, or when the one before it in its session is answered if that is later; `gaps`: as long after that answer as the application waited, so that a slow volume stretches the time."""
    recorded_on: Name | None = None
    """The volume that production had when it was captured, for example `gp3:iops=3000`: the arm with this volume is the measure of how far to trust the others, and is reported first."""
    wait_max_s: Annotated[Seconds, Field(ge=0)] = Field("10s", alias="wait_max", validate_default=True)
    """Longest time that a statement waits for the transaction of another session that makes its key; `0s`: not at all."""
    limit_s: Annotated[Seconds, Field(ge=1)] = Field("1h", alias="duration", validate_default=True)
    """The longest time that a run may take. What is not sent then is counted, and the run is invalid."""

    @property
    def selection(self) -> ReplaySelection:
        """Selection of the capture, with pace and keys."""
        made = None
        if self.copied == "made" and self.stats is not None:
            made = production(self.stats).work(set())
        return replace(super().selection, speed=self.speed, pace=self.pace, wait_max_s=self.wait_max_s, made=made)

    def versions(self) -> dict[str, str]:
        """The contents of the capture and of the database's source."""
        result = super().versions()
        if self.stats is not None:
            result |= {f"counters {', '.join(self.stats)}": digest(self.stats)[:DIGEST_SHOWN]}
        return result

    def compared(self, user: str, database: str) -> ProductionWork | None:
        """Production's statements to compare with, on a server with this role and database; None without stats."""
        if self.stats is None:
            return None
        whole = self.from_s is None and self.until_s is None
        return compared(self.stats, self.selection.destinations(user, database), whole=whole)

    def with_server_stats(self, server: Server, outcome: Outcome) -> Outcome:
        """With what its statements did beside production's."""
        from psycopg.conninfo import conninfo_to_dict

        if self.stats is None:
            return outcome
        own = conninfo_to_dict(server.dsn)
        assert self.database is not None and outcome.replay is not None
        work = self.compared(self.database.user, str(own["dbname"]))
        assert work is not None
        result = of_server(work, server, outcome.replay.left_out_statements)
        return replace(outcome, replay=outcome.replay.model_copy(update={"likeness": result}))

    @property
    def driver(self) -> str:
        """The engine, with a thread for each session."""
        return "replay"

    @property
    def sessions(self) -> int:
        """The most that are open at a time."""
        return self.selection.planned().lanes

    @property
    def server_settings(self) -> dict[str, str]:
        """The server's log is kept with the results: errors and statements, which have values in them, are not written into it.

        Where its statements are compared with production's, it counts them as production did.
        """
        counting = {} if self.stats is None else production(self.stats).server_settings()
        return super().server_settings | counting

    def require(self) -> None:
        """Check that the capture exists, has sessions of the selection, and is not longer than a run may take.

        Production's counters are of its database, and its volume is one.
        """
        self.compared("", "")
        if self.recorded_on is not None:
            canonical(self.recorded_on)
        if (due_s := self.selection.due_s) > self.limit_s:
            raise InputError(
                f"the capture takes {duration_words(due_s)} at speed {self.speed:g}, and a run may take"
                f" {duration_words(self.limit_s)}",
                remedy="raise workload.duration, or send a part (workload.until)",
            )

    def runner(self, shared: Any = None) -> Runner:
        """The engine's replay."""
        from .run import ReplayRunner

        # A server of one's own may be the captured one; a restored clone is judged with the run.
        return ReplayRunner(self.selection, self.seed, NEWER if self.database is None else None)

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

    @property
    def due_s(self) -> float:
        """As long as in production, if nothing is late."""
        return self.selection.due_s

    def refusals(self) -> Iterator[Refusal]:
        yield from self._of_capture()
        if self.copied == "made" and self.stats is None:
            why = 'copy = "made" needs stats: only production\'s counters tell how many rows a COPY has'
            yield Refusal("copy", why, "name two files of `pgdyno capture stats`, or omit copy")

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """Counters of the server before the run."""
        yield from super().refusals_on_existing()
        if self.stats is not None:
            why = "what an existing server has counted is not of this run alone"
            yield Refusal("stats", why, "use `pgdyno capture replay --stats`, which reads it before and after")

    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``: no value of the capture."""
        own: dict[str, Any] = {key: getattr(self, key) for key in ("speed", "pace", "wait_max_s")}
        if self.recorded_on is not None:
            own |= {"recorded_on": canonical(self.recorded_on)}
        if self.copied != "left_out":
            own |= {"copy": self.copied}
        if self.stats is not None:
            own |= {"stats": [name.rpartition("/")[2] for name in self.stats]}
        last = {"seed": self.seed, "driver_cpus": self.driver_cpus}
        return {"kind": self.kind} | self._record_of_capture() | own | last

"""Kind `replay`: what an application asked its server, sent again from a capture to a copy of the database as it was.

A run ends with the capture. Nothing of it waits for completions but the sessions themselves, as the application's did.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pgdyno.workload.database import DIGEST_SHOWN
from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.captured import Name, OfCapture
from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.quantity import Seconds
from pgdyno.workload.replay.asked import NEWER, Pace, ReplaySelection
from pgdyno.workload.replay.copied import Copied
from pgdyno.workload.replay.likeness import ProductionWork, compared, of_server
from pgdyno.workload.replay.production import digest, production
from pgdyno.workload.server import Server

from ...base.catalog import resolve
from ...base.errors import InputError
from ...base.quantity import duration_words


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
    """What becomes of COPY FROM STDIN from a log, which has no rows: `left_out`; or `made`: by the statistics of the table's columns, as many rows as production counted (needs stats). Rows of a recording are sent as they were."""
    speed: Annotated[float, Field(ge=0.01, le=1000)] = 1.0
    """How many captured seconds are sent in one."""
    pace: Pace = "due"
    """`due`: a statement is sent at its time, or when the one before it in its session is answered if that is later; `gaps`: as long after that answer as the application waited, so that a slow volume stretches the time."""
    recorded_on: Name | None = None
    """The volume that production had when it was captured, for example `gp3:iops=3000`: the arm with this volume is the measure of how far to trust the others, and is reported first."""
    wait_max_s: Annotated[Seconds, Field(ge=0)] = Field("10s", alias="wait_max", validate_default=True)
    """How long a statement waits for the transaction of another session that makes its key; `0s`: not at all."""
    limit_s: Annotated[Seconds, Field(ge=1)] = Field("1h", alias="duration", validate_default=True)
    """The longest time that a run may take. What is not sent then is counted, and the run is invalid."""

    @property
    def asked(self) -> ReplaySelection:
        """What of the capture is sent, and how."""
        made = None
        if self.copied == "made" and self.stats is not None:
            made = production(self.stats).work(set())
        return replace(super().asked, speed=self.speed, pace=self.pace, wait_max_s=self.wait_max_s, made=made)

    def versions(self) -> dict[str, str]:
        """The contents of the capture and of the database's source."""
        result = super().versions()
        if self.stats is not None:
            result |= {f"counters {', '.join(self.stats)}": digest(self.stats)[:DIGEST_SHOWN]}
        return result

    def compared(self, user: str, database: str) -> ProductionWork | None:
        """What its statements are compared with, on a server with this role and database; None where nothing is."""
        if self.stats is None:
            return None
        whole = self.from_s is None and self.until_s is None
        return compared(self.stats, self.asked.destinations(user, database), whole=whole)

    def told(self, server: Server, outcome: Outcome) -> Outcome:
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
        return self.asked.planned().lanes

    @property
    def server_settings(self) -> dict[str, str]:
        """The server's log is kept with the results: errors and statements, which have values in them, are not written into it.

        Where its statements are compared with production's, it counts them as production did.
        """
        counting = {} if self.stats is None else production(self.stats).server_settings()
        return super().server_settings | counting

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
        from pgdyno.workload.replay.running import ReplayRunner

        del shared
        # A server of one's own may be the captured one; a restored clone is judged with the run.
        return ReplayRunner(self.asked, self.seed, NEWER if self.database is None else None)

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
        return self.asked.due_s

    def refusals(self) -> Iterator[Refusal]:
        """See :meth:`Workload.refusals`."""
        yield from self._of_capture()
        if self.copied == "made" and self.stats is None:
            why = 'copy = "made" needs stats: how many rows a COPY has is in production\'s counters alone'
            yield Refusal("copy", why, "name two files of `pgdyno capture stats`, or omit copy")

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """What a server has counted is its own before the run."""
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

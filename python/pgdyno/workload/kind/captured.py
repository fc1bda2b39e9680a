"""Kinds that send what an application asked its server, from a capture, to a copy of its database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pgdyno.workload.data_set import DataSet
from pgdyno.workload.database import DatabaseTable
from pgdyno.workload.kind.base import Refusal
from pgdyno.workload.kind.filled import OnOwnDatabase
from pgdyno.workload.quantity import Seconds
from pgdyno.workload.replay.asked import Clock, Keys, ReplaySelection, names_of
from pgdyno.workload.replay.outside import NAMES, wrong_name
from pgdyno.workload.server import Server

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
    """What the statements may reach outside their databases, by the names that the refusal prints, for example `extension:dblink`. Default: nothing, and a database with a way out is refused; a restored one loses its foreign servers first."""

    accept_losses: bool = False
    """Whether runs are valid although the capture lacks more than 1 % of the statements that its log had: passwords, entries that are cut, lines that are missing. They are in the account all the same."""

    @property
    def asked(self) -> ReplaySelection:
        """What of the capture is sent."""
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
        """See :meth:`Workload.own_database`."""
        return self.database

    def data_set(self) -> DataSet:
        """The user's database."""
        assert self.database is not None
        return self.database.data_set()

    def versions(self) -> dict[str, str]:
        """The contents of the capture and of the database's source."""
        return super().versions() | {f"capture {self.capture}": self.asked.digest()}

    def rehearse(self, server: Server) -> None:
        """Connect as every role to its database. :class:`InputError` names those that cannot, and what their statements could reach."""
        from pgdyno.workload.replay.rehearsal import rehearse

        rehearse(self.asked, server, self.allow_outside)

    def disarm(self, server: Server) -> None:
        """See :meth:`Workload.disarm`."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        from pgdyno.workload.replay.outside import disarm

        own = conninfo_to_dict(server.dsn)
        places = self.asked.destinations(str(own["user"]), str(own["dbname"]))
        for name in sorted({database for _, _, database in places}):
            with psycopg.connect(make_conninfo(server.dsn, dbname=name), autocommit=True) as connection:
                disarm(connection, self.allow_outside)

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
    def clock_unix_us(self) -> int | None:
        """See :meth:`Workload.clock_unix_us`."""
        return self.asked.planned().begin_unix_us if self.clock == "capture" else None

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
        """See :meth:`Workload.consent`."""
        return f"the statements of {self.capture}, those that write too,"

    def warnings(self, parameters: Mapping[str, str] | None = None) -> Iterator[str]:
        """An existing server has its own time."""
        if parameters is None and (unix_us := self.clock_unix_us) is not None:
            days = (time.time() - unix_us / 1e6) / 86_400
            if abs(days) >= 1:
                where = "after" if days > 0 else "before"
                yield f"the host's clock is {abs(days):,.0f} days {where} the capture's: statements with now() may find other rows"

    def refusals_on_own(self) -> Iterator[Refusal]:
        """See :meth:`Workload.refusals_on_own`."""
        if self.database is None:
            why = f'kind = "{self.kind}" needs [workload.database]: the database as it was when the capture began'
            yield Refusal("database", why, 'name its dump: database.from = "FILE"')

    def refusals_on_existing(self) -> Iterator[Refusal]:
        """See :meth:`Workload.refusals_on_existing`."""
        yield from super().refusals_on_existing()
        if self.database is not None:
            yield self.database.refusal_on_existing()
        if "clock" in self.model_fields_set and self.clock == "capture":
            yield Refusal("clock", "only a server that pgdyno starts can have another time", "remove the key")

    def _of_capture(self) -> Iterator[Refusal]:
        """What is missing, or does not go together."""
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
        return {"capture": self.capture.rpartition("/")[2], "digest": self.asked.digest()} | document | database

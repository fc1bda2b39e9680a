"""Watch a server for some time and write what was seen as the directory of a run, which is judged afterwards.

Nothing is written, created, reset or locked on the server; where a pooler is between, nothing is left in its sessions.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pgdyno
from pgdyno.probe.host import HostProbe, Role
from pgdyno.probe.sampler import is_full, no_session
from pgdyno.probe.samples import ProbeTables
from pgdyno.probe.sql import SqlProbe
from pgdyno.probe.visibility import View, look

from ...analysis.binding.evidence import OBSERVE
from ...base import session
from ...base.endpoint import public_dsn
from ...base.errors import HostError, InputError, RunInvalid
from ...machine.scratch import scratch_directory
from ...results import record
from ...results.names import experiment_id, identity_hash, run_name
from ...results.record import HostRecord
from ...results.tables import from_rows
from ...results.writer import RunWriter, write_experiment
from ...server.remote import RemoteServer, connect
from .activity import event_of, were_reset
from .remedies import Purchase, require_memory, require_roles

if TYPE_CHECKING:
    import pyarrow as pa


_CONSOLE = "pgbouncer"
"""The database of PgBouncer that is its own console."""
_IDENTITY = """
SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE'), current_user::pg_catalog.text
"""
_RTT = slice(68, 72)
"""Where the kernel's tcp_info has the smoothed round trip in microseconds (tcpi_rtt)."""


@dataclass(frozen=True)
class ServerTarget:
    """A server as one connection showed it."""

    server: RemoteServer
    standby: bool
    pooler: bool
    """Whether a connection pooler is between."""
    role: str
    sees_all: bool
    """Whether the role may see what other roles' sessions do."""
    rtt_ms: float | None = None
    """What a message takes to the server, or to the pooler, and back, by the kernel; None where it is on this host."""


def target_of(dsn: str) -> ServerTarget:
    """Connect and look. :class:`~pgdyno.base.errors.InputError` or :class:`~pgdyno.base.errors.HostError` where it cannot be watched."""
    import psycopg

    try:
        server = RemoteServer.open(dsn)
        with connect(dsn) as connection:
            row = connection.execute(_IDENTITY).fetchone()
            pooled = session.is_pooled(connection)
            rtt_ms = _rtt_ms(connection.pgconn.socket)
    except HostError as error:
        if is_full(error.message):
            raise no_session(error, "looked at") from error
        raise
    except psycopg.Error as error:
        if _is_console(dsn):
            raise InputError(
                "this is the console of PgBouncer, and no database", remedy="connect to a database through it"
            ) from error
        raise HostError(
            f"the server cannot be looked at: {str(error).strip().partition(chr(10))[0]}",
            remedy="check the connection string, and that it is PostgreSQL",
        ) from error
    assert row is not None
    return ServerTarget(server, standby=row[0], pooler=pooled, role=row[2], sees_all=row[1], rtt_ms=rtt_ms)


def require_one_piece(tables: Mapping[str, pa.Table]) -> None:
    """Refuse counters that were reset while the server was watched: :class:`~pgdyno.base.errors.RunInvalid`. A server that was
    restarted, or crashed, passes: that is what the watch then says.
    """
    if were_reset(tables) and event_of(tables) is None:
        raise RunInvalid(
            "the server's statistics were reset while it was watched",
            remedy="watch it again: counters that begin again at 0 cannot be judged",
            code="diagnose.statistics.reset",
        )


def _rtt_ms(descriptor: int) -> float | None:
    """The round trip of a connection; None where it is not a TCP connection."""
    with contextlib.suppress(OSError), socket.socket(fileno=socket.dup(descriptor)) as same:
        info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT.stop)
        return int.from_bytes(info[_RTT], sys.byteorder) / 1e3 if len(info) == _RTT.stop else None
    return None


def _is_console(dsn: str) -> bool:
    from ...base import endpoint

    return endpoint.effective(dsn).get("dbname") == _CONSOLE


COMMAND = "diagnose"
SECONDS_MIN = 5.0
"""Of fewer seconds nothing is said with confidence."""
SECONDS_MAX = 24 * 3600.0
"""A day: its samples fit into memory."""
STEP_S = 0.5
"""How often progress is shown."""


def check_seconds(seconds: float) -> float:
    """The length of a watch; :class:`InputError` outside of what can be judged."""
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise InputError(
            f"--for: {seconds:g} s cannot be judged",
            remedy=f"give a time from {SECONDS_MIN:g}s to 24h, for example 60s",
        )
    return seconds


def watch(
    target: ServerTarget,
    purchase: Purchase,
    seconds: float,
    root: Path,
    tell: Callable[[float], None] | None = None,
    *,
    texts: bool = False,
) -> Path:
    """Watch for ``seconds`` and return the directory of the run, below ``root``; ``tell`` gets the seconds that are left.
    ``texts``: keep the texts of statements too.

    :class:`~pgdyno.base.errors.HostError` when the server does not answer before, :class:`~pgdyno.base.errors.RunInvalid` when it never
    answered, or its counters were reset meanwhile.
    """
    server = target.server
    view = look(server.dsn)
    require_roles(purchase.volumes, view.devices)
    settings = server.settings()
    require_memory(purchase.instance, {str(row["name"]): row["setting"] for row in settings})
    anchor = record.Anchor.read()
    samples, begin_ns, end_ns = _sampled(target, view, seconds, root, tell, texts=texts)
    require_one_piece({**samples.tables, "probe/gap": samples.gap_table()})
    if not samples.tables.keys() & {"probe/database", "probe/wait_events"}:
        why = samples.gaps[0].why if samples.gaps else "it did not answer"
        raise RunInvalid(
            f"nothing was seen of the server: {why}", remedy="look at the server's log", code="diagnose.server.unseen"
        )
    made = _WatchMaker(target, view, purchase, anchor, begin_ns, end_ns, _account(samples, pooler=target.pooler))
    return _written(made, samples, settings, root)


def _sampled(
    target: ServerTarget, view: View, seconds: float, root: Path, tell: Callable[[float], None] | None, *, texts: bool
) -> tuple[ProbeTables, int, int]:
    """The samples with begin and end (CLOCK_MONOTONIC, ns). The host is sampled where the server is on it."""
    host: HostProbe | None = None
    with (
        scratch_directory(root) as scratch,
        SqlProbe(target.server.dsn, watched=True, texts=texts) as sql,
        ExitStack() as ending,
    ):
        if view.roles:
            roles = view.roles | {"probe": Role(pids=(os.getpid(),))}
            host = ending.enter_context(HostProbe(scratch, roles, devices=view.devices))
        begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        _wait(begin_ns, seconds, tell)
        end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        samples = sql.stop()
        return (samples if host is None else host.stop() | samples), begin_ns, end_ns


def _wait(begin_ns: int, seconds: float, tell: Callable[[float], None] | None) -> None:
    never = threading.Event()
    while (left_s := seconds - (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begin_ns) / 1e9) > 0:
        if tell is None:
            never.wait(left_s)
        else:
            tell(left_s)
            never.wait(min(STEP_S, left_s))


def _account(samples: ProbeTables, *, pooler: bool) -> record.Account:
    """Transactions as the server counts them in all databases, without those of the probes: a sample of the counters is one, but the
    first, and each through a pooler, is one for each table.
    """
    nothing = record.Account(scheduled=0, skipped=0, succeeded=0, failed=0)
    table = samples.tables.get("probe/database")
    if table is None or table.num_rows < 2:
        return nothing
    grown = {name: table[name][-1].as_py() - table[name][0].as_py() for name in ("xact_commit", "xact_rollback")}
    counted = sum(name in samples.tables for name in ("probe/database", "probe/io", "probe/wal", "probe/checkpointer"))
    taken = {row["probe"]: row["samples"] for row in samples.tables["probe/cost"].to_pylist()}
    own = taken["wait_events"] + (taken["sql"] * counted if pooler else taken["sql"] - 1 + counted)
    succeeded, failed = max(0, grown["xact_commit"] - own), max(0, grown["xact_rollback"])
    return record.Account(scheduled=succeeded + failed, skipped=0, succeeded=succeeded, failed=failed)


class _WatchMaker:
    """What becomes the record of a watch."""

    def __init__(
        self,
        target: ServerTarget,
        view: View,
        purchase: Purchase,
        anchor: record.Anchor,
        begin_ns: int,
        end_ns: int,
        account: record.Account,
    ) -> None:
        self.target, self.view, self.purchase, self.anchor = target, view, purchase, anchor
        self.account = account
        self.phase = record.RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns)
        self.label = public_dsn(target.server.dsn) or "server"
        self.command = ("pgdyno", COMMAND, self.label)
        self.hash = identity_hash(
            {"command": COMMAND, "server": target.server.record.model_dump(), "at": anchor.unix_ns}
        )
        self.id = experiment_id(COMMAND, self.hash, anchor.unix_ns)
        self.name = run_name(0, COMMAND, 1)

    def experiment(self) -> record.ExperimentRecord:
        """Of one run."""
        return record.ExperimentRecord(
            experiment_id=self.id,
            experiment_hash=self.hash,
            kind=COMMAND,
            created_unix_ns=self.anchor.unix_ns,
            command=self.command,
            seed=0,
            arms=(self.label,),
            replicates=1,
            order=((1, 0),),
            name=COMMAND,
            title="a server that was watched",
            versions={"pgdyno": pgdyno.__version__},
        )

    def run(self) -> record.RunRecord:
        """The run."""
        server, data = self.target.server, self.purchase.volumes.get("data")
        return record.RunRecord(
            run_id=self.name,
            experiment_id=self.id,
            experiment_hash=self.hash,
            command=self.command,
            arm=self.label,
            arm_index=0,
            block=1,
            position=0,
            seed=0,
            anchor=self.anchor,
            world=record.WorldRecord(
                kind="real",
                volume={} if data is None else data.spec,
                volumes=dict(self.purchase.volumes),
                file_system=self.view.file_system,
                mount_options=self.view.mount_options,
                server=server.record,
                instance=self.purchase.instance,
                host=HostRecord.of_this_machine(),
            ),
            workload={
                "kind": OBSERVE,
                "standby": self.target.standby,
                "pooler": self.target.pooler,
                "role": self.target.role,
                "sees_all": self.target.sees_all,
                "rtt_ms": self.target.rtt_ms,
            },
            postgres=record.PostgresRecord(version=server.version, source="an existing server"),
            phases=(self.phase,),
            account=self.account,
            validity=record.Validity(valid=True),
            visibility=self.view.visibility,
            seconds={"measure": round(self.phase.seconds, 3)},
        )


def _written(made: _WatchMaker, samples: ProbeTables, settings: list[dict[str, str | None]], root: Path) -> Path:
    experiment = write_experiment(root, made.experiment())
    writer = RunWriter(experiment.parent, made.id, made.name)
    try:
        samples.write(writer)
        writer.table("postgres/settings", from_rows("postgres/settings", settings))
        return writer.finish(made.run())
    except BaseException:
        writer.abandon()
        raise

"""Base of the SQL probes: a dedicated connection that a thread queries on a grid of absolute instants, and proof that the server is on this host."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgdyno.probe.samples import Gap, GapLedger, ProbeTables

from ..base import session
from ..base.errors import HostError, PgdynoError
from ..base.session import Connection
from ..machine.mounts import kernel_lines

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGconn, PGresult


def ask_together(pgconn: PGconn, names: Sequence[bytes]) -> list[PGresult]:
    """The answers to prepared questions, which are one transaction. :class:`psycopg.Error` when one of them fails, or the connection."""
    pgconn.enter_pipeline_mode()
    for name in names:
        pgconn.send_query_prepared(name, ())
    pgconn.pipeline_sync()
    answers: list[PGresult] = []
    try:
        _collect(pgconn, answers)
        pgconn.exit_pipeline_mode()
    finally:  # why a connection was lost stands in the last answer
        for answer in answers:
            checked(answer)
    return answers


def _collect(pgconn: PGconn, answers: list[PGresult]) -> None:
    """Wait for all that comes before the answer to the message that ends the transaction."""
    from psycopg import OperationalError
    from psycopg.pq import ConnStatus, ExecStatus

    readable = select.poll()
    readable.register(pgconn.socket, select.POLLIN)
    while True:
        while pgconn.is_busy():
            readable.poll()  # libpq's own wait would keep other threads from running
            pgconn.consume_input()
        answer = pgconn.get_result()
        if answer is None:  # the end of what a question brought
            if pgconn.status == ConnStatus.BAD:
                raise OperationalError("the connection was lost")
            continue
        if answer.status == ExecStatus.PIPELINE_SYNC:
            return
        answers.append(answer)


def checked(answer: PGresult) -> PGresult:
    """An answer that is none is an error of psycopg's."""
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    if answer.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise error_from_result(answer)
    return answer


_NAMES = ("postgres", "postmaster", "edb-postgres")
_AGE_TOLERANCE_S = 0.5
"""The kernel counts a start in ticks of 10 ms; the rest is the way of the answer on a busy machine."""
SESSION = (
    "SELECT pg_catalog.pg_backend_pid(),"
    " extract(epoch FROM pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) backend_start)::pg_catalog.float8"
    " FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"
)
"""The session's process and its age in seconds, as the server says them: for :func:`process_of`."""


def local_backend(connection: psycopg.Connection[tuple[Any, ...]]) -> int | None:
    """Process id, here, of the process that serves a connection; None when it is not on this host, or hidden."""
    return process_of(connection.execute(SESSION).fetchone())


def process_of(answer: tuple[Any, ...] | None) -> int | None:
    """Process id, here, of the process that a server's answer to :data:`SESSION` is about; None when there is none here."""
    if answer is None or answer[1] is None:
        return None
    server_pid, age_s = int(answer[0]), float(answer[1])
    for pid in _candidates(server_pid):
        found_s = _age_s(pid)
        if found_s is not None and abs(found_s - age_s) <= _AGE_TOLERANCE_S:
            return pid
    return None


def parent(pid: int) -> int | None:
    """The process that started ``pid``; None when there is no such process."""
    texts = _status(pid).get("PPid")
    return int(texts[0]) if texts else None


def cpu_time_ns(pid: int | None) -> int | None:
    """CPU that a process with one thread has used; None when it is gone or the kernel does not count."""
    if pid is None:
        return None
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def in_container(pid: int) -> bool:
    """Whether a process has process ids, and so as a rule mounts, of its own."""
    return len(_status(pid).get("NSpid", [])) > 1


def memory_group(server: int) -> Path | None:
    """The memory control group of a server, where it has one of its own: all its members are the server's."""
    for line in _lines(Path(f"/proc/{server}/cgroup")):
        _, controllers, path = line.split(":", 2)
        if path != "/" and controllers in ("", "memory"):
            for group in _groups(controllers, path):
                if (group / "memory.stat").is_file() and _is_alone(server, group):
                    return group
    return None


def _groups(controller: str, path: str) -> Iterator[Path]:
    """Where a group of version 1's controller, or of version 2 (no name), is mounted."""
    for line in _lines(Path("/proc/self/mountinfo")):
        left, _, right = line.partition(" - ")
        root, target = left.split(" ")[3:5]
        kind, _, options = right.split(" ", 2)
        if (kind == "cgroup2" and not controller) or (kind == "cgroup" and controller in options.split(",")):
            yield Path(target, path.removeprefix(root).lstrip("/"))


def _is_alone(server: int, group: Path) -> bool:
    members = {int(pid) for folder, _, _ in os.walk(group) for pid in _lines(Path(folder, "cgroup.procs"))}
    # One that has no parent any more ended while we looked.
    return server in members and all(pid == server or parent(pid) in (server, None) for pid in members)


def _lines(path: Path) -> list[str]:
    try:
        return kernel_lines(path)
    except OSError:
        return []


def _candidates(server_pid: int) -> Iterator[int]:
    """Processes that the server may mean by that number: as a rule the one that has it here too."""
    others = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    for pid in (server_pid, *others):
        if _name(pid) in _NAMES and _status(pid).get("NSpid", ["0"])[-1] == str(server_pid):
            yield pid


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()  # cut at 15 bytes, also inside a letter
    except OSError:
        return ""


def _status(pid: int) -> dict[str, list[str]]:
    lines = _lines(Path(f"/proc/{pid}/status"))
    return {name: values.split() for name, _, values in (line.partition(":") for line in lines)}


def _age_s(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        begun_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begun_s


APPLICATION_NAME = "pgdyno probe"
"""How the probes' sessions are known to the server, and how they leave themselves out of what they count."""
PATIENCE_S = 5.0
"""A server that does not answer a query about its counters in this time is recorded as a gap."""
START_PATIENCE_S = 60.0
"""The same for the first connection: nothing is measured yet, and a server that has just started on a machine full of other
work may take long to answer. It is as long as the server itself is given to start."""
ANSWER_SHARE_MAX = 0.1
"""Share of the interval: a server that needs longer to answer, with another load or with many sessions, is asked less often."""
CPU_SHARE_MAX = 0.005
"""Cores that a probe's session may take in the server; beyond, it is asked less often. Two of them then stay below the hundredth that a
watch may take. Where the server is elsewhere its CPU time is not known."""
LONG_NS = 2_000_000_000
"""An answer that takes longer is none: of a server at work, however busy, a question about its counters takes milliseconds."""
CPU_LOOKS = 10
"""Samples over which that is measured; the first of them are left out, which read the catalogs."""
_NS = 1_000_000_000


@dataclass
class ProbeCost:
    """Cost of a probe, and its gaps."""

    samples: int = 0
    """With an answer."""
    lost_samples: int = 0
    """Deadlines that passed without a sample, and samples without an answer."""
    answer_ns: int = 0
    """Sum over the samples, from the question to the whole answer."""
    client_cpu_ns: int = 0
    """CPU time in this process."""
    server_cpu_ns: int | None = None
    """CPU time of the probe's own session in the server; None when the server's processes cannot be seen, or when a
    connection pooler chooses the session."""


SLOW = "no answer came to a question about its counters"
"""Reason of a gap, for a server with which there is a connection."""


class SqlSampler(ABC):
    """Samples one server, ``dsn`` in libpq's notation, every ``interval_s`` seconds from ``start`` until ``stop``.

    A question that fails is a gap; a connection that is lost is opened again for the next sample. Questions are read-only.
    ``patience_s`` bounds every wait for the server, so that a server that hangs does not hang the probe.
    """

    name: str
    """Name of the probe: its gaps begin with it."""
    notes_silence = False
    """Whether the times in which the server did not answer are gaps too, called :meth:`silence`."""

    def __init__(
        self, dsn: str, interval_s: float, *, patience_s: float = PATIENCE_S, slowest_s: float | None = None
    ) -> None:
        self._dsn = dsn
        self._slowest_ns = None if slowest_s is None else int(slowest_s * _NS)
        """The longest interval that answers which take long may lead to; None where the interval is kept."""
        self._interval_ns = int(interval_s * _NS)
        self._patience_s = patience_s
        self._is_own = False
        """Whether the server's session is this connection's alone: no pooler is between."""
        self._stopping = threading.Event()
        self._broken_off = False
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._prepared: dict[str, bytes] = {}
        """Names of the questions that the connection has prepared."""
        self._backend: int | None = None
        self._backend_began_ns: int | None = None
        self._cpu_before_ns: int | None = None
        """CPU time of the session when its last :data:`CPU_LOOKS` samples began."""
        self._began_ns = 0
        self._ended_ns = 0
        self.ledger = GapLedger()
        self.cost = ProbeCost()
        self.samples_taken = 0
        """Number of queries sent, with or without an answer."""

    @abstractmethod
    def _begin(self, connection: Connection) -> None:
        """Choose what to ask, once it is known who answers."""

    @abstractmethod
    def _ask(self, connection: Connection) -> list[tuple[str, str]]:
        """Ask for one sample and keep the answer. Returns what is missing from it, with the reason."""

    @abstractmethod
    def _parts(self) -> list[str]:
        """Tables that are missing when the server does not answer at all."""

    @abstractmethod
    def _tables(self) -> ProbeTables:
        """The tables of all samples."""

    def _question(
        self, connection: Connection, query: str, patience_s: float | None = None
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Ask, read-only and bounded in time; in a session of our own the query is prepared (by
        the connection's ``prepare_threshold``), which halves its cost.

        Through a pooler all of it is one message and therefore one transaction, which ends by itself also when the query
        fails: no setting and no prepared statement gets to the session's next client.
        """
        if self._is_own:
            return connection.execute(query.encode())
        bounds = "".join(
            f"SET LOCAL {name} = {value}; " for name, value in self._settings("transaction_read_only", patience_s)
        )
        cursor = connection.execute(f"{bounds}\n{query}".encode())
        while cursor.nextset():
            pass
        return cursor

    def _answer(self, connection: Connection, query: str) -> PGresult:
        """The answer to a question that is asked many times, as libpq has it; the connection keeps it prepared.

        A cursor's work on it takes twice the CPU time: a thread that has slept finds none of its code in the processor's caches.
        libpq does not end a wait at Ctrl-C, which only the main thread hears.
        """
        if not self._is_own or threading.current_thread() is threading.main_thread():
            answer = self._question(connection, query).pgresult
            assert answer is not None
            return answer
        return checked(connection.pgconn.exec_prepared(self._name_of(connection, query), ()))

    def _answers(self, connection: Connection, queries: Sequence[str]) -> list[PGresult]:
        """The answers to questions that are asked many times in a session of our own, in one transaction."""
        return ask_together(connection.pgconn, [self._name_of(connection, query) for query in queries])

    def _name_of(self, connection: Connection, query: str) -> bytes:
        """The name under which the connection has prepared a question; prepared now if it was not."""
        name = self._prepared.get(query)
        if name is None:
            name = f"pgdyno_probe_{len(self._prepared)}".encode()
            checked(connection.pgconn.prepare(name, query.encode()))
            self._prepared[query] = name
        return name

    def _settings(self, read_only: str, patience_s: float | None = None) -> tuple[tuple[str, str], ...]:
        """Parameters of each query."""
        timeout_ms = int((patience_s or self._patience_s) * 1000)
        return (read_only, "on"), ("statement_timeout", str(timeout_ms)), ("jit", "off")

    def start(self) -> Self:
        """Connect, take a first sample, continue in a thread. :class:`PgdynoError` when there is no server."""
        import psycopg

        try:
            connection = self._connect(max(START_PATIENCE_S, self._patience_s))
        except psycopg.Error as error:
            self._disconnect()
            raise no_session(error, "sampled") from error
        self._begin(connection)
        self._began_ns = now_ns()
        self._sample(self._began_ns)
        self._thread = threading.Thread(target=self._go_on, name=f"pgdyno-{self.name}", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> ProbeTables:
        """Take a last sample, disconnect, and return everything."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join(self._patience_s)
            if self._thread.is_alive():
                self._break_off()
                self._thread.join()
            self._thread = None
            self._ended_ns = now_ns()
        self._disconnect()
        return self._tables() | self._cost_table()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop if it was not stopped."""
        self.stop()

    @classmethod
    def silence(cls) -> str:
        """Name of the gaps in which the server did not answer at all, whatever was asked."""
        return f"{cls.name}.answer"

    def end(self) -> None:
        """Let the thread take its last sample now: :meth:`stop` then waits for less."""
        self._stopping.set()

    def _go_on(self) -> None:
        """Sample on a grid of absolute instants, so that a slow answer does not shift the next ones."""
        due_ns = self._began_ns + self._interval_ns
        while not self._stopping.wait(max(0.0, (due_ns - now_ns()) / _NS)):
            due_ns += (1 + self._sample_and_count(due_ns)) * self._interval_ns
        if not self._broken_off:
            self._sample_and_count(now_ns())

    def _sample_and_count(self, due_ns: int) -> int:
        """Take a sample and return how many deadlines passed meanwhile."""
        self._sample(due_ns)
        missed = (now_ns() - due_ns) // self._interval_ns
        if missed > 0:
            self.cost.lost_samples += missed
            self._missed(due_ns, missed)
        return max(0, missed)

    def _missed(self, due_ns: int, missed: int) -> None:
        self.ledger.add(Gap(due_ns, now_ns(), f"{self.name}.samples", f"{missed} deadlines were missed"))

    def _sample(self, due_ns: int) -> None:
        import psycopg

        before_ns, cpu_ns = now_ns(), time.thread_time_ns()
        try:
            connection = self._connection or self._connect(self._patience_s)
            missing = self._ask(connection)
            lost = connection.closed
            if lost:
                self._disconnect()
        except psycopg.Error as error:
            missing = [(part, reason(error)) for part in self._parts()]
            lost = self._connection is None or self._connection.closed
            self._disconnect()
        self._note_silence(before_ns, missing, lost=lost)
        self.ledger.sample(due_ns, now_ns(), missing)
        if missing:
            self.cost.lost_samples += 1
        else:
            self.cost.samples += 1
            self.cost.answer_ns += now_ns() - before_ns
            self._slow_down(now_ns() - before_ns)
        self.cost.client_cpu_ns += time.thread_time_ns() - cpu_ns
        self.samples_taken += 1

    def _note_silence(self, asked_ns: int, missing: Sequence[tuple[str, str]], *, lost: bool) -> None:
        """Note that there was no session, or no answer for long. Behind a pooler a question may wait for a session as well."""
        late = self._is_own and now_ns() - asked_ns > LONG_NS
        if self.notes_silence and (lost or late):
            why = missing[0][1] if missing and lost and not self._broken_off else SLOW
            self.ledger.add(Gap(asked_ns, now_ns(), self.silence(), why))

    def _slow_down(self, took_ns: int) -> None:
        """Ask half as often where an answer takes a large part of the interval or of a core, down to the slowest that is of use."""
        if self._slowest_ns is None:
            return
        costly = took_ns > ANSWER_SHARE_MAX * self._interval_ns
        if self.cost.samples % CPU_LOOKS == 0:
            before_ns, self._cpu_before_ns = self._cpu_before_ns, cpu_time_ns(self._backend)
            if before_ns is not None and self._cpu_before_ns is not None:
                costly |= self._cpu_before_ns - before_ns > CPU_SHARE_MAX * CPU_LOOKS * self._interval_ns
        if costly:
            self._interval_ns = max(self._interval_ns, min(2 * self._interval_ns, self._slowest_ns))

    def _connect(self, patience_s: float) -> Connection:
        import psycopg

        self._connection = connection = psycopg.connect(
            self._dsn,
            autocommit=True,
            application_name=APPLICATION_NAME,
            connect_timeout=max(2, int(patience_s)),
            **session.OPTIONS,
        )
        self._is_own, self._prepared = False, {}
        answer = self._question(connection, SESSION, patience_s).fetchone()
        assert answer is not None
        self._is_own = answer[0] == connection.info.backend_pid
        if self._is_own:
            connection.execute(session.SERVER_NAMES)
        if self._is_own:
            connection.prepare_threshold = 0
            # Not by libpq's `options`: those may be the user's own.
            for name, value in self._settings("default_transaction_read_only"):
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        # Behind a pooler the next question may be another session's.
        self._backend = process_of(answer) if self._is_own else None
        self._backend_began_ns = cpu_time_ns(self._backend)
        return connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            used_ns = cpu_time_ns(self._backend)
            if used_ns is not None and self._backend_began_ns is not None:
                self.cost.server_cpu_ns = (self.cost.server_cpu_ns or 0) + used_ns - self._backend_began_ns
            connection.close()

    def _break_off(self) -> None:
        """End the connection under the thread that waits for it."""
        self._broken_off = True
        connection = self._connection
        if connection is None:
            return
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as ours:
            ours.shutdown(socket.SHUT_RDWR)

    def _cost_table(self) -> ProbeTables:
        from ..results.tables import from_rows

        if not self.samples_taken:
            return ProbeTables()
        row = {"t_begin_ns": self._began_ns, "t_end_ns": self._ended_ns, "probe": self.name} | vars(self.cost)
        return ProbeTables({"probe/cost": from_rows("probe/cost", [row])})


_FULL = ("too many clients", "too many connections", "connection slots", "no more connections allowed")
"""Parts of what a server or a connection pooler says that has no session left."""


def is_full(why: str) -> bool:
    """Whether a reason says that every connection is taken."""
    return any(part in why for part in _FULL)


def no_session(error: Exception, what: str) -> PgdynoError:
    """Error and remedy if a server could not be ``sampled`` or ``looked at``, and what to do."""
    if is_full(str(error)):
        return HostError(
            f"the server has no connection left, and a watch needs three: {reason(error)}",
            remedy="end sessions that are not needed, put a connection pooler in front of the server, or connect as a superuser or as a member"
            " of pg_use_reserved_connections, for whom some are kept",
            code="server.connections.taken",
        )
    return PgdynoError(
        f"the server cannot be {what}: {reason(error)}", remedy="check the connection string and the server's log"
    )


def reason(error: Exception) -> str:
    """The first line of what an error says."""
    return str(error).strip().partition("\n")[0]


def now_ns() -> int:
    """CLOCK_MONOTONIC."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

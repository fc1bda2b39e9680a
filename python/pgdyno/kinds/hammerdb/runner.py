"""Process of an installed HammerDB, for TPROC-C and TPROC-H: started with a private script in its own folder, read line by line, ended with its sessions."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TextIO

import psycopg

from pgdyno.workload.clock import SECOND_NS, now_ns
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server

from ...base import engine, session
from ...base.errors import HostError, InputError, PgdynoError
from ...machine import hammerdb as installed
from ...machine.scratch import scratch_directory
from ...workload.server import environment
from ..tpch.queries import Streams
from .output import HammerdbOutput, QueriesOutput
from .record import PROFILE_FILE, Profile, read_profile, tpcc_outcome, tpch_outcome
from .script import MINUTE_S, Login, ScriptOptions, tpcc_script, tpch_script, users_of

START_S: Final = 60.0
"""Within which it has begun its work."""
START_OF_USER_S: Final = 1.0
"""It starts them one after another, half a second apart."""
_EXIT_S: Final = 10.0
_SHOWN: Final = 3
"""Lines of HammerDB that an error repeats."""
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s AND usename = current_user"


class LineParser(Protocol):
    """Parser of a run's lines; instants are CLOCK_MONOTONIC of the host."""

    begin_ns: int
    """When it began to measure; 0 until then."""
    end_ns: int
    closed_ns: int
    """When its output ended, or it was ended."""
    wrong: list[str]
    """Lines about users that ended early, or about a run other than the one ordered."""

    @property
    def words(self) -> str:
        """Present phase; empty before it began."""

    def share(self, t_ns: int) -> float:
        """Progress, from 0 to 1."""

    def take(self, line: str, t_ns: int) -> None:
        """One line, without its end."""


@contextlib.contextmanager
def scripted(request: RunRequest, text: str) -> Iterator[Path]:
    """A script that only this user can read, in a private folder for all that HammerDB writes; both are gone after the block."""
    request.out_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(request.out_dir) as folder:
        path = folder / "run.tcl"
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
        yield path


@contextlib.contextmanager
def started(server: Server, request: RunRequest, path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HammerDB in its own folder, in a group of its own that is ended whatever happens; it writes where the script lies."""
    program, name = installed.program(), f"pgdyno hammerdb {os.getpid()}"
    own = dict.fromkeys(("TMP", "TMPDIR", "TEMP"), str(path.parent))
    env = {**environment(server, request.env), **own, "PGAPPNAME": name}
    # The script has it.
    env.pop("PGPASSWORD", None)
    process = subprocess.Popen(
        engine.child([*request.prefix, program, "tcl", "auto", path]),
        env=env,
        cwd=program.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(_EXIT_S)
        assert process.stdout is not None
        process.stdout.close()
        _end_sessions(server, name)


def _end_sessions(server: Server, name: str) -> None:
    """A session in a long query does not notice that its client is gone. One that cannot be asked has ended by itself."""
    with (
        contextlib.suppress(psycopg.Error),
        contextlib.closing(psycopg.connect(server.dsn, autocommit=True, **session.OPTIONS)) as connection,
    ):
        connection.execute(_END.encode(), [name])


class HammerdbMonitor:
    """Hears HammerDB, keeps what it says without the password, and calls when what is measured begins and ends."""

    def __init__(self, request: RunRequest, login: Login, parser: LineParser) -> None:
        self._output, self._request, self._login = parser, request, login
        self._rest = b""
        self._kept: list[str] = []
        self._shown_ns = 0

    def until_the_end(self, process: subprocess.Popen[bytes], give_up_ns: Callable[[], int]) -> bool:
        """Return when it has ended, or closed its output: whether it did by ``give_up_ns``, which is asked each second."""
        assert process.stdout is not None
        stream, ended = process.stdout.fileno(), True
        with (
            (self._request.out_dir / "hammerdb.log").open("w", encoding="utf-8") as log,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(stream, selectors.EVENT_READ)
            while ended:
                if selector.select(1.0):
                    text = os.read(stream, 1 << 16)
                    if not text:
                        break
                    self._read(text, log)
                self._tell()
                ended = now_ns() < give_up_ns()
        self._output.closed_ns = now_ns()
        if self._output.begin_ns and not self._output.end_ns:
            self._request.on_measure_end()
        return ended

    @property
    def last_words(self) -> str:
        """The last lines that it printed."""
        return " / ".join(self._output.wrong[-_SHOWN:] or self._kept[-_SHOWN:]) or "(no output)"

    def _read(self, text: bytes, log: TextIO) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            began, ended = self._output.begin_ns, self._output.end_ns
            self._output.take(line, now_ns())
            if self._output.begin_ns and not began:
                self._request.on_measure_begin()
            if self._output.end_ns and not ended:
                self._request.on_measure_end()
            if kept := self._login.hidden(line):
                log.write(f"{kept}\n")
                self._kept = [*self._kept[1 - _SHOWN :], kept]

    def _tell(self) -> None:
        """About once a second how far it is."""
        at_ns = now_ns()
        if not self._output.words or at_ns - self._shown_ns < SECOND_NS:
            return
        self._shown_ns = at_ns
        self._request.progress(self._output.share(at_ns), self._output.words)


_GRACE_S: Final = 120.0
"""For the last transactions, and for the sums of the time profile."""


def run(server: Server, request: RunRequest, spec: ScriptOptions, *, minute_s: float = MINUTE_S) -> Outcome:
    """Run ``spec`` by HammerDB. ``request.out_dir`` receives ``hammerdb.log``, what it printed, and ``hammerdb_profile.log``.

    A run that began to measure has an outcome, with a failed check where it came to no result; one that did not is an error.
    ``minute_s`` is how long HammerDB's minutes are, for programs that stand in for it.
    """
    login = Login.of(server)
    ramp_up, measured = (round(seconds / minute_s) for seconds in (request.warmup_s, request.duration_s))
    limit_s = START_S + START_OF_USER_S * spec.clients + minute_s * (ramp_up + measured) + _GRACE_S
    output = HammerdbOutput(login.hidden, minute_s * (ramp_up + measured))
    with scripted(request, tpcc_script(spec, login, ramp_up, measured)) as path:
        listening = HammerdbMonitor(request, login, output)
        with started(server, request, path) as process:
            request.on_start(process.pid)
            give_up_ns = now_ns() + int(limit_s * SECOND_NS)
            if not listening.until_the_end(process, lambda: give_up_ns):
                raise PgdynoError(
                    f"HammerDB did not end within {limit_s:,.0f} s: {listening.last_words}",
                    remedy="the server may hang: look at its log, and at hammerdb.log in the run's directory",
                )
        profile = _profile(path.with_name(PROFILE_FILE), request.out_dir / "hammerdb_profile.log")
    if not output.begin_ns:
        raise PgdynoError(
            f"HammerDB ended before it measured: {listening.last_words}",
            remedy="see hammerdb.log in the run's directory",
        )
    return tpcc_outcome(spec, output, profile, measured, minute_s)


def require(server: Server) -> None:
    """Refuse, before anything is changed, a HammerDB that is not installed, or that cannot log in here. :class:`InputError`."""
    try:
        installed.program()
    except HostError as error:
        raise InputError(error.message, remedy=error.remedy) from None
    Login.of(server)


def _profile(path: Path, kept: Path) -> Profile | None:
    """The time profile, of which a copy is kept."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    kept.write_text(text)
    return read_profile(text)


@dataclass(frozen=True)
class HammerdbQueriesRunner:
    """Runs streams of queries by HammerDB; it is a :class:`pgdyno.workload.outcome.Runner`."""

    streams: Streams

    def __call__(self, server: Server, request: RunRequest) -> Outcome:
        """Ask all queries, for ``request.duration_s`` at most; then HammerDB is ended, and its sessions too.

        :class:`PgdynoError` when not a single query brought its rows. ``request.out_dir`` receives ``hammerdb.log``, what it printed.
        """
        streams, login = self.streams, Login.of(server)
        if streams.functions is not None and not streams.functions.are_fresh(server):
            raise PgdynoError(
                "the tables were refreshed before: their orders are not those of the load",
                remedy="build them with HammerDB again",
            )
        users = users_of(streams)
        output = QueriesOutput(login.hidden, streams.planned, users)
        with scripted(request, tpch_script(streams, login)) as path:
            listening, begun_ns = HammerdbMonitor(request, login, output), now_ns()
            start_ns = int((START_S + START_OF_USER_S * users) * SECOND_NS)
            limit_ns = int(request.duration_s * SECOND_NS)

            def give_up_ns() -> int:
                return output.begin_ns + limit_ns if output.begin_ns else begun_ns + start_ns

            with started(server, request, path) as process:
                request.on_start(process.pid)
                ended = listening.until_the_end(process, give_up_ns)
        if not any(query.end_ns and not query.error for query in output.queries):
            failed = next((f"query {query.query}: {query.error}" for query in output.queries if query.error), "")
            raise PgdynoError(
                f"HammerDB ended before a query returned its rows: {failed or listening.last_words}",
                remedy="see hammerdb.log in the run's directory",
            )
        return tpch_outcome(streams, output, late=not ended)

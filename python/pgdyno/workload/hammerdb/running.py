"""Runs an installed HammerDB and hears it: the minutes are its own, whole and in real time."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from typing import TYPE_CHECKING, Final, TextIO

from pgdyno import _engine
from pgdyno.errors import HostError, InputError, PgdynoError
from pgdyno.host import hammerdb as installed
from pgdyno.host.scratch import scratch_directory
from pgdyno.workload.client import environment
from pgdyno.workload.hammerdb import profile as time_profile
from pgdyno.workload.hammerdb import recorded, script
from pgdyno.workload.hammerdb.heard import Heard
from pgdyno.workload.watch import SECOND_NS, now_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pgdyno.workload.outcome import Outcome, RunRequest
    from pgdyno.workload.server import Server

_START_S: Final = 60.0
_START_OF_USER_S: Final = 1.0
"""It starts them one after another, half a second apart."""
_GRACE_S: Final = 120.0
"""For the last transactions, and for the sums of the time profile."""
_EXIT_S: Final = 10.0
_SHOWN: Final = 3
"""Lines of HammerDB that an error repeats."""


def run(server: Server, request: RunRequest, spec: script.Asked, *, minute_s: float = script.MINUTE_S) -> Outcome:
    """Run ``spec`` by HammerDB. ``request.out_dir`` receives ``hammerdb.log``, what it printed, and ``hammerdb_profile.log``.

    A run that began to measure has an outcome, with a failed check where it came to no result; one that did not is an error.
    ``minute_s`` is how long HammerDB's minutes are, for programs that stand in for it.
    """
    login = script.Login.of(server)
    ramp_up, measured = (round(seconds / minute_s) for seconds in (request.warmup_s, request.duration_s))
    request.out_dir.mkdir(parents=True, exist_ok=True)
    with scratch_directory(request.out_dir) as folder:
        path = folder / "run.tcl"
        path.touch(0o600)
        path.write_text(script.text(spec, login, ramp_up, measured), encoding="utf-8")
        listening = _Listening(request, login, minute_s * (ramp_up + measured))
        with _process(server, request, path) as process:
            request.on_start(process.pid)
            listening.until_the_end(
                process, _START_S + _START_OF_USER_S * spec.clients + minute_s * (ramp_up + measured) + _GRACE_S
            )
        profile = _profile(folder / time_profile.FILE, request.out_dir / "hammerdb_profile.log")
    if not listening.heard.begin_ns:
        raise PgdynoError(
            f"HammerDB ended before it measured: {listening.last_words}",
            remedy="hammerdb.log in the run's directory has all that it printed",
        )
    return recorded.outcome(spec, listening.heard, profile, measured, minute_s)


def require(server: Server) -> None:
    """Refuse, before anything is changed, a HammerDB that is not installed, or that cannot log in here. :class:`InputError`."""
    try:
        installed.program()
    except HostError as error:
        raise InputError(error.message, remedy=error.remedy) from None
    script.Login.of(server)


@contextlib.contextmanager
def _process(server: Server, request: RunRequest, path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HammerDB in its own folder, in a group of its own that is ended whatever happens; it writes where the script lies."""
    program = installed.program()
    own = {name: str(path.parent) for name in ("TMP", "TMPDIR", "TEMP")}
    env = {**environment(server, request.env), **own, "PGAPPNAME": "pgdyno hammerdb"}
    # The script has it.
    env.pop("PGPASSWORD", None)
    process = subprocess.Popen(
        _engine.child([*request.prefix, program, "tcl", "auto", path]),
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


class _Listening:
    """Hears HammerDB, keeps what it says without the password, and calls when its measured minutes begin and end."""

    def __init__(self, request: RunRequest, login: script.Login, planned_s: float) -> None:
        self.heard = Heard(login.hidden)
        self._request, self._login, self._planned_s = request, login, planned_s
        self._rest = b""
        self._kept: list[str] = []
        self._told_ns = 0

    def until_the_end(self, process: subprocess.Popen[bytes], limit_s: float) -> None:
        """Return when it has ended, or closed its output; an error when it takes longer than ``limit_s``."""
        assert process.stdout is not None
        stream, give_up_ns = process.stdout.fileno(), now_ns() + int(limit_s * SECOND_NS)
        with (
            (self._request.out_dir / "hammerdb.log").open("w", encoding="utf-8") as log,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(stream, selectors.EVENT_READ)
            while True:
                if selector.select(1.0):
                    text = os.read(stream, 1 << 16)
                    if not text:
                        break
                    self._hear(text, log)
                self._tell()
                if now_ns() >= give_up_ns:
                    raise PgdynoError(
                        f"HammerDB did not end within {limit_s:,.0f} s: {self.last_words}",
                        remedy="the server may hang: look at its log, and at hammerdb.log in the run's directory",
                    )
        self.heard.closed_ns = now_ns()
        if self.heard.begin_ns and not self.heard.end_ns:
            self._request.on_measure_end()

    @property
    def last_words(self) -> str:
        """The last lines that it printed."""
        return " / ".join(self.heard.wrong[-_SHOWN:] or self._kept[-_SHOWN:]) or "it said nothing"

    def _hear(self, text: bytes, log: TextIO) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r")
            began, ended = self.heard.begin_ns, self.heard.end_ns
            self.heard.take(line, now_ns())
            if self.heard.begin_ns and not began:
                self._request.on_measure_begin()
            if self.heard.end_ns and not ended:
                self._request.on_measure_end()
            if kept := self._login.hidden(line):
                log.write(f"{kept}\n")
                self._kept = [*self._kept[1 - _SHOWN :], kept]

    def _tell(self) -> None:
        """About once a second how far it is, by its transaction counter."""
        at_ns = now_ns()
        if not self.heard.bench_ns or at_ns - self._told_ns < SECOND_NS:
            return
        self._told_ns = at_ns
        share = (at_ns - self.heard.bench_ns) / SECOND_NS / self._planned_s
        tpm = f"{self.heard.counters[-1][1]:,} TPM of the server" if self.heard.counters else "starting"
        doing = "measure" if self.heard.begin_ns else "warm up"
        self._request.progress(min(1.0, share), f"{doing}: {tpm}")


def _profile(path: Path, kept: Path) -> time_profile.Profile | None:
    """The time profile, of which a copy is kept."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    kept.write_text(text)
    return time_profile.read(text)

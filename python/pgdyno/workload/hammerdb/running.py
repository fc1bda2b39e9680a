"""Runs an installed HammerDB with TPROC-C and hears it: the minutes are its own, whole and in real time."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pgdyno.workload.hammerdb.heard import HammerdbOutput
from pgdyno.workload.hammerdb.listening import START_OF_USER_S, START_S, HammerdbMonitor, scripted, started
from pgdyno.workload.hammerdb.profile import PROFILE_FILE, Profile, read_profile
from pgdyno.workload.hammerdb.recorded import tpcc_outcome
from pgdyno.workload.hammerdb.script import MINUTE_S, Login, ScriptOptions, tpcc_script
from pgdyno.workload.outcome import Outcome, RunRequest
from pgdyno.workload.server import Server
from pgdyno.workload.clock import SECOND_NS, now_ns

from ...base.errors import HostError, InputError, PgdynoError
from ...machine import hammerdb as installed

_GRACE_S: Final = 120.0
"""For the last transactions, and for the sums of the time profile."""


def run(
    server: Server, request: RunRequest, spec: ScriptOptions, *, minute_s: float = MINUTE_S
) -> Outcome:
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
            remedy="hammerdb.log in the run's directory has all that it printed",
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

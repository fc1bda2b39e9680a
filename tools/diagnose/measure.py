"""Makes a scenario: the load, the watch from outside, and what is known of the truth; all of it is kept, so that rules can be asked again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.advise.metrics import samples
from pgdyno.base.errors import PgdynoError
from pgdyno.machine.waiting import wait_until
from tools.diagnose.load import loading
from tools.diagnose.record import Facts, Reading
from tools.diagnose.truth import OF_VOLUMES, binding_role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.diagnose.load import Clients
    from tools.diagnose.scenarios import Load, Stand
    from tools.diagnose.stand import Running

WATCH_S = 6
RAMP_S = 2.0
"""Before the watch: caches and queues are as they stay."""
CONTROL_S = 3.0
WATCH = "watch"
IOSTAT = "iostat.txt"
DEADLINE_S = 120.0
SECOND_NS = 1_000_000_000
USE_UP_S = 40.0
"""As long as a load is given to use up credits: VACUUM uses some hundred a second more than a gp2 of the draw earns in 10 s."""
REFUSED_S = 5.0
"""Within this the connections that the watch has left are taken too."""
CREDITS_FEW = 50
"""Less than half a second's of the smallest volume in the draw."""


@dataclass(frozen=True)
class _Look:
    """Counters at an instant."""

    unix_s: float
    volumes: dict[str, dict[str, Any]]
    idle_s: float
    server_s: float


def measure(running: Running, stand: Stand, load: Load, key: str, folder: Path) -> Facts:
    """One scenario into ``folder``. An error of the watch is one of the bench: a server that is watched must be judged."""
    folder.mkdir(parents=True)
    running.warm()
    with loading(running, load) as clients, _iostat(running, folder / IOSTAT):
        _settle(clients, load)
        if load.limit == "burst_bucket":
            _use_up(running)
        before = _look(running)
        _watch(running, stand, folder / WATCH)
        after = _look(running)
        refused = load.beside == "full" and wait_until(lambda: _is_refused(running), REFUSED_S)
    readings = {role: _reading(before, after, role) for role in before.volumes}
    facts = Facts(
        key=key,
        limit=load.limit,
        consumer=load.consumer,
        version=running.arm.binaries.version,
        volumes=dict(stand.volumes),
        instance=stand.instance,
        load=_words(load),
        readings=readings,
        devices=dict(running.subject.devices),
        seconds=after.unix_s - before.unix_s,
        idle=_share(after.idle_s - before.idle_s, before, after),
        server_cpu=_share(after.server_s - before.server_s, before, after),
        tps=clients.tps,
        tps_control=_control(running, load),
        consumer_left=_left(running, load, readings),
        refused=refused,
    )
    (folder / "facts.json").write_text(facts.model_dump_json(indent=1))
    return facts


@contextlib.contextmanager
def _iostat(running: Running, path: Path) -> Iterator[None]:
    """What iostat says of the devices meanwhile."""
    command = ["iostat", "-dxty", "1", *dict.fromkeys(running.subject.devices.values())]
    with (
        path.open("wb") as out,
        subprocess.Popen(command, stdout=out, env={**os.environ, "S_TIME_FORMAT": "ISO"}) as process,
    ):
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)  # it then writes all of its last report
            process.wait()


def _settle(clients: Clients, load: Load) -> None:
    """Wait until the load lasts: by the clients' own word where they say something."""
    if load.script is None or not wait_until(lambda: len(clients.said) >= RAMP_S, 4 * RAMP_S):
        threading.Event().wait(RAMP_S)


def _use_up(running: Running) -> None:
    """Wait until the credits that a volume earned between two loads are gone; some loads hardly use more than it earns."""

    def gone() -> bool:
        counters = [document["counters"] for document in running.subject.stats().values()]
        return all(not counter.get("io_credits") or counter["io_credits"] < CREDITS_FEW for counter in counters)

    wait_until(gone, USE_UP_S)


def _watch(running: Running, stand: Stand, root: Path) -> None:
    bought = [word for role, spec in stand.volumes.items() for word in ("--bought", f"{role}={spec}")]
    instance = [] if stand.instance is None else ["--instance", stand.instance]
    command = [
        sys.executable, "-m", "pgdyno", "diagnose", running.monitor_dsn, "--for", f"{WATCH_S}s", "--keep", str(root), "--json",
        *bought, *instance,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise PgdynoError(
            f"the watch took more than {DEADLINE_S:g} s", remedy="repeat it on a quieter machine"
        ) from error
    if done.returncode != 0:
        raise PgdynoError(
            f"the watch ended with exit code {done.returncode}: {done.stderr.strip()}", remedy="repeat it by hand"
        )
    (root / "said.json").write_text(done.stdout)


def _look(running: Running) -> _Look:
    volumes = running.subject.stats()
    ticks = os.sysconf("SC_CLK_TCK")
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return _Look(
        unix_s=time.time(),
        volumes=volumes,
        idle_s=(int(fields[3]) + int(fields[4])) / ticks,
        server_s=_server_s(running),
    )


def _server_s(running: Running) -> float:
    """CPU time of the server's control group."""
    group = running.subject.roles((os.getpid(),))["server"].cgroup_cpu
    assert group is not None
    older = group / "cpuacct.usage"
    if older.is_file():
        return int(older.read_text()) / SECOND_NS
    result = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(result["usage_usec"]) / 1e6


def _share(used_s: float, before: _Look, after: _Look) -> float:
    """Of the machine's CPU."""
    return used_s / (after.unix_s - before.unix_s) / len(os.sched_getaffinity(0))


def _reading(before: _Look, after: _Look, role: str) -> Reading:
    first, last = before.volumes[role], after.volumes[role]
    grown = {
        name: value - (first["counters"].get(name) or 0)
        for name, value in last["counters"].items()
        if isinstance(value, int) and name != "queue_length"
    }
    pages = (samples.statistics(first), samples.statistics(last))
    return Reading(
        begin_unix_s=before.unix_s,
        end_unix_s=after.unix_s,
        grown=grown,
        nvme=pages,
        credits=first["counters"].get("io_credits"),
    )


def _control(running: Running, load: Load) -> float | None:
    """Transactions per second without the limit; None where the emulator's or the kernel's account tells."""
    if load.control is None and load.beside not in ("others", "standby") and load.limit != "client":
        return None
    if load.script is None:
        return None
    if load.control is not None and load.control.startswith("ALTER SYSTEM"):
        return _with_setting(running, load)
    more = _twice(load) if load.limit == "client" else load
    with loading(running, more, load.control or load.script) as clients:
        wait_until(lambda: len(clients.said) >= CONTROL_S, 4 * CONTROL_S)
    return clients.tps


def _left(running: Running, load: Load, readings: Mapping[str, Reading]) -> float | None:
    """What the volume that binds did without the consumer over what it did with it; None where no consumer is judged."""
    if load.consumer is None or load.limit not in OF_VOLUMES:
        return None
    role = binding_role(readings, load.limit)
    subprocess.run(["sync", "-f", running.data_directory()], check=True, timeout=DEADLINE_S)
    off = replace(load, script=load.without, program=None, beside=None)
    with loading(running, off) as clients:
        _settle(clients, off)
        begin = _look(running)
        threading.Event().wait(CONTROL_S)
        without = _reading(begin, _look(running), role)
    names = ("read_bytes", "write_bytes") if load.limit == "volume_throughput" else ("read_ops", "write_ops")
    return _rate(without, names) / max(1e-9, _rate(readings[role], names))


def _rate(reading: Reading, names: tuple[str, str]) -> float:
    return sum(reading.grown[name] for name in names) / (reading.end_unix_s - reading.begin_unix_s)


def _twice(load: Load) -> Load:
    return replace(
        load, clients=4 * load.clients, options=("--rate", str(4 * int(load.options[1]))) if load.options else ()
    )


def _with_setting(running: Running, load: Load) -> float | None:
    """The clients' transactions under another setting. A load ends every other session with its own, so none stays open over it."""
    assert load.control is not None
    _execute(running, load.control, "SELECT pg_reload_conf()", "CHECKPOINT")
    try:
        with loading(running, load) as clients:
            wait_until(lambda: len(clients.said) >= WATCH_S, 4 * WATCH_S)
    finally:
        _execute(running, "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
    return clients.tps


def _execute(running: Running, *statements: str) -> None:
    with running.connect() as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _is_refused(running: Running) -> bool:
    import psycopg

    try:
        running.connect("hoarder").close()
    except psycopg.OperationalError:
        return True
    return False


def _words(load: Load) -> str:
    what = load.program or ("no client" if load.script is None else " ".join(load.script.split())[:90])
    beside = "" if load.beside is None else f"; beside: {load.beside}"
    return f"{what}, {load.clients} clients {' '.join(load.options)}".strip() + beside

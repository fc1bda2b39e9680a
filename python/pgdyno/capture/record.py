"""Records what an application sends: a relay between its clients and the server, which keeps a capture."""

from __future__ import annotations

import ipaddress
import json
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..base import endpoint, engine
from ..base.errors import InputError, OutputError, PgdynoError

REACH_S = 10.0
"""A server that does not answer for so long is not there, as for pgdyno's own sessions."""


def record(
    listen: str,
    to: str,
    output: Path,
    *,
    seconds: float | None,
    ready: Callable[[str, int], None],
    progress: Callable[[Mapping[str, Any]], None],
    full: Callable[[str], None],
    short: Callable[[str], None],
) -> Mapping[str, Any]:
    """Relay clients of ``listen`` to the server ``to``, and keep what they send in ``output``. Ends after ``seconds``, or by Ctrl-C.

    ``ready`` gets the address when clients may connect, ``progress`` the counts about once a second, ``full`` once why the file cannot grow: then
    clients stay connected and are not recorded; ``short`` gets why clients wait to be let in. The result is what was recorded; ``ended_early`` in it says why that is not all.
    :class:`InputError` where an address cannot be used, and where no statement came: then there is no capture. :class:`OutputError` if the
    recorder was killed: ``output`` has what came until its last seconds.
    """
    server = target(to)
    require_server(server, to)
    host, port = listening(listen)
    order = {
        "listen": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "to": server,
        "name": server,
        "output": str(output),
        "seconds": seconds,
        "ends_with_stdin": True,
    }
    with tempfile.TemporaryDirectory(prefix="pgdyno-record-") as folder:
        spawned = engine.spawn(["capture", "record"], order, log=Path(folder) / "record.err", keep_stdin=True)
        summary: Mapping[str, Any] = {}
        try:
            ready(str(spawned.ready["host"]), int(spawned.ready["port"]))
            summary = _follow(spawned, progress, full, short)
        except KeyboardInterrupt:
            # On a terminal it has heard the same signal; else this is how it learns of it.
            spawned.close_stdin()
            summary = _follow(spawned, progress, full, short)
        finally:
            _close(spawned)
        if not summary:
            raise _failure(spawned, output)
        return summary


def _failure(spawned: engine.EngineProcess, output: Path) -> PgdynoError:
    """Error about a missing summary, with the state of the recording."""
    code = spawned.process.returncode
    error = spawned.failure()
    if code >= 0 or not output.exists():
        return error
    return OutputError(
        f"the recorder was killed by signal {-code}; {output} has what clients sent until its last seconds",
        remedy=f"use it as it is (`pgdyno capture show {output}` says what is missing), or record again",
        code="capture.record.killed",
        data={"path": str(output), "signal": -code},
    )


def _follow(
    spawned: engine.EngineProcess,
    progress: Callable[[Mapping[str, Any]], None],
    full: Callable[[str], None],
    short: Callable[[str], None],
) -> Mapping[str, Any]:
    """Lines of the engine until it ends; the last is the summary."""
    summary: Mapping[str, Any] = {}
    for document in _lines(spawned):
        if "progress" in document:
            progress(document["progress"])
        if "full" in document:
            full(document["full"])
        if "short" in document:
            short(document["short"])
        summary = document.get("summary", summary)
    spawned.process.wait()
    return summary


def _lines(spawned: engine.EngineProcess) -> Iterator[dict[str, Any]]:
    assert spawned.process.stdout is not None
    for line in spawned.process.stdout:
        yield json.loads(line)


def _close(spawned: engine.EngineProcess) -> None:
    """No engine stays, and no pipe."""
    if spawned.process.poll() is None:
        spawned.process.kill()
        spawned.process.wait()
    spawned.close_stdin()
    if spawned.process.stdout is not None:
        spawned.process.stdout.close()


def target(to: str) -> str:
    """``HOST:PORT`` as an address, or the path of a socket, of what ``--to`` names: that, or a connection string."""
    host, sign, port = to.rpartition(":")
    if sign and port.isdecimal() and "=" not in host and "/" not in host:
        return _address(host.strip("[]"), port, "--to")
    endpoint.refuse_secrets(to, "--to", "capture record")
    document = _named(to)
    hosts = document.get("hostaddr") or document.get("host", "")
    if "," in hosts or "," in document.get("port", ""):
        raise InputError(
            f"{endpoint.public_dsn(to)} names several hosts", remedy="name the one to record: --to HOST:PORT"
        )
    port = document.get("port") or "5432"
    if not hosts or hosts.startswith("/"):
        folder = hosts or _socket_folder(port)
        return str(Path(folder) / f".s.PGSQL.{port}")
    if hosts.startswith("@"):
        raise InputError(
            "a socket without a file cannot be relayed to", remedy="name the server's port: --to HOST:PORT"
        )
    return _address(hosts, port, "--to")


def listening(listen: str) -> tuple[str, int]:
    """Address and port of ``--listen``."""
    host, sign, port = listen.rpartition(":")
    if not sign or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--listen {listen} is not HOST:PORT", remedy="write for example --listen 127.0.0.1:6432")
    address = _address(host.strip("[]") or "127.0.0.1", port, "--listen")
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _address(host: str, port: str, flag: str) -> str:
    """A name as the first of its addresses."""
    try:
        getaddrinfo = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"{flag}: {host}:{port} is not known: {error}", remedy="name another host, or its address"
        ) from None
    number = str(getaddrinfo[0][4][0])
    plain = number.partition("%")[0]
    return f"[{plain}]:{port}" if ipaddress.ip_address(plain).version == 6 else f"{plain}:{port}"


def _named(dsn: str) -> dict[str, str]:
    """Parameters of a connection string, its service and the environment, without a log-in."""
    from psycopg import pq

    # Beginning to connect is what reads service files; the session is given up at once.
    pgconn = pq.PGconn.connect_start(dsn.encode())
    try:
        document = {item.keyword.decode(): item.val.decode() for item in pgconn.info if item.val}
        if pgconn.status == pq.ConnStatus.BAD and not (document.get("host") or document.get("hostaddr")):
            text = pgconn.error_message.decode(errors="replace").strip()
            if "service" in text:
                raise InputError(f"--to: {text}", remedy="name a service of your service file, or --to HOST:PORT")
        return document
    finally:
        pgconn.finish()


def _socket_folder(port: str) -> str:
    """Directories in which PostgreSQL's packages put sockets; libpq does not say what it was built with."""
    folders = ("/var/run/postgresql", "/tmp")
    return next((folder for folder in folders if (Path(folder) / f".s.PGSQL.{port}").exists()), folders[0])


def require_server(server: str, to: str) -> None:
    """Refuse a server that does not take connections: clients would only see a broken connection."""
    try:
        if server.startswith("/"):
            with socket.socket(socket.AF_UNIX) as tried:
                tried.settimeout(REACH_S)
                tried.connect(server)
        else:
            host, _, port = server.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no server takes connections at {server} (--to {endpoint.public_dsn(to) if '=' in to else to}): {error}",
            remedy="start it, or name its host and port: --to HOST:PORT",
        ) from None

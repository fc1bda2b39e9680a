"""Visibility of an existing server from this host: what can be sampled, and the reason for what cannot.

The answer depends on three things: whether the server's processes are on this host, whether this user may look into
them, and what its role may see in the server. Nothing is changed, on the host or in the server.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pgdyno.probe.host import Role
from pgdyno.probe.sampler import START_PATIENCE_S, no_session

from ..base import session
from ..base.session import Connection
from ..machine.mounts import kernel_lines
from ..results.record import Visibility
from ..results.tables import DATA_VOLUME
from . import sampler

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True)
class BlockDevice:
    """A block device with the file system that the directory is on."""

    name: str
    """``nvme1n1``, ``dm-0``, ``sda2``: as in ``/sys/class/block``."""
    file_system: str
    mount_options: str


def device_below(path: Path, process: int | None = None) -> BlockDevice | str:
    """The device that a directory is on, or why it cannot be determined; ``process`` sees the directory as ``path`` does.

    ``path`` may go through ``/proc/PID/root`` or ``/proc/PID/cwd``, which lead into that process's own mounts.
    """
    try:
        number = path.stat().st_dev
    except OSError as error:
        return f"its directory cannot be looked at: {error.strerror or error}"
    major_minor = f"{os.major(number)}:{os.minor(number)}"
    mount = _mount(major_minor, process)
    if mount is None:
        return "its file system is mounted where this user cannot see it"
    file_system, source, options = mount
    node = Path(f"/sys/dev/block/{major_minor}")
    if not node.exists() and source.startswith("/dev/"):
        # btrfs and others give their files a number of their own.
        try:
            number = Path(source).stat().st_rdev
        except OSError as error:
            return f"its device {source} cannot be looked at: {error.strerror or error}"
        node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not node.exists():
        return f"it is on {file_system}, which has no block device here"
    return BlockDevice(node.resolve().name, file_system, options)


def _mount(major_minor: str, process: int | None) -> tuple[str, str, str] | None:
    """Type, source and options of the file system with that number."""
    try:
        lines = kernel_lines(Path(f"/proc/{process or 'self'}/mountinfo"))
    except OSError:
        return None if process is None else _mount(major_minor, None)
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, (file_system, source, *super_options) = left.split(" "), right.split(" ")
        if fields[2] == major_minor:
            options = dict.fromkeys([*fields[5].split(","), *(super_options[0].split(",") if super_options else ())])
            return file_system, _unescaped(source), ",".join(options)
    return None


def _unescaped(text: str) -> str:
    """The kernel writes a space as ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


WAL = "wal"
"""Role of the volume that ``pg_wal`` is on, when it is not the data's."""


_POOLED = Visibility(
    what="the CPU time of the probes' own sessions",
    seen=False,
    why="a connection pooler is between, and chooses the sessions",
)


@dataclass(frozen=True)
class View:
    """Sources of a server that can be sampled."""

    roles: dict[str, Role] = field(default_factory=dict)
    """``server``, when its processes are here: for :class:`pgdyno.probe.host.HostProbe`."""
    devices: dict[str, str] = field(default_factory=dict)
    """Block device by role: ``data``, and ``wal`` and ``tablespace.NAME`` where they are on others."""
    file_system: str | None = None
    """Device of the data directory."""
    mount_options: str | None = None
    visibility: tuple[Visibility, ...] = ()


def look(dsn: str) -> View:
    """See what can be seen of the server ``dsn``; :class:`PgdynoError` when it takes no connection."""
    import psycopg

    try:
        with psycopg.connect(
            dsn,
            autocommit=True,
            cursor_factory=_question(),
            connect_timeout=int(START_PATIENCE_S),
            **session.OPTIONS,
        ) as connection:
            backend = sampler.local_backend(connection)
            roles, devices, results = _on_the_host(connection, backend)
            visibilities = [*results, *_in_the_server(connection)]
            if session.is_pooled(connection):
                visibilities.append(_POOLED)
    except psycopg.Error as error:
        raise no_session(error, "looked at") from error
    data = devices.get(DATA_VOLUME)
    return View(
        roles=roles,
        devices={role: device.name for role, device in devices.items()},
        file_system=None if data is None else data.file_system,
        mount_options=None if data is None else data.mount_options,
        visibility=tuple(visibilities),
    )


def _question() -> type[psycopg.Cursor[tuple[Any, ...]]]:
    """A cursor each of whose questions is one message and a read-only transaction of its own: a connection pooler in statement mode
    allows no others, and in transaction mode each may be another session's.
    """
    import psycopg

    class Question(psycopg.ClientCursor[tuple[Any, ...]]):
        def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
            super().execute(
                f"SET LOCAL transaction_read_only = on; {session.SERVER_NAMES_LOCAL}; {query}", params, **options
            )
            while self.nextset():
                pass
            return self

    return Question


def _on_the_host(
    connection: Connection, backend: int | None
) -> tuple[dict[str, Role], dict[str, BlockDevice], list[Visibility]]:
    server = None if backend is None else sampler.parent(backend)
    if server is None:
        why = "they are on another host, or this user may not see them"
        what = ("the server's processes", "the server's memory", "the data directory's device")
        return {}, {}, [Visibility(what=name, seen=False, why=why) for name in what]
    memory = sampler.memory_group(server)
    roles = {"server": Role(parents=(server,), cgroup_memory=memory)}
    visibilities = [
        Visibility(what="the server's processes", seen=True, why=f"process {server} and its children"),
        Visibility(
            what="the server's memory",
            seen=memory is not None,
            why=f"the control group {memory}" if memory else "it has no control group of its own",
        ),
    ]
    devices, results = _devices(connection, server)
    return roles, devices, visibilities + results


def _devices(connection: Connection, server: int) -> tuple[dict[str, BlockDevice], list[Visibility]]:
    """Devices by role, and a line for each directory."""
    devices: dict[str, BlockDevice] = {}
    visibilities: list[Visibility] = []
    for role, (what, path) in _directories(connection, server).items():
        device = path if isinstance(path, str) else device_below(path, server)
        if isinstance(device, str):
            visibilities.append(Visibility(what=what, seen=False, why=device))
            continue
        same = next((known for known, other in devices.items() if other.name == device.name), None)
        if same is None:
            devices[role] = device
        shared = f", which is the {same} volume's" if same else ""
        visibilities.append(Visibility(what=what, seen=True, why=f"{device.name} with {device.file_system}{shared}"))
    return devices, visibilities


def _directories(connection: Connection, server: int) -> dict[str, tuple[str, Path | str]]:
    """(what it is, where it is seen here or why it is not) by the role of its volume."""
    root, data = _data_directory(connection, server)
    directories: dict[str, tuple[str, Path | str]] = {DATA_VOLUME: ("the data directory's device", data)}
    directories[WAL] = ("the WAL's device", data if isinstance(data, str) else _linked(data / "pg_wal", root))
    spaces = connection.execute(
        "SELECT spcname, pg_tablespace_location(oid) FROM pg_tablespace"
        " WHERE pg_tablespace_location(oid) <> '' ORDER BY 1"
    ).fetchall()
    for name, location in spaces:
        place = Path(location)
        path = root / place.relative_to("/") if place.is_absolute() else data if isinstance(data, str) else data / place
        directories[f"tablespace.{name}"] = (f"the device of the tablespace {name}", path)
    return directories


def _data_directory(connection: Connection, server: int) -> tuple[Path, Path | str]:
    """The root of the server's own mounts and its data directory there, or why that is not known."""
    root = Path(f"/proc/{server}/root")
    if os.access(root, os.X_OK):
        # The postmaster works in its data directory, whatever that is called in its own mounts.
        return root, Path(f"/proc/{server}/cwd")
    if sampler.in_container(server):
        return Path("/"), "the server is in a container, which this user may not look into"
    if not _may(connection, "pg_read_all_settings"):
        return Path("/"), "neither this user nor its role in the server may know where it is"
    row = connection.execute("SELECT current_setting('data_directory')").fetchone()
    assert row is not None
    return Path("/"), Path(row[0])


def _linked(link: Path, root: Path) -> Path | str:
    """Target of a link inside the data directory: an absolute one begins at the server's own root."""
    try:
        target = os.readlink(link)
    except PermissionError:
        return "this user may not look into the data directory"
    except OSError:
        return link  # it is the directory itself
    return root / target.lstrip("/") if target.startswith("/") else link


def _in_the_server(connection: Connection) -> list[Visibility]:
    """Sources that the role and the server's settings show."""
    version = connection.info.server_version
    stats = _may(connection, "pg_read_all_stats")
    return [
        Visibility(
            what="wait events of other roles' sessions and of the server's own processes",
            seen=stats,
            why="" if stats else "the role is not a member of pg_read_all_stats (or pg_monitor)",
        ),
        _setting(connection, "wait events", "track_activities", "sessions do not say what they do"),
        Visibility(
            what="reads and writes by kind of process (pg_stat_io)",
            seen=version >= 160000,
            why="" if version >= 160000 else "it came with PostgreSQL 16",
        ),
        _setting(connection, "time of reads and writes of data", "track_io_timing", "the server does not take it"),
        _setting(connection, "time of writes and syncs of WAL", "track_wal_io_timing", "the server does not take it"),
        Visibility(
            what="the volume's limits, queue and latency",
            seen=False,
            why="a real volume does not say; what its device did is seen where the device is",
        ),
    ]


def _setting(connection: Connection, what: str, name: str, off: str) -> Visibility:
    row = connection.execute("SELECT current_setting(%s, true)::boolean", (name,)).fetchone()
    on = bool(row and row[0])
    return Visibility(what=what, seen=on, why=f"{name} is on" if on else f"{name} is off: {off}")


def _may(connection: Connection, role: str) -> bool:
    """Whether the session has the rights of a predefined role; a superuser has them all."""
    row = connection.execute("SELECT pg_has_role(%s, 'USAGE')", (role,)).fetchone()
    return bool(row and row[0])

"""PostgreSQL's settings for a run: its own defaults, or a plain set for the instance's memory.

What would give up durability or the work that a real server does (fsync, full_page_writes, synchronous_commit,
autovacuum) is never touched: the numbers would be those of another database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import InputError

if TYPE_CHECKING:
    import psycopg

PRELOAD = "shared_preload_libraries"
_MIB = 1 << 20
_GIB = 1 << 30

CONNECTIONS_MIN = 200
"""Room for many clients and the probe."""
CONNECTIONS_DEFAULT = 100
"""The server's own default of max_connections."""
CONNECTIONS_BESIDE = 20
"""Sessions beside the driver's: the probes', the checks', and what pgbench asks before its clients connect."""

NEWEST_MAJOR = 18
"""The embedded server's major version."""


WAL_SHARE_OF_VOLUME = 0.4
"""max_wal_size beside the volume that WAL lies on. It is a soft limit (documentation of PostgreSQL 18, "max_wal_size"): WAL grows
beyond it while a checkpoint is late, and a full volume stops the server. What is left is for that, and for data beside it."""

_WAL_MIB_MIN = 32
"""Two segments of 16 MiB: the server does not start with less for either of the two sizes."""


def together(*sets: Mapping[str, str]) -> dict[str, str]:
    """Several sets of settings as one: a later value goes first, but libraries that a server preloads are those of all."""
    document = {name: value for other in sets for name, value in other.items()}
    libraries = [name.strip() for other in sets for name in other.get(PRELOAD, "").split(",") if name.strip()]
    return document | {PRELOAD: ",".join(dict.fromkeys(libraries))} if libraries else document


@dataclass(frozen=True)
class Setting:
    """One setting, with the reason why it differs from the server's default."""

    name: str
    value: str
    reason: str


def tuned_settings(
    memory_bytes: int, major: int = NEWEST_MAJOR, clients: int = 0, *, wal_volume_bytes: int | None = None
) -> list[Setting]:
    """The plain tuned set for an instance of ``memory_bytes`` under the major version ``major``, with reasons.

    ``clients`` is how many connect at a time; it matters only where they are very many. ``wal_volume_bytes`` is the size of the
    volume that WAL lies on, where it is known: max_wal_size must fit on it.

    Where versions have different defaults the later one's value is set for the earlier, so that two versions are
    compared by their code and not by what each happens to assume of a disk.
    """
    wal_mib, wal_reason = (
        _clamp(2 * memory_bytes, 2 * _GIB, 64 * _GIB) // _MIB,
        "checkpoints come by time, not by volume of WAL",
    )
    if wal_volume_bytes is not None and (most := int(wal_volume_bytes * WAL_SHARE_OF_VOLUME) // _MIB) < wal_mib:
        wal_mib, wal_reason = (
            max(_WAL_MIB_MIN, most),
            f"{WAL_SHARE_OF_VOLUME:.0%} of the volume that WAL lies on: more could fill it",
        )
    return [
        Setting("shared_buffers", _mib(memory_bytes // 4), "25 % of memory, the manual's starting point"),
        Setting("effective_cache_size", _mib(memory_bytes * 3 // 4), "what buffers and page cache can hold together"),
        Setting(
            "maintenance_work_mem",
            _mib(_clamp(memory_bytes // 16, 64 * _MIB, 2 * _GIB)),
            "index builds and vacuum in few passes",
        ),
        Setting("max_wal_size", f"{wal_mib}MB", wal_reason),
        Setting("min_wal_size", f"{max(_WAL_MIB_MIN, wal_mib // 4)}MB", "WAL files are recycled rather than created"),
        Setting("checkpoint_timeout", "15min", "fewer full-page images; recovery stays short enough"),
        Setting("checkpoint_completion_target", "0.9", "checkpoint writes are spread out (the default since 14)"),
        Setting("wal_buffers", "16MB", "one segment; what the server chooses itself from 512 MB of buffers on"),
        Setting("wal_compression", "off", "the WAL's volume is part of what is measured; said, not left to a default"),
        Setting("random_page_cost", "1.1", "a network SSD reads at random nearly as fast as in sequence"),
        Setting("huge_pages", "off", "the same on every host; the default depends on what the host has reserved"),
        Setting(
            "max_connections",
            str(max(CONNECTIONS_MIN, clients + CONNECTIONS_BESIDE)),
            "room for many clients and the probe",
        ),
        Setting("track_io_timing", "on", "how long reads take shows whether storage binds"),
        Setting("jit", "off", "statements are short, and not every build has it"),
        *_of_version(major),
    ]


def _of_version(major: int) -> list[Setting]:
    """What only some versions need or know."""
    version = []
    if major < 18:
        version.append(
            Setting("effective_io_concurrency", "16", "the default since 18; it was 1, which reads one page at a time")
        )
    if 13 <= major < 18:
        version.append(Setting("maintenance_io_concurrency", "16", "the default since 18; it was 10"))
    if major == 16:
        version.append(Setting("vacuum_buffer_usage_limit", "2MB", "the default since 17; it was 256 kB"))
    if major >= 18:
        version.append(Setting("io_method", "worker", "the default, said: io_uring is not in every build"))
    return version


def tuned(
    memory_bytes: int, major: int = NEWEST_MAJOR, clients: int = 0, *, wal_volume_bytes: int | None = None
) -> dict[str, str]:
    """Names and values of :func:`tuned_settings`."""
    settings = tuned_settings(memory_bytes, major, clients, wal_volume_bytes=wal_volume_bytes)
    return {setting.name: setting.value for setting in settings}


def defaults() -> dict[str, str]:
    """The server's own defaults: nothing is set."""
    return {}


FORBIDDEN: Mapping[str, str] = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
"""Values that :func:`render` refuses, by name."""

_OURS = frozenset(
    {"listen_addresses", "port", "unix_socket_directories", "data_directory", "hba_file", "logging_collector"}
)


def render(settings: Mapping[str, str]) -> str:
    """The lines of a configuration file. :class:`InputError` for what must not be set."""
    for name, value in settings.items():
        if not name.replace("_", "").replace(".", "").isalnum():
            raise InputError(f"`{name}` is not a setting of PostgreSQL", remedy="write the name as in pg_settings")
        known = name.lower()  # the server takes names in any case
        if known in _OURS:
            raise InputError(f"pgdyno sets {name} itself", remedy="omit it")
        if known in FORBIDDEN and _is_off(value):
            raise InputError(
                f"{name} = {value} makes PostgreSQL another database, and its numbers those of another database",
                remedy=f'leave {name} on; an experiment measures what it costs with postgres.given_up = ["{name}"]'
                if known == "full_page_writes"
                else f"leave {name} on",
            )
    return "".join(f"{name} = {quote(value)}\n" for name, value in settings.items())


def _is_off(value: str) -> bool:
    """Whether the server reads a value as false: it takes the beginnings of the words, too."""
    return value.strip().lower() in ("0", "of", "off", "n", "no", "f", "fa", "fal", "fals", "false")


def quote(value: str) -> str:
    """A value between the quotes of a configuration file."""
    if "\n" in value or "\0" in value:
        raise InputError("a setting of PostgreSQL is one line", remedy="remove the line break")
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _mib(size_bytes: int) -> str:
    return f"{size_bytes // _MIB}MB"


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def of_server(connection: psycopg.Connection[Any]) -> list[dict[str, str | None]]:
    """Every setting that the role may see, as the server reports it: name, setting, unit, source, boot_val."""
    columns = ("name", "setting", "unit", "source", "boot_val")
    rows = connection.execute(f"SELECT {', '.join(columns)} FROM pg_catalog.pg_settings ORDER BY name").fetchall()
    return [dict(zip(columns, row, strict=True)) for row in rows]

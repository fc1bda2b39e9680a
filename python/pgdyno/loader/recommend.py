"""Settings of the whole server that would help a load: said, written to files with what undoes them, never made.

The files are SQL (``ALTER SYSTEM``) and parameter groups of RDS for ``aws rds modify-db-parameter-group
--cli-input-json``. Values are in PostgreSQL's base units, as RDS wants them, and a call has
twenty parameters at most (AWS documentation, ModifyDBParameterGroup).

Undoing brings back where a value came from, and not the value: a literal in its place would shadow ``postgresql.conf`` from
then on, and in a parameter group a formula such as ``{DBInstanceClassMemory/32768}`` would be a number. So what ``ALTER SYSTEM``
had not set is reset, and the parameters of a group are reset (``aws rds reset-db-parameter-group``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from ..base import owner
from ..base.errors import InputError

PARAMETERS_PER_CALL = 20
MIB = 1 << 20
CHECKPOINT_TIMEOUT_S = 1800
"""As Amazon's example of a parameter group for bulk loading has it."""
SEGMENTS_BESIDE = 3
"""Of WAL, beside those of a checkpoint interval: a checkpoint is ordered when the segment that begins is one less than the limit
away from that of the last checkpoint's redo point, which lies anywhere in its own (``XLogCheckpointNeeded`` of PostgreSQL's
``xlog.c``), and the limit is rounded down."""
COMPLETION_TARGET = 0.9
"""The default since PostgreSQL 14."""
SEGMENT_BYTES = 16 * MIB
"""The default."""
WAL_SHARE_OF_FREE = 0.5
"""More WAL than half of the free space is one unexpected slot away from a full disk."""
FILES = ("settings.sql", "settings-undo.sql")
_STATIC = "postmaster"
_AUTO_CONF = "postgresql.auto.conf"
"""What ``ALTER SYSTEM`` writes."""

Origin = Literal["default", "file", "alter system", "unknown", "elsewhere"]
"""Where a value comes from. ``unknown``: a file that this role may not see (``pg_read_all_settings`` may); ``elsewhere``: the
server's command line, the role or the database, which come before ``ALTER SYSTEM``."""


@dataclass(frozen=True)
class LoadSetting:
    """One setting as it is and as it should be while loading. Values in PostgreSQL's base unit."""

    name: str
    now: str
    proposed: str
    unit: str
    """``MB``, ``s``, ``8kB`` or empty."""
    context: str
    """``pg_settings.context``: ``postmaster`` needs a restart."""
    origin: Origin
    reason: str

    @property
    def static(self) -> bool:
        """Whether it holds after a restart only."""
        return self.context == _STATIC

    def sql(self) -> str:
        """The statement that makes it, or why there is none."""
        if self.origin == "elsewhere":
            return (
                f"-- {self.name} is set on the server's command line, or for the role or the database: change it there"
            )
        return f"{self._altered(self.proposed)}  -- {self.reason}"

    def sql_undo(self) -> list[str]:
        """The statement that brings back what was."""
        reset = f"ALTER SYSTEM RESET {self.name};"
        if self.origin == "elsewhere":
            return []
        if self.origin == "alter system":
            return [self._altered(self.now)]
        if self.origin == "unknown":
            return [
                f"-- This role may not see where {self.name} was set. If ALTER SYSTEM had set it, run this instead:",
                f"-- {self._altered(self.now)}",
                reset,
            ]
        return [reset]

    def _altered(self, value: str) -> str:
        return f"ALTER SYSTEM SET {self.name} = '{value}{self.unit if self.unit in _SQL_UNITS else ''}';"


_SQL_UNITS = ("MB", "kB", "s", "ms", "min")


def settings(
    current: Mapping[str, Mapping[str, Any]],
    *,
    wal_bytes_per_s: float,
    wal_bytes_total: float | None,
    free_bytes: int | None,
    volume_binds: bool,
) -> list[LoadSetting]:
    """What to change for a load that writes so much WAL. ``current``: rows of ``pg_settings`` by name."""
    interval_s = CHECKPOINT_TIMEOUT_S
    wal = wal_bytes_per_s * interval_s
    if wal_bytes_total is not None:
        wal = min(wal, wal_bytes_total)
    needed = max_wal_bytes(current, wal)
    most = math.inf if free_bytes is None else free_bytes * WAL_SHARE_OF_FREE
    wal_mb = math.ceil(min(needed, most) / MIB)
    settings: list[LoadSetting] = []
    if wal_mb > _number(current, "max_wal_size"):
        why = f"so that no checkpoint is forced by {wal_bytes_per_s / MIB:,.0f} MiB/s of WAL"
        if needed > most:
            why = (
                f"half of the free space; {math.ceil(needed / MIB):,} MB would be needed so that no checkpoint is forced by"
                f" {wal_bytes_per_s / MIB:,.0f} MiB/s of WAL"
            )
        settings.append(_setting(current, "max_wal_size", str(wal_mb), why))
        if interval_s > _number(current, "checkpoint_timeout"):
            why = "each checkpoint makes the next change of every page a full page in the WAL"
            settings.append(_setting(current, "checkpoint_timeout", str(interval_s), why))
    if volume_binds and _text(current, "wal_compression") == "off" and "wal_compression" in current:
        why = "full pages in the WAL are compressed where the volume is the limit and the CPU is not"
        settings.append(_setting(current, "wal_compression", "on", why))
    return settings


def max_wal_bytes(current: Mapping[str, Mapping[str, Any]], wal_bytes: float) -> float:
    """The max_wal_size with which so much WAL after a checkpoint orders no other one.

    A checkpoint is ordered after max_wal_size / (1 + checkpoint_completion_target) of WAL, because the WAL before the last
    checkpoint is kept until the next one is done (``CalculateCheckpointSegments`` of PostgreSQL's ``xlog.c``).
    """
    target = _number(current, "checkpoint_completion_target", COMPLETION_TARGET)
    segment_bytes = _number(current, "wal_segment_size", SEGMENT_BYTES)
    return (wal_bytes + SEGMENTS_BESIDE * segment_bytes) * (1 + target)


def alter_system(settings: Sequence[LoadSetting], *, inverse: bool) -> str:
    """SQL that makes the settings, or that brings back what was."""
    lines = [line for setting in settings for line in (setting.sql_undo() if inverse else [setting.sql()])]
    after = "-- restart the server" if any(setting.static for setting in settings) else "SELECT pg_reload_conf();"
    return "\n".join([*lines, after]) + "\n"


def parameter_groups(settings: Sequence[LoadSetting], *, inverse: bool) -> list[dict[str, Any]]:
    """Documents for ``--cli-input-json``, of twenty parameters each; the group's name comes from the command line.

    They are for ``modify-db-parameter-group``, and the inverse for ``reset-db-parameter-group``, which takes no values.
    """
    parameters = [
        {
            "ParameterName": setting.name,
            **({} if inverse else {"ParameterValue": setting.proposed}),
            "ApplyMethod": "pending-reboot" if setting.static else "immediate",
        }
        for setting in settings
    ]
    calls = [parameters[at : at + PARAMETERS_PER_CALL] for at in range(0, len(parameters), PARAMETERS_PER_CALL)]
    return [{"Parameters": call} for call in calls]


def require_new(folder: Path) -> None:
    """:class:`InputError` for a folder with such files: once settings are made, they alone say what was before."""
    there = next((folder / name for name in FILES if (folder / name).exists()), None)
    if there is not None:
        raise InputError(
            f"--recommend: {there} already exists, and its folder says how to undo what it recommends",
            remedy="name another folder, or remove these files once they are not needed",
        )


def write(settings: Sequence[LoadSetting], folder: Path) -> list[Path]:
    """Write the files, and say which. :class:`InputError` where they cannot be written, or are there already."""
    require_new(folder)
    texts = dict(zip(FILES, (alter_system(settings, inverse=inverse) for inverse in (False, True)), strict=True))
    for name, inverse in (("parameters", False), ("parameters-undo", True)):
        for number, call in enumerate(parameter_groups(settings, inverse=inverse), 1):
            texts[f"{name}-{number}.json"] = json.dumps(call, indent=1) + "\n"
    try:
        owner.make_directories(folder)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            owner.give(folder / name)
    except OSError as error:
        raise InputError(
            f"--recommend: {folder} cannot be written: {error.strerror}", remedy="name a folder that you may write to"
        ) from None
    return [folder / name for name in texts]


def _setting(current: Mapping[str, Mapping[str, Any]], name: str, proposed: str, reason: str) -> LoadSetting:
    row = current[name]
    return LoadSetting(name, str(row["setting"]), proposed, row["unit"] or "", row["context"], _origin(row), reason)


def _origin(row: Mapping[str, Any]) -> Origin:
    if row["source"] in ("default", None):
        return "default"
    if row["source"] != "configuration file":
        return "elsewhere"
    if row["sourcefile"] is None:
        return "unknown"
    return "alter system" if PurePosixPath(row["sourcefile"].replace("\\", "/")).name == _AUTO_CONF else "file"


def _text(current: Mapping[str, Mapping[str, Any]], name: str) -> str:
    return str(current.get(name, {}).get("setting"))


def _number(current: Mapping[str, Mapping[str, Any]], name: str, otherwise: float = math.inf) -> float:
    """The setting, or infinity where the role may not see it: then nothing is proposed."""
    row = current.get(name)
    return otherwise if row is None else float(row["setting"])

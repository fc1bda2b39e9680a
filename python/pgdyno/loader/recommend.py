"""Settings of the whole server that would help a load: said, written to files with what undoes them, never made.

The files are SQL (``ALTER SYSTEM``) and parameter groups of RDS for ``aws rds modify-db-parameter-group
--cli-input-json``, each with its inverse. Values are in PostgreSQL's base units, as RDS wants them, and a call has
twenty parameters at most (AWS documentation, ModifyDBParameterGroup).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARAMETERS_PER_CALL = 20
MIB = 1 << 20
WAL_MARGIN = 1.5
"""max_wal_size beside the WAL of one checkpoint interval: a checkpoint begins before the space is used up, because the last
one's WAL is kept too until the next is done."""
CHECKPOINT_TIMEOUT_S = 1800
"""As Amazon's example of a parameter group for bulk loading has it."""
WAL_SHARE_OF_FREE = 0.5
"""More WAL than half of the free space is one unexpected slot away from a full disk."""
_STATIC = "postmaster"


@dataclass(frozen=True)
class Setting:
    """One setting as it is and as it should be while loading. Values in PostgreSQL's base unit."""

    name: str
    now: str
    proposed: str
    unit: str
    """``MB``, ``s``, ``8kB`` or empty."""
    context: str
    """``pg_settings.context``: ``postmaster`` needs a restart."""
    is_default: bool
    """Whether nobody has set it: then the inverse is to reset it."""
    reason: str

    @property
    def static(self) -> bool:
        """Whether it holds after a restart only."""
        return self.context == _STATIC


def settings(
    current: Mapping[str, Mapping[str, Any]],
    *,
    wal_bytes_per_s: float,
    wal_bytes_total: float | None,
    free_bytes: int | None,
    volume_binds: bool,
) -> list[Setting]:
    """What to change for a load that writes so much WAL. ``current``: rows of ``pg_settings`` by name."""
    interval_s = CHECKPOINT_TIMEOUT_S
    wal = wal_bytes_per_s * interval_s * WAL_MARGIN
    if wal_bytes_total is not None:
        wal = min(wal, wal_bytes_total * WAL_MARGIN)
    if free_bytes is not None:
        wal = min(wal, free_bytes * WAL_SHARE_OF_FREE)
    wal_mb = math.ceil(wal / MIB)
    found: list[Setting] = []
    if wal_mb > _number(current, "max_wal_size"):
        why = f"so that no checkpoint is forced by {wal_bytes_per_s / MIB:,.0f} MiB/s of WAL"
        found.append(_setting(current, "max_wal_size", str(wal_mb), why))
        if interval_s > _number(current, "checkpoint_timeout"):
            why = "each checkpoint makes the next change of every page a full page in the WAL"
            found.append(_setting(current, "checkpoint_timeout", str(interval_s), why))
    if volume_binds and _text(current, "wal_compression") == "off" and "wal_compression" in current:
        why = "full pages in the WAL are compressed where the volume is the limit and the CPU is not"
        found.append(_setting(current, "wal_compression", "on", why))
    return found


def alter_system(found: Sequence[Setting], *, inverse: bool) -> str:
    """SQL that makes the settings, or that brings back what was."""
    lines = []
    for one in found:
        if inverse and one.is_default:
            lines.append(f"ALTER SYSTEM RESET {one.name};")
            continue
        value = one.now if inverse else one.proposed
        comment = "" if inverse else f"  -- {one.reason}"
        lines.append(f"ALTER SYSTEM SET {one.name} = '{value}{_sql_unit(one)}';{comment}")
    after = "-- restart the server" if any(one.static for one in found) else "SELECT pg_reload_conf();"
    return "\n".join([*lines, after]) + "\n"


def parameter_groups(found: Sequence[Setting], *, inverse: bool) -> list[dict[str, Any]]:
    """Documents for ``--cli-input-json``, of twenty parameters each; the group's name comes from the command line."""
    parameters = [
        {
            "ParameterName": one.name,
            "ParameterValue": one.now if inverse else one.proposed,
            "ApplyMethod": "pending-reboot" if one.static else "immediate",
        }
        for one in found
    ]
    calls = [parameters[at : at + PARAMETERS_PER_CALL] for at in range(0, len(parameters), PARAMETERS_PER_CALL)]
    return [{"Parameters": call} for call in calls]


def write(found: Sequence[Setting], folder: Path) -> list[Path]:
    """Write the files, and say which."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"settings.sql": alter_system(found, inverse=False), "settings-undo.sql": alter_system(found, inverse=True)}
    for name, inverse in (("parameters", False), ("parameters-undo", True)):
        for number, call in enumerate(parameter_groups(found, inverse=inverse), 1):
            texts[f"{name}-{number}.json"] = json.dumps(call, indent=1) + "\n"
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _setting(current: Mapping[str, Mapping[str, Any]], name: str, proposed: str, reason: str) -> Setting:
    row = current[name]
    is_default = row["source"] in ("default", None)
    return Setting(name, str(row["setting"]), proposed, row["unit"] or "", row["context"], is_default, reason)


def _text(current: Mapping[str, Mapping[str, Any]], name: str) -> str:
    return str(current.get(name, {}).get("setting"))


def _number(current: Mapping[str, Mapping[str, Any]], name: str) -> float:
    """The setting, or infinity where the role may not see it: then nothing is proposed."""
    row = current.get(name)
    return math.inf if row is None else float(row["setting"])


def _sql_unit(one: Setting) -> str:
    return one.unit if one.unit in ("MB", "kB", "s", "ms", "min") else ""

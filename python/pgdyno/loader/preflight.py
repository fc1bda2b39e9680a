"""``pgdyno load --dry-run``: what a load would do, how long it would take and what would limit it. Nothing is changed."""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pgdyno.loader import column_types, index_cost, indexes, recommend, server, table
from pgdyno.loader import forecast as forecasts
from pgdyno.loader.asked import LoadOptions
from pgdyno.loader.ending import server_errors
from pgdyno.loader.flow import KEPT_FOR_MERGE
from pgdyno.loader.measured import SampleSizes, measure
from pgdyno.loader.put_back import builds_at_a_time
from pgdyno.loader.ready import PreparedLoad, get_ready
from pgdyno.loader.transfer import connections

from ..base.errors import HostError, InputError
from ..base.session import Connection

GIB = 1 << 30
MIB = 1 << 20
_COLUMNS = ("name", "setting", "unit", "context", "source", "sourcefile")
_SETTINGS = f"SELECT {', '.join(_COLUMNS)} FROM pg_settings WHERE name = ANY(%s)"
_ASKED = (
    "archive_mode",
    "checkpoint_completion_target",
    "checkpoint_timeout",
    "max_wal_size",
    "wal_compression",
    "wal_keep_size",
    "wal_segment_size",
)
_SLOTS = "SELECT slot_name, active FROM pg_replication_slots ORDER BY slot_name"
_PLACE = """
SELECT coalesce(nullif((SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = %s), ''),
                current_setting('data_directory'))
"""
_STANDBYS = "SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) FROM pg_stat_replication"


@dataclass(frozen=True)
class Preflight:
    """What is known before a load."""

    table: str
    bytes_total: float | None
    """Of uncompressed input, about."""
    rows_total: float | None
    measured: SampleSizes | None
    """None where a sample could not be loaded; a note says why."""
    forecast: forecasts.Forecast
    space: forecasts.Space | None
    indexes: str
    notes: tuple[str, ...]
    settings: list[recommend.LoadSetting] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        whole = asdict(self)
        whole["forecast"] = self.forecast.document()
        if self.space is not None:
            whole["space"] = asdict(self.space) | {"enough": self.space.enough}
        return whole

    def require_space(self) -> None:
        """:class:`HostError` when the load would fill the disk."""
        if self.space is not None and self.space.enough is False:
            free = 0 if self.space.free is None else self.space.free
            raise HostError(
                f"the load needs about {self.space.needed / GIB:,.1f} GiB, and {free / GIB:,.1f} GiB are free",
                remedy="make the volume larger; a full one stops the server",
            )

    def lines(self) -> list[str]:
        """In words."""
        size = "an unknown amount" if self.bytes_total is None else f"about {self.bytes_total / MIB:,.1f} MiB"
        rows = (
            ""
            if self.rows_total is None
            else f", {self.rows_total:,.0f} row{'' if round(self.rows_total) == 1 else 's'}"
        )
        lines = [f"{self.table}: {size}{rows}"]
        if self.measured is not None:
            sizes = self.measured
            took = (
                f"a sample of {sizes.rows:,} row{'' if sizes.rows == 1 else 's'} took one session {sizes.seconds:.2f} s"
            )
            wal = "unknown" if sizes.wal_bytes is None else f"{sizes.wal_bytes / sizes.input_bytes:.2f}"
            ratios = (
                f"bytes for each byte of the file: table {sizes.heap_bytes / sizes.input_bytes:.2f}, indexes"
                f" {sizes.index_bytes / sizes.input_bytes:.2f}, WAL {wal}"
            )
            lines.append(
                f"{took}; {ratios if sizes.is_telling else 'it is too short to say what a byte of the file takes'}"
            )
        for number, part in enumerate(self.forecast.parts):
            first = "limit: " if number == 0 else "then:  "
            lines.append(f"{first}{part.name}, {part.bytes_per_s / MIB:,.1f} MiB/s of the file ({part.how})")
        if self.forecast.seconds is not None:
            lines.append(f"about {_duration(self.forecast.seconds)} to transfer")
        if self.space is not None:
            free = self.space.free
            there = "free space unknown: give it with --free" if free is None else f"{free / GIB:,.1f} GiB free"
            lines.append(f"space: {self.space.needed / GIB:,.2f} GiB needed, {there}")
        lines.append(f"indexes: {self.indexes}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [
            f"setting: {setting.name} {setting.now} -> {setting.proposed} {setting.unit}".rstrip()
            + f": {setting.reason}"
            for setting in self.settings
        ]
        return lines


def preflight(options: LoadOptions, *, volume: str | None = None, free_bytes: int | None = None) -> Preflight:
    """Look, measure a sample, calculate.

    ``volume`` is what the server's data lie on, as ``gp3:size=500GiB``; ``free_bytes`` how much of it is free, where that
    cannot be seen from here.
    """
    if options.via is not None:
        raise InputError(
            "--dry-run loads the beginning of a file, which pgdyno does not see with --via",
            remedy="download the beginning of an object, and try with that",
        )
    with contextlib.closing(server.connect(options.into)) as connection, server_errors():
        options = replace(options, server_processors=options.server_processors or server.processors(connection))
        ready = get_ready(connection, options)
        result = measure(connection, ready)
        notes = _notes(connection, ready)
        if isinstance(result, str):
            notes.append(f"no sample could be measured: {result}")
        measured = None if isinstance(result, str) else result
        limits, texts = _limits(volume)
        cores = os.cpu_count() or 1
        sessions = connections(options)[0]
        expected = forecasts.Forecast((), ready.bytes_total)
        if measured is not None:
            expected = forecasts.forecast(
                measured,
                ready.bytes_total,
                sessions=sessions,
                cores=cores,
                files=len(ready.samples),
                volume=limits if measured.is_telling else {},
                rate_bytes_per_s=options.rate_bytes_per_s,
            )
        current = settings_now(connection)
        free = free_bytes if free_bytes is not None else _free(connection, ready)
        return Preflight(
            table=ready.name if ready.table is None else ready.table.quoted,
            bytes_total=ready.bytes_total,
            rows_total=ready.rows_total,
            measured=measured,
            forecast=expected,
            space=_space(connection, ready, measured, current, free),
            indexes=_indexes(connection, ready, sessions, cores),
            notes=tuple(notes + texts),
            settings=_recommended(current, ready, measured, expected, free),
        )


def _notes(connection: Connection, ready: PreparedLoad) -> list[str]:
    notes = [note.text for note in ready.notes]
    if ready.types is not None:
        notes += [note.text for note in column_types.notes(connection, ready.types)]
    if ready.types is not None and not all(sample.is_whole for sample in ready.samples):
        notes.append(
            "types are those of the beginning here; the load reads all rows for them before it creates the table"
        )
    if ready.is_staged:
        notes.append(
            "rows that are merged are written twice, into a staging table and then into this one, and sorted between: the needed space"
            " includes that, but for indexes; the time is that of staging alone"
        )
    if ready.definition is not None:
        notes.append(f"the table will be created: {' '.join(ready.definition.split())}")
    else:
        loaded = [column.name for column in ready.columns or ()]
        notes += table.slow_paths(connection, ready.target, loaded)
        if not ready.target.owned:
            notes.append("the role does not own the table: indexes and autovacuum stay as they are")
    for name, active in server.many(connection, _SLOTS):
        if not active:
            notes.append(f"the replication slot {name} is not used, and keeps all WAL of the load on disk")
    standbys, synchronous = server.one(connection, _STANDBYS)
    if standbys:
        kind = f", {synchronous} of them synchronous" if synchronous else ""
        notes.append(f"{standbys} standbys replay all of it{kind}; the last commit waits for synchronous ones")
    return notes


def _indexes(connection: Connection, ready: PreparedLoad, sessions: int, cores: int) -> str:
    if ready.is_staged:
        return KEPT_FOR_MERGE
    if ready.table is None:
        return "none: the table will be created"
    able = [droppable for droppable in indexes.droppable(connection, ready.table) if droppable.cost is not None]
    costs = [droppable.cost for droppable in able if droppable.cost is not None]
    if not costs:
        return "none that may be dropped"
    predicted = index_cost.predict(
        costs,
        ready.rows_before(),
        ready.rows_total or 0.0,
        sessions=sessions,
        builds=builds_at_a_time(len(costs), cores),
        cores=cores,
    )
    return f"{len(costs)}, better {'built again' if predicted.choice == 'rebuild' else 'kept'}: {predicted.reason}"


def settings_now(connection: Connection) -> dict[str, dict[str, Any]]:
    """What the server has now, by name: rows of ``pg_settings``."""
    rows = server.many(connection, _SETTINGS, (list(_ASKED),))
    return {row[0]: dict(zip(_COLUMNS, row, strict=True)) for row in rows}


def _limits(volume: str | None) -> tuple[dict[str, float], list[str]]:
    """The sustained limits of a volume, and in words the temporary ones."""
    if volume is None:
        return {}, []
    from ..base import catalog

    try:
        spec = catalog.resolve(volume)
    except InputError as refused:
        raise InputError(f"--volume: {refused}", remedy=refused.remedy) from refused
    results = []
    limits = {}
    for name, rate in (("iops", spec.charged_iops), ("throughput_bytes_per_s", spec.charged_bytes)):
        if math.isfinite(rate.sustained):
            limits[name] = rate.sustained * spec.columns
        if rate.bursts:
            minutes = rate.steady_seconds / 60
            results.append(
                f"{spec.title}: its credits allow more for {minutes:,.0f} min; the forecast is that after them"
            )
    return limits, results


def _space(
    connection: Connection,
    ready: PreparedLoad,
    measured: SampleSizes | None,
    current: dict[str, dict[str, Any]],
    free_bytes: int | None,
) -> forecasts.Space | None:
    if measured is None or ready.bytes_total is None:
        return None
    archived = current.get("archive_mode", {}).get("setting", "off") != "off"
    held = archived or any(not active for _, active in server.many(connection, _SLOTS))
    return forecasts.space(
        measured,
        ready.bytes_total,
        max_wal_bytes=int(current["max_wal_size"]["setting"]) * MIB,
        wal_is_held=held,
        free_bytes=free_bytes,
        staged=ready.is_staged,
    )


def _free(connection: Connection, ready: PreparedLoad) -> int | None:
    """Free bytes where the table lies, when that is a folder of this machine that can be looked at."""
    import psycopg

    if not connection.info.host.startswith("/"):
        return None
    tablespace = "pg_default" if ready.table is None else ready.table.tablespace
    try:
        place = server.one(connection, _PLACE, (tablespace,))[0]
        folder = os.statvfs(Path(place))
    except (OSError, psycopg.Error):  # a role that may not know the place, or a folder that this user may not enter
        return None
    return folder.f_bavail * folder.f_frsize


def _recommended(
    current: dict[str, dict[str, Any]],
    ready: PreparedLoad,
    measured: SampleSizes | None,
    expected: forecasts.Forecast,
    free_bytes: int | None,
) -> list[recommend.LoadSetting]:
    if measured is None or not measured.is_telling or measured.wal_bytes is None or not expected.parts:
        return []
    per_byte = measured.wal_bytes / measured.input_bytes
    total = None if ready.bytes_total is None else ready.bytes_total * per_byte
    return recommend.settings(
        current,
        wal_bytes_per_s=expected.parts[0].bytes_per_s * per_byte,
        wal_bytes_total=total,
        free_bytes=free_bytes,
        volume_binds="volume" in expected.parts[0].name,
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest:02d} s"

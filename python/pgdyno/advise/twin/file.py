"""The twin's file: TOML that the engine reads and a person may edit. What was measured is in it too, for people."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...base import owner
from ...base.errors import InputError
from .fit import Measurements, Twin
from .measure import MIB, FioTarget

SCHEMA_VERSION = 1
"""Version of the file's format; the engine refuses a different one."""


def require_writable(path: Path) -> None:
    """The file can be made: minutes of measuring must not end in an error that was there before."""
    if path.exists():
        raise InputError(f"{path} already exists", remedy="name another file, or remove that one")
    folder = path.absolute().parent
    try:  # what the modes say is not enough: to root all of /proc looks writable
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"no file can be created in {folder}: {error.strerror}", remedy="name a file in your own directory"
        ) from error
    if path.suffix != ".toml":
        raise InputError(f"{path} does not end in .toml, by which a twin is known", remedy=f"name it {path}.toml")


def write(path: Path, twin: Twin, target: FioTarget, measurements: Measurements, *, fio: str, pgdyno: str) -> None:
    """Write the file whole, or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text(twin, target, measurements, fio=fio, pgdyno=pgdyno), encoding="utf-8")
        owner.give(unfinished)
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def text(twin: Twin, target: FioTarget, measurements: Measurements, *, fio: str, pgdyno: str) -> str:
    """The file's content."""
    lines = [
        "# A twin of a disk, written by `pgdyno volume fit`. It can be attached and compared like any other volume:",
        "#     pgdyno compare THIS-FILE gp3",
        *(f"# Note: {note}." for note in twin.notes),
        "",
        f"schema_version = {SCHEMA_VERSION}",
        f"title = {_string('twin of ' + target.shown)}",
        f"size_mib = {target.disk_bytes // MIB}",
        "",
        "[fitted]",
        f"path = {_string(target.shown)}",
        f"device = {_string(target.device)}",
        f"file_system = {_string(target.file_system or 'none')}",
        f"at = {datetime.now(UTC).replace(microsecond=0).isoformat().replace('+00:00', 'Z')}",
        f"with = {_string(f'{fio}, pgdyno {pgdyno}')}",
        f"written_mib = {round(measurements.written_bytes / MIB)}",
        "",
        "# Sustained I/O units per second, and the additional burst, as time at that rate.",
        "[iops]",
        f"reads_per_s = {twin.reads_per_s}",
        f"writes_per_s = {twin.writes_per_s}",
        f"bucket_ms = {twin.iops_bucket_ms}",
        "",
        *_throughput(twin),
        "# A larger request counts as several.",
        "[accounting]",
        f"unit_kib = {twin.unit_kib}",
        f"merge_sequential = {_boolean(twin.merge_sequential)}",
        "",
        "# In which order requests wait for a limit: in turn (fifo), or drawn (gamma).",
        "[queueing]",
        f'order = "{twin.order}"',
        "",
        "# What a request takes when nothing waits, in nanoseconds: a row for each size, a value for each probability.",
        "# Writes include the flush that makes them durable.",
        "[service_time]",
        f"size_kib = {_numbers(twin.size_kib)}",
        f"probability_ppm = {_numbers(twin.probability_ppm)}",
        *_table("read_ns", twin.read_ns),
        *_table("write_ns", twin.write_ns),
        "",
        *_measured(measurements),
    ]
    return "\n".join(lines) + "\n"


def _throughput(twin: Twin) -> list[str]:
    if twin.bytes_per_s is None:
        return []
    return [
        f"# {twin.bytes_per_s / MIB:,.1f} MiB/s",
        "[throughput]",
        f"bytes_per_s = {twin.bytes_per_s}",
        f"bucket_ms = {twin.bytes_bucket_ms}",
        "",
    ]


def _measured(measurements: Measurements) -> Iterable[str]:
    """Medians and rates as fio saw them, so that a reader can judge the fit; the engine does not read them."""
    yield "# As fio saw it: medians in microseconds and rates. For people; not read."
    yield "[measured]"
    for op in measurements.alone:
        disk, null = (
            each[op].latency.quantile_ns(0.5) / 1000 for each in (measurements.alone, measurements.null_alone)
        )
        yield f"{op}_alone_us = {disk:.1f}"
        yield f"{op}_alone_on_a_null_volume_us = {null:.1f}"
        for (other, size), answer in measurements.light.items():
            if other == op:
                yield f"{op}_{size}_kib_us = {answer.latency.quantile_ns(0.5) / 1000:.1f}"
        yield f"{op}_many_per_s = {measurements.many[op].per_s:.1f}"
        yield f"{op}_large_mib_per_s = {measurements.large[op].bytes_per_s / MIB:.1f}"
    yield f"sequential_read_per_s = {measurements.sequential.per_s:.1f}"
    if measurements.mixed is not None:
        yield f"mixed_write_per_s = {measurements.mixed.per_s:.1f}"


def _table(key: str, rows: Sequence[Sequence[int]]) -> list[str]:
    return [f"{key} = [", *(f"    {_numbers(row)}," for row in rows), "]"]


def _numbers(numbers: Sequence[int]) -> str:
    return f"[{', '.join(str(number) for number in numbers)}]"


def _string(words: str) -> str:
    """A basic string of TOML: of what may be in a path, JSON escapes all that TOML wants escaped."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def _boolean(value: bool) -> str:
    return "true" if value else "false"

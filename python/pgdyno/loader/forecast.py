"""How long a load will take and what will limit it, from a measured sample: arithmetic only.

Each part has a rate in bytes of the file per second, and the slowest one is the limit. Volumes count what is written for
each byte of the file (table, indexes, WAL), so that it takes less of a file to fill them than their rate suggests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.loader.measured import SampleSizes

COPY_WRITE_BYTES = 250 << 10
"""COPY's writes to its table average 250 KiB at the device (measured on emulated gp2, where the kernel merges them)."""
SPACE_SHARE_MAX = 0.95
"""A file system that is fuller fails soon, and a server without space for WAL stops."""


@dataclass(frozen=True)
class ForecastPart:
    """One thing that could limit the load."""

    name: str
    bytes_per_s: float
    """Of uncompressed input."""
    how: str
    """Where the figure comes from."""


@dataclass(frozen=True)
class Forecast:
    """Parts, the slowest first. Empty when nothing could be measured."""

    parts: tuple[ForecastPart, ...]
    bytes_total: float | None

    @property
    def seconds(self) -> float | None:
        """Duration of the transfer alone, by the slowest part."""
        if not self.parts or self.bytes_total is None:
            return None
        return self.bytes_total / self.parts[0].bytes_per_s

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "limit": self.parts[0].name if self.parts else None,
            "seconds": self.seconds,
            "parts": [vars(part) for part in self.parts],
        }


def forecast(
    measured: SampleSizes,
    bytes_total: float | None,
    *,
    sessions: int,
    cores: int,
    files: int,
    volume: Mapping[str, Any] | None = None,
    rate_bytes_per_s: int | None = None,
) -> Forecast:
    """Every part's rate. ``volume`` are the limits that the engine says of a specification."""
    working = max(1, min(sessions, cores))
    parts = [
        ForecastPart(
            "COPY on the server's CPU",
            measured.bytes_per_s * working,
            f"{working} × a sample's rate; a remote server is assumed to have {cores} cores, too",
        )
    ]
    if measured.decompress_bytes_per_s is not None:
        threads = max(1, min(files, cores))
        parts.append(
            ForecastPart(
                "decompression", measured.decompress_bytes_per_s * threads, f"{threads} × a thread here, one a file"
            )
        )
    if rate_bytes_per_s is not None:
        parts.append(ForecastPart("the rate that was asked for", float(rate_bytes_per_s), "--rate"))
    parts += _of_volume(measured, volume or {})
    return Forecast(tuple(sorted(parts, key=lambda part: part.bytes_per_s)), bytes_total)


def _of_volume(measured: SampleSizes, limits: Mapping[str, Any]) -> list[ForecastPart]:
    per_byte = max(1e-9, measured.written_per_input_byte)
    parts = []
    throughput, iops = limits.get("throughput_bytes_per_s"), limits.get("iops")
    if throughput:
        how = f"{throughput / (1 << 20):,.0f} MiB/s, of which each byte of the file takes {per_byte:.2f}"
        parts.append(ForecastPart("the volume's throughput", throughput / per_byte, how))
    if iops:
        how = f"{iops:,.0f} IOPS of {COPY_WRITE_BYTES >> 10} KiB, of which each byte of the file takes {per_byte:.2f}"
        parts.append(ForecastPart("the volume's IOPS", iops * COPY_WRITE_BYTES / per_byte, how))
    return parts


@dataclass(frozen=True)
class Space:
    """Whether it fits. Bytes."""

    needed: float
    """Table, indexes, and the WAL that stays until checkpoints or slots let it go."""
    free: int | None
    """None: not visible from here."""

    @property
    def enough(self) -> bool | None:
        """None if it is not known."""
        return None if self.free is None else self.needed <= self.free * SPACE_SHARE_MAX


def space(
    measured: SampleSizes,
    bytes_total: float,
    *,
    max_wal_bytes: int,
    wal_is_held: bool,
    free_bytes: int | None,
    staged: bool = False,
) -> Space:
    """What a load needs. ``wal_is_held``: a slot or an archive keeps all of it.

    ``staged``: rows lie in another table first, are sorted in temporary files of about that size, and written once more.
    """
    heap = bytes_total * measured.heap_bytes / max(1, measured.input_bytes)
    stored = bytes_total * measured.stored_per_input_byte + (2 * heap if staged else 0)
    written = bytes_total * (measured.wal_bytes or 0) / max(1, measured.input_bytes) * (2 if staged else 1)
    return Space(stored + (written if wal_is_held else min(written, max_wal_bytes)), free_bytes)

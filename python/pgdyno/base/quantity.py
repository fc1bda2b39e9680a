"""Quantities as people write them: ``512MiB``, ``1GiB``, ``90s``, ``5min``.

Without pydantic, which takes longer to import than a command line may take to start; those of experiment files are in
``experiment/quantity.py``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from .errors import InputError

BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
BYTES_EXAMPLES = "512MiB or 4GiB"
SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "": 1.0}
SECONDS_EXAMPLES = "30s or 5min"
SECONDS_MAX = 366 * 86400.0
"""Longest duration, a year: anything longer is a mistake."""
LATENCY_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
LATENCY_EXAMPLES = "500ms or 15s"
SHARE_EXAMPLES = "50% or 0.1%"
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_DECIMAL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:([KMGTkmgt])[Bb]?)?\s*")
"""``100GB``, ``100G`` and ``100``, by which people mean GiB or 10^9 bytes."""


def parse_bytes(text: str, what: str) -> int:
    """Bytes of ``512MiB``; ``what`` is the flag that an :class:`InputError` names, also for 0 bytes."""
    match = _DECIMAL.fullmatch(text)
    if match is not None:
        raise InputError(
            f"{what}: `{text}` " + ("is not a binary size" if match[2] else "has no unit"),
            remedy=f"write {match[1]}{(match[2] or 'G').upper()}iB: sizes are binary, as providers count them",
        )
    size = int(_parse(text, what, BYTES, BYTES_EXAMPLES))
    if size < 1:
        raise InputError(f"{what}: `{text}` is less than a byte", remedy=f"write it as {BYTES_EXAMPLES}")
    return size


def parse_mib_per_s(text: str, what: str) -> float:
    """MiB a second of ``40MiB/s``; ``what`` is the flag that an :class:`InputError` names."""
    if not text.endswith("/s"):
        raise InputError(f"{what}: `{text}` is not a rate", remedy="write it as 40MiB/s")
    return parse_bytes(text.removesuffix("/s"), what) / BYTES["MiB"]


def parse_seconds(text: str, what: str) -> float:
    """Seconds of ``30``, ``90s``, ``5min``, ``10m`` or ``1h``; ``what`` is the flag that an :class:`InputError` names."""
    seconds = _parse(text, what, SECONDS, SECONDS_EXAMPLES)
    if seconds > SECONDS_MAX:
        raise InputError(f"{what}: `{text}` is longer than a year", remedy=f"write it as {SECONDS_EXAMPLES}")
    return seconds


def share_ppm(text: str) -> int | None:
    """Parts per million of ``50%`` or ``0.1%``; None when it is not a share from 0% to 100%."""
    number = text.strip().removesuffix("%").strip()
    share = float(number) if number.replace(".", "", 1).isdigit() else -1.0
    return round(share * 1e4) if 0.0 <= share <= 100.0 else None


def duration_words(seconds: float) -> str:
    """A duration for people, in its two largest units: ``41 s``, ``12 min 30 s``, ``2 h 05 min``, ``3 d 04 h``."""
    minutes, rest_s = divmod(round(seconds), 60)
    hours, rest_min = divmod(minutes, 60)
    days, rest_h = divmod(hours, 24)
    if days:
        return f"{days:,} d {rest_h:02d} h"
    if hours:
        return f"{hours} h {rest_min:02d} min"
    return f"{minutes} min {rest_s:02d} s" if minutes else f"{rest_s} s"


def _parse(text: str, what: str, units: Mapping[str, float], examples: str) -> float:
    value = in_units(text, units)
    if value is None:
        raise InputError(f"{what}: `{text}` is not understood", remedy=f"write it as {examples}")
    return value


def in_units(text: str, units: Mapping[str, float]) -> float | None:
    """A number with one of ``units`` behind it, in the smallest; None when it is something else, or without end."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        return None
    quantity = float(match[1]) * units[match[2]]
    return quantity if math.isfinite(quantity) else None

"""Quantities as people write them: ``512MiB``, ``1GiB``, ``90s``, ``5min``.

Without pydantic, which takes longer to import than a command line may take to start; those of experiment files are in
``experiment/quantity.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pgdyno.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
BYTES_EXAMPLES = "512MiB or 4GiB"
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "": 1.0}
SECONDS_EXAMPLES = "30s or 5min"
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str, what: str) -> int:
    """Bytes of ``512MiB``; ``what`` is the flag that an :class:`InputError` names."""
    return int(_parse(text, what, BYTES, BYTES_EXAMPLES))


def parse_seconds(text: str, what: str) -> float:
    """Seconds of ``30``, ``90s``, ``5min`` or ``1h``; ``what`` is the flag that an :class:`InputError` names."""
    return _parse(text, what, SECONDS, SECONDS_EXAMPLES)


def _parse(text: str, what: str, units: Mapping[str, float], examples: str) -> float:
    found = in_units(text, units)
    if found is None:
        raise InputError(f"{what}: `{text}` is not understood", remedy=f"write it as {examples}")
    return found


def in_units(text: str, units: Mapping[str, float]) -> float | None:
    """A number with one of ``units`` behind it, in the smallest; None when it is something else."""
    found = _QUANTITY.fullmatch(text)
    return float(found[1]) * units[found[2]] if found is not None and found[2] in units else None

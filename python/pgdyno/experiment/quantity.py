"""Quantities as people write them: ``512MiB``, ``1GiB``, ``90s``, ``5min``."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from pgdyno.errors import InputError

_BYTES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str, what: str) -> int:
    """Bytes of ``512MiB``; ``what`` is the flag that an :class:`InputError` names."""
    return int(_parse(text, what, _BYTES, "512MiB or 4GiB"))


def parse_seconds(text: str, what: str) -> float:
    """Seconds of ``30``, ``90s``, ``5min`` or ``1h``; ``what`` is the flag that an :class:`InputError` names."""
    return _parse(text, what, {"": 1.0, **_SECONDS}, "30s or 5min")


def _parse(text: str, what: str, units: dict[str, float] | dict[str, int], examples: str) -> float:
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in units:
        raise InputError(f"{what}: `{text}` is not understood", remedy=f"write it as {examples}")
    return float(found[1]) * units[found[2]]


def _bytes(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write it as 512MiB or 4GiB, in quotes")
    return int(_in_a_file(value, _BYTES, "512MiB or 4GiB"))


def _seconds(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write it as 30s or 5min, in quotes")
    return _in_a_file(value, {"": 1.0, **_SECONDS}, "30s or 5min")


def _in_a_file(text: str, units: dict[str, float] | dict[str, int], examples: str) -> float:
    """As :func:`_parse`, with the error that pydantic collects: the place is named by whoever knows it."""
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in units:
        raise ValueError(f"`{text}` is not understood; write it as {examples}")
    return float(found[1]) * units[found[2]]


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(KiB|MiB|GiB|TiB)\s*$"}),
]
"""A size in an experiment file, ``"512MiB"``; bytes."""
Seconds = Annotated[
    float, BeforeValidator(_seconds), WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(s|min|h)?\s*$"})
]
"""A duration in an experiment file, ``"90s"``; seconds."""

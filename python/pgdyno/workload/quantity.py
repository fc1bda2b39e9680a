"""Quantities of experiment files: ``"512MiB"``, ``"90s"``, with their unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from pgdyno.quantity import BYTES, BYTES_EXAMPLES, SECONDS, SECONDS_EXAMPLES, SECONDS_MAX, in_units

if TYPE_CHECKING:
    from collections.abc import Mapping


def _bytes(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write it as {BYTES_EXAMPLES}, in quotes")
    return int(_in_a_file(value, BYTES, BYTES_EXAMPLES))


def _seconds(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write it as {SECONDS_EXAMPLES}, in quotes")
    seconds = _in_a_file(value, SECONDS, SECONDS_EXAMPLES)
    if seconds > SECONDS_MAX:
        raise ValueError(f"`{value}` is longer than a year; write it as {SECONDS_EXAMPLES}")
    return seconds


def _in_a_file(text: str, units: Mapping[str, float], examples: str) -> float:
    """The error is one that pydantic collects: the caller adds its place."""
    found = in_units(text, units)
    if found is None:
        raise ValueError(f"`{text}` is not understood; write it as {examples}")
    return found


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

"""Keys of an experiment file: tables of keys, refusals, and quantities with units (``"512MiB"``, ``"90s"``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..base.quantity import (
    BYTES,
    BYTES_EXAMPLES,
    LATENCY_EXAMPLES,
    LATENCY_NS,
    SECONDS,
    SECONDS_EXAMPLES,
    SECONDS_MAX,
    SHARE_EXAMPLES,
    in_units,
    share_ppm,
)


class Refusal(NamedTuple):
    """A key that does not go with the others."""

    key: str
    """Dotted, below ``[workload]``."""
    message: str
    remedy: str = ""


def at_key(key: str, message: str) -> PydanticCustomError:
    """Error that a check of a whole table raises about one of its keys."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


class KeyTable(BaseModel):
    """A table of keys. An unknown one is an error, and nothing is changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


RATE_EXAMPLES = "40MiB/s"


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


def _latency_ns(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit; write it as {LATENCY_EXAMPLES}, in quotes")
    return round(_in_a_file(value, LATENCY_NS, LATENCY_EXAMPLES))


def _share_ppm(value: Any) -> int:
    number = share_ppm(value) if isinstance(value, str) else None
    if number is None:
        raise ValueError(f"{value!r} is not a share; write it as {SHARE_EXAMPLES}, in quotes")
    return number


def _mib_per_s(value: Any) -> float:
    if not isinstance(value, str) or not value.endswith("/s"):
        raise ValueError(f"{value!r} is not a rate; write it as {RATE_EXAMPLES}, in quotes")
    return _in_a_file(value.removesuffix("/s"), BYTES, RATE_EXAMPLES) / BYTES["MiB"]


def _in_a_file(text: str, units: Mapping[str, float], examples: str) -> float:
    """The error is one that pydantic collects: the caller adds its place."""
    a_file = in_units(text, units)
    if a_file is None:
        raise ValueError(f"`{text}` is not understood; write it as {examples}")
    return a_file


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
Latency = Annotated[
    int, BeforeValidator(_latency_ns), WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(us|ms|s)\s*$"})
]
"""A short time in an experiment file, ``"500ms"``; nanoseconds."""
Rate = Annotated[
    float,
    BeforeValidator(_mib_per_s),
    WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(KiB|MiB|GiB|TiB)/s\s*$"}),
]
"""A rate in an experiment file, ``"40MiB/s"``; MiB a second."""
Share = Annotated[
    int, BeforeValidator(_share_ppm), WithJsonSchema({"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*%?\s*$"})
]
"""A share in an experiment file, ``"50%"``; parts per million."""

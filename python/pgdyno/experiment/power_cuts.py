"""Power cuts beside the runs of an arm: the table ``[crash]`` of an experiment file."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from ..base.quantity import duration_words
from ..workload.keys import Seconds
from ..workload.kind import KeyTable, at_key

CUT_S = 0.3
"""Estimate: one cut, two workers at a time. Two cores that others used too did 200 to 220 a minute."""
RECORDING_S = 8.0
"""Estimate: making a cluster and its tables before a recording, beside its length."""
DURATION_S_MAX = 60.0
"""The write log is bounded: a longer recording may fill it, which would be noticed only after the run."""
_READING = re.compile(r"(whole|(prefix|pieces)-(512|4096|8192|16384))(\+(strict|units))?")


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Readings = Annotated[
    tuple[str, ...],
    BeforeValidator(_several),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
"""One reading or several."""


class CrashTable(KeyTable):
    """Power cuts after each run: a server with the run's volumes, file system and settings is recorded and cut, as by `pgdyno crashtest`."""

    cuts: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Contents to examine after each run, in each reading. 0: no power is cut."""
    duration_s: Annotated[Seconds, Field(ge=1, le=DURATION_S_MAX)] = Field(
        "10s", alias="duration", validate_default=True
    )
    """Length of the recording."""
    reading: Readings = ("pieces-4096",)
    """What may be left of a write that was not durable: `whole`, `prefix-N` or `pieces-N` with N 512, 4096, 8192 or 16384, and `+strict` or `+units` for torn-write prevention. Several are tried on the same recording."""
    cache: Literal["none", "volatile"] = "none"
    """Write cache of the recorded volumes: `none` as on EBS, `volatile` with one that flushes empty."""

    @field_validator("reading")
    @classmethod
    def _is_known(cls, readings: tuple[str, ...]) -> tuple[str, ...]:
        for reading in readings:
            if not _READING.fullmatch(reading):
                raise ValueError(f"`{reading}` is not a reading; write it as pieces-4096 or pieces-4096+strict")
        if len(set(readings)) < len(readings):
            raise ValueError("a reading appears twice")
        return readings

    @model_validator(mode="after")
    def _has_cuts(self) -> Self:
        if self.model_fields_set and not self.cuts:
            raise at_key("cuts", "how many is missing, as cuts = 200; remove [crash] to cut no power")
        return self

    @property
    def estimate_s(self) -> float:
        """How long they take after each run."""
        return self.duration_s + RECORDING_S + CUT_S * self.cuts * len(self.reading) if self.cuts else 0.0

    @property
    def words(self) -> str:
        """What is done after each run, in a few words; empty without cuts."""
        if not self.cuts:
            return ""
        cache = ", with a volatile cache" if self.cache == "volatile" else ""
        return f"{self.cuts:,} power cuts of {duration_words(self.duration_s)}{cache}, read as {' and as '.join(self.reading)}"

"""Events and power cuts of an experiment file: the tables ``[[event]]`` and ``[crash]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from ..base.quantity import duration_words
from ..workload.keys import Latency, Rate, Seconds, Share
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


SERVER = "server"
ALL = "all"
"""All volumes of the server, which a snapshot takes at one instant."""
ON_SERVER = ("kill", "cut")
"""Events that happen to the server, whose clients lose their connections; the others happen to a volume."""
_KEYS: dict[str, frozenset[str]] = {
    "modify": frozenset({"spec", "optimizing_s", "rule"}),
    "fail": frozenset({"fault", "member", "for_s", "add_ns", "scenario", "reads_ppm", "writes_ppm", "once"}),
    "heal": frozenset(),
    "snapshot": frozenset({"rate_mib_per_s"}),
    "kill": frozenset(),
    "cut": frozenset(),
}
"""The keys that each event has beside `at`, `do` and `on`."""
_OF_FAULT: dict[str, frozenset[str]] = {
    "pause": frozenset({"for_s", "member"}),
    "latency": frozenset({"for_s", "member", "add_ns", "scenario", "reads_ppm", "writes_ppm"}),
    "error": frozenset({"for_s", "reads_ppm", "writes_ppm", "once"}),
    "lose": frozenset({"member"}),
}
ALL_PPM = 1_000_000


class EventTable(KeyTable):
    """Something that happens during each run, once."""

    at_s: Annotated[Seconds, Field(alias="at")]
    """When: time since measuring began, for example `20s`."""
    do: Literal["modify", "fail", "heal", "snapshot", "kill", "cut"]
    """`modify`, `fail` and `heal` a volume, as the commands of `pgdyno volume` do. `snapshot` takes one, which is deleted after the run. `kill` ends all processes of the server at once, `cut` also loses what its file systems have not written; then the server starts again and recovers."""
    on: str = ""
    """The role of a volume, or `server`. Default: `data`; with `kill` and `cut` always `server`. `all` with `snapshot`: all volumes at one instant."""
    spec: str | None = None
    """`modify`: what the volume becomes, for example `gp3:iops=8000`; what it omits is that type's default."""
    optimizing_s: Seconds | None = Field(None, alias="optimizing")
    """`modify`: time until the modification is completed. Default: 6 hours per TiB."""
    rule: Literal["2023", "2026"] = "2026"
    """`modify`: how often a volume may be modified: once in 6 hours (2023), or four times in 24 hours (2026)."""
    rate_mib_per_s: Rate | None = Field(None, alias="rate")
    """`snapshot`: rate at which changed blocks are stored, for example `40MiB/s`, the default. Until they are, the snapshot is pending, and an st1 or sc1 volume does its baseline."""
    fault: Literal["pause", "latency", "error", "lose"] | None = None
    """`fail`: the fault."""
    member: Annotated[int, Field(ge=0)] | None = None
    """`fail`: only this member of an array, from 0, with `pause`, `latency` and `lose`. Default: all."""
    for_s: Annotated[Seconds, Field(gt=0)] | None = Field(None, alias="for")
    """`fail`: time until the fault ends. Default: until `heal`, or the end of the run."""
    add_ns: Latency | None = Field(None, alias="add")
    """`fault = "latency"`: time that is added to a request, for example `500ms`."""
    scenario: Literal["sustained", "increasing", "intermittent", "decreasing"] | None = None
    """`fault = "latency"`: one of the 15-minute scenarios of AWS FIS instead of `add`."""
    reads_ppm: Share = Field("100%", alias="reads", validate_default=True)
    """`fail`: share of the reads, for example `50%`. Default: all."""
    writes_ppm: Share = Field("100%", alias="writes", validate_default=True)
    """`fail`: share of the writes. Default: all."""
    once: bool = False
    """`fault = "error"`: fail one request only."""

    @model_validator(mode="after")
    def _is_sound(self) -> Self:
        for key, message in self._wrong():
            raise at_key(key, message)
        return self

    def _wrong(self) -> Iterator[tuple[str, str]]:
        known = _KEYS[self.do]
        for name in sorted(self.model_fields_set - {"at_s", "do", "on"} - known):
            yield self._key(name), f'it is not for do = "{self.do}"'
        if self.do in ON_SERVER and self.on not in ("", SERVER):
            yield "on", f'do = "{self.do}" happens to the server; omit this key'
        if self.do not in ON_SERVER and self.on == SERVER:
            yield "on", f'do = "{self.do}" happens to a volume; name its role'
        if self.do != "snapshot" and self.on == ALL:
            yield "on", f'do = "{self.do}" happens to one volume; name its role'
        if self.do == "modify" and self.spec is None:
            yield "spec", 'is missing: what the volume becomes, as spec = "gp3:iops=8000"'
        if self.do == "fail" and self.fault is None:
            yield "fault", 'is missing: "pause", "latency", "error" or "lose"'
        if self.fault is not None:
            for name in sorted(self.model_fields_set & known - _OF_FAULT[self.fault] - {"fault"}):
                yield self._key(name), f'it is not for fault = "{self.fault}"'
        if self.fault == "latency" and (self.add_ns is None) == (self.scenario is None):
            yield "add", 'a latency needs either `add` or `scenario`, as add = "500ms"'
        if self.scenario is not None and self.for_s is not None:
            yield "for", "a scenario has its own duration; omit this key"
        if self.reads_ppm == self.writes_ppm == 0:
            yield "reads", "the fault hits neither reads nor writes"

    def _key(self, name: str) -> str:
        """A field as the file writes it."""
        return type(self).model_fields[name].alias or name

    @property
    def target(self) -> str:
        """The role of the volume that it happens to, or ``server``."""
        return self.on or (SERVER if self.do in ON_SERVER else "data")

    @property
    def words(self) -> str:
        """What happens, in a few words."""
        if self.do == "modify":
            return f"modify {self.target} to {self.spec}"
        if self.do == "fail":
            return f"fail {self.target}: {self._fault_words()}"
        if self.do == "snapshot":
            return "snapshot of " + ("all volumes" if self.target == ALL else self.target)
        return {"heal": f"heal {self.target}", "kill": "kill the server", "cut": "cut the power"}[self.do]

    def _fault_words(self) -> str:
        if self.scenario is not None:
            return f"{self.scenario} latency"
        parts = [str(self.fault)]
        if self.add_ns is not None:
            parts.append(f"{self.add_ns / 1e6:g} ms")
        if self.member is not None:
            parts.append(f"on member {self.member}")
        if self.reads_ppm != ALL_PPM or self.writes_ppm != ALL_PPM:
            parts.append(f"on {self.reads_ppm / 1e4:g} % of reads and {self.writes_ppm / 1e4:g} % of writes")
        if self.once:
            parts.append("once")
        if self.for_s is not None:
            parts.append(f"for {duration_words(self.for_s)}")
        return " ".join(parts)

    def fault_document(self) -> dict[str, Any]:
        """The fault as the engine takes it (``crates/emulate/src/fault.rs``)."""
        kinds: dict[str, Any] = {
            "latency": {"scenario": self.scenario} if self.scenario else {"latency": {"added_ns": self.add_ns}},
            "error": {"error": {"once": self.once}},
        }
        document = {
            "kind": kinds.get(str(self.fault), self.fault),
            "member": self.member,
            "reads_ppm": self.reads_ppm,
            "writes_ppm": self.writes_ppm,
        }
        return document if self.for_s is None else document | {"for_ns": round(self.for_s * 1e9)}

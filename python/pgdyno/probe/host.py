"""The engine's probe of the host: started before a run, stopped after it, its lines turned into tables then."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pgdyno.probe.samples import Gap, GapLedger, ProbeTables

from ..base import engine
from ..base.errors import EngineError

_STOP_S = 10.0
_COUNTERS_BY_PART = {"disks": "probe/disk", "volumes": "probe/volume"}
_OF_INSTANCE = "instance_"
"""Counters that each volume of an instance tells, and that are the instance's."""


@dataclass(frozen=True)
class Role:
    """Where one role's use of the host is counted: cgroup directories, process ids, parents (all are added)."""

    cgroup_cpu: Path | None = None
    cgroup_memory: Path | None = None
    pids: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    """Processes with their children, those that begin and end meanwhile too."""

    def document(self) -> dict[str, Any]:
        """The role as the engine reads it."""
        return {
            "cgroup_cpu": None if self.cgroup_cpu is None else str(self.cgroup_cpu),
            "cgroup_memory": None if self.cgroup_memory is None else str(self.cgroup_memory),
            "pids": list(self.pids),
            "parents": list(self.parents),
        }


@dataclass
class HostProbe:
    """Samples block devices, emulated volumes, CPU and memory by role.

    ``directory`` takes ``probe.jsonl`` and ``probe.log``; it should be in memory
    (:func:`pgdyno.machine.scratch.scratch_directory`), since a probe that waits for a disk misses its deadlines.
    """

    directory: Path
    roles: Mapping[str, Role]
    """``server``, ``driver``, ``daemon``, and ``probe`` for more than the probe itself."""
    devices: Mapping[str, str] = field(default_factory=dict)
    """Block device (``loop3``) by the role of its volume: ``data``, ``wal``, ..."""
    volumes: Mapping[str, tuple[str, Path]] = field(default_factory=dict)
    """Name and state directory of each emulated volume, by the same roles."""
    interval_ms: int = 1000
    _spawned: engine.EngineProcess | None = field(default=None, init=False, repr=False)

    @property
    def lines(self) -> Path:
        """The file of samples."""
        return self.directory / "probe.jsonl"

    @property
    def pid(self) -> int | None:
        """The probe's process id while it runs."""
        return None if self._spawned is None else self._spawned.process.pid

    def start(self) -> Self:
        """Start sampling and return when the first sample was taken."""
        document = {
            "interval_ms": self.interval_ms,
            "out": str(self.lines),
            "devices": [{"volume": role, "block_device": device} for role, device in self.devices.items()],
            "volumes": [
                {"volume": role, "name": name, "state_dir": str(state_dir)}
                for role, (name, state_dir) in self.volumes.items()
            ],
            "roles": {name: role.document() for name, role in self.roles.items()},
        }
        self._spawned = engine.spawn(["probe"], document, log=self.directory / "probe.log", keep_stdin=True)
        return self

    def stop(self) -> ProbeTables:
        """Take a last sample, end the probe, and read what it wrote."""
        if self._spawned is None:
            return ProbeTables()
        spawned, self._spawned = self._spawned, None
        spawned.close_stdin()
        try:
            code = spawned.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            spawned.process.kill()
            code = spawned.process.wait()
        finally:
            if spawned.process.stdout is not None:
                spawned.process.stdout.close()
        ended = None if code == 0 else f"the probe ended with code {code}: {self._last_words()}"
        return read_samples(self.lines, ended)

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """End the probe if it was not stopped; its samples are lost."""
        if self._spawned is not None:
            self._spawned.process.kill()
            self._spawned.process.wait()
            self._spawned = None

    def _last_words(self) -> str:
        log = self.directory / "probe.log"
        return log.read_text(errors="replace")[-500:].strip() if log.exists() else ""


def read_samples(lines: Path, ended: str | None = None) -> ProbeTables:
    """Turn the engine's lines into tables and gaps. ``ended`` says why the probe ended when it was not told to."""
    from ..results.tables import from_rows

    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("probe/disk", "probe/volume", "probe/instance", "probe/cpu", "probe/memory")
    }
    ledger = GapLedger()
    first_ns = last_ns = taken = missed = 0
    for line in lines.read_bytes().splitlines() if lines.exists() else ():
        try:
            sample = json.loads(line)
        except ValueError:
            raise EngineError(f"{lines}: not a sample: {line[:200]!r}", remedy="this is a bug in pgdyno") from None
        _note_gaps(ledger, sample, last_ns)
        _add_rows(rows, sample)
        first_ns, last_ns = first_ns or sample["t_begin_ns"], sample["t_end_ns"]
        taken, missed = taken + 1, missed + sample["missed"]
    if taken:  # what it costs is in `probe/cpu`, role probe
        cost = {"t_begin_ns": first_ns, "t_end_ns": last_ns, "probe": "host", "samples": taken, "lost_samples": missed}
        rows["probe/cost"] = [cost]
    if ended is not None:
        ledger.add(Gap(last_ns, max(last_ns, _now_ns()), "host.samples", ended))
    return ProbeTables({name: from_rows(name, row) for name, row in rows.items() if row}, ledger.gaps())


def _note_gaps(ledger: GapLedger, sample: dict[str, Any], last_ns: int) -> None:
    if sample["missed"]:
        ledger.add(Gap(last_ns, sample["t_begin_ns"], "host.samples", f"{sample['missed']} deadlines were missed"))
    missing = ((gap["what"], gap["why"]) for gap in sample.get("gaps", ()))
    ledger.sample(sample["t_begin_ns"], sample["t_end_ns"], missing)


def _add_rows(rows: dict[str, list[dict[str, Any]]], sample: dict[str, Any]) -> None:
    for part, name in _COUNTERS_BY_PART.items():
        for item in sample[part]:
            counters = dict(item)
            counters |= counters.pop("counters", {})
            rows[name].append({key: value for key, value in counters.items() if not key.startswith(_OF_INSTANCE)})
    rows["probe/instance"] += _instance(sample["volumes"])
    cpu, memory = sample["cpu"], sample["memory"]
    rows["probe/cpu"] += [
        {"t_ns": cpu["t_ns"], "role": role, "cpu_ns": cpu_ns} for role, cpu_ns in cpu["cpu_ns"].items()
    ]
    rows["probe/memory"] += [
        {"t_ns": memory["t_ns"], "role": role, "name": name, "bytes": count}
        for role, names in memory["bytes"].items()
        for name, count in names.items()
    ]


def _instance(volumes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The instance's counters, once for all of its volumes: from the first that was asked. None without limits."""
    for volume in volumes:
        counters = volume.get("counters", {})
        document = {k.removeprefix(_OF_INSTANCE): v for k, v in counters.items() if k.startswith(_OF_INSTANCE)}
        if document.get("ops") is not None:
            return [{"t_ns": volume["t_ns"], **document}]
    return []


def _now_ns() -> int:
    import time

    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

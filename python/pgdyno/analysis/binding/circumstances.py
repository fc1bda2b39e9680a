"""What words and remedies need beside the seconds: what could be bought, and whether more was asked of the server."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.analysis.binding.sessions import SESSION_LOCKS
from pgdyno.analysis.replay import kept_up

from ...results.record import InstanceRecord, RunRecord, VolumeRecord
from ..run import RunFigures

OBSERVE = "observe"
"""The kind of workload of a server that was only watched: its own users made the load."""


@dataclass(frozen=True)
class Circumstances:
    """They belong to one run, or to a server that was watched."""

    volumes: Mapping[str, VolumeRecord] = field(default_factory=dict)
    """By role: what there is, and what could be bought instead."""
    instance: InstanceRecord = field(default_factory=InstanceRecord)
    arrivals: float | None = None
    """What was due over what was done, in an open loop. None in a closed one, and where it is not known what was asked for."""
    all_done: bool = False
    """Whether everything that an open loop asked for was done."""
    lock: str | None = None
    """The most frequent wait for another session, in words."""


def circumstances_of(run: RunFigures) -> Circumstances:
    """Those of a recorded run."""
    record, waits = run.record, run.waits
    arrivals, all_done = _asked_for(record)
    return Circumstances(
        volumes=record.world.volumes,
        instance=record.world.instance,
        arrivals=arrivals,
        all_done=all_done,
        lock=next((wait.label for wait in waits if wait.type in {"LWLock", *SESSION_LOCKS}), None),
    )


def _asked_for(record: RunRecord) -> tuple[float | None, bool]:
    """What was due over what was done, and whether all of it was done."""
    if (replay := record.replay) is not None:
        # All of it is sent in the end; what counts is whether that took longer than it was to take.
        return max(1.0, replay.took_s / replay.due_s) if replay.due_s else None, kept_up(replay)
    if record.workload.get("closed", True):
        return None, False
    return _due_over_done(record), record.account.scheduled == record.account.succeeded


def is_watched(record: RunRecord) -> bool:
    """Whether a run is a watch: the number of the server's clients is not known."""
    return record.workload.get("kind") == OBSERVE


def _due_over_done(record: RunRecord) -> float:
    backlog = record.driver.backlog if record.driver is not None else 0
    due, done = record.account.scheduled + (backlog or 0), record.account.succeeded
    return due / done if done else math.inf

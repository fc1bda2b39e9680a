"""What was measured of a scenario, and the record of a draw: a folder for each scenario, so that an interrupted bench resumes.

A folder keeps what the watch saw. Rules are asked when the page is written, by all of a draw's scenarios at once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from pgdyno.analysis.binding.consumers import What
from pgdyno.analysis.binding.rules import Confidence, Limit
from pgdyno.base import engine as _engine
from tools.attribution.record import RULES, rules_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.diagnose.scenarios import Load, Stand

DIAGNOSE = RULES.parents[1] / "diagnose"
FACTS = "facts.json"


class Reading(BaseModel):
    """What an emulated volume counted around a watch."""

    model_config = ConfigDict(frozen=True)

    begin_unix_s: float
    end_unix_s: float
    grown: dict[str, int]
    """Growth of its daemon's counters."""
    credits: int | None
    """I/O credits when it began; None of a volume that has none."""
    nvme: tuple[dict[str, Any], dict[str, Any]]
    """The NVMe log page before and after."""

    def share(self, counter: str) -> float:
        """Of the time, for a counter in nanoseconds; 0 where the volume has none."""
        return min(1.0, self.grown.get(counter, 0) / 1e9 / (self.end_unix_s - self.begin_unix_s))


class Facts(BaseModel):
    """A scenario that was watched: what was meant, and what emulator, kernel and clients say. No verdict."""

    model_config = ConfigDict(frozen=True)

    key: str
    limit: Limit
    consumer: What | None
    version: str
    volumes: dict[str, str]
    instance: str | None
    load: str
    readings: dict[str, Reading]
    devices: dict[str, str]
    """Block device by the role of its volume."""
    seconds: float
    idle: float
    """Share of the machine's CPU."""
    server_cpu: float
    """The same, of the server."""
    tps: float | None
    tps_control: float | None
    """The same clients without the limit; None where there is no control."""
    consumer_left: float | None
    """What the volume that binds did without the consumer over what it did with it: of its requests, or of its bytes where its
    throughput binds; None where there is no control."""
    refused: bool
    """Whether an ordinary role was refused a connection at the end of the watch."""


@dataclass(frozen=True)
class Answer:
    """What one view said of one scenario."""

    view: str
    facts: Facts
    limit: Limit | None
    role: str | None
    confidence: Confidence
    consumer: What | None
    right: bool
    """Whether that is so; where the view cannot see the limit, whether it says no other with confidence."""
    visible: bool
    """Whether the view can see it."""

    @property
    def confidently_wrong(self) -> bool:
        """The one fault that is never allowed."""
        return self.limit != self.facts.limit and self.confidence == "high"


@dataclass(frozen=True)
class Measured:
    """A scenario in its folder."""

    folder: Path
    facts: Facts
    refuted: str | None
    """Why it was not limited by what was meant; such a scenario is not judged."""

    @property
    def engine(self) -> str:
        """Build of the engine that emulated its volumes, by the folder of its draw."""
        return self.folder.parent.name.rpartition("-")[2]


def digest() -> str:
    """Of the rules' code: those of the reports, and those that are `pgdyno diagnose`'s own."""
    both = rules_digest(RULES) + rules_digest(DIAGNOSE)
    return hashlib.sha256(both.encode()).hexdigest()[:12]


def folder_of(results: Path, seed: int) -> Path:
    """Where a draw is kept: by its seed and the engine's sources."""
    return results / f"{seed}-{_engine.facts().build_hash[:12]}"


def kept(folders: Sequence[Path], key: str) -> Path | None:
    """The first folder of a scenario that has facts."""
    return next((folder / key for folder in folders if (folder / key / FACTS).is_file()), None)


def left(folders: Sequence[Path], wanted: Sequence[tuple[str, Stand, Load]]) -> list[tuple[str, Stand, Load]]:
    """Those of the draw that have no facts yet."""
    return [item for item in wanted if kept(folders, item[0]) is None]

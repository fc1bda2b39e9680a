"""Many cuts of one recording, by several workers."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import resource
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...analysis import durability
from ...base.errors import InputError
from ...machine import paths, preflight
from ...machine.journal import HostJournal
from ...server.user import require_reachable, server_user
from . import known
from .book import Book, Name
from .examine import CutOutcome, Examiner, mount
from .recording import Recording

WORKERS = 4
"""Cuts that are examined at a time. Each waits for devices and mounts most of its time: on two cores 4 make 238 to 300 a minute, 2 make fewer."""
CUTS_FILE = "cuts.jsonl"
"""In a recording: a line for each call."""
TRIES = 20
"""Numbers that are tried for each content that is wanted: many give the same content as one before."""
ROOM_BYTES = 512 << 20
"""The contents under examination (133 MiB were seen of 8 volumes), the log (183 MiB of ten seconds), and the servers."""


@dataclass
class CampaignResult:
    """What the cuts came to."""

    recording: Recording
    reading: str
    seed: int
    tried: int = 0
    """Contents that were examined; each is another one."""
    in_recovery: int = 0
    """Contents that a cut during the recovery from another one left."""
    repeated: int = 0
    """Numbers that gave a content that was examined before."""
    failed: list[CutOutcome] = field(default_factory=list)
    until_failed: int | None = None
    """Contents that were examined when the first one had failed, that one among them."""
    strata: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wall_s: float = 0.0
    cpu_s: float = 0.0
    """Of this process and its children; what the kernel does for devices and mounts is not in it."""
    audit: dict[str, int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """In one line."""
        return durability.in_words(self.tried, len(self.failed))

    @property
    def unexplained(self) -> list[CutOutcome]:
        """Failures that no known defect of PostgreSQL explains."""
        return [outcome for outcome in self.failed if known.defect(outcome.failures) is None]

    def add(self, outcome: CutOutcome) -> None:
        """Count a cut."""
        self.tried += 1
        self.strata[outcome.cut.stratum] += 1
        for step, seconds in outcome.seconds.items():
            self.seconds[step] += seconds
        if outcome.failures:
            self.failed.append(outcome)
            self.until_failed = self.until_failed or self.tried

    def join(self, other: CampaignResult) -> None:
        """Count the cuts of another recording of the same server too."""
        if self.until_failed is None and other.until_failed is not None:
            self.until_failed = self.tried + other.until_failed
        self.tried += other.tried
        self.in_recovery += other.in_recovery
        self.repeated += other.repeated
        self.failed += other.failed
        for stratum, cuts in other.strata.items():
            self.strata[stratum] += cuts
        for step, seconds in other.seconds.items():
            self.seconds[step] += seconds
        self.wall_s += other.wall_s
        self.cpu_s += other.cpu_s
        self.audit = self.audit or other.audit

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        result = self.recording.asked
        cuts = max(1, self.tried)
        return {
            "schema_version": 1,
            "recording": str(self.recording.folder),
            "postgres": self.recording.postgres,
            "volume": result.volume,
            "file_system": result.file_system,
            "cache": result.cache,
            "wal_apart": result.wal_apart,
            "settings": result.settings,
            "given_up": result.given_up,
            "reading": self.reading,
            "seed": self.seed,
            "cuts": self.tried,
            "in_recovery": self.in_recovery,
            "repeated": self.repeated,
            "strata": dict(sorted(self.strata.items())),
            "failed": [outcome.to_json() for outcome in self.failed],
            "excluded_1_in": None if self.failed or not self.tried else durability.excluded(self.tried),
            "audit": self.audit,
            "seconds_per_cut": {step: round(total / cuts, 4) for step, total in self.seconds.items()},
            "cpu_s_per_cut": round(self.cpu_s / cuts, 4),
            "cuts_per_minute": round(60 * self.tried / self.wall_s, 1) if self.wall_s else None,
            "verdict": self.verdict,
        }


def require_ready() -> None:
    """Refuse what would make each cut fail for a reason that is not PostgreSQL's; :class:`HostError` says which."""
    preflight.require_root("mounting what a power cut left")
    preflight.require_loop()
    preflight.require_memory(ROOM_BYTES, "the contents of volumes after a cut")
    for folder in (paths.image_dir(), paths.state_dir()):
        there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
        require_reachable(there, server_user())


def make_cuts(
    recording: Recording,
    reading: str,
    seed: int,
    cuts: int,
    *,
    spared: int = 0,
    workers: int = WORKERS,
    failures_max: int | None = None,
    until: float = math.inf,
    tell: Callable[[CampaignResult], None] = lambda _: None,
) -> CampaignResult:
    """Examine ``cuts`` contents that differ, ``spared`` fewer as long as none of them fails unexplained, or fewer when there are no more;
    ``failures_max`` failures end it sooner, and so does the instant ``until`` of :func:`time.monotonic`.
    """
    require_ready()
    result = CampaignResult(recording, reading, seed)
    began, cpu = time.monotonic(), _cpu_s()
    with contextlib.closing(Book(recording)) as book, workplace() as folder:
        numbers = itertools.count()
        end, lock = threading.Event(), threading.Lock()

        def work(worker: int) -> None:
            examiner = Examiner(book, folder / str(worker))
            while not end.is_set() and time.monotonic() < until:
                with lock:
                    number = next(numbers)
                if number >= cuts * TRIES:
                    return
                outcome = examiner.try_cut(reading, seed, number)
                with lock:
                    if end.is_set():
                        return
                    if outcome is None:
                        result.repeated += 1
                        continue
                    result.add(outcome)
                    wanted = cuts if result.unexplained else cuts - spared
                    if result.tried >= wanted or (failures_max is not None and len(result.failed) >= failures_max):
                        end.set()
                    tell(result)

        with ThreadPoolExecutor(workers) as pool:
            try:
                jobs = [pool.submit(work, worker) for worker in range(workers)]
                for job in jobs:
                    job.result()
            finally:
                end.set()
        result.audit = book.audit()
    result.wall_s, result.cpu_s = time.monotonic() - began, _cpu_s() - cpu
    return result


def keep(result: CampaignResult) -> None:
    """Write what the cuts came to into the recording, beside those of earlier calls."""
    path = result.recording.folder / CUTS_FILE
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result.to_json()) + "\n")


def leave(book: Book, name: Name, folder: Path) -> list[str]:
    """Put the content of a cut into a new directory and mount it there; what is left where, and how it goes."""
    roles = book.recording.asked.roles
    files = [folder.absolute() / f"{role}.img" for role in roles]
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InputError(f"{folder} already exists", remedy="name a new directory") from None
    book.cut(name.reading, name.seed, name.number, files, again=True)
    lines = []
    for role, file in zip(roles, files, strict=True):
        target = folder.absolute() / role
        text = mount(file, target)
        lines.append(
            f"{role}: {file} is mounted on {target}" if text is None else f"{role}: {file} cannot be mounted: {text}"
        )
    targets = " ".join(str(folder.absolute() / role) for role in roles)
    return [*lines, f"`umount {targets}` ends it; then remove {folder}"]


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A directory in memory for contents and their mounts; what a killed command leaves, `pgdyno doctor --clean` finds."""
    paths.make_walkable(paths.image_dir())
    with HostJournal().directory(paths.image_dir() / f"crash-{secrets.token_hex(4)}") as folder:
        folder.chmod(0o755)  # the server's user walks through it
        yield folder


def _cpu_s() -> float:
    """CPU time of this process and of its children that have ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in both)

"""Which limit bound when: all watches of one directory, by the hours of the wall clock. Touches no machine."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from pgdyno.analysis.binding.verdict import BindingVerdict, total

from ...analysis.binding.consumers import What
from ...analysis.binding.evidence import is_watched
from ...analysis.binding.rules import LIMITS, Limit
from ...base import owner
from ...base.errors import InputError, OutputError, PgdynoError
from ...base.quantity import parse_seconds
from ...base.text import parsed_json
from ...results import StoredRun, list_experiments
from ..metrics.open_metrics import MetricFamily, Sample, lines_of
from .diagnosis import OF_STORAGE, Diagnosis, diagnose
from .remedies import Purchase

MISSED_FILE = "missed.jsonl"
"""One line for each watch that came to nothing: ``unix_s`` and ``why``."""
BESIDE_S = 5.0
"""What a watch takes beside its own time, at most: connecting, writing, judging."""
WAIT_S = 3600.0
"""The longest wait at once: a machine that slept, or whose clock was set, is noticed after it."""


@dataclass(frozen=True)
class WatchSchedule:
    """When to watch, in seconds since 1970."""

    begin_unix_s: float
    every_s: float
    until_unix_s: float | None
    """No watch begins from then on; None: until it is interrupted."""

    def due(self, number: int) -> float:
        """The instant of a watch; numbers begin at 0."""
        return self.begin_unix_s + number * self.every_s

    def next_after(self, number: int, now_s: float) -> int:
        """The number of the next watch: those whose time is over are left out."""
        return max(number + 1, -int(-(now_s - self.begin_unix_s) // self.every_s))


def schedule_of(every: str, until: str | None, seconds: float, now_s: float) -> WatchSchedule:
    """From ``--every`` and ``--until``. :class:`InputError` where watches would overlap, or none would be made."""
    every_s = parse_seconds(every, "--every")
    if every_s < seconds + BESIDE_S:
        raise InputError(
            f"--every {every}: a watch of {seconds:g} s takes up to {seconds + BESIDE_S:g} s with all around it",
            remedy=f"watch less often, --every {seconds + BESIDE_S:g}s, or for less time with --for",
        )
    ends_s = None if until is None else _instant(until, now_s)
    if ends_s is not None and ends_s <= now_s:
        raise InputError(f"--until {until} is over", remedy="name a later time, for example 08:00 or 24h")
    return WatchSchedule(now_s, every_s, ends_s)


def repeated(
    schedule: WatchSchedule,
    once: Callable[[], None],
    root: Path,
    tell: Callable[[float], None],
    note: Callable[[str], None],
) -> int:
    """Call ``once`` at each instant and return how many were made. The first must succeed; later errors are noted and kept.

    ``tell`` gets the instant of the next watch before each wait.
    """
    made = 0
    for number in _numbers(schedule):
        if number:
            tell(schedule.due(number))
            _wait_until(schedule.due(number))
        try:
            once()
            made += 1
        except PgdynoError as error:
            if not number:
                raise
            note(f"no watch at {datetime.now().astimezone():%H:%M}: {error.message}")
            _keep(root, error.message)
    return made


def _numbers(schedule: WatchSchedule) -> Iterator[int]:
    number = 0
    while schedule.until_unix_s is None or schedule.due(number) < schedule.until_unix_s:
        yield number
        number = schedule.next_after(number, time.time())


def _wait_until(unix_s: float) -> None:
    never = threading.Event()
    while (left_s := unix_s - time.time()) > 0:
        never.wait(min(left_s, WAIT_S))


def _keep(root: Path, why: str) -> None:
    path = root / MISSED_FILE
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"unix_s": round(time.time(), 3), "why": why}) + "\n")
        owner.give(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}", remedy="name another --keep") from error


def _instant(until: str, now_s: float) -> float:
    """``2026-11-26T08:00``, ``08:00`` (the next one) or ``24h``, as seconds since 1970; times without a zone are local ones."""
    try:
        if len(until) <= len("08:00") and ":" in until:
            hour, minute = (int(part) for part in until.split(":"))
            today = (
                datetime.fromtimestamp(now_s).astimezone().replace(hour=hour, minute=minute, second=0, microsecond=0)
            )
            return (today if today.timestamp() > now_s else today + timedelta(days=1)).timestamp()
        if ":" in until or "-" in until:
            return datetime.fromisoformat(until).astimezone().timestamp()
    except ValueError:
        raise InputError(
            f"--until {until} is not a time", remedy="write 08:00, 2026-11-26T08:00, or how long: 24h"
        ) from None
    return now_s + parse_seconds(until, "--until")


@dataclass(frozen=True)
class WatchRecord:
    """One watch of the directory."""

    begin_unix_s: float
    found: Diagnosis


@dataclass(frozen=True)
class Hour:
    """The watches that began in one hour, taken together."""

    begin: datetime
    """When the hour begins, with its time zone."""
    watches: tuple[WatchRecord, ...]
    verdict: BindingVerdict
    """Over the seconds of all of them."""
    missed: tuple[str, ...] = ()
    """Why watches of this hour came to nothing, or what they missed, each with its time: ``13:54 the server cannot be connected to``."""

    @property
    def consumer(self) -> tuple[What, float] | None:
        """The largest use of the volume that binds, and its share; None where no limit of storage binds, or nothing is known."""
        if self.verdict.limit not in OF_STORAGE:
            return None
        for watch in self.watches:
            if watch.found.binding.verdict.limit == self.verdict.limit and watch.found.consumers:
                largest = watch.found.consumers[0]
                return largest.what, largest.share
        return None


@dataclass(frozen=True)
class Calendar:
    """A directory of watches of one server."""

    path: Path
    server: str
    """As the records name it: its connection string without a password."""
    hours: tuple[Hour, ...]
    """Those with a watch, or without one that should have been; in their order."""
    unreadable: Mapping[Path, str]

    @property
    def watches(self) -> tuple[WatchRecord, ...]:
        """All, in their order."""
        return tuple(watch for hour in self.hours for watch in hour.watches)

    @property
    def counted(self) -> dict[Limit, int]:
        """Limit -> hours in which it bound, the most frequent first."""
        counts: dict[Limit, int] = defaultdict(int)
        for hour in self.hours:
            if hour.verdict.limit is not None:
                counts[hour.verdict.limit] += 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def worst(self) -> Diagnosis:
        """The watch whose evidence and remedies stand for all: of the limit that bound most often, but for clients that ask for
        no more, the one in which it bound most of the time; else the last.
        """
        binding = next((limit for limit in self.counted if limit != "client"), None)
        of_it = [watch.found for watch in self.watches if watch.found.binding.verdict.limit == binding]
        if binding is None or not of_it:
            return self.watches[-1].found
        return max(of_it, key=lambda item: (item.binding.verdict.confidence == "high", item.binding.verdict.share))


def is_calendar(path: Path) -> bool:
    """Whether a directory holds watches (or experiments) and is none itself."""
    return not any((path / name).is_file() for name in ("experiment.json", "run.json")) and any(
        path.glob("*/experiment.json")
    )


def runs_of(path: Path, unreadable: dict[Path, str] | None = None) -> list[StoredRun]:
    """The watches of a directory in their order. :class:`InputError` where there is none, or they are of several servers."""
    known = unreadable if unreadable is not None else {}
    runs = [
        run
        for list_experiment in list_experiments(path, known)
        for run in list_experiment.runs
        if is_watched(run.record)
    ]
    if not runs:
        raise InputError(
            f"{path} has no watch",
            remedy=f"make some: pgdyno diagnose DSN --every 1h --keep {path}, or name a run of an experiment",
        )
    servers = dict.fromkeys(run.record.arm for run in runs)
    if len(servers) > 1:
        raise InputError(
            f"{path} has watches of {len(servers)} servers: {', '.join(servers)}",
            remedy="keep each server's in a directory of its own, or name one watch",
        )
    return sorted(runs, key=lambda run: run.record.anchor.to_unix_ns(run.record.measure.begin_ns))


def calendar_of(
    path: Path,
    purchase: Purchase | None = None,
    zone: tzinfo | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Calendar:
    """Judge every watch of a directory by the rules of today; hours are those of ``zone``, by default this machine's.

    ``purchase`` takes the place of what the records say to be bought; ``tell`` gets how many are judged, and of how many.
    """
    unreadable: dict[Path, str] = {}
    runs = runs_of(path, unreadable)
    by_hour: dict[datetime, list[WatchRecord]] = defaultdict(list)
    for place, run in enumerate(runs):
        if tell is not None:
            tell(place, len(runs))
        begin_s = run.record.anchor.to_unix_ns(run.record.measure.begin_ns) / 1e9
        by_hour[_hour(begin_s, zone)].append(WatchRecord(begin_s, diagnose(run.path, purchase)))
    missed: dict[datetime, list[str]] = defaultdict(list)
    unanswered = [
        (watch.begin_unix_s, silence.title)
        for watches in by_hour.values()
        for watch in watches
        if (silence := watch.found.silence) is not None and silence.binds
    ]
    for at_s, why in sorted([*_missed(path), *unanswered]):
        missed[_hour(at_s, zone)].append(f"{datetime.fromtimestamp(at_s, UTC).astimezone(zone):%H:%M} {why}")
    hours = tuple(
        Hour(begin, tuple(by_hour.get(begin, ())), _together(by_hour.get(begin, ())), tuple(missed.get(begin, ())))
        for begin in sorted(by_hour.keys() | missed.keys())
    )
    return Calendar(path, runs[-1].record.arm, hours, unreadable)


def _together(watches: Sequence[WatchRecord]) -> BindingVerdict:
    return total([watch.found.binding.seconds for watch in watches])


def _hour(unix_s: float, zone: tzinfo | None) -> datetime:
    at = datetime.fromtimestamp(unix_s, UTC).astimezone(zone)
    return at.replace(minute=0, second=0, microsecond=0)


def _missed(path: Path) -> list[tuple[float, str]]:
    """(instant, reason) of the watches that came to nothing. A line that was not written whole is left out."""
    file = path / MISSED_FILE
    results: list[tuple[float, str]] = []
    if not file.is_file():
        return results
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            result = parsed_json(line)
            results.append((float(result["unix_s"]), str(result["why"])))
        except (ValueError, KeyError, TypeError):
            continue
    return results


PREFIX = "pgdyno_diagnose_"


def _limit(diagnosis: Diagnosis) -> Iterator[Sample]:
    verdict = diagnosis.binding.verdict
    for limit in LIMITS:
        yield (
            "",
            {"limit": limit, "role": (verdict.role or "") if limit == verdict.limit else ""},
            limit == verdict.limit,
        )


def _share(diagnosis: Diagnosis) -> Iterator[Sample]:
    for limit in LIMITS:
        yield "", {"limit": limit}, diagnosis.binding.verdict.shares.get(limit, 0.0)


def _sure(diagnosis: Diagnosis) -> Iterator[Sample]:
    yield "", {}, diagnosis.binding.verdict.confidence == "high"


def _consumers(diagnosis: Diagnosis) -> Iterator[Sample]:
    for consumer in diagnosis.consumers:
        yield "", {"role": diagnosis.consumers_role, "consumer": consumer.what}, min(1.0, consumer.share)


def _begin(diagnosis: Diagnosis) -> Iterator[Sample]:
    record = diagnosis.run.record
    yield "", {}, record.anchor.to_unix_ns(record.measure.begin_ns) / 1e9


def _seconds(diagnosis: Diagnosis) -> Iterator[Sample]:
    yield "", {}, diagnosis.run.record.measure.seconds


FAMILIES: tuple[MetricFamily, ...] = (
    MetricFamily("limit", "gauge", "", "1 for the limit that bound in the newest watch, 0 for the others; client: nothing binds.", _limit, PREFIX),
    MetricFamily("limit_share_ratio", "gauge", "ratio", "Share of the watch's seconds in which each limit bound.", _share, PREFIX),
    MetricFamily("confidence_high", "gauge", "", "Whether the verdict has high confidence.", _sure, PREFIX),
    MetricFamily("consumer_share_ratio", "gauge", "ratio", "Share of each use of the volume that binds, else of the data's.", _consumers, PREFIX),
    MetricFamily("watch_begin_seconds", "gauge", "seconds", "When the newest watch began, since 1970.", _begin, PREFIX),
    MetricFamily("watch_seconds", "gauge", "seconds", "How long it watched.", _seconds, PREFIX),
)  # fmt: skip
"""Every family, in the order of the text. Samples have the label ``server``."""


def lines(directories: Sequence[Path]) -> list[str]:
    """Families of the newest watch of each directory. :class:`~pgdyno.base.errors.InputError` where one has none."""
    newest = [runs_of(path)[-1] for path in directories]
    return lines_of(FAMILIES, [({"server": run.record.arm}, _judged(run.path)) for run in newest])


@functools.lru_cache(maxsize=16)
def _judged(path: Path) -> Diagnosis:
    """Once for each watch, which never changes."""
    return diagnose(path)

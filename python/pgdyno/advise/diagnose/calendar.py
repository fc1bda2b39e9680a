"""Which limit bound when: all watches of one directory, by the hours of the wall clock. Touches no machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from pgdyno.analysis.binding.verdict import BindingVerdict, total

from ...analysis.binding.consumers import What
from ...analysis.binding.evidence import is_watched
from ...analysis.binding.rules import Limit
from ...base.errors import InputError
from ...base.text import parsed_json
from ...results import StoredRun, list_experiments
from .bought import Purchase
from .diagnosis import OF_STORAGE, Diagnosis, diagnose
from .repeat import MISSED_FILE


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

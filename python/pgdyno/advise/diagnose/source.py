"""Files about the volumes of a server: what iostat, sar, CloudWatch or a volume's own NVMe counters say, by role.

They are read as ``pgdyno size`` reads them. Clocks are compared by wall time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ...base.errors import InputError
from ...results.tables import DATA_VOLUME
from ..size.choice import choose
from ..size.measured import DeviceSamples, IntervalSample
from ..size.reading import cloudwatch, iostat, nvme, sar
from .bought import role_and_value

NVME = "--nvme"
CLOUDWATCH = "--cloudwatch"
_READERS: dict[str, Callable[[str, str, float | None, Sequence[str]], dict[str, DeviceSamples]]] = {
    # The first report may be an average since boot; of a volume that was idle it would be all that there is.
    "--iostat": lambda text, path, near_s, wanted: iostat.read(
        text, path, near_s=near_s, keep_first=False, wanted=wanted
    ),
    "--sar": sar.read,
    CLOUDWATCH: lambda text, path, _, wanted: cloudwatch.read(text, path, wanted=wanted),
}
_REMEDIES: dict[str, str] = {
    iostat.FIRST_ONLY: "let iostat run while the server is watched, `iostat -dxt 1 > FILE`; its first report is an average since boot",
    iostat.NO_LENGTH: "record it with timestamps and several intervals, `iostat -dxt 1 > FILE`",
    cloudwatch.ONE_VALUE: "ask for several periods, from a minute before the watch on",
}
"""What to do instead where the remedy of a reader is an option of ``pgdyno size``, by the code of the error."""
RECORD_AGAIN: dict[str, str] = {
    "--iostat": "record it while the server is watched, with `S_TIME_FORMAT=ISO iostat -dxt 1`; a file without a time zone is"
    " taken to be of this machine's: TZ=UTC before the command names another",
    "--sar": "record it while the server is watched; a file without a time zone is taken to be of this machine's: TZ=UTC before the"
    " command names another",
    CLOUDWATCH: "ask for metrics from a minute before the watch on; they come some minutes late",
    NVME: "take one reading before the watch and one after it",
}
"""What to do about a file of another time."""


@dataclass(frozen=True)
class VolumeSource:
    """What one file says of one volume."""

    flag: str
    path: str
    role: str
    measured: DeviceSamples

    @cached_property
    def begins_s(self) -> list[float]:
        """When each interval began, in seconds since 1970."""
        return [sample.at_s or 0.0 for sample in self.measured.samples]

    @property
    def span_s(self) -> tuple[float, float]:
        """From the first interval's begin to the last one's end."""
        return self.begins_s[0], self.begins_s[-1] + self.measured.samples[-1].seconds

    def at(self, unix_s: float) -> IntervalSample | None:
        """The interval that an instant lies in."""
        place = bisect_right(self.begins_s, unix_s) - 1
        if place < 0:
            return None
        sample = self.measured.samples[place]
        return sample if unix_s < self.begins_s[place] + sample.seconds else None


def sources_of(
    files: Mapping[str, Sequence[str]], devices: Sequence[str] = (), near_s: float | None = None
) -> tuple[VolumeSource, ...]:
    """From ``[ROLE=]FILE`` by flag and ``[ROLE=]DEVICE``, the device in a file that a role's volume is.

    ``near_s`` is the time of the watch, in seconds since 1970. :class:`InputError` where a file cannot be read, has several devices
    of which none is named, or does not say when it was recorded.
    """
    named: dict[str, list[str]] = {}
    for word in devices:
        role, name = role_and_value(word)
        named.setdefault(role, []).append(name)
    sources: list[VolumeSource] = []
    for flag, words in files.items():
        made = (
            _nvme(words, near_s)
            if flag == NVME
            else [source for word in words for source in _of_file(flag, word, named, near_s)]
        )
        twice = next(
            (source.role for place, source in enumerate(made) if source.role in [other.role for other in made[:place]]),
            None,
        )
        if twice is not None:
            raise InputError(f"{flag} names {twice} twice", remedy=f"name one file for each volume: {flag} wal=FILE")
        sources += made
    for source in sources:
        if any(sample.at_s is None for sample in source.measured.samples):
            raise InputError(
                f"{source.path} does not say on which day it was recorded", remedy=RECORD_AGAIN[source.flag]
            )
    return tuple(sources)


def require_readable(files: Mapping[str, Sequence[str]]) -> None:
    """Refuse, before a watch, what cannot be read after it. :class:`InputError`."""
    for words in files.values():
        for word in words:
            _text(Path(role_and_value(word)[1]))


def _of_file(flag: str, word: str, named: Mapping[str, list[str]], near_s: float | None) -> list[VolumeSource]:
    """A file with a role has that volume alone; one without has those of the named devices that it knows."""
    role, name = role_and_value(word)
    output = word != name
    roles = [role] if output or not named else list(named)
    wanted = [device for each in roles for device in named.get(each, [])]
    try:
        known = _READERS[flag](_text(Path(name)), name, near_s, wanted)
    except InputError as error:
        raise InputError(
            error.message, remedy=_REMEDIES.get(error.code, error.remedy), code=error.code, data=error.data
        ) from error
    return [VolumeSource(flag, name, each, choose(known, named.get(each, []), name)) for each in roles]


def _nvme(words: Sequence[str], near_s: float | None) -> list[VolumeSource]:
    """Readings may be in several files of one volume."""
    paths: dict[str, list[str]] = {}
    for word in words:
        role, name = role_and_value(word)
        paths.setdefault(role, []).append(name)
    return [
        VolumeSource(NVME, ", ".join(names), role, nvme.read([_changed(Path(name)) for name in names], near_s))
        for role, names in paths.items()
    ]


def _changed(path: Path) -> tuple[str, str, float]:
    text = _text(path)
    return text, str(path), path.stat().st_mtime


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", remedy="name a file that you may read"
        ) from error


def require_source_roles(sources: Sequence[VolumeSource], seen: frozenset[str]) -> None:
    """Refuse a file about a volume that the server does not have; where no device was seen, any role may be right."""
    strange = next((source for source in sources if seen and source.role not in seen), None)
    if strange is not None:
        raise InputError(
            f"{strange.flag}: the server has no {strange.role} volume of its own",
            remedy=f"it has {', '.join(sorted(seen))}: {strange.flag} {DATA_VOLUME}={strange.path}",
        )

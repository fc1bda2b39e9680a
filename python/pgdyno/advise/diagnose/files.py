"""Evidence from files about volumes (iostat, sar, CloudWatch, NVMe counters), beside a watched server or without one.

They are read as ``pgdyno size`` reads them. Clocks are compared by wall time.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import pgdyno
from pgdyno.analysis.binding.device import MIB, DeviceActivity
from pgdyno.analysis.binding.evidence import Evidence, KnownConditions, Second, ThrottledShares, missing_of

from ...analysis.binding.device import BoughtInstance, ProvisionedVolume, cpu_share_of
from ...analysis.binding.evidence import OBSERVE, Checkpoints
from ...base.errors import InputError
from ...base.text import percent
from ...results import StoredRun, record
from ...results.names import identity_hash
from ...results.record import HostRecord, RunRecord
from ...results.tables import DATA_VOLUME
from ..size.choice import choose
from ..size.measured import Check, DeviceSamples, IntervalSample
from ..size.reading import cloudwatch, counters, sysstat
from .remedies import Purchase, role_and_value

NVME = "--nvme"
CLOUDWATCH = "--cloudwatch"
_READERS: dict[str, Callable[[str, str, float | None, Sequence[str]], dict[str, DeviceSamples]]] = {
    # The first report may be an average since boot; of a volume that was idle it would be all that there is.
    "--iostat": lambda text, path, near_s, wanted: sysstat.read_iostat(
        text, path, near_s=near_s, keep_first=False, wanted=wanted
    ),
    "--sar": sysstat.read_sar,
    CLOUDWATCH: lambda text, path, _, wanted: cloudwatch.read(text, path, wanted=wanted),
}
_REMEDIES: dict[str, str] = {
    sysstat.FIRST_ONLY: "let iostat run while the server is watched, `iostat -dxt 1 > FILE`; its first report is an average since boot",
    sysstat.NO_LENGTH: "record it with timestamps and several intervals, `iostat -dxt 1 > FILE`",
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
        VolumeSource(NVME, ", ".join(names), role, counters.read([_changed(Path(name)) for name in names], near_s))
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


_CHECKS: dict[Check, str] = {
    "iops": "the IOPS limit of the {role} volume",
    "throughput": "the throughput limit of the {role} volume",
    "instance_iops": "the instance's IOPS limit to its volumes",
    "instance_throughput": "the instance's throughput limit to its volumes",
}


@dataclass(frozen=True)
class TimeGrid:
    """Equal intervals of a watch on the wall clock."""

    begin_s: float
    """Seconds since 1970."""
    step_s: float
    count: int

    @classmethod
    def of(cls, record: RunRecord, count: int) -> TimeGrid:
        """The seconds of a run's measure phase."""
        return cls(record.anchor.to_unix_ns(record.measure.begin_ns) / 1e9, 1.0, count)

    def samples(self, source: VolumeSource) -> list[IntervalSample | None]:
        """The interval of the file that the middle of each lies in; None where the file has none."""
        return [source.at(self.begin_s + (place + 0.5) * self.step_s) for place in range(self.count)]


def beside(evidence: Evidence, grid: TimeGrid, sources: Sequence[VolumeSource]) -> Evidence:
    """The evidence with what files add to it. :class:`InputError` for a file of another time."""
    seconds = list(evidence.seconds)
    for source in sources:
        samples = grid.samples(source)
        if not any(samples):
            raise _of_another_time(source, grid)
        for place, (second, sample) in enumerate(zip(seconds, samples, strict=True)):
            if sample is None:
                continue
            devices = {source.role: _device(sample), **second.devices}
            exceeded = {
                **second.exceeded,
                **(
                    {source.role: ThrottledShares(**{str(check): share for check, share in sample.exceeded.items()})}
                    if sample.exceeded
                    else {}
                ),
            }
            seconds[place] = replace(second, devices=devices, exceeded=exceeded)
    return replace(
        evidence,
        seconds=tuple(seconds),
        checkpoints=_checkpoints(evidence.checkpoints, seconds),
        missing=tuple(missing_of(evidence.given, tuple(seconds))),
    )


def _checkpoints(checkpoints: Checkpoints, seconds: Sequence[Second]) -> Checkpoints:
    """With the volumes' bytes by the files, where the host did not show them."""
    seen = [second.devices.values() for second in seconds if second.devices]
    if checkpoints.moved_share is not None or not seen:
        return checkpoints
    each = MIB * len(seconds) / len(seen)
    written, read = (
        each * sum(getattr(device, name) for devices in seen for device in devices)
        for name in ("write_mib_per_s", "read_mib_per_s")
    )
    return checkpoints.of_volumes(written, read)


def totals_of(source: VolumeSource, grid: TimeGrid) -> dict[str, float] | None:
    """Requests and bytes of the whole watch by their mean rates; None where the file does not tell reads from writes."""
    known = [sample for sample in grid.samples(source) if sample is not None]
    if not known or not source.measured.split_known:
        return None
    each = grid.step_s * grid.count / len(known)
    return {
        "reads": each * sum(sample.read_ops_per_s for sample in known),
        "writes": each * sum(sample.write_ops_per_s for sample in known),
        "read_bytes": each * sum(sample.read_bytes_per_s for sample in known),
        "write_bytes": each * sum(sample.write_bytes_per_s for sample in known),
    }


def check_words(source: VolumeSource, grid: TimeGrid) -> Iterator[str]:
    """What the provider's own counters and checks say of the watch; nothing where the file has none."""
    known = [sample.exceeded for sample in grid.samples(source) if sample is not None and sample.exceeded]
    if not known:
        return
    shares = {check: sum(item.get(check, 0.0) for item in known) / len(known) for check in _CHECKS}
    by = "the volume's own counters (NVMe)" if source.flag == NVME else "CloudWatch's checks"
    for check, share in sorted(shares.items(), key=lambda item: -item[1]):
        if share > 0:
            yield f"by {by} {_CHECKS[check].format(role=source.role)} was exceeded in {percent(share)} of the time"
    if not any(shares.values()):
        yield f"by {by} no limit of the {source.role} volume was exceeded"


def most_used_words(evidence: Evidence) -> Iterator[str]:
    """How near each volume came to what was bought, where that is known."""
    for role, bought in evidence.given.bought.items():
        devices = [second.devices[role] for second in evidence.seconds if role in second.devices]
        parts = {
            "IOPS": [used for device in devices if (used := bought.used_iops(device)) is not None],
            "throughput": [
                used for device in devices if (used := bought.used_throughput(device.mib_per_s)) is not None
            ],
        }
        most = [f"{percent(max(used))} of its {what}" for what, used in parts.items() if used]
        if most:
            yield f"the {role} volume did at most {' and '.join(most)}"


def _device(sample: IntervalSample) -> DeviceActivity:
    """The volume in a second, by the means of its interval."""
    iops = sample.ops_per_s
    queue = sample.queue_length
    request_ms = sample.latency_ms
    if request_ms is None and queue is not None:  # Little's law
        request_ms = 1e3 * queue / iops if iops else 0.0
    if queue is None and request_ms is not None:
        queue = iops * request_ms / 1e3
    return DeviceActivity(
        reads_per_s=sample.read_ops_per_s,
        writes_per_s=sample.write_ops_per_s,
        read_mib_per_s=sample.read_bytes_per_s / MIB,
        write_mib_per_s=sample.write_bytes_per_s / MIB,
        request_ms=request_ms,
        queue_length=queue,
        reading=None if queue is None else queue * sample.read_ops_per_s / iops if iops else 0.0,
    )


def _of_another_time(source: VolumeSource, grid: TimeGrid) -> InputError:
    begin_s, end_s = source.span_s
    metrics = "metrics of " if source.flag == CLOUDWATCH else ""
    return InputError(
        f"{source.path} has {metrics}{utc(begin_s)} to {utc(end_s)}, and the server was watched from {utc(grid.begin_s)} to"
        f" {utc(grid.begin_s + grid.step_s * grid.count)}",
        remedy=RECORD_AGAIN[source.flag],
    )


def utc(unix_s: float) -> str:
    """A time of the wall clock."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


POINTS_MAX = 20_000
"""Intervals that are judged: two weeks of minutes; of more, longer ones are made."""


def grid_of(sources: Sequence[VolumeSource]) -> TimeGrid:
    """The time that all files cover, in the shortest of their intervals. :class:`InputError` where there is none."""
    begin_s = max(source.span_s[0] for source in sources)
    end_s = min(source.span_s[1] for source in sources)
    if end_s <= begin_s:
        first, second = sorted(sources, key=lambda source: source.span_s[0])[:: len(sources) - 1]
        raise InputError(
            f"{first.path} ends at {utc(first.span_s[1])}, before {second.path} begins at {utc(second.span_s[0])}",
            remedy="name files of the same time",
        )
    shortest_s = min(sample.seconds for source in sources for sample in source.measured.samples)
    step_s = max(1.0, shortest_s, (end_s - begin_s) / POINTS_MAX)
    return TimeGrid(begin_s, step_s, max(1, round((end_s - begin_s) / step_s)))


def evidence_of_files(sources: Sequence[VolumeSource], grid: TimeGrid, purchase: Purchase) -> Evidence:
    """What files alone show: devices and the provider's checks."""
    roles = {source.role for source in sources}
    strange = next((role for role in purchase.volumes if role not in roles), None)
    if strange is not None:
        raise InputError(
            f"--bought names {strange}, and no file is about that volume",
            remedy=f"files are about {', '.join(sorted(roles))}; {sources[0].flag} {strange}=FILE names another",
        )
    bought = {role: ProvisionedVolume.of(volume.spec) for role, volume in purchase.volumes.items()}
    given = KnownConditions(
        clients=0,
        bought={role: volume for role, volume in bought.items() if volume is not None},
        instance=BoughtInstance.of(purchase.instance),
        cpu_share=cpu_share_of(purchase.instance),
        driven=False,
    )
    nothing = Evidence(
        given, (Second(),) * grid.count, Checkpoints((False,) * grid.count, seconds=grid.step_s * grid.count), ()
    )
    return beside(nothing, grid, sources)


def run_of_files(sources: Sequence[VolumeSource], grid: TimeGrid, purchase: Purchase) -> StoredRun:
    """The record that a watch of that time would have, without a table: files are their own record."""
    begin_ns = round(grid.begin_s * 1e9)
    end_ns = begin_ns + round(grid.step_s * grid.count * 1e9)
    data = purchase.volumes.get("data")
    names = ", ".join(source.path for source in sources)
    made = record.RunRecord(
        run_id="files",
        experiment_id="files",
        experiment_hash=identity_hash({"files": names, "pgdyno": pgdyno.__version__}),
        command=(
            "pgdyno",
            "diagnose",
            *(word for source in sources for word in (source.flag, f"{source.role}={source.path}")),
        ),
        arm=names,
        arm_index=0,
        block=1,
        position=0,
        seed=0,
        anchor=record.Anchor(monotonic_ns=begin_ns, unix_ns=begin_ns),
        world=record.WorldRecord(
            kind="real",
            volume={} if data is None else data.spec,
            volumes=dict(purchase.volumes),
            instance=purchase.instance,
            host=HostRecord(cores=1, kernel="", memory_bytes=1),
        ),
        workload={"kind": OBSERVE},
        postgres=record.PostgresRecord(version="", source="no server was watched"),
        phases=(record.RunPhase(name="measure", begin_ns=begin_ns, end_ns=end_ns),),
        account=record.Account(scheduled=0, skipped=0, succeeded=0, failed=0),
        validity=record.Validity(valid=True),
    )
    return StoredRun(Path(os.devnull), made)

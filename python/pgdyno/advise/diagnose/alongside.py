"""What files say, second by second of a watch: devices that were not seen from here, and limits that the provider says were exceeded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pgdyno.analysis.binding.evidence import Evidence, Second, ThrottledShares, missing_of

from ...analysis.binding.device import MIB, DeviceActivity
from ...analysis.binding.evidence import Checkpoints
from ...base.errors import InputError
from ...base.text import percent
from ...results.record import RunRecord
from ..size.measured import Check, IntervalSample
from .source import CLOUDWATCH, NVME, RECORD_AGAIN, VolumeSource

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

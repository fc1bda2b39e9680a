"""What the provider counted while a server was watched: CloudWatch's metrics in place of a device that cannot be seen from here.

Clocks are compared by wall time: a second of the watch gets the figures of the period that it lies in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.device import MIB, Device
from pgdyno.analysis.binding.evidence import missing_of
from pgdyno.diagnose.bought import role_and_value
from pgdyno.errors import InputError
from pgdyno.size.reading import cloudwatch
from pgdyno.text import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pgdyno.analysis.binding.evidence import Evidence
    from pgdyno.size.measured import Measured, Sample
    from pgdyno.store.record import RunRecord

SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Provider:
    """The metrics of one volume."""

    path: str
    measured: Measured

    def at(self, unix_s: float) -> Sample | None:
        """The period that an instant lies in."""
        for sample in self.measured.samples:
            if sample.at_s is not None and sample.at_s <= unix_s < sample.at_s + sample.seconds:
                return sample
        return None


def providers_of(words: Sequence[str]) -> dict[str, Provider]:
    """From ``[ROLE=]FILE``, by role. :class:`InputError` where a file cannot be read, or has several volumes."""
    found: dict[str, Provider] = {}
    for word in words:
        role, name = role_and_value(word)
        if role in found:
            raise InputError(f"--cloudwatch names {role} twice", remedy="name one file for each volume")
        found[role] = _provider(Path(name))
    return found


def beside(evidence: Evidence, record: RunRecord, providers: Mapping[str, Provider]) -> Evidence:
    """The evidence with the devices that the host did not show. :class:`InputError` for a file of another time."""
    seconds = list(evidence.seconds)
    for role, provider in providers.items():
        samples = samples_of(record, provider, len(seconds))
        if not any(samples):
            raise InputError(
                f"{provider.path} has no value of the time of the watch, which began at {_utc(record)}",
                remedy="ask for metrics from a minute before that on; they come some minutes late",
            )
        for place, (second, sample) in enumerate(zip(seconds, samples, strict=True)):
            if sample is not None and role not in second.devices:
                seconds[place] = replace(second, devices={**second.devices, role: _device(sample)})
    return replace(evidence, seconds=tuple(seconds), missing=tuple(missing_of(evidence.given, tuple(seconds))))


def samples_of(record: RunRecord, provider: Provider, seconds: int) -> list[Sample | None]:
    """The period of each second of the watch; None where the file has none."""
    begin_ns = record.measure.begin_ns
    middles = (record.anchor.to_unix_ns(begin_ns + place * SECOND_NS + SECOND_NS // 2) for place in range(seconds))
    return [provider.at(middle_ns / 1e9) for middle_ns in middles]


def totals_of(record: RunRecord, provider: Provider, seconds: int) -> dict[str, float] | None:
    """Requests and bytes of the whole watch by their mean rates; None where the file does not tell reads from writes."""
    known = [sample for sample in samples_of(record, provider, seconds) if sample is not None]
    if not known or not provider.measured.split_known:
        return None
    each = record.measure.seconds / len(known)
    return {
        "reads": each * sum(sample.read_ops_per_s for sample in known),
        "writes": each * sum(sample.write_ops_per_s for sample in known),
        "read_bytes": each * sum(sample.read_bytes_per_s for sample in known),
        "write_bytes": each * sum(sample.write_bytes_per_s for sample in known),
    }


def provider_words(record: RunRecord, provider: Provider, seconds: int) -> list[str]:
    """What the provider's own check says of the watch; empty where it says nothing, or nothing was exceeded."""
    told = [sample.limited for sample in samples_of(record, provider, seconds) if sample is not None]
    exceeded = sum(one is True for one in told)
    if not exceeded:
        return []
    return [f"the provider says that in {percent(exceeded / len(told))} of the time more was asked for than was bought"]


def _provider(path: Path) -> Provider:
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", remedy="name a file that you may read"
        ) from error
    found = cloudwatch.read(text, str(path))
    if len(found) != 1:
        raise InputError(
            f"{path} has {len(found)} volumes: {', '.join(sorted(found))}",
            remedy="ask for the metrics of one volume a file",
        )
    return Provider(str(path), next(iter(found.values())))


def _device(sample: Sample) -> Device:
    """The volume in a second, by the means of its period."""
    iops = sample.ops_per_s
    queue = sample.queue_length
    request_ms = sample.latency_ms
    if request_ms is None:  # Little's law
        request_ms = 1e3 * queue / iops if queue is not None and iops else 0.0
    if queue is None:
        queue = iops * request_ms / 1e3
    return Device(
        reads_per_s=sample.read_ops_per_s,
        writes_per_s=sample.write_ops_per_s,
        read_mib_per_s=sample.read_bytes_per_s / MIB,
        write_mib_per_s=sample.write_bytes_per_s / MIB,
        request_ms=request_ms,
        queue_length=queue,
        reading=queue * sample.read_ops_per_s / iops if iops else 0.0,
    )


def _utc(record: RunRecord) -> str:
    begin_s = record.anchor.to_unix_ns(record.measure.begin_ns) / 1e9
    return f"{datetime.fromtimestamp(begin_s, UTC):%Y-%m-%dT%H:%M:%SZ}"

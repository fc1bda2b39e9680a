"""The six views of a watch: what a DBA has, from everything down to one file. Each is the same watch with less of it.

A server elsewhere shows by SQL what this one shows, so `SQL alone` is the watch without what the host showed. The files of a provider
have what the emulated volume counted around the watch, in periods of the watch's own length.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pgdyno.advise.diagnose.diagnosis import Diagnosis, begin_s, diagnose, diagnose_files
from pgdyno.advise.diagnose.files import VolumeSource, sources_of
from pgdyno.advise.diagnose.remedies import Purchase, purchase_of
from pgdyno.analysis.binding.rules import LIMITS, Limit
from tools.diagnose.measure import IOSTAT, WATCH
from tools.diagnose.record import Answer, Facts, Measured

if TYPE_CHECKING:
    from pathlib import Path

    from tools.diagnose.record import Reading

OF_HOST = ("disk", "cpu", "memory", "volume", "volume_latency", "instance")
"""Tables that the host's probe writes."""
OF_VOLUMES: tuple[Limit, ...] = ("volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth")
SHOWN: dict[str, tuple[Limit, ...]] = {
    "SQL alone": ("locks", "client", "synchronous_standby", "connections"),
    "SQL and CloudWatch": tuple(limit for limit in LIMITS if limit not in ("server_cpu", "harness")),
    "iostat alone": OF_VOLUMES,
    "NVMe alone": OF_VOLUMES,
}
"""Limits that can be seen from a view; from the others all can. SQL alone shows what sessions wait for, a file about a volume that volume."""
HALF_MIN = 0.5
"""Share of the time above a limit from which the provider's check says so."""


def answers(measured: Measured, scratch: Path) -> list[Answer]:
    """What each view says."""
    return [_answer(view, measured.facts, look(measured, scratch)) for view, look in VIEWS.items()]


def _answer(view: str, facts: Facts, diagnosis: Diagnosis) -> Answer:
    verdict = diagnosis.binding.verdict
    visible = facts.limit in SHOWN.get(view, LIMITS)
    right = verdict.limit == facts.limit
    return Answer(
        view=view,
        facts=facts,
        limit=verdict.limit,
        role=verdict.role,
        confidence=verdict.confidence,
        consumer=diagnosis.consumers[0].what if diagnosis.consumers else None,
        right=right if visible else right or verdict.confidence != "high",
        visible=visible,
    )


def _run_of(measured: Measured) -> Path:
    (run,) = (measured.folder / WATCH).glob("*/runs/*")
    return run


def _whole(measured: Measured, _: Path) -> Diagnosis:
    """SQL and host, as it was watched."""
    return diagnose(_run_of(measured))


def _sql(measured: Measured, scratch: Path) -> Path:
    """The watch of a server elsewhere."""
    copy = scratch / measured.facts.key
    if not copy.is_dir():
        shutil.copytree(_run_of(measured), copy)
        for name in OF_HOST:
            (copy / f"probe/{name}.parquet").unlink(missing_ok=True)
    return copy


def _sql_alone(measured: Measured, scratch: Path) -> Diagnosis:
    return diagnose(_sql(measured, scratch))


def _sql_and_cloudwatch(measured: Measured, scratch: Path) -> Diagnosis:
    path = _sql(measured, scratch)
    return diagnose(path, None, sources_of({"--cloudwatch": _cloudwatch(measured, scratch)}, (), begin_s(path)))


def _all(measured: Measured, scratch: Path) -> Diagnosis:
    path = _run_of(measured)
    files = {"--cloudwatch": _cloudwatch(measured, scratch), "--nvme": _nvme(measured, scratch)}
    return diagnose(path, None, sources_of(files, (), begin_s(path)))


def _iostat_alone(measured: Measured, _: Path) -> Diagnosis:
    devices = [f"{role}={name}" for role, name in measured.facts.devices.items()]
    return _alone(measured, sources_of({"--iostat": [str(measured.folder / IOSTAT)]}, devices))


def _nvme_alone(measured: Measured, scratch: Path) -> Diagnosis:
    return _alone(measured, sources_of({"--nvme": _nvme(measured, scratch)}))


def _alone(measured: Measured, sources: tuple[VolumeSource, ...]) -> Diagnosis:
    return diagnose_files(sources, _purchase(measured.facts))


def _purchase(facts: Facts) -> Purchase:
    return purchase_of([f"{role}={spec}" for role, spec in facts.volumes.items()], facts.instance)


def _cloudwatch(measured: Measured, scratch: Path) -> list[str]:
    words = []
    for role, reading in measured.facts.readings.items():
        path = scratch / f"{measured.facts.key}-{role}.json"
        path.write_text(cloudwatch(reading))
        words.append(f"{role}={path}")
    return words


def _nvme(measured: Measured, scratch: Path) -> list[str]:
    """The log page before and after the watch, each with its instant, as the guide asks for them."""
    words = []
    for role, reading in measured.facts.readings.items():
        path = scratch / f"{measured.facts.key}-{role}.nvme"
        instants = zip((reading.begin_unix_s, reading.end_unix_s), reading.nvme, strict=True)
        path.write_text(
            "\n".join(f"{datetime.fromtimestamp(at_s, UTC).isoformat()}\n{json.dumps(page)}" for at_s, page in instants)
        )
        words.append(f"{role}={path}")
    return words


def cloudwatch(reading: Reading) -> str:
    """`aws cloudwatch get-metric-data` of a volume: three equal periods, the second of which holds the watch."""
    seconds = reading.end_unix_s - reading.begin_unix_s
    times = [datetime.fromtimestamp(reading.begin_unix_s + place * seconds, UTC).isoformat() for place in (-1, 0, 1)]
    grown = reading.grown
    values = {
        "VolumeReadOps": grown["read_ops"],
        "VolumeWriteOps": grown["write_ops"],
        "VolumeReadBytes": grown["read_bytes"],
        "VolumeWriteBytes": grown["write_bytes"],
        "VolumeTotalReadTime": grown["read_time_ns"] / 1e9,
        "VolumeTotalWriteTime": grown["write_time_ns"] / 1e9,
        "VolumeQueueLength": grown["queue_time_ns"] / 1e9 / seconds,
        "VolumeIOPSExceededCheck": int(reading.share("exceeded_iops_ns") >= HALF_MIN),
        "VolumeThroughputExceededCheck": int(reading.share("exceeded_throughput_ns") >= HALF_MIN),
    }
    results = [
        {
            "Id": f"m{place}",
            "Label": f"vol-0 {name}",
            "Timestamps": times,
            "Values": [value] * 3,
            "StatusCode": "Complete",
        }
        for place, (name, value) in enumerate(values.items())
    ]
    return json.dumps({"MetricDataResults": results, "Messages": []})


VIEWS: dict[str, Callable[[Measured, Path], Diagnosis]] = {
    "all": _all,
    "SQL and host": _whole,
    "SQL alone": _sql_alone,
    "SQL and CloudWatch": _sql_and_cloudwatch,
    "iostat alone": _iostat_alone,
    "NVMe alone": _nvme_alone,
}

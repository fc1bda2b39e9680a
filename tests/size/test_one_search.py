"""One search decides what to buy: `size`, `diagnose`, `compare` and a remedy give the same answer to the cent for the same need."""

from __future__ import annotations

import contextlib
import math
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.advise.diagnose.diagnosis import diagnose_files
from pgdyno.advise.diagnose.files import VolumeSource
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.advise.size.advice import advise
from pgdyno.advise.size.demand import demand_of
from pgdyno.advise.size.measured import DeviceSamples, IntervalSample
from pgdyno.advise.size.offers import measured_of, with_offers
from pgdyno.analysis.binding.device import BoughtInstance, DeviceActivity, ProvisionedVolume
from pgdyno.analysis.binding.evidence import Checkpoints, Circumstances, Evidence, KnownConditions, Second
from pgdyno.analysis.binding.remedy import remedy_of
from pgdyno.analysis.binding.rules import BindingLimit
from pgdyno.analysis.binding.verdict import BindingVerdict, RunBinding
from pgdyno.base.catalog import Catalog
from pgdyno.results.record import InstanceRecord, VolumeRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.advise.size.advice import Advice
    from pgdyno.analysis.binding.rules import Limit

DRAWS = int(os.environ.get("PGDYNO_DRAWS", "300"))
"""Of 2,000 (`PGDYNO_DRAWS=2000`) each is as good as another; 300 take seconds."""
ENUMERATED = 25
"""Draws whose every neighbour in the catalogue is priced too."""
BURSTABLE = {"t1", "t2", "t3", "t3a", "t4g", "t8i"}
INSTANCES = ("r6g.large", "t4g.xlarge", "m5.xlarge", "c4.large", "c6gn.large", "r5b.large", "t3.medium", "i3.2xlarge")
PROVIDERS = {"gp3": "ebs", "gp2": "ebs", "io1": "ebs", "io2bx": "ebs", "st1": "ebs", "sc1": "ebs"}
MIB = 1 << 20


@dataclass(frozen=True)
class Draw:
    """A load, the volume that it was measured on, and the instance."""

    present: str
    size_gib: int
    measured: DeviceSamples
    instance: str | None


def drawn(catalog: Catalog, place: int) -> Draw:
    """The draw of a number: the same in every run."""
    random_ = random.Random(place)
    while True:
        kind = random_.choice([*PROVIDERS, "rds-gp3", "rds-gp3", "rds-gp2", "rds-io1"])
        gib = round(10 ** random_.uniform(0.7, 3.6))
        spec = f"{kind}:size={gib}GiB"
        if kind in ("gp3", "io1", "io2bx", "rds-io1") and random_.random() < 0.6:
            spec += f",iops={round(10 ** random_.uniform(2.5, 4.4))}"
        present = catalog.find(spec)
        if present is not None:
            break
    limit = present.iops.sustained if present.iops else 200.0
    near = random_.random() < 0.5
    level = limit * random_.uniform(0.9, 1.0) if near else 10 ** random_.uniform(0.5, 4.3)
    kib, reads = random_.choice([4.0, 8.0, 8.0, 16.0, 64.0, 256.0]), random_.random()
    flagged = random_.choice([{}, {}, {}, {"iops": 1.0}, {"throughput": 0.6}])
    samples = []
    for minute in range(24):
        ops = level * (1.0 if near else random_.uniform(0.2, 1.0))
        size = ops * kib * 1024
        samples.append(
            IntervalSample(
                60.0,
                ops * reads,
                ops * (1 - reads),
                size * reads,
                size * (1 - reads),
                exceeded=dict(flagged),
                at_s=1.7e9 + 60.0 * minute,
            )
        )
    instance = random_.choice(INSTANCES) if random_.random() < 0.1 else None
    return Draw(present.spec, gib, DeviceSamples("CloudWatch", "vol-1", tuple(samples)), instance)


@pytest.fixture
def one_engine(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """Every caller asks the same engine: to start one takes longer than to ask it."""
    for module in ("pgdyno.base.catalog", "pgdyno.advise.size.advice", "pgdyno.advise.size.offers"):
        monkeypatch.setattr(f"{module}.Catalog", lambda: contextlib.nullcontext(catalog))
    yield catalog


def sized(draw: Draw) -> Advice:
    return advise(demand_of(draw.measured), present=draw.present, instance=draw.instance)


def compared(catalog: Catalog, draw: Draw) -> dict[Limit, tuple[str | None, float | None]]:
    """What a run's remedy is for each limit, from its seconds and what its record has."""
    devices = [
        DeviceActivity(
            sample.read_ops_per_s,
            sample.write_ops_per_s,
            sample.read_bytes_per_s / MIB,
            sample.write_bytes_per_s / MIB,
            5.0,
            sample.ops_per_s * 0.005,
            sample.read_ops_per_s * 0.005,
        )
        for sample in draw.measured.samples
    ]
    document = dict(catalog.resolve(draw.present).document)
    named = next(
        (instance_type for instance_type in catalog.instance_types() if instance_type["instance"] == draw.instance),
        None,
    )
    instance = InstanceRecord()
    if named is not None:
        instance = InstanceRecord(
            type=named["instance"], vcpus=named["vcpus"], memory_bytes=named["memory_bytes"], ebs=named["ebs"] or {}
        )
    volumes, instance = with_offers(
        catalog, {"data": VolumeRecord(spec=document)}, instance, {"data": measured_of(devices)}
    )
    bought = ProvisionedVolume.of(document)
    assert bought is not None
    given = KnownConditions(8, {"data": bought}, BoughtInstance.of(instance))
    evidence = Evidence(
        given, tuple(Second(devices={"data": device}) for device in devices), Checkpoints((False,) * 24), ()
    )
    around = Circumstances(volumes=volumes, instance=instance)
    values: dict[Limit, tuple[str | None, float | None]] = {}
    limits: tuple[Limit, ...] = ("volume_iops", "volume_throughput", "burst_bucket", "instance_bandwidth")
    for limit in limits:
        verdict = BindingVerdict(limit, "data", "high", {limit: 1.0})
        remedy = remedy_of(RunBinding(evidence, (BindingLimit(limit, True, "data"),) * 24, verdict), verdict, around)
        assert remedy is not None
        values[limit] = remedy.spec, remedy.usd_per_month
    return values


def needed(draw: Draw, unit_kib: int, whole_units: bool) -> tuple[float, float]:
    """Operations and bytes per second with the margin: by hand, from the samples."""
    ops, size = [], []
    for sample in draw.measured.samples:
        mean = (sample.read_bytes_per_s + sample.write_bytes_per_s) / sample.ops_per_s
        units = max(1.0, math.ceil(mean / 1024 / unit_kib - 1e-9))
        counted = sample.ops_per_s * units
        total = sample.read_bytes_per_s + sample.write_bytes_per_s
        ops.append(counted)
        size.append(max(total, counted * unit_kib * 1024) if whole_units else total)
    # The 99th percentile of 24 equal intervals is their maximum.
    return max(ops) * 1.2, max(size) * 1.2


def carries(catalog: Catalog, draw: Draw, spec: str) -> bool:
    """By the limits that the engine states for the specification, without credits."""
    document = catalog.resolve(spec).document
    ops, size = needed(draw, document["accounting_unit_kib"], spec.startswith(("st1", "sc1")))
    limits = document["limits"]
    enough = limits["iops"] is None or limits["iops"] >= ops * (1 - 1e-6)
    # Stated to three decimals.
    return enough and (limits["throughput_mib_per_s"] or math.inf) * MIB + 1e-3 * MIB >= size * (1 - 1e-6)


def test_the_four_agree_and_no_offer_is_one_that_must_not_be(one_engine: Catalog) -> None:
    catalog, result = one_engine, 0
    for place in range(DRAWS):
        draw = drawn(catalog, place)
        advice = sized(draw)
        best = next((choice for choice in advice.choices if choice.usd_per_month is not None), None)
        flagged = any(sample.exceeded for sample in draw.measured.samples)
        by_run = compared(catalog, draw)
        for limit in ("volume_iops", "volume_throughput", "burst_bucket"):
            spec, usd = by_run[limit]  # type: ignore[index]  # a limit
            if spec is None or best is None or spec == by_run["instance_bandwidth"][0] or flagged:
                continue
            assert (spec, usd) == (best.spec, best.usd_per_month), (place, limit)
        diagnosis = diagnose_files(
            [VolumeSource("--cloudwatch", "metrics.json", "data", draw.measured)],
            purchase_of([draw.present], draw.instance),
        )
        remedy, limit = diagnosis.remedy, diagnosis.binding.verdict.limit
        of_volume = limit in ("volume_iops", "volume_throughput", "burst_bucket")
        if of_volume and remedy is not None and remedy.spec is not None and best is not None:
            result += 1
            agreed = remedy.spec == best.spec or remedy.spec == by_run["instance_bandwidth"][0]
            assert agreed and (remedy.spec != best.spec or remedy.usd_per_month == best.usd_per_month), (place, limit)
        _require_sound(catalog, draw, advice)
    assert result >= DRAWS / 20, "too few draws stand at a limit for the test to mean anything"


def _require_sound(catalog: Catalog, draw: Draw, advice: Advice) -> None:
    for choice in advice.choices:
        assert choice.members > 1 or choice.size_bytes >= draw.size_gib << 30, choice.spec
        assert choice.member.type.startswith("rds-") == draw.present.startswith("rds-"), choice.spec
        assert choice.members > 1 or carries(catalog, draw, choice.spec), (choice.spec, draw)
        cheaper = [other for other in advice.choices if (other.usd_per_month or math.inf) < (choice.usd_per_month or 0)]
        assert choice is not advice.choices[0] or not any(other.in_place for other in cheaper)
    for instance in advice.instances:
        assert instance.name.split(".")[0] not in BURSTABLE
        ops, size = needed(draw, 256, False)
        assert instance.iops.sustained >= ops * (1 - 1e-6) and instance.throughput.sustained >= size * (1 - 1e-6)


def test_nothing_of_the_catalogue_that_carries_it_is_cheaper(one_engine: Catalog) -> None:
    """Against single volumes of a grid of sizes, IOPS and throughputs, the needed ones among them."""
    catalog = one_engine
    for place in range(ENUMERATED):
        draw = drawn(catalog, place)
        best = next(
            (choice for choice in sized(draw).choices if choice.in_place and choice.usd_per_month is not None), None
        )
        if any(sample.exceeded for sample in draw.measured.samples):
            continue
        price = math.inf if best is None or best.usd_per_month is None else best.usd_per_month
        for spec in _grid(draw):
            other = catalog.find(spec)
            if other is None or other.usd_per_month is None or other.usd_per_month >= price - 0.005:
                continue
            assert not carries(catalog, draw, other.spec), (other.spec, best and best.spec)


def _grid(draw: Draw) -> Iterator[str]:
    ops, size = needed(draw, 256, False)
    mib = math.ceil(size / MIB)
    sizes = {
        draw.size_gib,
        draw.size_gib + 1,
        20,
        100,
        125,
        171,
        334,
        400,
        500,
        1000,
        math.ceil(ops / 3),
        math.ceil(ops / 500),
    }
    iops = {math.ceil(ops), math.ceil(mib / 0.25), math.ceil(mib / 0.256), 100, 1000, 3000, 12000}
    rds = draw.present.startswith("rds-")
    for gib in sorted(size for size in sizes if size >= draw.size_gib):
        for kind in ("rds-gp2",) if rds else ("gp2", "st1", "sc1"):
            yield f"{kind}:size={gib}GiB"
        for each in sorted(iops):
            for kind in ("rds-io1",) if rds else ("io1", "io2bx"):
                yield f"{kind}:size={gib}GiB,iops={each}"
            for throughput in (125, max(125, mib), 500):
                yield f"{'rds-gp3' if rds else 'gp3'}:size={gib}GiB,iops={each},throughput={throughput}"


@pytest.mark.parametrize(
    ("present", "flag"),
    [("gp3:size=100GiB", "iops"), ("rds-gp3:size=200GiB", "iops"), ("gp3:size=100GiB", "throughput")],
)
def test_where_the_provider_says_that_a_limit_was_exceeded_less_is_never_offered(
    one_engine: Catalog, present: str, flag: Any
) -> None:
    """30 IOPS on average of 3,000: what exceeded them was shorter than a minute. gp2 of 100 GiB has 300."""
    samples = tuple(
        IntervalSample(60.0, 15, 15, 15 * 8192, 15 * 8192, exceeded={flag: 1.0}, at_s=6e8 + 60.0 * n) for n in range(30)
    )
    measured = DeviceSamples("CloudWatch", "vol-1", samples)
    best = advise(demand_of(measured), present=present).choices[0]
    now = one_engine.resolve(present)
    assert now.iops is not None and now.mib_per_s is not None
    if flag == "iops":
        assert best.member.charged_iops.sustained >= 1.2 * now.iops.sustained
    else:
        assert best.member.charged_bytes.sustained >= 1.2 * now.mib_per_s.sustained * MIB
    diagnosis = diagnose_files([VolumeSource("--cloudwatch", "m", "data", measured)], purchase_of([present], None))
    assert diagnosis.remedy is not None and diagnosis.remedy.spec == best.spec

"""What was bought, from specifications as the engine resolves them and from records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pgdyno.advise.size.measured import DeviceSamples
from pgdyno.advise.size.offers import instance_offers, measured_of, volume_offers, with_price
from pgdyno.analysis.binding.device import BoughtInstance, ProvisionedVolume
from pgdyno.base import engine
from pgdyno.base.catalog import Catalog
from pgdyno.base.specification import Rate
from pgdyno.results.record import HostRecord, InstanceRecord, WorldRecord
from tests.binding.made import device


def resolved(spec: str) -> ProvisionedVolume:
    """A specification of the catalogue."""
    result = ProvisionedVolume.of(engine.run_json(["volume", "spec", spec]))
    assert result is not None
    return result


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    with Catalog() as opened:
        opened.volume_types()
        yield opened


def test_limits_are_those_of_the_order() -> None:
    gp3 = resolved("gp3:size=100GiB,iops=6000,throughput=250")
    assert (gp3.iops, gp3.mib_per_s, gp3.write_iops) == (Rate(6000, 6000), Rate(250, 250), None)
    assert gp3.usual is not None
    assert 0.5 < gp3.usual.ms(8192, 0.0) < 0.6
    assert gp3.usual.ms(8192, 0.0) < gp3.usual.ms(8192, 0.5) < gp3.usual.ms(8192, 1.0)
    assert gp3.usual.ms(1 << 20, 0.0) == gp3.usual.ms(256 << 10, 0.0) > gp3.usual.ms(64 << 10, 0.0)


def test_credits_are_a_higher_limit_that_ends() -> None:
    gp2, st1 = resolved("gp2:size=100GiB"), resolved("st1:size=500GiB")
    assert gp2.iops == Rate(300, 3000)
    assert gp2.iops.bursts
    assert st1.mib_per_s is not None
    assert st1.mib_per_s.bursts


def test_an_array_has_the_limits_of_its_members_together() -> None:
    two = resolved("2xgp3:size=100GiB")
    assert (two.iops, two.mib_per_s) == (Rate(6000, 6000), Rate(250, 250))
    assert two.usual == resolved("gp3:size=100GiB").usual


def test_writes_may_have_a_limit_of_their_own() -> None:
    disk = resolved("instance-store")
    assert disk.iops is not None
    assert disk.write_iops is not None
    half = replace(
        device(kib=4.0),
        reads_per_s=disk.iops.maximum / 2,
        writes_per_s=disk.write_iops / 2,
        read_mib_per_s=disk.iops.maximum / 2 / 256,
        write_mib_per_s=disk.write_iops / 2 / 256,
    )
    assert disk.used_iops(half) == pytest.approx(1.0)
    doubled = replace(half, read_mib_per_s=2 * half.read_mib_per_s, write_mib_per_s=2 * half.write_mib_per_s)
    assert disk.used_iops(doubled) == pytest.approx(2.0), "of 8 KiB each, which count as two"


@pytest.mark.parametrize(
    ("spec", "kib", "counted"),
    [("gp3", 200, 1000), ("io1-2013", 8, 1000), ("io1-2013", 64, 4375), ("io1:iops=40000,size=1000GiB", 16, 1375)],
)
def test_a_request_larger_than_the_unit_counts_as_several(spec: str, kib: float, counted: float) -> None:
    """Of 16 KiB: three of four sizes in blocks of 4 KiB leave the last unit partly empty."""
    assert resolved(spec).counted_iops(device(1000, kib=kib)) == pytest.approx(counted)


def test_without_a_limit_there_is_none() -> None:
    null = resolved("null")
    assert (null.iops, null.mib_per_s, null.used_iops(device(1e6)), null.used_throughput(1e6)) == (None,) * 4
    assert ProvisionedVolume.of({}) is None


def test_an_instance_s_limits_are_in_its_record() -> None:
    assert BoughtInstance.of(InstanceRecord()) is None
    limits = {"baseline_iops": 3600, "maximum_iops": 20000, "baseline_mib_per_s": 75.1, "maximum_mib_per_s": 566.2}
    instance = BoughtInstance.of(InstanceRecord(type="r6g.large", ebs=limits))
    assert instance == BoughtInstance("r6g.large", Rate(3600, 20000), Rate(75.1, 566.2))


def busy(ops: float, kib: float = 8.0) -> DeviceSamples:
    """A load of a minute."""
    return measured_of([device(ops, kib=kib)] * 60)


def test_offers_carry_the_load_with_its_margin_and_the_first_is_the_cheapest(catalog: Catalog) -> None:
    present = catalog.resolve("gp3:size=100GiB")
    offers = volume_offers(catalog, present, busy(2990))
    assert [offer.usd_per_month for offer in offers] == sorted(offer.usd_per_month for offer in offers)
    kinds = [offer.spec.partition(":")[0] for offer in offers]
    assert {"gp3", "gp2", "io1", "io2bx"} <= set(kinds)
    assert not any(kind.startswith("rds-") for kind in kinds), "another provider's volume is no remedy"
    assert all((offer.iops or 0) >= 2990 * 1.2 - 1e-6 for offer in offers)
    assert (offers[0].spec, offers[0].usd_per_month) == ("gp3:size=100GiB,iops=3588,throughput=125", 10.94)
    assert offers[0].read_ms and offers[0].write_ms and offers[0].loss_per_year_max


def test_offers_beside_credits_are_rates_that_stay(catalog: Catalog) -> None:
    offers = volume_offers(catalog, catalog.resolve("gp2:size=100GiB,credits=0"), busy(300))
    assert offers[0].spec == "gp3:size=100GiB,iops=3000,throughput=125"
    assert next(offer for offer in offers if offer.spec.startswith("gp2")).spec == "gp2:size=120GiB"
    assert not any("credits" in offer.spec for offer in offers)


def test_an_array_stays_one_or_becomes_one_volume_and_keeps_its_copies(catalog: Catalog) -> None:
    load = busy(5900)
    stripes = [volume_offer.spec for volume_offer in volume_offers(catalog, catalog.resolve("2xgp3:size=100GiB"), load)]
    assert stripes[0] == "2xgp3:size=100GiB,iops=3540,throughput=125,chunk=512KiB"
    for present in ("raid10:4xgp3:size=100GiB", "gp3:size=100GiB,multi_az=1.0ms"):
        offers = volume_offers(catalog, catalog.resolve(present), load)
        resolved = [catalog.resolve(offer.spec) for offer in offers]
        assert resolved
        for offer, volume in zip(offers, resolved, strict=True):
            assert (offer.spec, offer.usd_per_month) == (volume.spec, volume.usd_per_month)
            assert volume.copies == catalog.resolve(present).copies
            assert volume.size_bytes >= catalog.resolve(present).size_bytes


@pytest.mark.parametrize("spec", ["null", "instance-store", "gp3:init=lazy", "gp3:service_us=100"])
def test_what_nobody_sells_or_waits_for_its_blocks_has_no_offers(catalog: Catalog, spec: str) -> None:
    assert volume_offers(catalog, catalog.resolve(spec), busy(1000)) == ()


def test_what_did_nothing_has_no_offers(catalog: Catalog) -> None:
    assert volume_offers(catalog, catalog.resolve("gp3"), busy(0)) == ()


def test_instances_beside_one_carry_the_load_for_ever_and_none_is_burstable(catalog: Catalog) -> None:
    named = InstanceRecord(type="r6g.large", vcpus=2)
    assert with_price(catalog, named).sustained_vcpus == 2
    assert with_price(catalog, named).usd_per_month == pytest.approx(0.1008 * 730, abs=0.01)
    offers = instance_offers(catalog, named, [busy(4000), busy(2000)])
    assert [offer.vcpus for offer in offers] == sorted({offer.vcpus for offer in offers}) and len(offers) > 3
    assert all(offer.iops >= 6000 * 1.2 for offer in offers)
    assert not any(offer.type.startswith(("t2", "t3", "t4g")) for offer in offers)
    of_rds = instance_offers(catalog, named, [busy(1000)], rds=True)
    assert of_rds and all(record.type.startswith("db.") and record.usd_per_month is None for record in of_rds)
    assert instance_offers(catalog, InstanceRecord(vcpus=2), [busy(1000)]) == ()
    assert with_price(catalog, InstanceRecord(vcpus=2)) == InstanceRecord(vcpus=2)


def test_records_from_before_have_no_offers() -> None:
    written = WorldRecord(kind="emulated", host=HostRecord(cores=2, kernel="6", memory_bytes=1)).model_dump(mode="json")
    del written["instance"]["offers"], written["instance"]["usd_per_month"]
    assert WorldRecord.model_validate(written).instance.offers == ()

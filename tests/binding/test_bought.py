"""What was bought, from specifications as the engine resolves them and from records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pgdyno import _engine
from pgdyno.analysis.binding.bought import Bought, BoughtInstance
from pgdyno.catalog import Catalog
from pgdyno.size.offers import STEPS, undominated, volume_offers, with_offers
from pgdyno.specification import Rate
from pgdyno.store.host_record import HostRecord
from pgdyno.store.record import InstanceRecord, OfferRecord, WorldRecord
from tests.binding.made import device


def resolved(spec: str) -> Bought:
    """A specification of the catalogue."""
    found = Bought.of(_engine.run_json(["volume", "spec", spec]))
    assert found is not None
    return found


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
    assert Bought.of({}) is None


def test_an_instance_s_limits_are_in_its_record() -> None:
    assert BoughtInstance.of(InstanceRecord()) is None
    limits = {"baseline_iops": 3600, "maximum_iops": 20000, "baseline_mib_per_s": 75.1, "maximum_mib_per_s": 566.2}
    found = BoughtInstance.of(InstanceRecord(type="r6g.large", ebs=limits))
    assert found == BoughtInstance("r6g.large", Rate(3600, 20000), Rate(75.1, 566.2))


def test_offers_beside_a_volume_are_as_large_and_never_beaten(catalog: Catalog) -> None:
    spec = catalog.resolve("gp3:size=100GiB")
    offers = volume_offers(catalog, spec)
    assert undominated(offers) == offers
    assert [offer.usd_per_month for offer in offers] == sorted(offer.usd_per_month for offer in offers)
    kinds = {offer.spec.partition(":")[0] for offer in offers}
    assert {"gp3", "io2bx"} <= kinds
    assert not any(kind.startswith("rds-") for kind in kinds), "another provider's volume is no remedy"
    cheapest = next(offer for offer in offers if (offer.iops or 0) >= STEPS[0] * 3000)
    assert cheapest.spec.startswith("gp3:size=100GiB,iops=4500")
    assert cheapest.usd_per_month == pytest.approx(8 + 1500 * 0.005)


def test_offers_beside_credits_begin_with_a_rate_that_stays(catalog: Catalog) -> None:
    offers = volume_offers(catalog, catalog.resolve("gp2:size=100GiB,credits=0"))
    assert any(offer.spec.startswith("gp3:") and offer.iops == 3000 for offer in offers)
    assert not any("credits" in offer.spec for offer in offers)


def test_members_of_an_array_grow_together(catalog: Catalog) -> None:
    offers = volume_offers(catalog, catalog.resolve("2xgp3:size=100GiB"))
    assert any(offer.spec.startswith("2xgp3:size=100GiB,iops=6000") and offer.iops == 12_000 for offer in offers)


@pytest.mark.parametrize("spec", ["null", "instance-store"])
def test_what_nobody_sells_has_no_offers(catalog: Catalog, spec: str) -> None:
    assert volume_offers(catalog, catalog.resolve(spec)) == ()


def test_an_offer_that_another_one_beats_is_left_out() -> None:
    dear = OfferRecord(spec="dear", usd_per_month=20, iops=3000, mib_per_s=125, read_ms=0.6, write_ms=0.8)
    better = dear.model_copy(update={"spec": "better", "usd_per_month": 10.0})
    fast = dear.model_copy(update={"spec": "fast", "usd_per_month": 30.0, "read_ms": 0.2})
    unlimited = dear.model_copy(update={"spec": "unlimited", "usd_per_month": 40.0, "iops": None})
    assert [one.spec for one in undominated([dear, unlimited, better, fast])] == ["better", "fast", "unlimited"]


def test_instances_beside_one_have_its_cores_and_memory_and_more(catalog: Catalog) -> None:
    named = InstanceRecord(type="c4.large", vcpus=2, ebs={"baseline_iops": 4000})
    found = with_offers(catalog, named)
    assert found.usd_per_month is not None
    assert found.offers
    assert all(offer.vcpus >= 2 for offer in found.offers)
    assert any(offer.iops >= STEPS[-1] * 4000 for offer in found.offers)
    assert with_offers(catalog, InstanceRecord(vcpus=2)) == InstanceRecord(vcpus=2)


def test_records_from_before_have_no_offers() -> None:
    written = WorldRecord(kind="emulated", host=HostRecord(cores=2, kernel="6", memory_bytes=1)).model_dump(mode="json")
    del written["instance"]["offers"], written["instance"]["usd_per_month"]
    assert WorldRecord.model_validate(written).instance.offers == ()

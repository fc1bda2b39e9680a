"""What is chosen carries the load, is legal, costs what the catalogue says, and nothing of its kind is cheaper."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno.advise.size.advice import advise
from pgdyno.advise.size.demand import Demand
from pgdyno.advise.size.offers import BURST_S, cheapest, judge
from pgdyno.advise.size.search import GIB, Layout, Search, VolumeChoice, VolumeType, volume_types
from pgdyno.base import engine
from pgdyno.base.catalog import Catalog
from pgdyno.base.errors import InputError
from tests.size.loads import demand, steady

with Catalog() as _opened:
    KINDS = {kind.name: kind for kind in volume_types(_opened)}
PRICED = [name for name, kind in KINDS.items() if kind.priced]


@pytest.mark.parametrize("name", PRICED)
@settings(max_examples=25)
@given(
    ops=st.floats(1, 90_000), kib=st.sampled_from([4.0, 8.0, 64.0, 256.0]), size_gib=st.integers(1, 20_000),
    members=st.sampled_from([1, 2, 4, 8]),
)  # fmt: skip
def test_a_choice_is_legal_carries_the_load_and_costs_what_it_says(
    catalog: Catalog, name: str, ops: float, kib: float, size_gib: int, members: int
) -> None:
    choice = Search(catalog, KINDS[name], steady(ops, kib), size_gib * GIB, Layout(members)).cheapest()
    if choice is None:
        return
    answer = engine.run_json(["volume", "spec", choice.member.spec])
    assert answer["spec"] == choice.member.spec
    assert choice.size_bytes >= size_gib * GIB
    assert choice.usd_per_month == pytest.approx(answer["usd_per_month"] * members, abs=0.01)
    assert choice.fit.carries and choice.fit.headroom >= 0.2 - 1e-6
    if answer["limits"]["iops"] is not None and answer["limits"].get("write_iops") is None:
        assert answer["limits"]["iops"] * members >= ops * 1.2 - 1e-6
        assert answer["limits"]["throughput_mib_per_s"] * members >= ops * kib / 1024 * 1.2 - 1e-6


@pytest.mark.parametrize(
    ("ops", "kib", "size_gib"),
    [
        (2000, 8, 20),
        (2600, 8, 100),
        (5000, 8, 100),
        (3000, 64, 100),
        (20_000, 8, 10),
        (9000, 128, 30),
        (50_000, 8, 500),
    ],
)
def test_no_gp3_that_carries_it_is_cheaper(catalog: Catalog, ops: float, kib: float, size_gib: int) -> None:
    """Against every combination of a grid around what was chosen."""
    choice = Search(catalog, KINDS["gp3"], steady(ops, kib), size_gib * GIB).cheapest()
    assert choice is not None and choice.usd_per_month is not None
    limits = engine.run_json(["volume", "spec", choice.member.spec])["limits"]
    sizes = {size_gib, choice.member.size_bytes // GIB, max(size_gib, choice.member.size_bytes // GIB - 1)}
    iops = {3000, limits["iops"], max(3000, limits["iops"] - 1), max(3000, limits["iops"] - 50)}
    throughput = {125, limits["throughput_mib_per_s"], max(125, limits["throughput_mib_per_s"] - 1)}
    for gib, some_iops, some_throughput in itertools.product(sizes, iops, throughput):
        other = catalog.find(f"gp3:size={gib}GiB,iops={some_iops},throughput={some_throughput}")
        enough = some_iops >= ops * 1.2 - 1e-6 and some_throughput >= ops * kib / 1024 * 1.2 - 1e-6
        if other is not None and enough and other.usd_per_month is not None:
            assert other.usd_per_month >= choice.usd_per_month


def test_gp3_grows_where_its_size_does_not_allow_the_iops(catalog: Catalog) -> None:
    """500 IOPS per GiB: 24,000 need 48 GiB."""
    choice = Search(catalog, KINDS["gp3"], steady(20_000), 10 * GIB).cheapest()
    assert choice is not None and choice.member.spec == "gp3:size=48GiB,iops=24000,throughput=188"


def test_gp3_beyond_its_baseline_of_throughput_takes_the_iops_that_it_needs_for_it(catalog: Catalog) -> None:
    """0.25 MiB/s per IOPS: 1,200 MiB/s need 4,800, though 4,000 operations would do."""
    choice = Search(catalog, KINDS["gp3"], steady(4000, 256), 100 * GIB).cheapest()
    assert choice is not None and choice.member.spec == "gp3:size=100GiB,iops=4800,throughput=1200"


def test_what_no_volume_of_a_type_does_is_none_and_an_array_does_it(catalog: Catalog) -> None:
    much = steady(100_000)
    assert Search(catalog, KINDS["gp3"], much, 1000 * GIB).cheapest() is None
    array = Search(catalog, KINDS["gp3"], much, 1000 * GIB, Layout(2)).cheapest()
    assert array is not None and array.spec == "2xgp3:size=500GiB,iops=60000,throughput=469,chunk=256KiB"
    assert array.usd_per_month == pytest.approx(2 * (500 * 0.08 + 57_000 * 0.005 + 344 * 0.04))
    assert array.failures_per_year_max == pytest.approx(1 - 0.998**2)
    advice = advise(much, size_bytes=1000 * GIB, among=["gp3"])
    assert [choice.members for choice in advice.choices] == [8]  # 8 x 15,000 IOPS and eight times what is free
    assert advise(much, size_bytes=1000 * GIB, among=["gp3"], members_max=1).choices == ()


def test_larger_than_any_volume_needs_an_array(catalog: Catalog) -> None:
    size = 100 * 1024 * GIB
    assert Search(catalog, KINDS["gp3"], steady(100), size).cheapest() is None
    assert [choice.members for choice in advise(steady(100), size_bytes=size, among=["gp3"]).choices] == [2]


def test_the_cheapest_comes_first_and_unknown_types_are_refused() -> None:
    advice = advise(steady(5000), size_bytes=200 * GIB)
    for in_place, rds in ((True, False), (True, True), (False, False)):
        choices = [
            choice
            for choice in advice.choices
            if choice.in_place is in_place and choice.member.type.startswith("rds-") is rds
        ]
        prices = [math.inf if choice.usd_per_month is None else choice.usd_per_month for choice in choices]
        assert prices == sorted(prices) and prices
    assert [choice.in_place for choice in advice.choices] == sorted(
        (choice.in_place for choice in advice.choices), reverse=True
    )
    with pytest.raises(InputError) as refused:
        advise(steady(100), among=["gp9"])
    assert "gp3" in refused.value.remedy
    assert {choice.member.type for choice in advise(steady(100), among=["io2"]).choices} == {"io2bx"}


def _both(catalog: Catalog, demand: Demand) -> list[str]:
    return [choice.name for choice in cheapest(catalog, demand, None, 3)]


def test_an_instance_carries_what_its_baseline_does_for_ever_and_nothing_more() -> None:
    """r6g.large: 3,600 IOPS, and 20,000 for 30 minutes in 24 hours."""
    assert judge("r6g.large", steady(3000)).fit.carries
    assert not judge("r6g.large", steady(3000)).fit.on_credits
    over = judge("r6g.large", steady(10_000))
    assert not over.fit.carries and over.fit.on_credits
    assert over.fit.empty_after_s == pytest.approx(BURST_S * (20_000 - 3600) / (12_000 - 3600))
    once = judge("r6g.large", demand(*[(15_000, 8)] * 20, *[(300, 8)] * (1440 - 20), percentile=99)).fit
    assert (once.carries, once.on_credits, once.empty_after_s) == (False, True, None)
    assert once.headroom == pytest.approx(3600 / 15_000 - 1), "what credits allow is no room"


def test_no_burstable_instance_and_none_too_small_for_a_database_is_offered(catalog: Catalog) -> None:
    for ops in (10, 1000, 4000):
        for here in (
            None,
            judge("t4g.xlarge", steady(ops)),
            judge("t3.medium", steady(ops)),
            judge("r6g.large", steady(ops)),
        ):
            for choice in cheapest(catalog, steady(ops), here, 20):
                assert choice.name.split(".")[0] not in {"t1", "t2", "t3", "t3a", "t4g"}
                assert choice.vcpus >= 2 and choice.memory_bytes >= (
                    here.memory_bytes if here else 4 * GIB * choice.vcpus
                )
                assert here is None or choice.arch == here.arch
    # 40 % of 4 vCPUs: two that are there for ever are more.
    present = judge("t4g.xlarge", steady(1000))
    assert present.burstable and cheapest(catalog, steady(1000), present, 1)[0].vcpus == 2


def test_instances_are_the_cheapest_with_as_much_as_the_present_one_has(catalog: Catalog) -> None:
    now = judge("vcpus=4,memory=32GiB", steady(5000))
    assert math.isinf(now.iops.sustained)
    choices = cheapest(catalog, steady(5000), now, 4)
    prices = [choice.usd_per_month for choice in choices]
    assert len(choices) == 4 and prices == sorted(prices, key=lambda price: price or 0)
    assert all(choice.vcpus >= 4 and choice.memory_bytes >= 32 * GIB and choice.fit.carries for choice in choices)
    everything = engine.run_json(["instance", "types"])["types"]
    cheaper = [
        item["instance"] for item in everything
        if item["usd_per_hour"] is not None and item["ebs"] and item["ebs"]["always"] and item["vcpus"] >= 4
        and item["memory_bytes"] >= 32 * GIB and not item["burstable"] and item["usd_per_hour"] * 730 < (prices[0] or 0) - 0.01
    ]  # fmt: skip
    assert all(not judge(name, steady(5000)).fit.carries for name in cheaper)


def test_a_load_beyond_every_instance_has_none(catalog: Catalog) -> None:
    assert _both(catalog, steady(5_000_000)) == []
    assert len(_both(catalog, steady(100))) == 3


def test_facts_of_types_are_read_as_they_stand(catalog: Catalog) -> None:
    gp3: VolumeType = KINDS["gp3"]
    assert {"size", "iops", "throughput"} <= gp3.keys and "null" not in KINDS
    assert (gp3.size_min_gib, gp3.iops_min, gp3.throughput_min_mib_per_s) == (1, 3000, 125)
    choice = Search(catalog, gp3, steady(100), None).cheapest()
    assert isinstance(choice, VolumeChoice) and choice.member.spec == "gp3:size=1GiB,iops=3000,throughput=125"

"""What is particular to types: credits, RDS's step, generations of gp3, HDD, limits of reads and writes apart."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.advise.size import presentation
from pgdyno.advise.size.advice import advise
from pgdyno.advise.size.search import GIB, Layout, Search, VolumeChoice, volume_types
from pgdyno.base import engine
from pgdyno.base.catalog import Catalog
from tests.size.loads import demand, steady

with Catalog() as _opened:
    KINDS = {kind.name: kind for kind in volume_types(_opened)}


def single(catalog: Catalog, name: str, load: object, gib: int) -> VolumeChoice | None:
    return Search(catalog, KINDS[name], load, gib * GIB).cheapest()  # type: ignore[arg-type]  # a demand


def test_gp2_grows_until_its_baseline_carries_what_is_asked_for_ever(catalog: Catalog) -> None:
    """3 IOPS for each GiB: 1,200 need 400 GiB."""
    choice = single(catalog, "gp2", steady(1000), 100)
    assert choice is not None and choice.member.spec.startswith("gp2:size=400GiB") and not choice.fit.on_credits
    assert presentation.grown(choice, 100 * GIB) == "grown by 300 GiB"


def test_credits_that_come_back_carry_nothing(catalog: Catalog) -> None:
    """2,400 IOPS for a tenth of each hour, and 60 else: 288 on average, and 300 are earned. The next busy hour may be longer."""
    load = demand(*[(2000, 8)] * 6, *[(50, 8)] * 54)
    choice = single(catalog, "gp2", load, 100)
    assert choice is not None and choice.member.spec == "gp2:size=800GiB" and not choice.fit.on_credits
    collapse = Search(catalog, KINDS["gp2"], load, 100 * GIB).collapse()
    assert collapse is not None and collapse.fit.empty_after_s is None
    assert "without credits, which last" in presentation.nearest(collapse.fit)


def test_the_minutes_until_gp2_collapses_are_those_of_its_documentation(catalog: Catalog) -> None:
    """100 GiB at 3,000 IOPS: 2,000 s, then 300 (Amazon EC2 User Guide, general-purpose.md)."""
    collapse = Search(catalog, KINDS["gp2"], steady(2500), 100 * GIB).collapse()
    assert collapse is not None
    assert collapse.fit.empty_after_s == pytest.approx(2000) and collapse.steady_s == pytest.approx(2000)
    collapse_sentence = presentation.collapse_sentence(collapse)
    assert "out of credits after 33 min" in collapse_sentence and "left with 300 IOPS" in collapse_sentence
    assert Search(catalog, KINDS["gp2"], steady(200), 100 * GIB).collapse() is None  # within the baseline
    assert Search(catalog, KINDS["gp3"], steady(2500), 100 * GIB).collapse() is None  # has no credits


def test_rds_grows_to_400_gib_where_storage_lies_on_four_volumes(catalog: Catalog) -> None:
    """Below it has 3,000 IOPS and 125 MiB/s, and from there on 12,000 and 500 (Amazon RDS User Guide, CHAP_Storage)."""
    within = single(catalog, "rds-gp3", steady(2000), 100)
    assert within is not None and within.size_bytes == 100 * GIB
    beyond = single(catalog, "rds-gp3", steady(5000), 100)
    assert beyond is not None and beyond.size_bytes == 400 * GIB and beyond.member.charged_iops.sustained == 12_000
    much = single(catalog, "rds-gp3", steady(20_000), 500)
    assert much is not None and (much.size_bytes, much.member.charged_iops.sustained) == (500 * GIB, 24_000)
    throughput = single(catalog, "rds-gp3", steady(4000, 200), 500)
    assert throughput is not None and throughput.member.charged_bytes.sustained / 2**20 == 938
    assert all(choice.members == 1 for choice in advise(steady(5000), among=["rds-*"]).choices)


def test_growing_to_400_gib_costs_less_than_buying_iops() -> None:
    """350 GiB with 6,000 IOPS of io1 against 400 GiB of gp3 that has 12,000."""
    choices = advise(steady(5000), size_bytes=350 * GIB, among=["rds-gp3", "rds-io1"]).choices
    assert [choice.member.type for choice in choices] == ["rds-gp3", "rds-io1"]
    assert choices[0].usd_per_month == pytest.approx(400 * 0.115)
    assert choices[1].usd_per_month == pytest.approx(350 * 0.125 + 6000 * 0.10)


def test_both_generations_of_gp3_have_their_own_ends(catalog: Catalog) -> None:
    """16,000 IOPS until 2025, 80,000 since."""
    load = steady(20_000)
    assert single(catalog, "gp3", load, 500) is not None and single(catalog, "gp3-2023", load, 500) is None
    advice = advise(load, size_bytes=500 * GIB, among=["gp3", "gp3-2023"])
    assert {(choice.member.type, choice.members) for choice in advice.choices} >= {("gp3", 1), ("gp3-2023", 2)}
    assert "gp3-2023" not in {choice.member.type for choice in advise(steady(100)).choices}, "it can no longer be had"


def test_io1_takes_more_iops_where_its_throughput_asks_for_them(catalog: Catalog) -> None:
    """16 KiB for each IOPS above 32,000: 600 MiB/s of small requests need 38,400."""
    choice = single(catalog, "io1", steady(32_000, 16), 1000)
    assert choice is not None
    limits = engine.run_json(["volume", "spec", choice.member.spec])["limits"]
    assert limits["iops"] >= 38_400 and limits["throughput_mib_per_s"] >= 600


def test_hdd_is_judged_by_whole_mibs(catalog: Catalog) -> None:
    """20 operations of 8 KiB cost 20 MiB/s, so 24 are asked of st1: 40 MiB/s for each TiB."""
    charge = catalog.find("st1").charge  # type: ignore[union-attr]  # st1 is in the catalogue
    assert charge.whole_units and charge.unit_bytes == 1 << 20
    choice = single(catalog, "st1", steady(20), 125)
    assert choice is not None and choice.member.charged_bytes.sustained >= 24 * 2**20
    assert choice.size_bytes == pytest.approx(24 / 40 * 1024 * GIB, rel=0.01)


def test_reads_and_writes_with_limits_of_their_own_share_a_device(catalog: Catalog) -> None:
    """gcp-pd-standard: 0.75 reads or 1.5 writes for each GiB; a mixture in proportion."""
    spec = catalog.find("gcp-pd-standard:size=1000GiB")
    assert spec is not None and (spec.charge.read_tokens, spec.charge.write_tokens) == (2, 1)
    reads, writes = (
        steady(600, reads=share).load.charged(spec.charge)[0][0] / spec.charged_iops.sustained for share in (1.0, 0.0)
    )
    assert (reads, writes) == pytest.approx((600 / 750, 600 / 1500))


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_type_can_be_asked(catalog: Catalog, name: str) -> None:
    """Whatever it has: a price or none, credits, pieces by size, storage that ends with its instance."""
    choice = Search(catalog, KINDS[name], steady(60), None).cheapest()
    if choice is None:
        assert catalog.find(KINDS[name].name) is not None
        return
    assert choice.fit.carries and np.isfinite(choice.size_bytes)
    answer = engine.run_json(["volume", "spec", choice.spec])
    assert answer["size_bytes"] == choice.size_bytes


def test_what_cannot_be_had_or_does_not_last_is_looked_at_only_when_named() -> None:
    advice = advise(steady(60))
    named = {choice.member.type for choice in advice.choices} | {name for name, _ in advice.unfit}
    assert {"gp2", "gp3", "io1", "io2bx", "st1", "sc1", "rds-gp3"} <= named
    assert not {"gp2-2014", "io1-2013", "instance-store", "azure-premium-v2"} & named
    assert advise(steady(60), among=["azure-premium-v2"]).choices


def test_an_array_is_written_as_the_engine_reads_it(catalog: Catalog) -> None:
    array = Search(catalog, KINDS["gp3"], steady(10_000), 800 * GIB, Layout(4)).cheapest()
    assert array is not None
    answer = engine.run_json(["volume", "spec", array.spec])
    assert (answer["spec"], answer["usd_per_month"]) == (array.spec, array.usd_per_month)
    assert answer["limits"]["iops"] == array.member.charged_iops.sustained * 4

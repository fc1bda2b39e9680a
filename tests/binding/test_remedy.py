"""The cheapest remedy: what it costs, and what bounds its effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.binding.evidence import Checkpoints, Evidence, Second, circumstances_of
from pgdyno.analysis.binding.remedy import RATIO_MAX, remedy_of
from pgdyno.analysis.binding.verdict import of_evidence
from pgdyno.analysis.binding.words import evidence_words
from pgdyno.base.specification import Rate
from pgdyno.results.record import InstanceOfferRecord, OfferRecord

from ..analysis.synthetic import GP3 as GP3_ARM
from ..analysis.synthetic import Plan, make_experiment
from .made import FAST, FULL, GP3, IDLE, SMALL, device, given, second, sessions

if TYPE_CHECKING:
    from pgdyno.analysis.binding.evidence import KnownConditions
    from pgdyno.analysis.binding.remedy import Remedy
    from pgdyno.analysis.binding.rules import Limit
    from pgdyno.analysis.run import RunFigures

MORE = OfferRecord(spec="gp3:iops=4500", usd_per_month=15.5, iops=4500, mib_per_s=125, read_ms=0.56, write_ms=0.83)
MOST = OfferRecord(spec="gp3:iops=12000", usd_per_month=53.0, iops=12000, mib_per_s=500, read_ms=0.56, write_ms=0.83)
IO2BX = OfferRecord(spec="io2bx", usd_per_month=1052.5, iops=16000, mib_per_s=4000, read_ms=0.29, write_ms=0.27)
AT_DISK = sessions(read=21.5, commit=5.5, cpu=1.2, lock=0.8)
CAPPED = second(AT_DISK, device(2990, ms=9.4))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFigures:
    """A run of gp3 at $8 a month, which offers can be put into."""
    from pgdyno.analysis.compare import summarise

    root = tmp_path_factory.mktemp("remedy")
    comparison = summarise(make_experiment(root, Plan(arms=(GP3_ARM,), replicates=1, measure_s=10)))
    return comparison.arms[0].replicates[0].figures


def with_offers(
    run: RunFigures, *offers: OfferRecord, instances: tuple[InstanceOfferRecord, ...] = (), **instance: Any
) -> RunFigures:
    """The run with what could have been bought."""
    world = run.record.world
    volumes = {"data": world.volumes["data"].model_copy(update={"offers": offers})}
    changed = world.instance.model_copy(update={"offers": instances, **instance})
    world = world.model_copy(update={"volumes": volumes, "instance": changed})
    return replace(run, run=replace(run.run, record=run.record.model_copy(update={"world": world})))


def remedy(
    run: RunFigures, shown: Second, bought: KnownConditions, checkpoints: Checkpoints | None = None
) -> tuple[Limit | None, Remedy]:
    """The remedy of ten seconds like this one; evidence in words comes with each."""
    binding = of_evidence(Evidence(bought, (shown,) * 10, checkpoints or Checkpoints((False,) * 10), ()))
    made = remedy_of(binding, binding.verdict, circumstances_of(run))
    assert made is not None
    assert evidence_words(binding, binding.verdict, circumstances_of(run))
    return binding.verdict.limit, made


def test_the_cheapest_that_is_worthwhile_is_named(run: RunFigures) -> None:
    limit, result = remedy(with_offers(run, MORE, MOST, IO2BX), CAPPED, given())
    assert limit == "volume_iops"
    assert (result.spec, result.usd_per_month, result.usd_more_per_month) == ("gp3:iops=4500", 15.5, 7.5)
    assert result.tps_ratio_max == pytest.approx(4500 / 2990)
    assert result.then == "volume_iops"


def test_another_limit_bounds_the_effect(run: RunFigures) -> None:
    busy = replace(CAPPED, cpu=replace(IDLE, server=0.6, server_busy=0.6, idle=0.2))
    _, result = remedy(with_offers(run, MOST), busy, given())
    assert (result.tps_ratio_max, result.then) == (pytest.approx(1 / 0.6), "server_cpu")


def test_sessions_that_wait_less_send_no_more_than_that(run: RunFigures) -> None:
    half = second(sessions(read=14, commit=2, cpu=4), device(2990, ms=6.0))
    _, result = remedy(with_offers(run, IO2BX), half, given())
    # 16 of 32 sessions wait; of their time 0.29 to 0.27 ms in 6 are left.
    left = (0.29 * 0.6 + 0.27 * 0.4) / 6.0
    assert result.tps_ratio_max == pytest.approx(1 / (1 - 0.5 * (1 - left)))
    assert result.then == "volume_latency"


def test_what_leaves_less_than_the_margin_is_not_offered(run: RunFigures) -> None:
    """An older record has a ladder of volumes, whatever they carry."""
    little = MORE.model_copy(update={"spec": "gp3:iops=3300", "iops": 3300.0, "usd_per_month": 9.5})
    nothing = MORE.model_copy(update={"spec": "gp3", "iops": 3000.0, "usd_per_month": 8.0})
    assert remedy(with_offers(run, nothing, little, MORE), CAPPED, given())[1].spec == MORE.spec
    bare = remedy(with_offers(run, nothing, little), CAPPED, given())[1]
    assert (bare.spec, bare.usd_per_month, bare.tps_ratio_max) == (None, None, None)


def test_latency_is_bought_by_the_time_of_a_request(run: RunFigures) -> None:
    slow = second(sessions(4, read=3.6, cpu=0.2), device(3500, ms=0.8, write_share=0.0))
    limit, result = remedy(with_offers(run, MOST, IO2BX), slow, given(FAST))
    assert (limit, result.spec) == ("volume_latency", "io2bx")
    assert result.tps_ratio_max == pytest.approx(1 / (1 - 0.9 * (1 - 0.29 / 0.56)))


def test_in_an_open_loop_latency_is_bought_by_the_time_of_a_request_too(run: RunFigures) -> None:
    """Arrivals bound the transactions with every volume, and the cheapest with more throughput changes nothing."""
    more = MORE.model_copy(
        update={"spec": "gp3:throughput=188", "iops": 3000.0, "mib_per_s": 188.0, "usd_per_month": 10.52}
    )
    slow = second(sessions(4, commit=3.0, cpu=0.4), device(1292, ms=0.83, write_share=0.9))
    known = with_offers(run, more, MOST, IO2BX)
    binding = of_evidence(Evidence(given(), (slow,) * 10, Checkpoints((False,) * 10), ()))
    assert binding.verdict.limit == "commit_latency"
    made = remedy_of(binding, binding.verdict, replace(circumstances_of(known), arrivals=1.0))
    assert made is not None and made.spec == "io2bx"
    left = 0.27 / 0.83
    assert made.tps_ratio_max == pytest.approx(1 / (1 - 3.0 / 3.4 * (1 - left))), "of the time of those at work"
    with_less = remedy_of(
        binding, binding.verdict, replace(circumstances_of(with_offers(run, more, MOST)), arrivals=1.0)
    )
    assert with_less is not None and with_less.spec is None, "no volume that answers as late is a remedy"


def test_a_burstable_instance_is_judged_by_its_baseline(run: RunFigures) -> None:
    """t4g.xlarge: 1.6 of 4 vCPUs. At 38 % it has nothing left."""
    larger = InstanceOfferRecord(type="r6g.large", usd_per_month=73.58, vcpus=2, iops=3600, mib_per_s=75.1)
    shown = second(sessions(12, cpu=11, commit=1), cpu=replace(FULL, server=0.38, server_busy=0.38, idle=0.5))
    known = with_offers(run, instances=(larger,), type="t4g.xlarge", usd_per_month=98.1, vcpus=4, sustained_vcpus=1.6)
    limit, result = remedy(known, shown, replace(given(), cpu_share=0.4))
    assert (limit, result.spec) == ("server_cpu", "r6g.large")
    assert result.tps_ratio_max == pytest.approx(2 / (0.38 * 4))


def test_a_device_beyond_what_was_bought_gets_no_offer_where_that_is_only_said(run: RunFigures) -> None:
    far = second(AT_DISK, device(30_000, ms=9.4, kib=4.0))
    _, driven = remedy(with_offers(run, IO2BX.model_copy(update={"iops": 64_000.0})), far, given())
    assert driven.spec is not None, "what pgdyno attached itself is known"
    _, result = remedy(
        with_offers(run, IO2BX.model_copy(update={"iops": 64_000.0})), far, replace(given(), driven=False)
    )
    assert (result.spec, result.usd_per_month) == (None, None)


def test_an_instance_is_changed_where_it_is_the_limit(run: RunFigures) -> None:
    larger = InstanceOfferRecord(type="c4.xlarge", usd_per_month=145.3, vcpus=4, iops=6000, mib_per_s=89)
    shown = second(AT_DISK, device(3990, ms=4.0))
    known = with_offers(run, MOST, instances=(larger,), type="c4.large", usd_per_month=73.0, vcpus=2)
    limit, result = remedy(known, shown, given(FAST, SMALL))
    assert (limit, result.spec, result.usd_more_per_month) == ("instance_bandwidth", "c4.xlarge", pytest.approx(72.3))
    assert (result.tps_ratio_max, result.then) == (pytest.approx(6000 / 3990), "instance_bandwidth")


def test_cores_are_bought_with_an_instance(run: RunFigures) -> None:
    larger = InstanceOfferRecord(type="c4.xlarge", usd_per_month=145.3, vcpus=4, iops=6000, mib_per_s=89)
    shown = second(sessions(cpu=9, commit=1), cpu=FULL)
    known = with_offers(run, instances=(larger,), type="c4.large", usd_per_month=73.0, vcpus=2)
    limit, result = remedy(known, shown, given())
    assert (limit, result.spec) == ("server_cpu", "c4.xlarge")
    assert result.tps_ratio_max == pytest.approx(2 / 0.70)
    unknown = remedy(with_offers(known, instances=(larger,), storage_only=True), shown, given())[1]
    assert unknown.spec is None, "what the CPU bounds was this host's"


def test_fewer_checkpoints_cost_nothing(run: RunFigures) -> None:
    often = Checkpoints((True,) * 10, started=3, requested=3, seconds=10.0, moved_share=0.75, outside_ratio=1.1)
    limit, result = remedy(run, CAPPED, given(), often)
    assert (limit, result.usd_more_per_month, result.tps_ratio_max) == ("checkpoints", 0.0, 4.0)
    everything = replace(often, moved_share=1.0)
    assert remedy(run, CAPPED, given(), everything)[1].tps_ratio_max == RATIO_MAX


@pytest.mark.parametrize(
    "shown",
    [
        second(sessions(lock=27, commit=1)),
        second(sessions(commit=2, cpu=1)),
        second(sessions(cpu=6), cpu=replace(FULL, driver_busy=0.97)),
    ],
)
def test_what_cannot_be_bought_has_a_remedy_without_a_price(run: RunFigures, shown: Second) -> None:
    _, result = remedy(with_offers(run, MOST, IO2BX), shown, given())
    assert (result.spec, result.usd_per_month, result.tps_ratio_max) == (None, None, None)
    assert result.action


def test_a_bound_that_says_nothing_is_cut(run: RunFigures) -> None:
    shown = second(replace(AT_DISK, client=0, cpu=0.01, lock=0), device(310, ms=90.0), cpu=None)
    _, result = remedy(with_offers(run, IO2BX), shown, given(replace(GP3, iops=Rate(310, 310))))
    assert result.tps_ratio_max == RATIO_MAX

"""The draw of `make bench ONLY=diagnose`, its truth, claims and page; and the bench itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pgdyno.advise.diagnose.diagnosis import diagnose
from pgdyno.analysis.binding.rules import LIMITS, Confidence, Limit
from pgdyno.base.errors import InputError
from pgdyno.experiment import Experiment
from pgdyno.world.resolved import emulated_arms
from tools.diagnose import __main__ as command
from tools.diagnose import page
from tools.diagnose.claims import judge
from tools.diagnose.measure import WATCH
from tools.diagnose.record import Answer, Facts, Measured, Reading, digest, left
from tools.diagnose.scenarios import OLDER, Stand, draw, scenarios
from tools.diagnose.thinned import TABLE, kept_looks, thinned
from tools.diagnose.truth import refuted
from tools.diagnose.views import SHOWN, VIEWS, cloudwatch

from .watches import make_watch

if TYPE_CHECKING:
    from pathlib import Path

STANDS = draw(command.SEED, command.ROUNDS)
NOTHING = dict.fromkeys(("read_ops", "write_ops", "read_bytes", "write_bytes", "read_time_ns", "write_time_ns", "queue_time_ns", "exceeded_iops_ns", "exceeded_throughput_ns"), 0)  # fmt: skip


def facts(limit: Limit = "volume_iops", held: float = 0.9, left: int | None = None, **changes: Any) -> Facts:
    """A scenario of 10 s that nobody made, held above its IOPS limit for that share of it."""
    grown = NOTHING | {
        "exceeded_iops_ns": int(held * 10e9),
        "read_ops": 5000,
        "io_units": 5000,
        "read_bytes": 5000 * 8192,
    }
    reading = Reading(begin_unix_s=1000.0, end_unix_s=1010.0, grown=grown, credits=left, nvme=({}, {}))
    made: dict[str, Any] = {
        "key": f"00-iops-18-0-{limit}", "limit": limit, "consumer": "reads", "version": "18.6", "volumes": {"data": "gp3"},
        "instance": None, "load": "reads", "readings": {"data": reading}, "devices": {"data": "loop0"}, "seconds": 10.0, "idle": 0.8,
        "server_cpu": 0.1, "tps": 100.0, "tps_control": None, "consumer_left": 0.02, "refused": False,
    }  # fmt: skip
    return Facts.model_validate({**made, **changes})


def answer(limit: Limit | None, confidence: Confidence = "high", view: str = "all", **changes: Any) -> Answer:
    """What a view said of such a scenario."""
    of = facts(**changes)
    return Answer(view, of, limit, "data", confidence, "reads", limit == of.limit, visible=True)


def test_a_draw_has_both_versions_alike_every_limit_and_comes_out_the_same() -> None:
    assert draw(command.SEED, command.ROUNDS) == STANDS
    assert draw(command.SEED + 1, command.ROUNDS) != STANDS
    every = list(scenarios(STANDS))
    assert len(every) >= 200
    assert len({key for key, _, _ in every}) == len(every)
    assert sum(stand.older for _, stand, _ in every) * 2 == len(every)
    counted = {
        limit: sum(load.limit == limit for _, _, load in every) for limit in LIMITS if limit != "no_answer"
    }  # a server that does not answer has no load
    assert min(counted.values()) >= 3


@pytest.mark.parametrize(
    "stand", [item for item in draw(command.SEED, 1) if not item.older], ids=lambda item: item.name
)
def test_every_stand_can_be_run(stand: Stand) -> None:
    (arm,) = emulated_arms(Experiment.of(stand.document()), to_run=False)
    assert set(arm.volumes) == set(stand.volumes)


def test_the_emulators_account_says_whether_the_limit_was_reached() -> None:
    assert refuted(facts(held=0.9), 8) is None
    assert refuted(facts(held=0.3), 8) == "requests waited for the limit in 30% of the time"
    assert refuted(facts("locks", held=0.3), 8) == "requests waited for a volume's limit in 30% of the time"
    assert refuted(facts("volume_throughput", held=0.9), 8) is not None


def test_a_burst_bucket_binds_by_iops_and_once_it_is_empty() -> None:
    assert refuted(facts("burst_bucket", left=20), 8) is None
    assert refuted(facts("burst_bucket", left=4000), 8) == "credits for 8 s were left when the watch began"
    at_throughput = facts("burst_bucket", held=0.1)
    at_throughput.readings["data"].grown["exceeded_throughput_ns"] = int(9e9)
    assert refuted(at_throughput, 8) == "requests waited for the limit in 10% of the time"


@pytest.mark.parametrize(
    ("limit", "changes", "why"),
    [
        ("locks", {"tps_control": 300.0}, None),
        ("locks", {"tps_control": 110.0}, "without it there are 110 instead of 100 transactions a second"),
        ("server_cpu", {"idle": 0.02, "server_cpu": 0.9}, None),
        ("server_cpu", {"idle": 0.4, "server_cpu": 0.5}, "40% of the machine's CPU was idle"),
        ("harness", {"idle": 0.02, "server_cpu": 0.9}, "the server used 90% of the machine's CPU, others 8%"),
        ("volume_latency", {}, "on average 0.00 requests of 2 clients were in a volume"),
        ("connections", {"refused": True}, None),
        ("connections", {}, "a connection was to be had"),
    ],
)
def test_other_limits_have_a_control_or_the_kernels_account(
    limit: Limit, changes: dict[str, Any], why: str | None
) -> None:
    assert refuted(facts(limit, held=0.0, **changes), 2) == why


def test_a_wrong_answer_with_confidence_breaks_the_claim_in_any_view() -> None:
    right = [answer("volume_iops") for _ in range(9)]
    names = [claim.holds for claim in judge(right)]
    assert names == [False, False, True, True, True], "right, but too few, and of one limit"
    wrong = judge([*right, answer("client", view="iostat alone")])
    assert [claim.holds for claim in wrong][3] is False
    unsure = judge([*right, answer("client", "low", view="iostat alone")])
    assert [claim.holds for claim in unsure][3] is True


def test_a_partial_record_says_so_with_its_digest() -> None:
    measured = Measured(command.RESULTS / "1-5c0ffee" / "one", facts(), None)
    other = Measured(measured.folder, facts(held=0.1), "requests waited for the limit in 10% of the time")
    answers = [answer("volume_iops", view=view) for view in VIEWS] + [answer("locks", "low")]
    text = page.render([measured, other], answers, judge(answers), seed="1", rules=digest())
    assert "the engine `5c0ffee`." in text
    assert "**This record is partial**" in text
    assert digest() in text
    assert "| volume IOPS | 1 (1) | 1 (0) |" in text
    assert "## Not judged" in text
    assert set(SHOWN) < set(VIEWS)


def test_cloudwatchs_file_has_what_the_volume_counted() -> None:
    from pgdyno.advise.size.reading.cloudwatch import read

    (measured,) = read(cloudwatch(facts().readings["data"]), "made").values()
    assert [sample.read_ops_per_s for sample in measured.samples] == [500.0] * 3
    assert measured.samples[1].at_s == 1000.0


def test_what_is_there_is_not_measured_again(tmp_path: Path) -> None:
    every = list(scenarios(STANDS))
    here, there = tmp_path / "here", tmp_path / "there"
    (here / every[0][0]).mkdir(parents=True)
    assert left([here], every) == every, "a scenario without facts was interrupted"
    (here / every[0][0] / "facts.json").write_text("{}")
    assert left([here], every) == every[1:]
    (there / every[1][0]).mkdir(parents=True)
    (there / every[1][0] / "facts.json").write_text("{}")
    assert left([here, there], every) == every[2:]


def test_a_page_says_which_engine_made_how_many_of_its_scenarios(tmp_path: Path) -> None:
    """Those of another engine stand where this one has none."""
    here, there = tmp_path / "1-beef", tmp_path / "1-cafe"
    for folder, count in ((here, 1), (there, 3)):
        for key, _, load in list(scenarios(STANDS))[:count]:
            (folder / key).mkdir(parents=True)
            (folder / key / "facts.json").write_text(facts(load.limit, key=key).model_dump_json())
    result = command.measured(STANDS, [here, there])
    assert [item.engine for item in result] == ["beef", "cafe", "cafe"]
    text = page.render(result, [answer("volume_iops")], [], seed="1", rules=digest())
    assert (
        "the engines `beef` (1 judged, at the median with 80% of the machine's CPU idle) and `cafe` (2 judged, " in text
    )


def test_a_record_is_thinned_to_the_looks_of_a_slower_watch(tmp_path: Path) -> None:
    ms = 1_000_000
    assert [at // ms for at in kept_looks([at * ms for at in (0, 100, 200, 301, 395, 500, 900)], 200)] == [
        0,
        200,
        395,
        900,
    ]
    run = make_watch(tmp_path / "one" / WATCH, 1_764_061_200.0, full=True)
    measured = thinned(Measured(tmp_path / "one", facts(), None), 200, tmp_path / "fewer")
    fewer = measured.folder / run.relative_to(tmp_path / "one")
    looks = [len(set(pq.read_table(path / TABLE)["t_begin_ns"].to_pylist())) for path in (run, fewer)]
    assert looks == [200, 100]
    assert diagnose(fewer).binding.verdict == diagnose(run).binding.verdict


@pytest.mark.bench
@pytest.mark.needs_fuse
@pytest.mark.skipif(not OLDER.is_dir(), reason="no PostgreSQL 15 of Debian's package")
def test_the_limit_that_binds_on_a_watched_server_is_named() -> None:
    command.collect(STANDS, command.SEED)
    assert [str(claim) for claim in command.write(STANDS, command.SEED) if not claim.holds] == []


def test_readings_with_times_of_whole_seconds_are_not_refused_at_a_limit() -> None:
    """7.4 s above a limit between two times that `date -Is` writes 7 s apart."""
    from pgdyno.advise.size.reading import counters as nvme

    names = [f"total_{way}_{what}" for what in ("ops", "bytes", "time") for way in ("read", "write")]
    page = dict.fromkeys([*names, *nvme.CHECKS], 0)
    later = page | {"ebs_volume_performance_exceeded_iops": 7_400_000, "total_read_ops": 2100}
    readings = ((38, page), (45, later))
    text = "\n".join(f"2026-11-25T04:45:{second}+00:00\n{json.dumps(counters)}" for second, counters in readings)
    (sample,) = nvme.read([(text, "made", 0.0)], None).samples
    assert sample.exceeded["iops"] == 1.0
    wrong = text.replace("7400000", "8600000")
    with pytest.raises(InputError, match="the times of the readings are not right"):
        nvme.read([(wrong, "made", 0.0)], None)

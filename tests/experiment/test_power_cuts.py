"""Power cuts after the runs of an experiment: what `[crash]` may say, what a plan and a report say of it, and that they resume."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.durability import cuts_of
from pgdyno.base.errors import EXIT_CUT_FAILED, InputError
from pgdyno.durability.crash.recording import SETTINGS
from pgdyno.flow.plan import require_divisible
from pgdyno.report import document
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.report.terminal import table
from pgdyno.results import open_experiment
from pgdyno.world.base import OVERHEAD_S
from pgdyno.world.emulated import asked_of
from pgdyno.world.fake import Fake
from pgdyno.world.resolved import emulated_arms
from tests.experiment.documents import ONE_ARM, experiment
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path

CRASH = """
[crash]
cuts = 200
duration = "5s"
reading = ["pieces-4096", "pieces-4096+strict"]
cache = "volatile"

"""
SAID = "200 power cuts of 5 s, with a volatile cache, read as pieces-4096 and as pieces-4096+strict"


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ({"reading": "whole"}, "crash.cuts: how many is missing"),
        ({"cuts": -1}, "crash.cuts"),
        ({"cuts": 10, "reading": "pieces-4000"}, "`pieces-4000` is not a reading"),
        ({"cuts": 10, "reading": "whole+flush-ignored-1"}, "is not a reading"),
        ({"cuts": 10, "reading": ["whole", "whole"]}, "appears twice"),
        ({"cuts": 10, "reading": []}, "crash.reading"),
        ({"cuts": 10, "duration": "2min"}, "crash.duration"),
        ({"cuts": 10, "cache": "on"}, "crash.cache"),
        ({"cuts": 10, "seconds": 3}, "crash.seconds: there is no such key"),
    ],
)
def test_what_cannot_be_cut_is_refused_at_its_key(asked: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refused:
        experiment(crash=asked)
    assert part in refused.value.message


def test_power_is_cut_only_of_data_and_wal_and_of_servers_that_pgdyno_starts() -> None:
    cuts = {"cuts": 10}
    with pytest.raises(InputError, match="pgdyno starts"):
        experiment(world={"kind": "real", "dsn": "host=db"}, crash=cuts)
    with pytest.raises(InputError, match=r"volumes for data and wal, and this arm has one for `tablespace\.fast`"):
        experiment(world={"volumes": {"data": "gp3", "tablespace.fast": "io2"}}, crash=cuts)
    with pytest.raises(InputError, match="a factor is a key of"):
        experiment(factors={"crash.cache": ["none", "volatile"]})
    with pytest.raises(InputError, match="would stay on the host"):
        require_divisible(Fake(experiment(crash=cuts), ()), ())


def test_they_are_a_part_of_what_was_asked_and_experiments_without_them_are_as_before() -> None:
    plain, cut = experiment(), experiment(crash={"cuts": 10})
    assert "crash" not in plain.identity()
    assert plain.identity() != cut.identity()
    assert cut.settings()["crash"] == {"cuts": 10}


def test_what_is_recorded_is_the_arms_own_but_for_what_keeps_a_recording_small(engine: Path) -> None:
    answer = experiment(
        world={
            "volumes": {"data": "gp3:iops=8000", "wal": "io2bx:iops=900,init=lazy"},
            "file_system": "xfs",
            "mount_options": "noatime",
        },
        postgres={"given_up": ["full_page_writes"], "parameters": {"shared_buffers": "4GB", "wal_compression": True}},
        crash={"cuts": 10, "cache": "volatile"},
    )
    (resolved,) = emulated_arms(answer, to_run=False)
    result = asked_of(resolved)
    assert result.volume == "gp3:size=100GiB,iops=8000,throughput=125"
    assert result.wal_volume == "io2bx:size=100GiB,iops=900"
    assert (result.roles, result.file_system, result.mount_options) == (("data", "wal"), "xfs", "noatime")
    assert (result.cache, result.given_up) == ("volatile", {"full_page_writes": "off"})
    assert result.settings == {"wal_compression": "on"}
    assert "shared_buffers" in SETTINGS


def test_they_are_planned_reported_and_resumed_and_a_failed_one_ends_with_its_exit_code(
    engine: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trial.toml"
    off = '[factors]\n"postgres.given_up" = [[], ["full_page_writes"]]\n'
    file.write_text(ONE_ARM.format(kind="fake", seconds=60) + CRASH + off)
    assert f"after each run: {SAID}" in pgdyno("run", file, "--dry-run", code=0).out
    planned = json.loads(pgdyno("run", file, "--dry-run", "--json", code=0).out)
    assert planned["power_cuts"]["cuts"] == 200
    assert planned["runs"][0]["seconds"] == pytest.approx(61 + OVERHEAD_S + planned["power_cuts"]["seconds"])

    # The first arm has full_page_writes, so nothing of it fails.
    pgdyno("run", file, "--results", tmp_path, "--keep-invalid", "--only", "1", code=0)
    directory = next(tmp_path.glob("*-trial-*"))
    changed = pgdyno("run", file, "--resume", directory, "--set", "crash.cuts=300", code=2).err
    assert "crash.cuts is 300, was 200" in changed
    ended = pgdyno("run", "--resume", directory, "--keep-invalid", code=EXIT_CUT_FAILED)
    assert "20 of 200 power cuts left a database that lost" in ended.err
    assert "crashtest --replay made-up:pieces-4096:1:7 --shrink" in ended.err
    assert len(open_experiment(directory).runs) == 2

    comparison = summarise(directory)
    sound, torn = comparison.arms
    assert [(cut.reading, cut.cuts, cut.failed) for cut in cuts_of(sound)] == [
        ("pieces-4096", 200, 0),
        ("pieces-4096+strict", 200, 0),
    ]
    assert [cut.by_check for cut in cuts_of(torn)] == [{"start": 20}, {"start": 20}]
    for text in (html(comparison), markdown(comparison), table(comparison)):
        assert "ower cuts" in text
        assert "made-up:pieces-4096:1:7" in text
    assert f"{sound.label}, pieces-4096: 0 of 200 power cuts lost" in " ".join(table(comparison).split())
    first, second = document(comparison).arms
    assert first.power_cuts[0].excluded_1_in == pytest.approx(67.3, abs=0.1)
    assert (second.power_cuts[1].failed, second.power_cuts[1].excluded_1_in) == (20, None)
    assert second.power_cuts[0].first_failed[0].failures == {"start": "made up"}


@pytest.mark.bench
@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_a_torn_page_is_found_and_its_recording_is_kept_for_a_replay(state_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    given_up = '[postgres]\ngiven_up = ["full_page_writes"]\n'
    file.write_text(
        ONE_ARM.format(kind="emulated", seconds=2) + CRASH.replace("200", "100").replace("5s", "10s") + given_up
    )
    pgdyno("run", file, "--results", tmp_path, "--keep-invalid", code=EXIT_CUT_FAILED)
    (run,) = open_experiment(next(tmp_path.glob("*-trial-*"))).runs
    assert [(power_cut.cuts, power_cut.cache) for power_cut in run.record.power_cuts] == [(100, "volatile")] * 2
    torn = next(power_cut for power_cut in run.record.power_cuts if power_cut.failed)
    again = json.loads(pgdyno("crashtest", "--replay", torn.first_failed[0].id, "--json", code=EXIT_CUT_FAILED).out)
    assert again["failures"] == torn.first_failed[0].failures
    alone = pgdyno("crashtest", file, "--results", tmp_path / "alone", "--json", code=EXIT_CUT_FAILED)
    arms = json.loads(alone.out)["arms"]
    assert [(arm["reading"], arm["cuts"], arm["cache"]) for arm in arms] == [
        ("pieces-4096", 100, "volatile"),
        ("pieces-4096+strict", 100, "volatile"),
    ]

"""Many watches of one directory: a calendar of hours on the screen and as JSON, and the newest verdict for an alert."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from pgdyno.advise.diagnose import words
from pgdyno.advise.diagnose.calendar import FAMILIES, Calendar, calendar_of, is_calendar
from pgdyno.advise.diagnose.document import CalendarDocument
from pgdyno.advise.diagnose.remedies import purchase_of
from pgdyno.advise.metrics.open_metrics import full_name
from pgdyno.base.errors import InputError
from pgdyno.cli.main import cli

from ..analysis.synthetic import Plan, make_experiment
from ..metrics.exposition import parse
from .watches import SERVER, make_watch, make_watches

ROOT = Path(__file__).parents[2]
BEGIN = datetime(2026, 11, 25, 21, 5, tzinfo=UTC).timestamp()
DAY = [False, True, True, None, False, True]
"""21:05 quiet, 22:05 and 23:05 full, 00:05 no answer, 01:05 quiet, 02:05 full."""


@pytest.fixture(scope="module")
def watches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of six hours."""
    root = tmp_path_factory.mktemp("calendar") / "watches"
    make_watches(root, BEGIN, DAY)
    return root


@pytest.fixture(scope="module")
def found(watches: Path) -> Calendar:
    """Their calendar, by hours of UTC."""
    return calendar_of(watches, zone=UTC)


def test_each_hour_has_the_limit_that_bound_in_it(found: Calendar) -> None:
    limits = {hour.begin.hour: hour.verdict.limit for hour in found.hours}
    assert limits == {21: "client", 22: "volume_iops", 23: "volume_iops", 0: None, 1: "client", 2: "volume_iops"}
    assert [hour.begin.hour for hour in found.hours] == [21, 22, 23, 0, 1, 2], "in their order, over midnight"
    assert found.counted == {"volume_iops": 3, "client": 2}
    assert found.hours[3].missed == (f"{found.hours[3].begin:%H}:05 the server cannot be connected to",)
    consumer = found.hours[1].consumer
    assert consumer is not None
    assert consumer[0] == "reads"
    assert found.hours[0].consumer is None, "of a server of which no more is asked, no use of the volume matters"
    assert found.worst.binding.verdict.limit == "volume_iops"


def test_hours_are_those_of_a_time_zone(watches: Path) -> None:
    there = calendar_of(watches, zone=timezone(timedelta(hours=5, minutes=30)))
    assert [hour.begin.hour for hour in there.hours] == [2, 3, 4, 5, 6, 7]
    assert {hour.begin.date().day for hour in there.hours} == {26}


def test_watches_of_one_hour_are_judged_together(tmp_path: Path) -> None:
    for minutes, full in ((0, True), (20, True), (40, False)):
        make_watch(tmp_path, BEGIN + 60 * minutes, full=full)
    (hour,) = calendar_of(tmp_path, zone=UTC).hours
    assert len(hour.watches) == 3
    assert hour.verdict.limit == "volume_iops"
    assert hour.verdict.confidence == "low", "the three disagree"
    assert 0.5 < hour.verdict.share < 0.7


def test_the_screen_is_a_row_for_each_day_with_a_letter_for_each_hour(found: Calendar) -> None:
    text = list(words.calendar_lines(found))
    assert text[3] == "Wed 2026-11-25  " + " " * 63 + "-  I  I"
    assert text[4] == "Thu 2026-11-26  !  -  I"
    assert "I volume IOPS" in "\n".join(text)
    assert any("Wed 2026-11-25 22:00 to 23:59: volume IOPS" in line for line in text)
    assert any(line.startswith("remedy") for line in text)
    for width in (96, 70, 45):
        # A specification is one word.
        assert all(len(line) <= width or len(line.split()) == 1 for line in words.calendar_lines(found, width))


def test_letters_tell_all_limits_apart() -> None:
    letters = list(words.LETTERS.values())
    assert len({letter.lower() for letter in letters}) == len(letters)
    assert words.MISSED not in letters


def test_the_document_is_what_its_schema_says(watches: Path) -> None:
    result = CliRunner().invoke(cli, ["diagnose", str(watches), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, json.loads((ROOT / "schema/diagnose-calendar.schema.json").read_text()))
    read = CalendarDocument.model_validate(document)
    assert [hour.watches for hour in read.hours] == [1, 1, 1, 0, 1, 1]
    assert read.server == SERVER
    assert read.remedies
    assert Path(read.hours[0].directories[0]).is_dir()


def test_what_was_bought_can_be_said_for_all_of_them(watches: Path) -> None:
    more = calendar_of(watches, purchase_of(["gp3:iops=6000"], None), UTC)
    assert more.counted.get("volume_iops") is None, "half of 6,000 IOPS is no limit"


def test_one_watch_in_a_directory_is_that_watch_and_no_calendar(tmp_path: Path) -> None:
    make_watch(tmp_path, BEGIN, full=True)
    result = CliRunner().invoke(cli, ["diagnose", str(tmp_path)])
    assert result.stdout.startswith("limit     volume IOPS")


def test_only_watches_of_one_server_are_a_calendar(tmp_path: Path, watches: Path) -> None:
    make_experiment(tmp_path, Plan(replicates=1, measure_s=20))
    assert is_calendar(tmp_path)
    assert not is_calendar(tmp_path / "nothing")
    with pytest.raises(InputError, match="has no watch"):
        calendar_of(tmp_path)
    for place, server in enumerate(("service=one", "service=two")):
        make_watch(tmp_path, BEGIN + 60 * place, full=False, server=server)
    with pytest.raises(InputError, match="watches of 2 servers: service=one, service=two"):
        calendar_of(tmp_path)
    refused = CliRunner().invoke(cli, ["diagnose", str(watches), "--cloudwatch", "metrics.json"])
    assert isinstance(refused.exception, InputError)
    assert "is for one watch" in refused.exception.message


def test_a_watch_that_cannot_be_read_hides_no_other(watches: Path, tmp_path: Path) -> None:
    make_watch(tmp_path, BEGIN, full=True)
    make_watch(tmp_path, BEGIN + 3600, full=True)
    broken = make_watch(tmp_path, BEGIN + 7200, full=True).parents[1]
    (broken / "experiment.json").write_text("{")
    there = calendar_of(tmp_path, zone=UTC)
    assert len(there.watches) == 2
    assert list(there.unreadable) == [broken]
    assert any(line.startswith("not read") for line in words.calendar_lines(there))


def test_the_newest_verdict_is_served_without_root(watches: Path) -> None:
    result = CliRunner().invoke(cli, ["metrics", "serve", "--once", "--diagnose", str(watches)])
    assert result.exit_code == 0, result.output
    families = parse(result.stdout)
    assert set(families) == {full_name(family) for family in FAMILIES}
    limit = families["pgdyno_diagnose_limit"]
    assert limit.value(server=SERVER, limit="volume_iops") == 1
    assert sum(value for _, _, value in limit.samples) == 1, "one limit binds"
    assert families["pgdyno_diagnose_confidence_high"].value() == 1
    assert families["pgdyno_diagnose_watch_begin_seconds"].value() == pytest.approx(BEGIN + 5 * 3600, abs=1)
    assert families["pgdyno_diagnose_consumer_share_ratio"].value(consumer="reads") > 0.5


def test_a_watch_that_follows_is_seen_at_the_next_request(tmp_path: Path) -> None:
    from pgdyno.advise.diagnose.calendar import lines

    make_watch(tmp_path, BEGIN, full=True)
    assert any(line.endswith('limit="volume_iops",role="data"} 1') for line in lines([tmp_path]))
    make_watch(tmp_path, BEGIN + 3600, full=False)
    assert any(line.endswith('limit="client",role=""} 1') for line in lines([tmp_path]))


def test_the_alerts_name_metrics_and_limits_that_exist() -> None:
    from pgdyno.analysis.binding.rules import LIMITS

    text = (ROOT / "dashboards/prometheus-diagnose.yml").read_text()
    named = set(re.findall(r"pgdyno_[a-z_]+", text))
    assert named <= {full_name(family) for family in FAMILIES}
    for choice in re.findall(r'limit=~?"([a-z_|]+)"', text):
        assert set(choice.split("|")) <= set(LIMITS)
    shown = CliRunner().invoke(cli, ["show", "dashboards", "prometheus-diagnose"])
    assert shown.stdout == text

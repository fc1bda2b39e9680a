"""What a policy file may say, and what is refused with the rule and a remedy."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.durability.retention.cron import read_cron
from pgdyno.durability.retention.policy import Copy, HourInterval, Keep, SnapshotSchedule, closest_s, read_policy

from .rules import RULES

DAY_S = 86_400
WHOLE = """\
schema_version = 1

[[schedule]]
name = "often"
every = "6h"
at = "03:00"
keep = 28
fast_restore = { keep = 1, zones = 2 }
copies = [{ region = "eu-west-1", keep_for = "7d" }]

[[schedule]]
name = "monthly"
cron = "cron(0 4 1 * ? *)"
keep = 1
archive_for = "90d"
"""


def read(folder: Path, text: str) -> tuple[SnapshotSchedule, ...]:
    path = folder / "policy.toml"
    path.write_text(text)
    return read_policy(path, RULES)


def test_a_policy_is_read_as_it_is_written(tmp_path: Path) -> None:
    often, monthly = read(tmp_path, WHOLE)
    assert often == SnapshotSchedule(
        "often", HourInterval(6, dt.time(3)), Keep(count=28), 1, 2, copies=(Copy("eu-west-1", 7.0 * DAY_S),)
    )
    assert (monthly.name, str(monthly.when), monthly.archive_s) == ("monthly", "cron(0 4 1 * ? *)", 90.0 * DAY_S)
    assert closest_s(monthly.when) == 28 * DAY_S, "from the first of February to the first of March"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("schema_version = 1", "", "schema_version = 1 is missing"),
        ('every = "6h"', 'every = "5h"', "`5h` is not offered"),
        ('every = "6h"', "", "every or cron"),
        ("keep = 28", "keep = 1001", "not a number from 1 to 1,000"),
        ("keep = 28", "keep = 0", "not a number from 1 to 1,000"),
        ("keep = 28", 'keep_for = "30d"', "by count or by age, the same"),
        ("keep = 28", 'keep = 28\nkeep_for = "30d"', "by count or by age"),
        ("keep = 28", "keep = true", "not a number"),
        ('keep_for = "7d"', 'keep_for = "12h"', "not an age of 1 day"),
        ('keep_for = "7d"', 'keep_for = "101y"', "not an age of 1 day"),
        ("{ keep = 1, zones", "{ keep = 29, zones", "enabled for 29 snapshots, and the schedule keeps 28"),
        ("zones = 2", "zone = 2", "no key `zone`"),
        ('archive_for = "90d"', 'archive_for = "89d"', "at least 90 days"),
        ("cron(0 4 1 * ? *)", "cron(0 4 1,15 * ? *)", "at least 28 days apart"),
        ("cron(0 4 1 * ? *)", "cron(0 4 32 * ? *)", "`32` is not understood as day of the month"),
        ("cron(0 4 1 * ? *)", "cron(0 4 * * * *)", "one of the two days"),
        ("cron(0 4 1 * ? *)", "cron(0 3 1 *)", "has 4 fields"),
        ("cron(0 4 1 * ? *)", "cron(0/0 4 1 * ? *)", "is not understood as minutes"),
        ('name = "monthly"', 'name = "often"', "the same name"),
        ('at = "03:00"', 'at = "25:00"', "is not a time"),
        ('region = "eu-west-1", ', "", "a region and keep_for"),
        ("copies = [", "copies = [" + '{ region = "x", keep_for = "7d" }, ' * 3, "at most 3 regions"),
        ("[[schedule]]\nname", '[[schedule]]\nnam = "x"\nname', "no key `nam`"),
    ],
)
def test_what_the_provider_does_not_take_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in WHOLE
    with pytest.raises(InputError, match=why) as refused:
        read(tmp_path, WHOLE.replace(old, new, 1))
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("cron", "code"),
    [
        ("cron(* * * * ? *)", "policy.cron.too_often"),
        ("cron(0/30 * * * ? *)", "policy.cron.too_often"),
        ("cron(0,59 3 * * ? *)", "policy.cron.too_often"),
        ("cron(30 0,23 * * ? *)", None),  # 23 h and 1 h
        ("cron(0,45 0,23 * * ? *)", "policy.cron.too_often"),
        ("cron(0 * * * ? *)", None),
        ("cron(0 4 31 2 ? *)", "policy.cron.never"),
        ("cron(0 4 30,31 2 ? 2028)", "policy.cron.never"),
        ("cron(0 4 29 2 ? *)", "policy.cron.too_rare"),
        ("cron(0 4 29 2 ? 2028)", None),
        ("cron(0 4 1 1 ? *)", None),  # 366 days after a leap year
        ("cron(0 4 1 1 ? 2028,2030)", "policy.cron.too_rare"),
        ("cron(0 4 ? * 2 *)", None),
        ("cron(0 4 ? 2 1 *)", None),  # Sundays of February
    ],
)
def test_a_cron_expression_takes_snapshots_an_hour_to_a_year_apart(tmp_path: Path, cron: str, code: str | None) -> None:
    text = f'schema_version = 1\n[[schedule]]\nname = "a"\ncron = "{cron}"\nkeep = 1\n'
    if code is None:
        [schedule] = read(tmp_path, text)
        assert str(schedule.when) == cron
        return
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert (refused.value.code, refused.value.data) == (code, {"cron": cron, "hours_min": 1, "days_max": 366})


def test_the_gaps_of_a_cron_expression_are_those_between_its_instants() -> None:
    """For expressions of all kinds, with the instants of 29 years counted one by one."""
    begin, end = dt.datetime(2028, 1, 1, tzinfo=dt.UTC), dt.datetime(2057, 1, 1, tzinfo=dt.UTC)
    for text in ("0 4 1,15 * ? *", "10 3,9 ? 2-4 2/2 *", "0 0 29 2 ? *", "0/20 5 30 1/2 ? *", "0 1 ? * 7 2030,2031"):
        cron = read_cron(text, "cron")
        instants = list(cron.instants(begin, end))
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(instants)]
        assert cron.gaps_s() == (min(gaps), max(gaps))


def test_the_policy_in_the_documents_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/concept/retention.md").read_text(encoding="utf-8")
    [text] = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [schedule.name for schedule in read(tmp_path, text)] == ["often", "monthly"]


def test_a_policy_has_up_to_four_schedules(tmp_path: Path) -> None:
    text = '[[schedule]]\nname = "{}"\nevery = "24h"\nkeep = 1\n'
    texts = ["schema_version = 1\n" + "".join(text.format(number) for number in range(count)) for count in (4, 5)]
    assert len(read(tmp_path, texts[0])) == 4
    with pytest.raises(InputError, match="1 to 4 schedules"):
        read(tmp_path, texts[1])


def test_a_cron_expression_means_what_the_provider_says() -> None:
    begin = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)  # a Sunday
    weekly = read_cron("cron(30 4,16 ? * 1 *)", "cron")
    moments = list(weekly.instants(begin, begin + dt.timedelta(days=8)))
    assert [moment.strftime("%a %d %H:%M") for moment in moments] == [
        "Sun 01 04:30",
        "Sun 01 16:30",
        "Sun 08 04:30",
        "Sun 08 16:30",
    ]
    quarters = read_cron("cron(0/15 8 * 11 ? 2026)", "cron")
    assert len(list(quarters.instants(begin, begin + dt.timedelta(days=40)))) == 30 * 4

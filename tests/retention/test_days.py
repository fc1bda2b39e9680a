"""Which snapshots exist on each day, and their bytes and price, against a model that looks at every block."""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import EXIT_USAGE
from pgdyno.durability.retention.days import DAYS_PER_MONTH, Data, days
from pgdyno.durability.retention.policy import Copy, HourInterval, Keep, SnapshotSchedule
from pgdyno.durability.retention.timeline import snapshots
from tests.support.commands import pgdyno

from .rules import PRICES
from .test_policy import WHOLE

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
DAY_S = 86_400.0
BEGIN = dt.date(2026, 11, 1)
FIRST = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
DAILY = HourInterval(24, dt.time(3))
DATA = Data(100 * GIB, 5 * GIB)


def at_hour(hour: float) -> dt.datetime:
    return FIRST + dt.timedelta(hours=hour)


def test_the_newest_ones_are_kept_by_count() -> None:
    result, lost_s = days([SnapshotSchedule("daily", DAILY, Keep(count=3))], DATA, PRICES, BEGIN, 6)
    assert [[at.day for _, at in day.snapshots] for day in result] == [
        [1],
        [1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 5],
        [4, 5, 6],
    ]
    assert lost_s == DAY_S


def test_the_young_ones_are_kept_by_age() -> None:
    result, lost_s = days(
        [SnapshotSchedule("often", HourInterval(12, dt.time(0)), Keep(age_s=2 * DAY_S))], DATA, PRICES, BEGIN, 5
    )
    assert [len(day.snapshots) for day in result] == [2, 4, 4, 4, 4]
    assert lost_s == 12 * 3600


def test_of_schedules_that_are_due_together_the_one_that_keeps_longest_has_the_snapshot() -> None:
    policy = [
        SnapshotSchedule("daily", DAILY, Keep(count=2)),
        SnapshotSchedule("often", HourInterval(12, dt.time(3)), Keep(count=9)),
    ]
    taken = snapshots(policy, FIRST, FIRST + dt.timedelta(days=3))
    assert [item.schedule for item in taken] == ["often"] * 6
    taken = snapshots(
        [policy[0], SnapshotSchedule("often", HourInterval(12, dt.time(3)), Keep(count=1))], FIRST, at_hour(48)
    )
    assert [item.schedule for item in taken] == ["daily", "often", "daily", "often"]


def test_fast_snapshot_restore_is_for_the_newest_and_costs_by_the_hour() -> None:
    policy = [SnapshotSchedule("daily", DAILY, Keep(count=3), fast_count=1, fast_zones=2)]
    result, _ = days(policy, Data(0, 1.0), PRICES, BEGIN, 4)
    assert [day.fast for day in result] == [2, 2, 2, 2]
    assert result[-1].usd == pytest.approx(2 * 24 * 0.75)


def test_an_archived_snapshot_is_a_full_copy_and_leaves_the_others() -> None:
    policy = [SnapshotSchedule("daily", DAILY, Keep(count=1), archive_s=2 * DAY_S)]
    result, _ = days(policy, DATA, PRICES, BEGIN, 5)
    assert [day.archived for day in result] == [0, 1, 2, 2, 2]
    assert result[-1].archived_bytes == 200 * GIB
    assert result[-1].stored_bytes == 100 * GIB
    assert result[-1].usd == pytest.approx((100 * 0.05 + 200 * 0.0125) / DAYS_PER_MONTH)


def test_copies_are_a_chain_of_their_own() -> None:
    policy = [SnapshotSchedule("daily", DAILY, Keep(count=1), copies=(Copy("eu-west-1", 3 * DAY_S), Copy("x", DAY_S)))]
    result, _ = days(policy, DATA, PRICES, BEGIN, 6)
    changed = DATA.changed_bytes(DAY_S)
    assert result[-1].copied_bytes == pytest.approx({"eu-west-1": 100 * GIB + 2 * changed, "x": 100.0 * GIB})


def test_the_price_of_a_month_is_that_of_what_is_stored() -> None:
    result, _ = days([SnapshotSchedule("daily", DAILY, Keep(count=2))], DATA, PRICES, BEGIN, 40)
    gib = result[-1].stored_bytes / GIB
    assert 104.8 < gib < 105, "the data, and what changed on a day: nearly 5 GiB"
    assert result[-1].usd * DAYS_PER_MONTH == pytest.approx(gib * 0.05)


def test_blocks_that_are_written_twice_count_once() -> None:
    """What the formula says, against blocks that are drawn: 2,000 of them, written as often as there are."""
    count, size = 2_000, Data(2_000, 2_000.0)
    draw = random.Random(3)
    changed = len({draw.randrange(count) for _ in range(count)})
    assert size.changed_bytes(DAY_S) == pytest.approx(changed, rel=0.05)
    assert Data(100, 1e9).changed_bytes(DAY_S) == pytest.approx(100)


@given(
    hours=st.sampled_from((1, 2, 3, 4, 6, 8, 12, 24)),
    at=st.integers(0, 23),
    count=st.integers(1, 40),
    span=st.integers(1, 20),
    fast=st.integers(0, 3),
)
def test_at_every_hour_the_newest_of_a_schedule_exist(hours: int, at: int, count: int, span: int, fast: int) -> None:
    schedule = SnapshotSchedule(
        "s", HourInterval(hours, dt.time(at)), Keep(count=count), fast_count=fast, fast_zones=1 if fast else 0
    )
    taken = snapshots([schedule], FIRST, FIRST + dt.timedelta(days=span))
    for hour in range(0, span * 24, 5):
        now = FIRST + dt.timedelta(hours=hour)
        due = [item.at for item in taken if item.at <= now]
        assert [item.at for item in taken if item.exists(now)] == due[-count:]
        assert [item.at for item in taken if item.is_fast(now)] == (due[-min(fast, count) :] if fast else [])


@pytest.mark.usefixtures("engine")
def test_the_command_prints_each_day_and_its_json_has_the_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(WHOLE)
    texts = (
        "volume",
        "policy",
        path,
        "--dry-run",
        "30d",
        "--from",
        "2026-11-01",
        "--size",
        "500GiB",
        "--changed",
        "20GiB",
    )
    shown = pgdyno(*texts).out
    assert len([line for line in shown.splitlines() if line.startswith("2026-1")]) == 30
    assert "at most the writes of 6 h" in shown
    document = json.loads(pgdyno(*texts, "--json").out)
    assert document["data_loss_max_s"] == 6 * 3600
    assert document["usd"] == pytest.approx(sum(day["usd"] for day in document["days"]))
    last = document["days"][-1]
    assert len(last["snapshots"]) == 29
    assert last["fast"] == 2
    assert "is not a time" in pgdyno("volume", "policy", path, "--dry-run", "soon", code=EXIT_USAGE).err

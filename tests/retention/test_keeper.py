"""A policy that runs: what exists at each look is what the dry run says of it, on a volume in use and in time that is given to it."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.catalog import Catalog
from pgdyno.base.errors import EXIT_OK, InputError
from pgdyno.cli.main import run
from pgdyno.durability.retention.keeper import Keeper
from pgdyno.durability.retention.policy import read_policy
from pgdyno.durability.retention.timeline import snapshots
from pgdyno.machine import snapshot, snapshot_delete, snapshot_fast, snapshot_file, volume

from ..host.needs import needs_fuse
from ..host.test_snapshot_copy import FAST_MIB_PER_S, write

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.durability.retention.policy import SnapshotSchedule

pytestmark = needs_fuse
FIRST = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
OFTEN = """\
schema_version = 1

[[schedule]]
name = "often"
cron = "cron(0 0 1-4 * ? *)"
keep = 3
fast_restore = { keep = 1, zones = 2 }
copies = [{ region = "eu-west-1", keep_for = "1d" }]

[[schedule]]
name = "monthly"
cron = "cron(0 3 1 * ? *)"
keep = 1
archive_for = "90d"
"""


def policy(state: Path, text: str) -> tuple[SnapshotSchedule, ...]:
    file = state.parent / "policy.toml"
    file.write_text(text)
    with Catalog() as catalog:
        return read_policy(file, catalog.snapshots()["policy"])


def there(now: dt.datetime, schedules: tuple[SnapshotSchedule, ...]) -> set[tuple[str, str, str]]:
    """What the function of time says: schedule, instant, state."""
    fates = snapshots(schedules, FIRST, now + dt.timedelta(microseconds=1))
    texts = {(fate.schedule, str(fate.at), "completed") for fate in fates if fate.exists(now)}
    texts |= {(fate.schedule, str(fate.at), "fast") for fate in fates if fate.is_fast(now)}
    texts |= {(fate.schedule, str(fate.at), "archived") for fate in fates if fate.is_archived(now)}
    copied = ((fate, region) for fate in fates for region, until in fate.copies if now < until)
    return texts | {(item.schedule, str(item.at), region) for item, region in copied}


def listed() -> set[tuple[str, str, str]]:
    """The same of the snapshots that there are."""
    result = set()
    for list_snapshot in snapshot.list_snapshots():
        at = str(dt.datetime.fromtimestamp(list_snapshot.due_unix_s, dt.UTC))
        result.add(
            (
                list_snapshot.schedule,
                at,
                list_snapshot.region or ("archived" if list_snapshot.archived else "completed"),
            )
        )
        if list_snapshot.fast_zones:
            result.add((list_snapshot.schedule, at, "fast"))
    return result


def test_a_running_policy_has_what_its_dry_run_says_at_each_look_also_when_it_is_started_again(state: Path) -> None:
    """Until the first month's snapshot has left the archive. Between the looks nothing is due."""
    schedules = policy(state, OFTEN)
    hours = (0, 1, 3, 24, 25, 48, 72, 96)
    months = [dt.datetime(2026 + month // 12, month % 12 + 1, 1, tzinfo=dt.UTC) for month in range(10, 15)]
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        keeper = Keeper(
            schedules, lambda: [data], state, FIRST - dt.timedelta(seconds=1), rate_mib_per_s=FAST_MIB_PER_S
        )
        looks = [month + dt.timedelta(hours=hour) for month in months for hour in hours]
        for number, now in enumerate(looks):
            write(data, number % 8, 1, number)
            keeper.look(now)
            assert listed() == there(now, schedules), now
            if number % 7 == 6:
                keeper = Keeper(schedules, lambda: [data], state, now, rate_mib_per_s=FAST_MIB_PER_S)
        assert {kind for _, _, kind in listed()} == {"completed", "fast", "archived"}
        assert keeper.look(looks[-1]) == [], "what is done is not done twice"
        snapshot_delete.delete(snapshot.list_snapshots(), state)


def test_an_instant_that_was_missed_is_taken_once_and_one_that_cannot_be_taken_is_said(state: Path) -> None:
    schedules = policy(state, 'schema_version = 1\n[[schedule]]\nname = "x"\nevery = "1h"\nkeep = 9\n')
    with volume.attached("null:size=1GiB", mount=None, name="data") as data:
        write(data, 0, 1, 1)
        keeper = Keeper(schedules, lambda: [data], state, FIRST, rate_mib_per_s=1e-6)
        assert keeper.look(FIRST + dt.timedelta(minutes=59)) == []
        assert keeper.wait_s(FIRST + dt.timedelta(minutes=59, seconds=50)) == pytest.approx(10)
        [deed] = keeper.look(FIRST + dt.timedelta(hours=5, minutes=1))
        assert (deed.kind, deed.names) == ("taken", ("snap-1",))
        assert listed() == {("x", str(FIRST + dt.timedelta(hours=5)), "completed")}
        data.fail({"kind": "lose"})
        [deed] = keeper.look(FIRST + dt.timedelta(hours=6))
        assert deed.kind == "not_taken"
        assert "is lost" in deed.what
        snapshot_delete.delete(snapshot.list_snapshots(), state)


def test_a_volume_takes_a_creation_credit_and_is_lazy_without_one(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """8 GiB: optimized in 28 s, ten credits an hour, so the first after 6 minutes more; ten at most."""
    with volume.attached("gp3:size=8GiB", mount=None, name="data") as data:
        write(data, 0, 2, 1)
        [taken] = snapshot.take([data], rate_mib_per_s=FAST_MIB_PER_S).snapshots
    assert run(["volume", "restore", "snap-1", "gp3:size=8GiB,init=fsr", "--no-mount", "--name", "one"]) == EXIT_OK
    assert "the volume is lazy: fast snapshot restore is not enabled for snap-1" in capsys.readouterr().err
    assert run(["volume", "snapshot", "fsr", "snap-1", "--zones", "2"]) == EXIT_OK
    out = capsys.readouterr().out
    assert re.search(r"in 2 zones, \$1.50 an hour; optimized in 2\d s; 0 of at most 10 credits", out)
    [fast] = snapshot.list_snapshots()
    enabled_s = fast.fast_unix_ns / 1e9
    assert fast.usd_per_month({"gib_month_usd": 0.0, "fast_restore_hour_usd": 0.75}) == pytest.approx(1.5 * 730)
    optimized_s = enabled_s + 8 / 1024 * 3600
    assert snapshot_fast.credits_at(fast, enabled_s).next_s == pytest.approx(optimized_s - enabled_s + 360)
    assert snapshot_fast.spend(fast, optimized_s + 359.9) is None
    spent = snapshot_fast.spend(fast, optimized_s + 360.1)
    assert spent is not None
    assert snapshot_fast.spend(spent, optimized_s + 719) is None, "one at a time"
    full_s, left = optimized_s + 1e6, spent
    for number in range(10):
        after = snapshot_fast.spend(left, full_s)
        assert after is not None, number
        left = after
    assert snapshot_fast.spend(left, full_s) is None, "ten are kept"
    assert run(["volume", "restore", "snap-1", "gp3:size=8GiB,init=fsr", "--no-mount", "--name", "two"]) == EXIT_OK
    assert "snap-1 has no volume creation credit; the next one comes in 6 min" in capsys.readouterr().err
    assert volume.find("two").spec["initialization"]["kind"] == "lazy"
    with pytest.raises(InputError, match="16 TiB"):
        snapshot_fast.enable([replace(taken, size_bytes=17 << 40)], 1, state)
    snapshot_file.changed(state, {"snap-1": {"fast_unix_ns": 0, "fast_spent_unix_ns": 0, "fast_balance": 10.0}})
    for name, init, kind, left in (("three", "200MiB/s", "rate", 10.0), ("four", "fsr", "fsr", 9.0)):
        text = f"gp3:size=8GiB,init={init}"
        assert run(["volume", "restore", "snap-1", text, "--no-mount", "--name", name]) == EXIT_OK
        assert volume.find(name).spec["initialization"]["kind"] == kind
        [now] = snapshot.list_snapshots()
        assert now.fast_balance == pytest.approx(left), "a rate wins over fast snapshot restore, and spends nothing"
    for name in ("one", "two", "three", "four"):
        assert run(["volume", "detach", name]) == EXIT_OK
    assert run(["volume", "snapshot", "fsr", "snap-1", "--off"]) == EXIT_OK
    assert snapshot.list_snapshots()[0].fast_zones == 0

"""When a restored volume is as fast as a warm one: of made courses, and in a report of arms beside their warm ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.warming import settles
from pgdyno.base.specification import without_init
from pgdyno.report import document
from pgdyno.report.export import markdown
from pgdyno.report.terminal import table
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("tps", "seconds"),
    [
        ([100.0] * 20, 0.0),
        ([10.0] * 8 + [95.0] * 12, 8.0),
        # The window of five seconds may hold one that is cold: (60 + 4 x 100) / 5 is above 90.
        ([10.0] * 8 + [60.0] + [100.0] * 11, 8.0),
        # A checkpoint later is no cold volume.
        ([10.0] * 4 + [100.0] * 8 + [40.0] + [100.0] * 12, 4.0),
        # It was fast once, and then not for good.
        ([100.0] * 6 + [10.0] * 8 + [100.0] * 6, 14.0),
        ([10.0 + 4 * second for second in range(20)], None),
        ([None] * 4 + [100.0] * 10, 4.0),
        ([89.0] * 10, None),
        ([], None),
    ],
)
def test_the_time_until_it_is_warm_is_that_from_which_on_it_stays_so(
    tps: list[float | None], seconds: float | None
) -> None:
    assert settles(tps, 100.0, 1.0) == seconds


def test_a_bin_of_several_seconds_is_counted_as_such() -> None:
    assert settles([10.0, 10.0, 100.0, 100.0], 100.0, 4.0) == 8.0


def test_init_is_taken_out_of_a_specification() -> None:
    assert without_init("gp3:size=20GiB,iops=6000,init=200MiB/s") == "gp3:size=20GiB,iops=6000"
    assert without_init("gp3:init=lazy") == "gp3"
    assert without_init("gp3:init=lazy,size=20GiB") == "gp3:size=20GiB"


TRIAL = """\
schema_version = 1
replicates = 2

[world]
kind = "fake"
volume = "gp3:size=10GiB"

[workload]
engine = "native"
scale = 1
clients = 2
warmup = "0s"
duration = "60s"

[factors]
"world.restored" = ["", "lazy", "fsr"]
"workload.clients" = [2, 4]
"""


def test_each_cold_arm_is_beside_the_warm_one_that_is_the_same_in_all_else(engine: Path, tmp_path: Path) -> None:
    """The fake world does not know cold volumes: each is warm at once."""
    file = tmp_path / "trial.toml"
    file.write_text(TRIAL)
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    comparison = summarise(next(tmp_path.glob("*-trial-*")))
    assert len(comparison.warmings) == 4
    assert all(warming.cold.levels[1] == warming.warm.levels[1] for warming in comparison.warmings)
    assert {warming.seconds for warming in comparison.warmings} == {(0.0, 0.0)}
    assert [warming.seconds for warming in document(comparison).warmings] == [[0.0, 0.0]] * 4
    for text in (markdown(comparison), table(comparison)):
        assert "within 10 %" in " ".join(text.split())

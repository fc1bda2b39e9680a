"""What cannot be bought, or cannot be done, is refused with the rule that it breaks, before anything is changed.

Every case goes through the command line, and says what rule and what remedy the user is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_USAGE
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean
from tests.host.conftest import state
from tests.host.needs import needs_fuse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["state"]

FILE = """\
schema_version = 1

[world]
volume = "gp3"

[instance]
type = "r6g.large"
memory = "128MiB"
"""


@dataclass(frozen=True)
class Refused:
    """A request, and what is said to it."""

    setting: str
    """KEY=VALUE of an experiment, or the specification that an attached volume is to become."""
    rule: str
    remedy: str


ASKED = {
    "stripes that are not equal": Refused(
        "world.volume=gp3:size=10GiB+gp3:size=20GiB",
        "the volumes of an array are equal, as its stripes are",
        "2xgp3:size=10GiB",
    ),
    "a mirror without its half": Refused(
        "world.volume=raid10:3xgp3", "two copies of equal stripes, so its volumes are even in number", "raid10:4xgp3"
    ),
    "more volumes than an array has": Refused("world.volume=129xgp3", "an array has 1 to 128 volumes", "128xgp3"),
    "more volumes than the instance attaches": Refused(
        "world.volume=28xgp3", "r6g.large attaches at most 27 volumes, and this makes 28", "fewer and larger volumes"
    ),
    "more IOPS than the size allows": Refused(
        "world.volume=gp3:size=10GiB,iops=20000", "500 IOPS per GiB: 10 GiB allows at most 5,000", "size=40GiB"
    ),
    "limits of a month that is not on record": Refused(
        "instance.type=m5.xlarge@2019-01", "known are those of 2018-05, 2018-12", "m5.xlarge@2018-12"
    ),
    "a dilation beyond PostgreSQL's timers": Refused(
        "world.dilation=51",
        "dilation 51 needs bgwriter_delay = 10200 ms, and PostgreSQL takes 10000 at most",
        "of 50 at most",
    ),
    "an instance that is none": Refused("instance.type=r6g.3xlarge", "r6g has medium, large", "r6g.2xlarge"),
}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_an_experiment_that_breaks_a_rule_is_refused(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Refused
) -> None:
    file = tmp_path / "asked.toml"
    file.write_text(FILE)
    code = run(["run", str(file), "--set", case.setting, "--dry-run"])
    readouterr = capsys.readouterr()
    assert (code, readouterr.out) == (EXIT_USAGE, "")
    assert case.rule in readouterr.err
    assert case.remedy in readouterr.err.partition("remedy:")[2]


def test_a_class_of_rds_is_an_instance(engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "asked.toml"
    file.write_text(FILE)
    assert run(["run", str(file), "--set", "instance.type=db.r6g.large", "--dry-run"]) == 0, capsys.readouterr().err
    assert run(["run", str(file), "--set", "instance.type=db.r6g.3xlarge", "--dry-run"]) == EXIT_USAGE
    assert "db.r6g.2xlarge" in capsys.readouterr().err.partition("remedy:")[2]


def test_iops_that_an_instance_off_nitro_does_not_do_are_refused(
    engine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.toml"
    file.write_text(FILE.replace("r6g.large", "r4.16xlarge").replace("gp3", "io1:size=2TiB,iops=40000"))
    assert run(["run", str(file), "--dry-run"]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert "io1 with 40,000 IOPS does at most 32,000 on r4.16xlarge" in err
    assert "iops=32000" in err.partition("remedy:")[2]


MODIFIED = {
    "a smaller volume": Refused(
        "gp3:size=5GiB", "only be made larger: it has 10 GiB, and 5 GiB was asked for", "size=10GiB"
    ),
    "another layout": Refused("2xgp3:size=10GiB", "its layout cannot", "gp3:size=10GiB"),
    "one before the last is completed": Refused(
        "gp3:size=10GiB,iops=5000", "when its last modification is completed", "ask again in"
    ),
}


@pytest.fixture
def modified(state: Path) -> Iterator[volume.AttachedVolume]:
    """A gp3 of 10 GiB that was modified just now; nothing is left of it."""
    attached = volume.attach("gp3:size=10GiB", mount=None, name="data")
    attached.modify("gp3:size=10GiB,iops=4000")
    yield attached
    attached.detach()
    clean(state)


@needs_fuse
@pytest.mark.parametrize("case", MODIFIED.values(), ids=MODIFIED)
def test_a_modification_that_breaks_a_rule_is_refused(
    modified: volume.AttachedVolume, capsys: pytest.CaptureFixture[str], case: Refused
) -> None:
    before = modified.stats()["spec"]
    assert run(["volume", "modify", "data", case.setting]) == EXIT_USAGE
    readouterr = capsys.readouterr()
    assert case.rule in readouterr.err
    assert case.remedy in readouterr.err.partition("remedy:")[2]
    assert modified.stats()["spec"] == before, "it is what it was"


@needs_fuse
def test_one_modification_too_many_is_refused(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with volume.attached("gp3:size=10GiB", mount=None, name="data") as attached:
        for iops in (4000, 4100, 4200, 4300):
            attached.modify(f"gp3:size=10GiB,iops={iops}", optimizing_s=0)
        assert run(["volume", "modify", "data", "gp3:size=10GiB,iops=4400"]) == EXIT_USAGE
        assert "four times in 24 hours" in capsys.readouterr().err
        assert attached.stats()["spec"].startswith("gp3:size=10GiB,iops=4300")

"""`world.restored`: which volumes are made anew from the data set, and what is refused with its place."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import InputError
from pgdyno.base.specification import with_init
from pgdyno.world.fill import LoadWorld
from pgdyno.world.resolved import emulated_arms
from tests.experiment.documents import experiment

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize(
    ("spec", "restored"),
    [
        ("gp3", "gp3:init=lazy"),
        ("gp3:iops=6000", "gp3:iops=6000,init=lazy"),
        ("4xgp3", "4xgp3:init=lazy"),
        ("raid10:4xgp3", "raid10:4xgp3:init=lazy"),
        ("RAID0:4xgp3:chunk=64KiB", "RAID0:4xgp3:chunk=64KiB,init=lazy"),
        ("gp3:init=fsr", "gp3:init=fsr"),
        ("gp3:size=1GiB, INIT = 200MiB/s", "gp3:size=1GiB, INIT = 200MiB/s"),
    ],
)
def test_a_volume_is_restored_as_the_experiment_says_unless_it_says_itself_how(spec: str, restored: str) -> None:
    assert with_init(spec, "lazy") == restored


def test_each_volume_of_an_arm_is_restored_and_its_data_set_is_filled_on_whole_ones() -> None:
    world = {"volumes": {"data": "gp3", "wal": "gp3:init=fsr"}}
    result = experiment(world=world, factors={"world.restored": ["", "200MiB/s"]})
    plain, restored = emulated_arms(result, to_run=False)
    specs = {role: volume.spec for role, volume in restored.volumes.items()}
    assert specs["data"].endswith("init=200MiB/s")
    assert specs["wal"].endswith("init=fsr")
    assert not plain.volumes["data"].is_restored
    assert restored.volumes["data"].is_restored
    assert LoadWorld.of(plain, ("data",)) == LoadWorld.of(restored, ("data",))


@pytest.mark.parametrize(
    ("world", "place", "why"),
    [
        ({"volume": "gp3", "restored": "99MiB/s"}, "world.restored", "initialized at 100 to 300 MiB/s"),
        ({"volume": "null", "restored": "lazy"}, "world.restored", "null is none"),
        ({"volume": "gp3", "restored": "slowly"}, "world.restored", "write lazy, lazy_half"),
        ({"volume": "gp3:size=20TiB", "restored": "fsr"}, "world.restored", "up to 16 TiB"),
        ({"volume": "gp3:size=20TiB,init=fsr"}, "world.volume", "up to 16 TiB"),
    ],
)
def test_what_cannot_be_restored_so_is_refused_at_its_place(world: dict[str, str], place: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        emulated_arms(experiment(world=world), to_run=False)
    assert place in str(refused.value)


def test_an_experiment_without_it_is_the_same_as_before_it_could_be_asked_for() -> None:
    assert "restored" not in experiment().identity()["world"]
    lazy = experiment(world={"volume": "gp3", "restored": "lazy"})
    assert lazy.identity() != experiment(world={"volume": "gp3"}).identity()

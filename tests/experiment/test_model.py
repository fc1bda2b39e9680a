"""Arms, labels, order and seeds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from pgdyno.experiment.factors import level_texts
from tests.experiment.documents import experiment


def test_an_experiment_without_factors_has_one_arm_called_by_its_volume() -> None:
    result = experiment()
    assert [(arm.label, arm.levels) for arm in result.arms] == [("gp3", {})]


def test_every_combination_is_an_arm_and_the_first_levels_make_the_reference() -> None:
    result = experiment(
        factors={"postgres.bin": ["", "/usr/lib/postgresql/15/bin"], "world.volumes.wal": ["", "gp3"]},
    )
    assert [arm.label for arm in result.arms] == [
        "embedded · no wal volume",
        "embedded · wal gp3",
        "PostgreSQL 15 · no wal volume",
        "PostgreSQL 15 · wal gp3",
    ]
    assert [arm.world.placement for arm in result.arms[:2]] == [{"data": "gp3"}, {"data": "gp3", "wal": "gp3"}]
    assert result.arms[3].levels == {"postgres.bin": "PostgreSQL 15", "world.volumes.wal": "gp3"}
    assert result.factors == {
        "postgres.bin": ("embedded", "PostgreSQL 15"),
        "world.volumes.wal": ("no wal volume", "gp3"),
    }


@pytest.mark.parametrize(
    ("factor", "levels", "labels"),
    [
        ("world.volumes.data", ["gp3", "io2bx:iops=5000"], ["gp3", "io2bx:iops=5000"]),
        ("workload.clients", [1, 32], ["clients 1", "clients 32"]),
        ("client.rtt_ms", [0, 0.5], ["rtt_ms 0", "rtt_ms 0.5"]),
        ("workload.full_check", [False, True], ["full_check off", "full_check on"]),
        ("postgres.parameters.shared_buffers", ["64MB", "32MB"], ["shared_buffers 64MB", "shared_buffers 32MB"]),
        ("world.mount_options", ["", "noatime"], ["default mount options", "mount_options noatime"]),
        ("world.volumes", [{"data": "gp3"}, {"data": "gp3", "wal": "io2bx"}], ["data gp3", "data gp3, wal io2bx"]),
        ("world.restored", ["", "lazy"], ["not restored", "restored lazy"]),
        ("postgres.bin", ["/a/pg15/bin", "/b/pg15/bin"], ["/a/pg15/bin", "/b/pg15/bin"]),
    ],
)
def test_a_label_says_what_its_level_means(factor: str, levels: list[Any], labels: list[str]) -> None:
    world = {} if factor.startswith("world.volumes") else {"volume": "gp3"}
    assert [arm.label for arm in experiment(world=world, factors={factor: levels}).arms] == labels


@pytest.mark.parametrize("names", [("world.volumes", "world.volumes.wal"), ("world.volumes.wal", "world.volumes")])
def test_a_table_as_a_level_leaves_what_another_factor_sets_in_it(names: tuple[str, str]) -> None:
    """Whichever stands first: arms that are called differently would else be alike."""
    levels: dict[str, list[Any]] = {
        "world.volumes": [{"data": "gp3"}, {"data": "io2bx"}],
        "world.volumes.wal": ["", "gp3"],
    }
    result = experiment(world={}, factors={name: levels[name] for name in names})
    assert sorted(tuple(arm.world.placement.values()) for arm in result.arms) == [
        ("gp3",),
        ("gp3", "gp3"),
        ("io2bx",),
        ("io2bx", "gp3"),
    ]


def test_two_factors_do_not_set_the_same_volume() -> None:
    volumes = [{"data": "gp3"}, {"data": "gp3", "wal": "io2bx"}]
    with pytest.raises(InputError, match=r"world.volumes.wal is also a factor") as raises:
        experiment(world={}, factors={"world.volumes": volumes, "world.volumes.wal": ["", "gp3"]})
    assert 'factors."world.volumes"[2]' in raises.value.message
    assert "omit wal here" in raises.value.remedy


LEVELS = [
    {"name": "2 vCPUs", "instance": {"vcpus": 2}, "world": {"dilation": 1}},
    {"instance": {"vcpus": 8}, "world": {"dilation": 4}},
]


def test_a_factor_with_a_name_of_its_own_sets_several_keys_at_once() -> None:
    result = experiment(world={"volume": "gp3"}, factors={"cell": LEVELS, "workload.clients": [4, 8]})
    assert result.factors["cell"] == ("2 vCPUs", "vcpus 8, dilation 4")
    assert [arm.label for arm in result.arms][::2] == ["2 vCPUs · clients 4", "vcpus 8, dilation 4 · clients 4"]
    assert [(arm.instance.vcpus, arm.world.dilation) for arm in result.arms] == [(2, 1), (2, 1), (8, 4), (8, 4)]
    assert {arm.world.volume for arm in result.arms} == {"gp3"}, "what no level sets is as in the file"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"cell": [*LEVELS, {"instance": {"vcpus": 4}}]},
            "sets the same keys, and the first has instance.vcpus, world",
        ),
        ({"cell": [{"instance": {"cores": 2}}]}, "`cores`, which a level has; there are type, memory, vcpus, cpus"),
        ({"cell": [{"seed": 2}]}, "a factor sets keys of world, instance"),
        ({"cell": [{"name": "none"}]}, "the first has none"),
        ({"cell": [{"workload": {"kind": "sysbench"}}]}, "workload.kind cannot be set beside other keys"),
        ({"cell": LEVELS, "world.dilation": [1, 2]}, "world.dilation is also a factor, so every arm"),
        ({"cell": LEVELS, "row": [{"instance": {"vcpus": 1}}]}, "instance.vcpus is also a factor, row, so every arm"),
        ({"cell": [{"world": {"dilation": 0}}]}, "factors.cell[1].world.dilation: it should be 1 or more, not 0"),
    ],
)
def test_what_is_wrong_in_a_level_of_several_keys_is_said(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as raises:
        experiment(factors=more)
    assert said in raises.value.message
    assert raises.value.message.startswith("factors.cell")


@given(st.lists(st.text(max_size=8), unique=True, min_size=1), st.sampled_from(["postgres.bin", "world.volumes.wal"]))
def test_levels_that_differ_are_called_differently(levels: list[str], factor: str) -> None:
    ours = [text for text in levels if text not in ("embedded", "no wal volume")]
    assert len(set(level_texts(factor, ours))) == len(ours)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**63 - 1))
def test_every_arm_runs_once_in_every_block_in_an_order_that_the_seed_decides(
    arms: int, replicates: int, seed: int
) -> None:
    tables = {"seed": seed, "replicates": replicates, "factors": {"workload.scale": list(range(1, arms + 1))}}
    result = experiment(**tables)
    cells = result.cells
    assert [cell.position for cell in cells] == list(range(arms * replicates))
    assert [cell.block for cell in cells] == sorted(cell.block for cell in cells)
    for block in range(1, replicates + 1):
        assert sorted(cell.arm.index for cell in cells if cell.block == block) == list(range(arms))
    again = [(cell.block, cell.arm.index) for cell in experiment(**tables).cells]
    assert again == [(cell.block, cell.arm.index) for cell in cells]


def test_more_replicates_begin_with_the_same_runs() -> None:
    factors = {"workload.scale": [1, 2, 3]}
    few, many = (experiment(replicates=count, factors=factors).cells for count in (2, 5))
    assert [cell.arm.index for cell in many[: len(few)]] == [cell.arm.index for cell in few]


def test_arms_of_a_block_share_their_seeds_and_blocks_do_not() -> None:
    result = experiment(seed=7)
    assert result.seed_of(1, "volume") != result.seed_of(2, "volume") != result.seed_of(2, "workload")
    assert result.seed_of(1, "volume") == experiment(seed=7, title="another").seed_of(1, "volume")


def test_identity_is_what_can_change_a_result() -> None:
    base = experiment().identity()
    assert base == experiment(seed=9, replicates=7, title="other words", name="other").identity()
    assert base == experiment(workload={"warmup": "15s"}).identity()
    assert experiment(instance={"memory": "1GiB"}).identity() == experiment(instance={"memory": "1024MiB"}).identity()
    assert base != experiment(workload={"scale": 3}).identity()

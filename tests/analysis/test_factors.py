"""What factors and their levels are called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.analysis.factors import arm_label, factor_title, factors_of, levels_of


def run(version: str = "18.6", volumes: dict[str, str] | None = None, **factors: str) -> Any:
    """As much of a run's record as names are made of."""
    kinds = {role: SimpleNamespace(spec={"type": kind}) for role, kind in (volumes or {}).items()}
    return SimpleNamespace(
        factors=factors,
        arm=" · ".join(factors.values()),
        postgres=SimpleNamespace(version=version),
        world=SimpleNamespace(volumes=kinds, volume={}),
    )


def labels(name: str, *levels: str, runs: list[Any] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(labels, cells) of a factor's levels."""
    experiment: Any = SimpleNamespace(factors={name: levels}, arms=())
    (factor,) = factors_of(experiment, runs or [])
    return factor.labels, factor.cells


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("world.volume", "volume"),
        ("world.volumes.wal", "wal volume"),
        ('world.volumes."tablespace.fast"', "tablespace.fast volume"),
        ("world.volumes.tablespace.fast", "tablespace.fast volume"),
        ("postgres.bin", "PostgreSQL"),
        ("postgres.parameters.shared_buffers", "shared_buffers"),
        ("workload.clients", "clients"),
        ("instance.memory", "memory"),
    ],
)
def test_titles(name: str, title: str) -> None:
    assert factor_title(name) == title


def test_no_volume_is_none_below_its_title_and_named_beside_others() -> None:
    having = run(volumes={"wal": "io2bx"}, **{"world.volumes.wal": "io2bx:iops=4000"})
    results = labels("world.volumes.wal", "no wal volume", "io2bx:iops=4000", runs=[having])
    assert results == (("no wal volume", "wal on io2bx"), ("none", "io2bx"))


def test_binaries_are_called_by_the_version_that_ran() -> None:
    runs = [run("18.6", **{"postgres.bin": "embedded"}), run("15.18", **{"postgres.bin": "PostgreSQL 15"})]
    assert labels("postgres.bin", "embedded", "PostgreSQL 15", runs=runs) == (
        ("PG 18.6", "PG 15.18"),
        ("18.6", "15.18"),
    )


def test_two_builds_of_one_version_keep_their_own_names() -> None:
    runs = [run("18.6", **{"postgres.bin": level}) for level in ("embedded", "/opt/pg/bin")]
    assert labels("postgres.bin", "embedded", "/opt/pg/bin", runs=runs)[0] == ("embedded", "/opt/pg/bin")


@pytest.mark.parametrize(
    ("name", "levels", "expected"),
    [
        ("workload.clients", ("8", "64"), ("clients 8", "clients 64")),
        ("cell", ("2 vCPUs", "vcpus 8, dilation 4"), ("2 vCPUs", "vcpus 8, dilation 4")),
        ("world.file_system", ("ext4", "xfs"), ("ext4", "xfs")),
        ("world.volumes", ("data gp3", "data gp3, wal io2bx"), ("data gp3", "data gp3, wal io2bx")),
        ("postgres.settings", ("tuned", "defaults"), ("tuned", "defaults")),
        (
            "world.mount_options",
            ("default mount options", "noatime"),
            ("default mount options", "mount options noatime"),
        ),
        ("postgres.parameters.wal_compression", ("off", "lz4"), ("wal_compression off", "wal_compression lz4")),
    ],
)
def test_levels_that_need_their_name_have_it(name: str, levels: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert labels(name, *levels)[0] == expected


def test_volumes_of_one_type_are_told_apart_by_what_was_asked() -> None:
    runs = [run(volumes={"data": "gp3"}, **{"world.volume": level}) for level in ("gp3", "gp3:iops=6000")]
    assert labels("world.volume", "gp3", "gp3:iops=6000", runs=runs)[0] == ("gp3", "gp3:iops=6000")


def test_a_record_from_before_there_were_factors_is_of_volumes() -> None:
    experiment: Any = SimpleNamespace(factors={}, arms=("gp3", "io2bx", "gp3"))
    factors = factors_of(experiment, [])
    old: Any = SimpleNamespace(factors={}, arm="io2bx")
    assert [factor.levels for factor in factors] == [("gp3", "io2bx")]
    assert levels_of(factors, old) == (1,)
    assert arm_label(factors, (1,)) == "io2bx"

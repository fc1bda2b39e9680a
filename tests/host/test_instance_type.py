"""An instance type by name becomes memory and CPUs, and says what of it this host cannot be."""

from __future__ import annotations

import os

import pytest

from pgdyno.errors import InputError
from pgdyno.host.instance_type import cpus_of, is_storage_only, resolve_type


@pytest.mark.parametrize(
    ("vcpus", "cores", "cpus", "storage_only"),
    [(2, {0, 1}, None, False), (2, {0, 2, 3}, "0,2", False), (96, {0, 1}, None, True), (1, {5}, None, False)],
)
def test_it_has_as_many_cpus_as_the_host_can_give(
    monkeypatch: pytest.MonkeyPatch, vcpus: int, cores: set[int], cpus: str | None, storage_only: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: cores)
    assert (cpus_of(vcpus), is_storage_only(vcpus)) == (cpus, storage_only)


@pytest.mark.parametrize(
    ("vcpus", "dilation", "cpus", "storage_only"),
    [(96, 48, None, False), (96, 24, None, True), (8, 8, "0", False), (9, 8, None, False), (2, 4, "0", False)],
)
def test_a_core_stands_for_as_many_cpus_as_time_is_slowed(
    monkeypatch: pytest.MonkeyPatch, vcpus: int, dilation: int, cpus: str | None, storage_only: bool
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    assert (cpus_of(vcpus, dilation), is_storage_only(vcpus, dilation)) == (cpus, storage_only)


def test_a_type_of_the_catalogue() -> None:
    found = resolve_type("r6g.large")
    assert (found.name, found.vcpus, found.memory_bytes) == ("r6g.large", 2, 16 << 30)
    assert found.ebs["maximum_iops"] >= found.ebs["baseline_iops"] > 0


def test_a_type_that_does_not_exist_has_neighbours() -> None:
    with pytest.raises(InputError) as caught:
        resolve_type("r6g.lagre")
    assert "r6g.large" in f"{caught.value.message} {caught.value.remedy}"

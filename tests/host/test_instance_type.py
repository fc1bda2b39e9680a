"""An instance type by name becomes memory and CPUs, and says what of it this host cannot be."""

from __future__ import annotations

import os

import pytest

from pgdyno.base import catalog
from pgdyno.base.errors import InputError
from pgdyno.machine.instance_type import cpus_of, is_storage_only, resolve_type


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
    type_ = resolve_type("r6g.large")
    assert (type_.name, type_.vcpus, type_.memory_bytes) == ("r6g.large", 2, 16 << 30)
    assert type_.ebs["maximum_iops"] >= type_.ebs["baseline_iops"] > 0


def test_a_type_that_does_not_exist_has_neighbours() -> None:
    with pytest.raises(InputError) as caught:
        resolve_type("r6g.lagre")
    assert "r6g.large" in f"{caught.value.message} {caught.value.remedy}"


@pytest.mark.parametrize("spec", ["io1:size=2TiB,iops=32001", "io2-2023:iops=50000", "io2bx:size=1TiB,iops=64000"])
def test_a_volume_that_does_less_off_nitro_is_refused_there(spec: str) -> None:
    volume = catalog.resolve(spec)
    with pytest.raises(
        InputError, match=r"does at most 32,000 on r4\.16xlarge, which is not a Nitro instance"
    ) as caught:
        resolve_type("r4.16xlarge").require_iops([volume])
    assert "iops=32000" in caught.value.remedy
    resolve_type("r5.16xlarge").require_iops([volume])


@pytest.mark.parametrize(
    "spec", ["io1:size=2TiB,iops=32000", "2xio2bx:size=1TiB,iops=32000", "gp3:size=1TiB,iops=80000"]
)
def test_what_a_volume_does_on_every_instance_is_not_refused(spec: str) -> None:
    resolve_type("r4.16xlarge").require_iops([catalog.resolve(spec)])

"""Several volumes of one instance are attached by role and taken away together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.machine import mounts, volume
from pgdyno.machine import placement as placements
from pgdyno.machine.journal import HostJournal
from pgdyno.machine.placement import Placement, attach_placement, seed_of
from pgdyno.machine.waiting import wait_until

from .needs import needs_fuse

if TYPE_CHECKING:
    from pathlib import Path

BIG = 64 << 20


def test_roles_have_an_order_and_empty_ones_are_none() -> None:
    assert Placement({"wal": "gp3", "data": "io2bx", "temp": ""}).roles == ("data", "wal")
    with pytest.raises(InputError, match="no volume for the data"):
        Placement({"wal": "gp3", "data": ""}).roles  # noqa: B018 - the property refuses


def test_each_volume_draws_from_a_seed_of_its_own() -> None:
    assert seed_of(7, "data") == 7
    assert len({seed_of(7, role) for role in ("data", "wal", "temp", "tablespace.a", "tablespace.b")}) == 5
    assert all(0 <= seed_of(2**62 - 1, role) < 2**62 for role in ("data", "wal"))


def test_the_servers_user_can_walk_to_the_volumes_whatever_the_umask(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    def attach(_spec: str, *, mount: Path, **_: object) -> volume.AttachedVolume:
        modes.append(mount.parent.stat().st_mode & 0o777)
        raise InputError("enough was seen", remedy="none")

    monkeypatch.setattr(volume, "attach", attach)
    before = os.umask(0o077)
    try:
        with (
            pytest.raises(InputError, match="enough"),
            attach_placement(Placement({"data": "gp3"}), name="v", journal=HostJournal(state)),
        ):
            pass
    finally:
        os.umask(before)
    assert modes == [0o755]


@needs_fuse
def test_every_role_is_mounted_and_saved(state: Path) -> None:
    journal, saved = HostJournal(state), {role: state.parent / "images" / role for role in ("data", "wal")}
    placement = Placement({"data": "null:size=1GiB", "wal": "null:size=512MiB"}, mount_options="noatime")
    with attach_placement(placement, name="first", journal=journal) as attached:
        assert list(attached.mounts) == ["data", "wal"]
        assert len({volume.block_device for volume in attached.volumes.values()}) == 2
        for role, mount in attached.mounts.items():
            assert mounts.is_mount_point(mount)
            (mount / "role").write_text(role)
        attached.detach(saved)
        assert attached.volumes == {}
    clones = Placement({"data": "gp3", "wal": "io2bx", "backup": "gp3"})
    with attach_placement(clones, name="second", images=saved, journal=journal, seed=3) as attached:
        assert {role: (attached.mounts[role] / "role").read_text() for role in saved} == {"data": "data", "wal": "wal"}
        assert not (attached.mounts["backup"] / "role").exists()
        assert {volume.spec["type"] for volume in attached.volumes.values()} == {"gp3", "io2bx"}
        assert attached.volumes["data"].facts["seed"] != attached.volumes["wal"].facts["seed"]
    assert volume.list_volumes(state) == []


@needs_fuse
def test_a_volume_that_cannot_be_attached_takes_the_others_with_it(state: Path) -> None:
    with (
        pytest.raises(InputError, match="floppy"),
        attach_placement(Placement({"data": "gp3", "wal": "floppy"}), name="v", journal=HostJournal(state)),
    ):
        pass
    assert volume.list_volumes(state) == []
    assert list((state / "mounts").iterdir()) == []


@needs_fuse
@pytest.mark.parametrize("meanwhile", [True, False])
def test_what_removed_files_took_is_given_back_while_volumes_are_filled(
    state: Path, monkeypatch: pytest.MonkeyPatch, *, meanwhile: bool
) -> None:
    monkeypatch.setattr(placements, "TRIM_S", 0.1)
    store = state.parent / "layers"
    store.mkdir()

    def held_bytes() -> int:
        return sum(path.stat().st_blocks * 512 for path in store.rglob("*") if path.is_file())

    placement = Placement({"data": "null:size=512MiB"}, store=str(store))
    with attach_placement(placement, name="v", journal=HostJournal(state)) as attached:
        file = attached.mounts["data"] / "wal"
        with attached.trimmed(meanwhile=meanwhile):
            with file.open("wb") as out:
                out.write(bytes(range(256)) * (BIG // 256))
                os.fsync(out.fileno())
            assert held_bytes() >= BIG
            file.unlink()
            assert wait_until(lambda: held_bytes() < BIG, 20.0 if meanwhile else 1.0) == meanwhile
        assert held_bytes() < BIG

"""The twin's file: what a fit found is what the engine attaches; files that nobody wrote so are refused."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.advise.twin import file
from pgdyno.advise.twin.fit import Twin, fit
from pgdyno.advise.twin.measure import MIB, FioTarget
from pgdyno.base import catalog
from pgdyno.base.errors import InputError
from pgdyno.cli import volume
from tests.twin.synthetic import Disk

TARGET = FioTarget("/proc/1/fd/3", '/srv/a "disk"', 1 << 30, 20_480 * MIB, "/dev/vdb", "ext4")
DISK = Disk({"read": 5000, "write": 5000}, 300 * MIB)


@pytest.fixture
def written(tmp_path: Path, engine: Path) -> tuple[Path, Twin]:
    """A twin's file, and what it was written from."""
    measurements = DISK.measured()
    twin = fit(measurements)
    path = tmp_path / "twin.toml"
    file.write(path, twin, TARGET, measurements, fio="fio-3.33", pgdyno="1.0")
    assert [each.name for each in tmp_path.iterdir()] == ["twin.toml"]
    return path, twin


def test_the_engine_attaches_what_was_fitted(written: tuple[Path, Twin]) -> None:
    path, twin = written
    resolved = catalog.resolve(str(path)).document
    assert resolved["type"] == "twin" and resolved["spec"] == f"twin:{path}"
    assert resolved["title"].startswith('twin of /srv/a "disk", 20 GiB, ')
    assert resolved["usd_per_month"] is None
    params = resolved["params"]
    assert params["size_bytes"] == 20_480 * MIB
    assert params["iops_limit"] == {"rate_per_s": twin.reads_per_s, "depth_ns": twin.iops_bucket_ms * 10**6}
    assert params["throughput_limit"]["rate_per_s"] == twin.bytes_per_s
    assert params["accounting"] == {"unit_bytes": 256 << 10, "merge_sequential": twin.merge_sequential}
    assert params["order"] == twin.order
    for name, rows in (("read", twin.read_ns), ("write", twin.write_ns)):
        table = params["service_time"][name]
        assert table["probability_ppm"] == list(twin.probability_ppm)
        assert [(row["size_bytes"], tuple(row["service_ns"])) for row in table["rows"]] == [
            (size << 10, row) for size, row in zip(twin.size_kib, rows, strict=True)
        ]


def test_limits_of_reads_and_writes_come_out_of_one_bucket(tmp_path: Path, engine: Path) -> None:
    measurements = DISK.measured()
    twin = replace(fit(measurements), reads_per_s=9000, writes_per_s=3000, bytes_per_s=None)
    path = tmp_path / "twin.toml"
    file.write(path, twin, TARGET, measurements, fio="fio", pgdyno="1")
    params = catalog.resolve(f"twin:{path}").document["params"]
    rate, cost = params["iops_limit"]["rate_per_s"], params["cost"]
    assert (rate / cost["read_tokens"], rate / cost["write_tokens"]) == (9000, 3000)
    assert params["throughput_limit"] is None


def test_notes_stand_in_the_file(tmp_path: Path) -> None:
    measurements = DISK.measured()
    twin = replace(fit(measurements), notes=("the rate of writes still fell",))
    assert "# Note: the rate of writes still fell." in file.text(twin, TARGET, measurements, fio="fio", pgdyno="1")


def test_a_file_that_is_no_twin_is_refused_with_its_name(tmp_path: Path, engine: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("schema_version = 7\n")
    with pytest.raises(InputError, match=r"broken\.toml is not a twin"):
        catalog.resolve(str(broken))
    with pytest.raises(InputError, match="cannot read the twin"):
        catalog.resolve(str(tmp_path / "absent.toml"))


def test_what_could_not_be_written_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "there.toml").touch()
    for path, complaint in (
        (tmp_path / "there.toml", "already exists"),
        (tmp_path / "no" / "twin.toml", "no file can be created"),
        (tmp_path / "twin.json", "does not end in .toml"),
    ):
        with pytest.raises(InputError, match=complaint):
            file.require_writable(path)


def test_the_command_that_uses_a_twin_can_be_pasted(
    written: tuple[Path, Twin], capsys: pytest.CaptureFixture[str]
) -> None:
    path, twin = written
    moved = path.rename(path.with_name("twin ü'.toml"))
    volume._print_twin(moved, catalog.resolve(f"twin:{moved}").document, twin, 7)
    command = capsys.readouterr().out.splitlines()[-1].partition("use it")[2]
    assert shlex.split(command) == ["pgdyno", "compare", str(moved), "gp3"]

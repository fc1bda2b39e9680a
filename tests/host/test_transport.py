"""Volumes whose requests arrive over io_uring: the parameter of the kernel's FUSE, and what holds for any volume."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.errors import InputError
from pgdyno.host import transport, volume
from pgdyno.host.clean import clean
from pgdyno.host.machine_record import MachineRecord

from . import test_daemon_killed, test_file_system, test_volume, test_volume_fail, test_volume_modify

NOT_HERE = transport.missing()
over_uring = pytest.mark.skipif(NOT_HERE is not None, reason=NOT_HERE or "")


attached, bare = test_volume.attached, test_volume_fail.bare
"""Fixtures of the tests that are taken over."""


@pytest.fixture
def parameter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of the test's own, which is off."""
    path = tmp_path / "enable_uring"
    path.write_text("N\n")
    monkeypatch.setattr(transport, "PARAMETER", path)
    return path


def test_the_parameter_is_set_for_an_attach_and_put_back(parameter: Path, tmp_path: Path) -> None:
    record = transport.record(tmp_path / "record.json")
    with transport.offered("uring", record):
        assert parameter.read_text() == "Y"
        assert not record.abandoned(), "the attach lives"
        assert record.recover() == []
    assert parameter.read_text() == "N"
    for other in ("classic", "auto"):
        with transport.offered(other, transport.record(tmp_path / other)):
            assert parameter.read_text() == "N"


def killed_attach(folder: Path) -> MachineRecord:
    """The record of an attach that ended while it had set the parameter."""
    record = transport.record(folder / "record.json")
    pid = os.fork()
    if pid == 0:
        with transport.offered("uring", record):
            os._exit(0)
    os.waitpid(pid, 0)
    return record


def test_what_a_killed_attach_set_is_put_back(parameter: Path, tmp_path: Path) -> None:
    record = killed_attach(tmp_path)
    assert parameter.read_text() == "Y"
    assert record.abandoned()
    with transport.offered("uring", record):  # the next attach sees that it is nobody's
        assert parameter.read_text() == "Y"
    assert parameter.read_text() == "N"
    assert not record.abandoned()


def test_a_clean_up_puts_it_back(parameter: Path, tmp_path: Path) -> None:
    record = killed_attach(tmp_path)
    assert record.recover() == [f"set {parameter} back to N"]
    assert parameter.read_text() == "N"
    assert record.recover() == []


def test_what_an_administrator_has_set_stays(parameter: Path, tmp_path: Path) -> None:
    parameter.write_text("Y\n")
    with transport.offered("uring", transport.record(tmp_path / "record.json")):
        assert parameter.read_text() == "Y\n"
    assert parameter.read_text() == "Y\n"


def test_a_word_that_is_no_transport_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_TRANSPORT", "fast")
    with pytest.raises(InputError, match="`fast`") as caught:
        transport.asked()
    assert "classic, uring, auto" in caught.value.remedy
    monkeypatch.delenv("PGDYNO_TRANSPORT")
    assert transport.asked() == "auto"


@pytest.mark.needs_fuse
def test_a_kernel_without_it_serves_as_ever(state: Path, parameter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path("/sys/module/fuse/parameters/enable_uring")
    if real.exists() and real.read_text().strip() == "Y":
        pytest.skip("this kernel offers it to everybody")
    parameter.unlink()
    monkeypatch.setenv("PGDYNO_TRANSPORT", "uring")
    with volume.attached("null", mount=None) as found:
        chosen = found.facts["transport"]
        assert (chosen["asked"], chosen["used"]) == ("uring", "classic")
        assert "does not offer" in chosen["reason"]


@pytest.mark.needs_fuse
@over_uring
class TestOverUring:
    """What is asked of a volume elsewhere in this folder, over io_uring."""

    @pytest.fixture(autouse=True)
    def _asked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PGDYNO_TRANSPORT", "uring")

    def test_it_is_what_was_asked_for(self, state: Path) -> None:
        before = transport.PARAMETER.read_text()
        with volume.attached("gp3", mount=state.parent / "mount") as found:
            assert found.facts["transport"] == {"asked": "uring", "used": "uring", "reason": None}
            assert transport.PARAMETER.read_text() == before, "a connection that has it keeps it"
            content = os.urandom(3 << 20)
            file = state.parent / "mount" / "file"
            file.write_bytes(content)
            os.sync()
            Path("/proc/sys/vm/drop_caches").write_text("1")
            assert file.read_bytes() == content
            counters = found.stats()["counters"]
            assert counters["write_ops"] > 0
            assert counters["read_ops"] > 0

    def test_a_volume_on_a_disk_does_without(self, state: Path, tmp_path: Path) -> None:
        with volume.attached("null:size=1GiB", mount=None, store=str(tmp_path)) as found:
            chosen = found.facts["transport"]
        assert chosen["used"] == "classic"
        assert "disk" in chosen["reason"]
        clean(state)

    test_used = staticmethod(test_volume.test_a_volume_is_attached_used_and_detached)
    test_image = staticmethod(test_volume.test_the_content_of_an_image_is_there_again)
    test_in_use = staticmethod(test_volume.test_a_volume_in_use_says_so_and_stays)
    test_killed_daemon = staticmethod(test_volume.test_a_killed_daemon_gives_errors_and_is_cleaned)
    test_killed_command = staticmethod(test_volume.test_a_killed_command_is_cleaned)
    test_stopped_daemon = staticmethod(test_volume.test_a_stopped_daemon_does_not_hang_the_clean_up)
    test_killed_in_attach = staticmethod(test_daemon_killed.test_killed_while_it_attaches)
    test_killed_in_detach = staticmethod(test_daemon_killed.test_killed_while_it_detaches)
    test_clones = staticmethod(test_file_system.test_clones_of_one_image_are_mounted_beside_each_other)
    test_paused = staticmethod(test_volume_fail.test_a_pause_holds_a_request_until_it_is_healed)
    test_errors = staticmethod(test_volume_fail.test_errors_are_eio_in_their_range_and_end_with_the_fault)
    test_paused_detach = staticmethod(test_volume_fail.test_a_paused_file_system_with_unwritten_pages_is_detached)
    test_paused_kill = staticmethod(
        test_volume_fail.test_a_request_of_a_paused_volume_whose_daemon_is_killed_ends_with_an_error
    )
    test_grows = staticmethod(test_volume_modify.test_a_volume_grows_with_its_file_system_under_load)

"""What ``auto`` comes to: judged by the CPU of a request, measured once since boot for each engine, and said in the facts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from pgdyno import _engine
from pgdyno.errors import HostError
from pgdyno.host import mounts, paths, transport, transport_auto, volume
from pgdyno.host.clean import clean
from pgdyno.host.transport_auto import Decided, Round
from tests.host.needs import expect
from tests.host.test_transport import over_uring, parameter

__all__ = ["parameter"]


def one_round(classic: tuple[int, int], uring: tuple[int, int], later_ns: int) -> Round:
    """CPU of a request, alone and among 32, and how much later it is answered over io_uring."""
    return {
        "cpu_ns": [list(classic), list(uring)],
        "took_ns": [[520_000, 540_000], [520_000 + later_ns, 540_000 + later_ns]],
    }


def rounds(*uring: tuple[int, int], later_ns: int = 5_000) -> list[Round]:
    """A cold one in which io_uring is far worse, and rounds in which /dev/fuse takes 16 and 8 us."""
    cold = one_round((10_000, 1_000), (90_000, 90_000), 10**6)
    return [cold, *(one_round((16_000, 8_000), one, later_ns) for one in uring)]


@pytest.mark.parametrize(
    ("uring", "expected"),
    [
        ([(16_000, 7_200), (15_000, 5_000), (14_000, 6_000)], "uring"),
        ([(16_000, 7_200), (15_000, 5_000), (14_000, 7_300)], "classic"),
        ([(16_100, 5_000), (15_000, 5_000), (14_000, 5_000)], "classic"),
    ],
    ids=["better in each round", "one round has too little gain", "one round costs more alone"],
)
def test_io_uring_must_be_better_in_every_round(uring: list[tuple[int, int]], expected: str) -> None:
    assert transport_auto.judged(rounds(*uring)).transport == expected


def test_answers_that_are_late_on_a_busy_machine_are_no_gain() -> None:
    cheap = [(8_000, 4_000)] * 3
    assert transport_auto.judged(rounds(*cheap, later_ns=14_000)).transport == "uring"
    assert transport_auto.judged(rounds(*cheap, later_ns=16_000)).transport == "classic"
    one_late = [*rounds(*cheap), one_round((16_000, 8_000), (8_000, 4_000), 100_000)]
    assert transport_auto.judged(one_late).transport == "classic"


def test_the_reason_has_the_figures() -> None:
    reason = transport_auto.judged(rounds((22_000, 7_800), (22_400, 8_000), (24_000, 7_600))).reason
    assert "alone takes 1.40 times" in reason
    assert "among 32 takes 0.97 times" in reason
    assert "answered 5 µs later" in reason


@pytest.fixture
def measurements(parameter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine of the test's own that can have it; each measurement is noted, and says how many there were."""
    made: list[str] = []

    def run_json(command: list[str], **_: object) -> dict[str, object]:
        assert command[:2] == ["volume", "measure-transports"]
        assert parameter.read_text() == "Y", "offered while it is measured"
        made.append(command[-1])
        return {"rounds": rounds(*[(1_000 * len(made), 1_000)] * 3)}

    monkeypatch.setattr(paths, "MACHINE_DIR", tmp_path / "machine")
    monkeypatch.setattr(_engine, "run_json", run_json)
    return made


def decided(state: Path) -> Decided:
    found = transport_auto.decided("auto", "memory", state)
    assert found is not None
    return found


def test_it_is_measured_once_since_boot_with_one_engine(measurements: list[str], tmp_path: Path) -> None:
    assert transport_auto.remembered() is None
    first = decided(tmp_path)
    assert (first.transport, len(measurements)) == ("uring", 1)
    assert decided(tmp_path) == first == transport_auto.remembered()
    assert len(measurements) == 1
    assert not Path(measurements[0]).exists(), "what it stood in is gone"
    file = paths.MACHINE_DIR / transport_auto.FILE
    written = json.loads(file.read_text())
    for key in ("boot_id", "build_hash"):
        file.write_text(json.dumps(written | {key: "another"}))
        assert transport_auto.remembered() is None
        assert decided(tmp_path) != first, "measured again"
    assert len(measurements) == 3
    file.write_text("torn")
    decided(tmp_path)
    assert len(measurements) == 4


def test_what_cannot_be_measured_is_classic_and_says_why(
    measurements: list[str], parameter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise HostError("the kernel gives no ring", remedy="")

    monkeypatch.setattr(_engine, "run_json", refused)
    assert decided(tmp_path) == Decided("classic", "it could not be measured: the kernel gives no ring")
    parameter.unlink()
    assert decided(tmp_path) == Decided("classic", transport.missing() or "")
    assert measurements == []


def test_where_nothing_is_to_be_decided_nothing_is_measured(measurements: list[str], tmp_path: Path) -> None:
    assert transport_auto.decided("auto", str(tmp_path), tmp_path) is None
    assert transport_auto.decided("classic", "memory", tmp_path) is None
    assert transport_auto.decided("uring", "memory", tmp_path) is None
    assert measurements == []


@pytest.mark.needs_fuse
@over_uring
def test_a_measurement_has_rounds_of_both_and_leaves_nothing(state: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with transport.offered("uring"):
        found = _engine.run_json(["volume", "measure-transports", "--state-dir", str(tmp_path)])
    assert found["depths"] == [1, 32]
    assert len(found["rounds"]) >= 3
    for one in found["rounds"]:
        assert min(cpu_ns for way in one["cpu_ns"] for cpu_ns in way) > 0, "each of them took CPU"
        assert min(took_ns for way in one["took_ns"] for took_ns in way) >= 450_000, "each waited for its instant"
    assert [loop for loop in mounts.loops() if paths.is_below(loop.backing_file, tmp_path)] == []
    assert mounts.mounts_below(tmp_path) == []
    assert os.listdir(tmp_path / "volumes") == []


@pytest.mark.needs_fuse
@over_uring
def test_a_measurement_that_is_killed_leaves_no_mount_and_no_device(state: Path, tmp_path: Path) -> None:
    def devices() -> int:
        return sum(paths.is_below(loop.backing_file, tmp_path) for loop in mounts.loops())

    command = [_engine.checked(), "volume", "measure-transports", "--state-dir", tmp_path]
    with transport.offered("uring"), subprocess.Popen(command, stdout=subprocess.DEVNULL) as measuring:
        expect(lambda: devices() == 2 or measuring.poll() is not None, "it has both devices")
        measuring.kill()
        measuring.wait()
    expect(lambda: devices() == 0, "the devices go")
    assert mounts.mounts_below(tmp_path) == []
    clean(state)


@pytest.mark.needs_fuse
@over_uring
@pytest.mark.parametrize("used", ["classic", "uring"])
def test_a_volume_uses_what_was_decided_and_says_why(state: Path, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDYNO_TRANSPORT", raising=False)
    monkeypatch.setattr(transport_auto, "decided", lambda *_: Decided(used, "it was so"))
    with volume.attached("null", mount=None, calibrate=False) as found:
        assert found.facts["transport"] == {"asked": "auto", "used": used, "reason": "it was so"}

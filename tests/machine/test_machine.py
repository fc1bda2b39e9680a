"""What is judged of a machine, its page, and what is refused before it is made; `make bench ONLY=machine` makes it."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.base.errors import HostError
from tools.machine import __main__ as command
from tools.machine import image, page, runs
from tools.machine.record import Record, Result, judge
from tools.machine.virtual import Answer

if TYPE_CHECKING:
    from pathlib import Path

GROUP: dict[str, Any] = {
    "memory.max": str(runs.MEMORY_MIB << 20), "memory.swap.max": "0", "memory_current_max": (runs.MEMORY_MIB << 20) - 4096,
    "members": {"postgres": 10, "sh": 1}, "engines": ["/user.slice/user-1000.slice/session-1.scope"],
    "cpu.weight of the parent": "1",
}  # fmt: skip


def answer(**group: object) -> Answer:
    """A watched command with one group, which differs from a right one in ``group``."""
    return Answer(code=0, stdout="", stderr="", seconds=1.0, groups={"data-1": GROUP | group}, killed=[])


def test_a_group_that_is_the_servers_alone_is_right() -> None:
    assert runs.memory(answer()) == []
    assert f"`memory.current` at most {GROUP['memory_current_max']:,}" in runs.limits(answer())


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ({"memory.max": "max"}, "memory.max max"),
        ({"memory.swap.max": "max"}, "memory.swap.max max"),
        ({"members": {"postgres": 10, "pgdyno-engine": 1}}, "pgdyno-engine in the server's group"),
        ({"engines": ["/pgdyno/data-1"]}, "the engine is in /pgdyno/data-1"),
        ({"memory_current_max": 1 << 20}, "the limit was not felt"),
        ({"cpu.weight of the parent": "100"}, "cpu.weight 100"),
    ],
)
def test_what_is_wrong_with_a_group_is_said(group: dict[str, object], said: str) -> None:
    [wrong] = runs.memory(answer(**group))
    assert said in wrong


def test_no_group_is_wrong() -> None:
    assert runs.memory(answer().model_copy(update={"groups": {}})) == ["no control group was seen"]


@pytest.mark.parametrize(
    ("reason", "slow"),
    [
        ("lateness: 5 % of requests over 1 ms late: at most 9 % of the transactions' time", True),
        ("replicate 1: wal volume lateness: 5 % of requests late", True),
        ("replicate 12: samples: no counters of the volume in the measure phase", False),
        ("host: other processes and the kernel took 40 % of its CPU, with 2 % idle", True),
        ("samples: 30 % of 10 samples of the volume are missing", True),
        ("samples: no counters of the volume in the measure phase", False),
        ("workload's invariants: balances: they differ", False),
        ("transactions: no transaction succeeded", False),
    ],
)
def test_a_slow_machine_is_told_from_a_wrong_run(reason: str, slow: bool) -> None:
    assert bool(runs.is_slow(reason)) is slow


def test_a_step_that_was_not_made_does_not_hold_and_the_page_has_all() -> None:
    keys = [step.key for step in command.STEPS]
    assert len(set(keys)) == len(keys)
    first = Result(key=keys[0], did="looked", expected="cgroup2fs", found="cgroup2fs | more", holds=True, seconds=3.2)
    record = Record(release="bookworm", wheel="x.whl", facts={"kernel": "6.1.0"}, results=[first])
    judged = judge(record, keys)
    assert [claim.holds for claim in judged] == [True, *([False] * (len(keys) - 1))]
    text = page.render(record, judged)
    assert "| kernel | 6.1.0 |" in text
    assert "cgroup2fs \\| more" in text
    assert all(f"| {key} |" in text for key in keys)


def test_a_record_resumes_with_the_same_wheel_and_what_failed_is_done_again() -> None:
    held = Result(key="a", did="", expected="", found="", holds=True, seconds=1.0)
    record = Record(release="bookworm", wheel="x, sha256 1", results=[held, held.model_copy(update={"holds": False})])
    assert record.resumes(Record(release="bookworm", wheel="x, sha256 1"))
    assert not record.resumes(Record(release="bookworm", wheel="x, sha256 2"))
    assert not record.resumes(Record(release="trixie", wheel="x, sha256 1"))
    record.forget_failed()
    assert record.results == [held]


def test_the_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image.shutil, "which", lambda name: None if name.startswith(("qemu", "mmd")) else name)
    assert image.missing() == "needs qemu-system-x86_64, mmdebstrap: `apt install mmdebstrap qemu-system-x86`"
    with pytest.raises(HostError, match="needs qemu-system-x86_64") as caught:
        image.require_programs()
    assert "apt install mmdebstrap" in caught.value.remedy
    monkeypatch.setattr(image.shutil, "which", lambda name: name)
    assert image.missing() is None


def test_a_wheel_of_other_code_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no wheel"):
        image.wheel(tmp_path)
    package = tmp_path / "python" / "pgdyno"
    package.mkdir(parents=True)
    (package / "a.py").write_text("A = 1\n")
    made = tmp_path / "x.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("pgdyno/a.py", "A = 1\n")
    assert image.has_the_code(made, tmp_path)
    (package / "a.py").write_text("A = 2\n")
    assert not image.has_the_code(made, tmp_path)


def test_the_root_has_a_user_with_sudo_and_the_agent(tmp_path: Path) -> None:
    for folder in ("etc/systemd/system", "etc/sudoers.d", "opt"):
        (tmp_path / folder).mkdir(parents=True)
    image.furnish(tmp_path)
    assert (tmp_path / "etc/sudoers.d" / image.USER).read_text() == f"{image.USER} ALL=(ALL) NOPASSWD: ALL\n"
    assert "def serve" in (tmp_path / "opt/agent.py").read_text()


@pytest.mark.bench
@pytest.mark.needs_fuse
def test_another_machine_does_all_of_it() -> None:
    if (why := image.missing()) is not None:
        pytest.skip(why)
    result = command.collect(command.STEPS, command.RESULTS)
    assert [str(claim) for claim in command.write(result) if not claim.holds] == []
